/** Sends records to a Cloudflare Queue (`USAGE_QUEUE`), and settles the batches that its consumer receives. */
import { decodeUsageRecord, ledgerOfRecord, type UsageRecord } from '../metering/record.ts';
import type { RecordSink } from '../metering/record-writer.ts';
import type { Log } from '../shared/log-event.ts';

/** The part of a Queue binding that is used. */
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
  /** Tried in order, until one takes the records. */
  readonly sinks: readonly RecordSink[];
  readonly log: Log;
}

/** The delay of a message that no sink took. */
const RETRY_SECONDS = 60;

/** Settles a batch with one call for each ledger. Messages that no sink takes are delivered again. */
export async function consumeRecords(
  messages: readonly RecordMessage[],
  ports: ConsumerPorts,
): Promise<void> {
  const received = messages.flatMap((message) => {
    const record = decodeUsageRecord(message.body);
    if (record !== null) return [{ message, record }];
    ports.log({
      event: 'record_lost',
      reason: 'The message of the Queue is not a record',
      record: message.body,
    });
    message.ack();
    return [];
  });
  const byLedger = Map.groupBy(received, ({ record }) => ledgerOfRecord(record));
  await Promise.all(
    [...byLedger.values()].map(async (own) => {
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
      // The next sink may take them.
    }
  }
  return false;
}
