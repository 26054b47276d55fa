/** Tests the sources of a deployment's own prices, the cache of KV's, and a failing KV (P2). */
import { describe, expect, test } from 'vitest';
import { findPrice } from '../../../src/metering/pricing/cost.ts';
import { MAX_PRICES_CHARS, PRICES_TTL_MS, PriceBook } from '../../../src/metering/pricing/price-book.ts';
import { price } from './prices.ts';

type Answer = string | null | Error | 'hangs';

/** A KV with one value, and a clock that the test sets. */
function setUp(first: Answer = null) {
  const state = { result: first, now: 1_800_000_000_000, reads: 0 };
  const logs: unknown[] = [];
  const timers = new Set<() => void>();
  const store = {
    get: async (key: string) => {
      expect(key).toBe('config/prices');
      state.reads++;
      if (state.result === 'hangs') return new Promise(() => {});
      if (state.result instanceof Error) throw state.result;
      return state.result;
    },
  } as unknown as Pick<KVNamespace, 'get'>;
  const own = [price({ models: ['own'], input: 1 }), price({ models: ['both'], input: 1 })];
  const book = new PriceBook(own, new Map(), {
    store,
    now: () => state.now,
    startTimer: (_, onFire) => {
      timers.add(onFire);
      return () => timers.delete(onFire);
    },
    log: (entry) => logs.push(entry),
  });
  const inputOf = (model: string, provider = 'p') =>
    findPrice(book.table, [provider], model, state.now)?.input;
  return { state, book, logs, timers, inputOf };
}

const KV = JSON.stringify([price({ models: ['kv'], input: 2 }), price({ models: ['both'], input: 2 })]);
const LATER = JSON.stringify([price({ models: ['both'], since: '2026-06-01', input: 3 })]);

describe('PriceBook', () => {
  test('P2 before KV is read: the prices of the setting before the shipped ones', () => {
    const { inputOf } = setUp(KV);
    expect([inputOf('own'), inputOf('kv'), inputOf('gpt-5', 'openai')]).toEqual([1, undefined, 1.25]);
  });

  test('P2 after KV is read: its prices are in the same layer as those of the setting, which win with the same since', async () => {
    const { book, inputOf, logs, timers } = setUp(KV);
    await book.load();
    expect([inputOf('own'), inputOf('kv'), inputOf('both')]).toEqual([1, 2, 1]);
    expect(logs).toEqual([]);
    expect(timers.size).toBe(0);
  });

  test('P2 the later price of setting and KV is in force', async () => {
    const { book, inputOf } = setUp(LATER);
    await book.load();
    expect(inputOf('both')).toBe(3);
  });

  test('P2 an isolate caches the prices of KV, or their absence, for a minute', async () => {
    for (const result of [KV, null]) {
      const { book, state } = setUp(result);
      await book.load();
      state.now += PRICES_TTL_MS - 1;
      await book.load();
      expect(state.reads).toBe(1);
      state.now += 1;
      await book.load();
      expect(state.reads).toBe(2);
    }
  });

  test('P2 while KV is being read, other requests use the last prices', async () => {
    const { book, state, inputOf } = setUp(KV);
    await book.load();
    state.now += PRICES_TTL_MS;
    state.result = null;
    const first = book.load();
    await book.load();
    expect(state.reads).toBe(2);
    expect(inputOf('kv')).toBe(2);
    await first;
    expect(inputOf('kv')).toBeUndefined();
  });

  test('P2 a KV that fails: logged, the other prices are used, and KV is read again after ten seconds', async () => {
    const { book, state, inputOf, logs } = setUp(new Error('KV is down'));
    await book.load();
    await book.load();
    expect([inputOf('own'), inputOf('gpt-5', 'openai')]).toEqual([1, 1.25]);
    expect(logs).toEqual([
      { event: 'prices_unreadable', key: 'config/prices', problem: 'Error: KV is down' },
    ]);
    expect(state.reads).toBe(1);
    state.now += 10_000;
    state.result = KV;
    await book.load();
    expect(inputOf('kv')).toBe(2);
  });

  test('P2 a KV that fails later: the last prices stay', async () => {
    const { book, state, inputOf } = setUp(KV);
    await book.load();
    state.now += PRICES_TTL_MS;
    state.result = new Error('KV is down');
    await book.load();
    expect(inputOf('kv')).toBe(2);
  });

  test('P2 a KV that hangs: times out after two seconds', async () => {
    const { book, timers, logs } = setUp('hangs');
    const loading = book.load();
    for (const onFire of timers) onFire();
    await loading;
    expect(logs).toMatchObject([{ problem: 'KV took longer than 2000 ms' }]);
  });

  test.each<[what: string, value: string, problem: RegExp]>([
    ['no JSON', 'hunter2', /^must be a list/],
    ['an invalid price', '[{"provider":"hunter2"}]', /^price 1: models must be/],
    ['too large', `[${' '.repeat(MAX_PRICES_CHARS)}]`, /^must have at most 262144 characters$/],
    ['nested without end', '['.repeat(100_000), /at most|list/],
  ])(
    'P2 an invalid value (%s): none of it is used, and the log names the problem',
    async (_, value, problem) => {
      const { book, state, inputOf, logs } = setUp(KV);
      await book.load();
      state.now += PRICES_TTL_MS;
      state.result = value;
      await book.load();
      expect(inputOf('kv')).toBeUndefined();
      expect(logs).toMatchObject([{ event: 'prices_unreadable', problem: expect.stringMatching(problem) }]);
      expect(JSON.stringify(logs)).not.toContain('hunter2');
    },
  );
});
