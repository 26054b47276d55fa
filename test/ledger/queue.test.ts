/** Tests the Queue's producer and consumer (L6): records arrive unchanged, one call settles the records of a key, and none is lost. */
import { describe, expect, test } from 'vitest';
import { consumeRecords, QueueSink } from '../../src/ledger/queue.ts';
import { type ChargedRecord, ledgerOfRecord, type UsageRecord } from '../../src/metering/record.ts';
import type { RecordSink } from '../../src/metering/record-writer.ts';
import { record } from '../metering/records.ts';

/** The result of a message. */
function message(body: unknown) {
  const ends: string[] = [];
  return {
    body,
    ends,
    ack: () => void ends.push('ack'),
    retry: (options?: { readonly delaySeconds?: number }) =>
      void ends.push(`retry in ${options?.delaySeconds} s`),
  };
}

class Sink implements RecordSink {
  readonly batches: (readonly UsageRecord[])[] = [];
  refuses: (ledger: string) => boolean = () => false;

  async put(records: readonly UsageRecord[]): Promise<void> {
    if (records.some((one) => this.refuses(ledgerOfRecord(one)))) throw new Error('refused');
    this.batches.push(records);
  }
}

const of = (key_id: string, n: number) => record({ key_id }, n);
const ofShard = (shard: string, n: number): ChargedRecord => ({
  ...of('a', n),
  charge: { tokens: 1, cost: null, shard },
});

describe('QueueSink', () => {
  test('L6 sends each record as one JSON message', async () => {
    const sent: unknown[] = [];
    const queue = { sendBatch: async (messages: Iterable<unknown>) => sent.push(...messages) };
    await new QueueSink(queue as never).put([of('a', 1), of('a', 2)]);
    expect(sent).toEqual([1, 2].map((n) => ({ body: of('a', n), contentType: 'json' })));
  });
});

describe('consumeRecords', () => {
  test('L6 a batch with several keys: one call for each key, and every message is acknowledged', async () => {
    const sink = new Sink();
    const messages = Array.from({ length: 100 }, (_, n) => message(of(`k${n % 3}`, n)));
    await consumeRecords(messages, { sinks: [sink], log: () => {} });
    expect(sink.batches.map(({ length }) => length).sort()).toEqual([33, 33, 34]);
    expect(messages.every(({ ends }) => ends.join() === 'ack')).toBe(true);
  });

  test('L5 L6 an unreachable ledger: its records go to the next sink, the others are settled', async () => {
    const [first, second] = [new Sink(), new Sink()];
    first.refuses = (keyId) => keyId === 'b';
    const messages = [message(of('a', 1)), message(of('b', 2))];
    await consumeRecords(messages, { sinks: [first, second], log: () => {} });
    expect([first.batches, second.batches]).toEqual([[[of('a', 1)]], [[of('b', 2)]]]);
    expect(messages.map(({ ends }) => ends.join())).toEqual(['ack', 'ack']);
  });

  test('L10 an unreachable shard: its records go to the next sink, those of its key and of other shards are settled', async () => {
    const [first, second] = [new Sink(), new Sink()];
    first.refuses = (name) => name === 'a/s/EU/0';
    const messages = [of('a', 1), ofShard('a/s/EU/0', 2), ofShard('a/s/EU/1', 3)].map(message);
    await consumeRecords(messages, { sinks: [first, second], log: () => {} });
    expect(first.batches).toEqual([[of('a', 1)], [ofShard('a/s/EU/1', 3)]]);
    expect(second.batches).toEqual([[ofShard('a/s/EU/0', 2)]]);
  });

  test('L6 no sink takes the records of a key: only its messages are retried', async () => {
    const sink = new Sink();
    sink.refuses = (keyId) => keyId === 'b';
    const messages = [message(of('a', 1)), message(of('b', 2))];
    await consumeRecords(messages, { sinks: [sink], log: () => {} });
    expect(messages.map(({ ends }) => ends.join())).toEqual(['ack', 'retry in 60 s']);
  });

  test('L6 a message that is not a record: logged completely, and not retried', async () => {
    const logged: unknown[] = [];
    const invalid = [null, 'text', {}, { request_id: 'x', key_id: 'a' }].map(message);
    await consumeRecords(invalid, { sinks: [new Sink()], log: (entry) => logged.push(entry) });
    expect(invalid.map(({ ends }) => ends.join())).toEqual(['ack', 'ack', 'ack', 'ack']);
    expect(logged).toHaveLength(4);
  });
});
