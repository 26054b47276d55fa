/** Tests the meter of one request (M1): one record, whatever the end. */
import { describe, expect, test } from 'vitest';
import { apiError } from '../../src/canonical/error.ts';
import { KvLedger } from '../../src/metering/kv/kv-ledger.ts';
import type { PriceTable } from '../../src/metering/prices/price.ts';
import { RecordWriter } from '../../src/metering/record-writer.ts';
import { requestId } from '../../src/metering/request-id.ts';
import { type RequestEnd, type RequestFacts, RequestMeter } from '../../src/metering/request-meter.ts';
import { Tally } from '../../src/metering/tally.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { choice } from '../stream/parts.ts';
import { MemoryStore } from './records.ts';

const ARRIVED = Date.UTC(2026, 10, 20, 10, 20, 30, 456);
const ID = requestId(ARRIVED, crypto.randomUUID());

function bench(store = new MemoryStore(), rewritten: Partial<RequestFacts> = {}, table: PriceTable = []) {
  let now = ARRIVED;
  const logged: Readonly<Record<string, unknown>>[] = [];
  const facts: RequestFacts = {
    requestId: ID,
    keyId: 'k',
    asked: 'fast',
    provider: 'p',
    model: 'm',
    priceIds: ['p'],
    route: 'chat',
    dropped: [],
    changed: [],
    arrivedAt: ARRIVED,
    ...rewritten,
  };
  const log = (entry: (typeof logged)[number]) => void logged.push(entry);
  const records = new RecordWriter({
    sinks: [new KvLedger(store.asStore)],
    startTimer: new FakeClock().startTimer,
    log,
  });
  const ports = { records, prices: { table }, now: () => now, log };
  const meter = new RequestMeter(facts, new Tally(() => now, 7), ports);
  const advance = (ms: number) => {
    now += ms;
  };
  return { meter, store, logged, advance };
}

const recordIn = (store: MemoryStore): unknown => JSON.parse([...store.entries.values()][0]?.value ?? 'null');
const error = apiError('upstream_truncated', 'P ended the stream');

describe('RequestMeter.settle', () => {
  test('M2 L1 a finished request: every fact, count and time of it', async () => {
    const { meter, store, advance } = bench();
    advance(50);
    meter.tally.delta(choice({ content: 'a' }));
    meter.tally.usage({ prompt: 1, completion: 2, cached: 3, reasoning: 4 });
    meter.tally.vendor({ kind: 'add', tokens: 5 });
    meter.tally.finish('eos');
    meter.wrote(10);
    meter.wrote(20);
    advance(50);
    meter.settle({ kind: 'finished' });
    await meter.settled;
    expect(recordIn(store)).toEqual({
      request_id: ID,
      time: '2026-11-20T10:20:30.456Z',
      ended: '2026-11-20T10:20:30.556Z',
      key_id: 'k',
      asked: 'fast',
      provider: 'p',
      model: 'm',
      route: 'chat',
      status: 'finished',
      error_code: null,
      finish_reason: 'eos',
      prompt_tokens: 1,
      completion_tokens: 2,
      total_tokens: 3,
      cached_tokens: 3,
      reasoning_tokens: 4,
      vendor_events: 1,
      vendor_tokens: 5,
      first_token_ms: 50,
      total_ms: 100,
      bytes_out: 30,
      estimated: false,
      cost_nanos: null,
      currency: null,
      cost_source: 'none',
      price_since: null,
      cost_estimated: false,
      attempts: [{ provider: 'p', model: 'm', error_code: null, ms: 100 }],
    });
  });

  test.each<[end: RequestEnd, status: string, code: string | null, prompt: number]>([
    [{ kind: 'cancelled' }, 'cancelled', null, 7],
    [{ kind: 'failed', error }, 'failed', 'upstream_truncated', 7],
    [{ kind: 'timed_out', error: apiError('timeout', 'P') }, 'timed_out', 'timeout', 7],
    [{ kind: 'refused', error: apiError('rate_limited', 'P') }, 'failed', 'rate_limited', 0],
  ])('M1 M3 %j: its status, its code, and what it used', async (end, status, code, prompt) => {
    const { meter, store } = bench();
    meter.settle(end);
    await meter.settled;
    expect(recordIn(store)).toMatchObject({
      status,
      error_code: code,
      prompt_tokens: prompt,
      first_token_ms: null,
      estimated: prompt > 0,
    });
  });

  test('Q5 Q6 what was dropped and changed: in the record and in the log, and absent where nothing was', async () => {
    const { meter, store, logged } = bench(undefined, { dropped: ['user', 'seed'], changed: ['max_tokens'] });
    meter.settle({ kind: 'finished' });
    await meter.settled;
    const names = { dropped: ['user', 'seed'], changed: ['max_tokens'] };
    expect(recordIn(store)).toMatchObject(names);
    expect(logged).toMatchObject([names]);
    const unchanged = bench();
    unchanged.meter.settle({ kind: 'finished' });
    await unchanged.meter.settled;
    expect(Object.keys(Object(recordIn(unchanged.store)))).not.toContain('dropped');
    expect(Object.keys(Object(recordIn(unchanged.store)))).not.toContain('changed');
  });

  test('M1 settled more than once: the first end counts, with one record and one line of log', async () => {
    const { meter, store, logged } = bench();
    meter.settle({ kind: 'cancelled' });
    meter.settle({ kind: 'finished' });
    await meter.settled;
    expect(store.entries.size).toBe(1);
    expect(recordIn(store)).toMatchObject({ status: 'cancelled' });
    expect(logged).toMatchObject([{ event: 'request', request_id: ID, status: 'cancelled' }]);
  });

  describe('the cost', () => {
    const price = {
      provider: 'p',
      models: ['m'],
      since: '2026-11-01T00:00:00Z',
      currency: 'EUR',
      input: 2,
      output: 3,
    };

    async function costOf(end: RequestEnd, report?: Parameters<Tally['usage']>[0]) {
      const { meter, store } = bench(undefined, {}, [[price]]);
      if (report !== undefined) meter.tally.usage(report);
      meter.settle(end);
      await meter.settled;
      const { cost_nanos, currency, cost_source, price_since, cost_estimated } = Object(recordIn(store));
      return { cost_nanos, currency, cost_source, price_since, cost_estimated };
    }
    const byTable = { currency: 'EUR', cost_source: 'table', price_since: '2026-11-01T00:00:00.000Z' };

    test("L1 P4 of tokens that the upstream told: the table's, and no estimate", async () => {
      const cost = { ...byTable, cost_nanos: 20_000 + 15_000, cost_estimated: false };
      expect(await costOf({ kind: 'finished' }, { prompt: 10, completion: 5 })).toEqual(cost);
    });

    test('P5 M3 of estimated tokens: an estimate', async () => {
      expect(await costOf({ kind: 'cancelled' })).toEqual({
        ...byTable,
        cost_nanos: 14_000,
        cost_estimated: true,
      });
    });

    test("P3 that the upstream told: the upstream's, and no estimate, whatever its tokens are", async () => {
      const told = {
        cost_nanos: 77,
        currency: 'USD',
        cost_source: 'upstream',
        price_since: null,
        cost_estimated: false,
      };
      expect(await costOf({ kind: 'cancelled' }, { cost: 77 })).toEqual(told);
    });

    test('P4 of a request that the upstream refused: nothing', async () => {
      const end: RequestEnd = { kind: 'refused', error };
      expect(await costOf(end)).toEqual({ ...byTable, cost_nanos: 0, cost_estimated: false });
    });
  });
});
