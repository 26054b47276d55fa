/** Tests the delivery of records (M1): with retries, and logged completely if no sink takes a record. */
import { describe, expect, test } from 'vitest';
import { KvLedger } from '../../src/metering/kv-ledger.ts';
import { RecordWriter } from '../../src/metering/record-writer.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { settle } from '../stream/stream-bench.ts';
import { MemoryStore, record } from './records.ts';

/** Rejects the first writes, or leaves them pending. */
class BadStore extends MemoryStore {
  readonly #badTries: number;
  readonly #kind: 'refuses' | 'hangs';
  tries = 0;

  constructor(badTries: number, kind: 'refuses' | 'hangs') {
    super();
    this.#badTries = badTries;
    this.#kind = kind;
  }

  override async put(...entry: Parameters<MemoryStore['put']>): Promise<void> {
    if (++this.tries > this.#badTries) return super.put(...entry);
    if (this.#kind === 'refuses') throw new Error('429');
    await new Promise(() => {});
  }
}

function bench(...stores: readonly BadStore[]) {
  const clock = new FakeClock();
  const logged: Readonly<Record<string, unknown>>[] = [];
  const sinks = stores.map((store) => new KvLedger(store.asStore));
  const writer = new RecordWriter(sinks, (entry) => void logged.push(entry));
  /** Writes one record, while the clock advances by so many seconds. */
  async function write(seconds: number): Promise<boolean> {
    let isSettled = false;
    void writer.write(record(), clock.startTimer).then(() => {
      isSettled = true;
    });
    for (let step = 0; step < seconds * 2; step++) {
      await settle();
      clock.advance(500);
    }
    await settle();
    return isSettled;
  }
  return { clock, logged, write };
}

describe('RecordWriter.write', () => {
  test('M1 a sink that takes the record: one try, no remaining timer, no log line', async () => {
    const store = new BadStore(0, 'refuses');
    const { clock, logged, write } = bench(store);
    expect(await write(0)).toBe(true);
    expect([store.tries, store.entries.size, clock.running, logged]).toEqual([1, 1, 0, []]);
  });

  test('M1 a sink that rejects at first: retried until it takes the record', async () => {
    const store = new BadStore(3, 'refuses');
    const { logged, write } = bench(store);
    expect(await write(10)).toBe(true);
    expect([store.tries, store.entries.size, logged]).toEqual([4, 1, []]);
  });

  test.each(['refuses', 'hangs'] as const)(
    'M1 a sink that %s forever: the record is logged completely within 30 s',
    async (kind) => {
      const store = new BadStore(Number.POSITIVE_INFINITY, kind);
      const { logged, write, clock } = bench(store);
      expect(await write(29)).toBe(true);
      expect(logged).toMatchObject([{ event: 'record_lost', record: record() }]);
      expect([store.entries.size, clock.running]).toEqual([0, 0]);
    },
  );

  test('M1 several lost records: each is logged and counted', async () => {
    const { logged, write } = bench(new BadStore(Number.POSITIVE_INFINITY, 'refuses'));
    await write(29);
    await write(29);
    expect(logged.map((entry) => entry.lost_by_this_isolate)).toEqual([1, 2]);
  });

  test.each(['refuses', 'hangs'] as const)(
    'L5 a first sink that %s forever: the second one has the record within 15 s',
    async (kind) => {
      const first = new BadStore(Number.POSITIVE_INFINITY, kind);
      const second = new BadStore(0, 'refuses');
      const { logged, write } = bench(first, second);
      expect(await write(15)).toBe(true);
      expect([first.entries.size, second.entries.size, logged]).toEqual([0, 1, []]);
    },
  );

  test('L5 all sinks hang: the record is logged completely within 30 s', async () => {
    const hanging = () => new BadStore(Number.POSITIVE_INFINITY, 'hangs');
    const { logged, write, clock } = bench(hanging(), hanging(), hanging());
    expect(await write(29)).toBe(true);
    expect(logged).toMatchObject([{ event: 'record_lost', record: record() }]);
    expect(clock.running).toBe(0);
  });

  test('L5 a first sink that takes the record: the second one is not called', async () => {
    const second = new BadStore(0, 'refuses');
    const { write } = bench(new BadStore(2, 'refuses'), second);
    expect(await write(10)).toBe(true);
    expect(second.tries).toBe(0);
  });
});

test('record_lost has the record without its charge', async () => {
  const clock = new FakeClock();
  const logged: Readonly<Record<string, unknown>>[] = [];
  const writer = new RecordWriter([], (entry) => void logged.push(entry));
  await writer.write({ ...record(), ...{ charge: { tokens: 1, cost: null } } }, clock.startTimer);
  expect(logged).toEqual([expect.objectContaining({ event: 'record_lost', record: record() })]);
});
