/** Records on their way through a Cloudflare Queue: for bursts, and for a ledger far away (USAGE_QUEUE, L6). */
import { decodeUsageRecord, type UsageRecord } from './record.ts';
import type { RecordSink } from './record-writer.ts';

/** The part of a queue's binding that is used. */
export type RecordQueue = Pick<Queue<UsageRecord>, 'sendBatch'>;

/** The part of a message that is used. */
export type RecordMessage = Pick<Message, 'body' | 'ack' | 'retry'>;

export class QueueSink implements RecordSink {
  readonly #queue: RecordQueue;

  constructor(queue: RecordQueue) {
    this.#queue = queue;
  }

  async put(records: readonly UsageRecord[]): Promise<void> {
    await this.#queue.sendBatch(records.map((body) => ({ body, contentType: 'json' })));
  }
}

export interface ConsumerPorts {
  /** The first one that takes a record keeps it. */
  readonly sinks: readonly RecordSink[];
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

/** A message that no sink took comes again after so many seconds. */
const RETRY_SECONDS = 60;

/** Settles a batch, a call a key. What is delivered again changes nothing; what no sink takes is delivered again. */
export async function consumeRecords(
  messages: readonly RecordMessage[],
  ports: ConsumerPorts,
): Promise<void> {
  const sent = messages.flatMap((message) => {
    const record = decodeUsageRecord(message.body);
    if (record !== null) return [{ message, record }];
    ports.log({ event: 'record_lost', reason: 'a message of the queue is no record', record: message.body });
    message.ack();
    return [];
  });
  const byKey = Map.groupBy(sent, ({ record }) => record.key_id);
  await Promise.all(
    [...byKey.values()].map(async (own) => {
      const isTaken = await putInto(
        ports.sinks,
        own.map(({ record }) => record),
      );
      for (const { message } of own) {
        if (isTaken) message.ack();
        else message.retry({ delaySeconds: RETRY_SECONDS });
      }
    }),
  );
}

async function putInto(sinks: readonly RecordSink[], records: readonly UsageRecord[]): Promise<boolean> {
  for (const sink of sinks) {
    try {
      await sink.put(records);
      return true;
    } catch {
      // The next one may take them.
    }
  }
  return false;
}
