/** Tests records whose ledger cannot be reached (L5): they wait in KV and are replayed once. */
import { describe, expect, test } from 'vitest';
import { DeadLetters } from '../../src/ledger/dead-letters.ts';
import { type ChargedRecord, ledgerOfRecord, type UsageRecord } from '../../src/metering/record.ts';
import { MemoryStore, record } from '../metering/records.ts';

/** A ledger that can be unreachable for some keys and shards. */
class FakeLedger {
  readonly records = new Map<string, UsageRecord>();
  readonly unreachable = new Set<string>();
  calls = 0;

  async put(records: readonly UsageRecord[]): Promise<void> {
    this.calls++;
    if (records.some((one) => this.unreachable.has(ledgerOfRecord(one)))) throw new Error('out of reach');
    for (const one of records) this.records.set(one.request_id, one);
  }
}

function bench() {
  const store = new MemoryStore();
  const ledger = new FakeLedger();
  return { store, ledger, deadLetters: new DeadLetters(store.asStore, ledger) };
}

const of = (key_id: string, n: number) => record({ key_id }, n);

describe('DeadLetters', () => {
  test('L5 a stranded record is in KV completely', async () => {
    const { store, deadLetters } = bench();
    await deadLetters.put([of('a', 1)]);
    const [[name, { value }] = ['', { value: '' }]] = [...store.entries];
    expect(name).toBe(`stranded/a/${of('a', 1).request_id}`);
    expect(JSON.parse(value)).toEqual(of('a', 1));
  });

  test('L5 the next settlement of a key includes the remembered records of that key only, in the same call', async () => {
    const { store, ledger, deadLetters } = bench();
    await deadLetters.put([of('a', 1), of('a', 2), of('b', 3)]);
    await deadLetters.ledger.put([of('a', 4)]);
    expect([ledger.calls, ledger.records.size, store.entries.size]).toEqual([1, 3, 1]);
    await deadLetters.ledger.put([of('a', 5)]);
    expect([ledger.calls, ledger.records.size, store.entries.size]).toEqual([2, 4, 1]);
  });

  test('L5 a failed settlement leaves everything in KV', async () => {
    const { store, ledger, deadLetters } = bench();
    await deadLetters.put([of('a', 1)]);
    ledger.unreachable.add('a');
    await expect(deadLetters.ledger.put([of('a', 2)])).rejects.toThrow('out of reach');
    ledger.unreachable.clear();
    await deadLetters.ledger.put([of('a', 2)]);
    expect([ledger.records.size, store.entries.size]).toEqual([2, 0]);
  });

  test('L5 the daily run, in another isolate, replays every key whose ledger is reachable and keeps the others', async () => {
    const { store, ledger, deadLetters } = bench();
    const records = Array.from({ length: 250 }, (_, n) => of(`k${n % 3}`, n));
    await deadLetters.put(records);
    ledger.unreachable.add('k1');
    const other = new DeadLetters(store.asStore, ledger);
    expect(await other.replay()).toEqual({ settled: 167, left: 83 });
    expect([ledger.records.size, store.entries.size]).toEqual([167, 83]);
    ledger.unreachable.clear();
    expect(await other.replay()).toEqual({ settled: 83, left: 0 });
    expect(await other.replay()).toEqual({ settled: 0, left: 0 });
    expect([ledger.records.size, store.entries.size]).toEqual([250, 0]);
  });

  test('L10 the daily run replays a key and its shards that are reachable, and keeps the records of another shard', async () => {
    const { store, ledger, deadLetters } = bench();
    const ofShard = (n: number): ChargedRecord => {
      const charge = { tokens: 1, cost: null, shard: `a/s/EU/${n}` };
      return { ...of('a', n), charge };
    };
    await deadLetters.put([ofShard(0), ofShard(1), of('a', 2)]);
    ledger.unreachable.add('a/s/EU/1');
    const other = new DeadLetters(store.asStore, ledger);
    expect(await other.replay()).toEqual({ settled: 2, left: 1 });
    ledger.unreachable.clear();
    expect(await other.replay()).toEqual({ settled: 1, left: 0 });
    expect([...ledger.records.values()]).toContainEqual(ofShard(1));
  });

  test('L5 entries that are deleted or not records are skipped', async () => {
    const { store, ledger, deadLetters } = bench();
    await store.put('stranded/a/gone', 'null');
    await store.put('stranded/a/text', '"text"');
    await deadLetters.put([of('a', 1)]);
    expect(await deadLetters.replay()).toEqual({ settled: 1, left: 0 });
    expect(ledger.records.size).toBe(1);
  });

  test('L5 a long outage: an isolate remembers a bounded number of records, and the daily run replays the rest', async () => {
    const { store, ledger, deadLetters } = bench();
    for (let n = 0; n < 1500; n += 100)
      await deadLetters.put(Array.from({ length: 100 }, (_, i) => of('a', n + i)));
    for (let settling = 0; settling < 20; settling++)
      await deadLetters.ledger.put([of('a', 5000 + settling)]);
    expect(store.entries.size).toBe(500);
    await deadLetters.replay();
    expect([ledger.records.size, store.entries.size]).toEqual([1520, 0]);
  });
});
