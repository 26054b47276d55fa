/** Tests the meter of a request (M1): it writes one record for every end. */
import { describe, expect, test } from 'vitest';
import { apiError } from '../../src/canonical/error.ts';
import type { UsageReport } from '../../src/canonical/usage.ts';
import { InFlight } from '../../src/metering/in-flight.ts';
import { KvLedger } from '../../src/metering/kv-ledger.ts';
import { layerOf, type Price } from '../../src/metering/pricing/price.ts';
import { NO_ATTRIBUTION, type UsageRecord } from '../../src/metering/record.ts';
import { RecordWriter } from '../../src/metering/record-writer.ts';
import {
  type AttemptTraits,
  type MeteredRequest,
  type RequestEnd,
  RequestMeter,
} from '../../src/metering/request-meter.ts';
import { requestId } from '../../src/metering/time.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { choice } from '../stream/parts.ts';
import { MemoryStore } from './records.ts';

const ARRIVED = Date.UTC(2026, 10, 20, 10, 20, 30, 456);
const FIRST: AttemptTraits = {
  target: { provider: { id: 'p' }, model: 'm', priceIds: ['p'] },
  dropped: [],
  changed: [],
  choices: 1,
  showsAll: false,
  api: 'chat',
};
const ID = requestId(ARRIVED, crypto.randomUUID());

function bench(
  store = new MemoryStore(),
  rewritten: Partial<AttemptTraits> = {},
  prices: readonly Price[] = [],
) {
  let now = ARRIVED;
  const logged: Readonly<Record<string, unknown>>[] = [];
  const lines: (string | undefined)[] = [];
  const log = (entry: (typeof logged)[number], text?: string) => {
    logged.push(entry);
    lines.push(text);
  };
  const { startTimer } = new FakeClock();
  const request: MeteredRequest = {
    context: {
      requestId: ID,
      arrivedAt: ARRIVED,
      ports: { clock: { now: () => now, startTimer }, log },
      records: new RecordWriter([new KvLedger(store.asStore)], log),
      prices: { table: [layerOf(prices)] },
      inFlight: new InFlight(),
    },
    caller: { keyId: 'k' },
    route: 'chat',
    client: { id: 'messages' },
    requestedModel: 'fast',
    alias: null,
    promptTokens: 7,
    attribution: NO_ATTRIBUTION,
    callerPays: false,
  };
  const hooks = { addCharge: (record: UsageRecord) => record, onRecord: () => {} };
  const meter = new RequestMeter(request, [], { ...FIRST, ...rewritten }, hooks);
  const advance = (ms: number) => {
    now += ms;
  };
  return { meter, store, logged, lines, advance };
}

const recordIn = (store: MemoryStore): unknown => JSON.parse([...store.entries.values()][0]?.value ?? 'null');
const error = apiError('upstream_truncated', 'P ended the stream');

describe('RequestMeter.settle', () => {
  test('a finished request: its line of the log has its record in KV, character by character', async () => {
    const { meter, store, logged, lines } = bench();
    meter.current.accumulator.usage({ prompt: 5, completion: 2 });
    meter.settle({ kind: 'finished' });
    await meter.settled;
    const stored = [...store.entries.values()][0]?.value ?? '';
    expect(lines).toEqual([`{"event":"request",${stored.slice(1)}`]);
    expect(JSON.parse(lines[0] ?? '')).toEqual(logged[0]);
  });

  test('M2 L1 a finished request: the record has all facts, counts and times', async () => {
    const { meter, store, advance } = bench();
    advance(50);
    meter.current.accumulator.delta(choice({ content: 'a' }));
    meter.current.accumulator.usage({ prompt: 5, completion: 2, cached: 3, reasoning: 4 });
    meter.current.accumulator.vendor({ kind: 'add', tokens: 5 });
    meter.current.accumulator.finish('eos', 'stop');
    meter.current.status = 200;
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
      ...NO_ATTRIBUTION,
      asked: 'fast',
      provider: 'p',
      model: 'm',
      route: 'chat',
      client: 'messages',
      status: 'finished',
      error_code: null,
      error: null,
      fault: null,
      finish_reason: 'eos',
      prompt_tokens: 5,
      completion_tokens: 2,
      total_tokens: 7,
      cached_tokens: 3,
      cache_write_tokens: null,
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
      attempts: [{ provider: 'p', model: 'm', status: 200, error_code: null, ms: 100 }],
    });
  });

  test.each<[end: RequestEnd, status: string, code: string | null, prompt: number]>([
    [{ kind: 'cancelled' }, 'cancelled', null, 7],
    [{ kind: 'failed', error }, 'failed', 'upstream_truncated', 7],
    [{ kind: 'timed_out', error: apiError('timeout', 'P') }, 'timed_out', 'timeout', 7],
    [{ kind: 'refused', error: apiError('rate_limited', 'P') }, 'failed', 'rate_limited', 0],
  ])('M1 M3 %j: the record has its status, error code and usage', async (end, status, code, prompt) => {
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

  test('Q5 Q6 dropped and changed fields are in the record and in the log, and absent if there are none', async () => {
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

  test('M1 settled twice: the first end counts, with one record and one log line', async () => {
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

    async function costOf(end: RequestEnd, report?: UsageReport) {
      const { meter, store } = bench(undefined, {}, [price]);
      if (report !== undefined) meter.current.accumulator.usage(report);
      meter.settle(end);
      await meter.settled;
      const { cost_nanos, currency, cost_source, price_since, cost_estimated } = Object(recordIn(store));
      return { cost_nanos, currency, cost_source, price_since, cost_estimated };
    }
    const byTable = { currency: 'EUR', cost_source: 'table', price_since: '2026-11-01T00:00:00.000Z' };

    test('L1 P4 of reported tokens: computed from the table, not an estimate', async () => {
      const cost = { ...byTable, cost_nanos: 20_000 + 15_000, cost_estimated: false };
      expect(await costOf({ kind: 'finished' }, { prompt: 10, completion: 5 })).toEqual(cost);
    });

    test('P4 the record divides the cost of reported tokens by their kinds; a cost that the upstream reports is one sum', async () => {
      const partsOf = async (report: UsageReport) => {
        const { meter, store } = bench(undefined, {}, [price]);
        meter.current.accumulator.usage(report);
        meter.settle({ kind: 'finished' });
        await meter.settled;
        return Object(recordIn(store)).cost_parts_nanos;
      };
      const parts = { input: 20_000, cached: 0, output: 15_000 };
      expect(await partsOf({ prompt: 10, completion: 5 })).toEqual(parts);
      expect(await partsOf({ prompt: 10, completion: 5, cost: 77 })).toBeUndefined();
    });

    test('P5 M3 of estimated tokens: marked as an estimate', async () => {
      expect(await costOf({ kind: 'cancelled' })).toEqual({
        ...byTable,
        cost_nanos: 14_000,
        cost_estimated: true,
      });
    });

    test('P3 reported by the upstream: taken as it is, not an estimate even with estimated tokens', async () => {
      const reported = {
        cost_nanos: 77,
        currency: 'USD',
        cost_source: 'upstream',
        price_since: null,
        cost_estimated: false,
      };
      expect(await costOf({ kind: 'cancelled' }, { cost: 77 })).toEqual(reported);
    });

    test('P4 of a request that the upstream refused: zero', async () => {
      const end: RequestEnd = { kind: 'refused', error };
      expect(await costOf(end)).toEqual({ ...byTable, cost_nanos: 0, cost_estimated: false });
    });
  });
});

describe('R8 RequestMeter, several attempts', () => {
  const target = { provider: { id: 'q' }, model: 'n', priceIds: ['q'] };
  const SECOND: AttemptTraits = { ...FIRST, target, dropped: ['seed'] };
  const SKIPPED = { provider: 's', model: 'o', status: null, error_code: 'model_not_allowed', ms: null };

  test('the record names the last target, lists the attempts in order and sums up their usage', async () => {
    const { meter, store, advance } = bench();
    const first = meter.current;
    first.accumulator.usage({ prompt: 10, completion: 0, cached: 4 });
    first.accumulator.finish('content_filter', 'content_filter');
    first.status = 200;
    advance(30);
    first.end({ errorCode: 'content_filter', isRefused: false });
    meter.skip(SKIPPED);
    advance(70);
    const second = meter.begin(SECOND);
    expect(meter.attempts).toEqual([
      { provider: 'p', model: 'm', status: 200, error_code: 'content_filter', ms: 30 },
      SKIPPED,
      { provider: 'q', model: 'n', status: null, error_code: null, ms: 0 },
    ]);
    second.status = 200;
    advance(20);
    second.accumulator.delta(choice({ content: 'a' }));
    second.accumulator.usage({ prompt: 11, completion: 5, reasoning: 2 });
    second.accumulator.finish('stop', 'stop');
    meter.settle({ kind: 'finished' });
    await meter.settled;
    expect(recordIn(store)).toMatchObject({
      provider: 'q',
      model: 'n',
      asked: 'fast',
      dropped: ['seed'],
      finish_reason: 'stop',
      prompt_tokens: 21,
      completion_tokens: 5,
      total_tokens: 26,
      cached_tokens: 4,
      reasoning_tokens: 2,
      first_token_ms: 120,
      total_ms: 120,
      estimated: false,
      attempts: [
        { model: 'm', error_code: 'content_filter', ms: 30 },
        { model: 'o', error_code: 'model_not_allowed', ms: null },
        { model: 'n', status: 200, error_code: null, ms: 20 },
      ],
    });
  });

  test('a refused attempt has no usage, and the usage of one that timed out is estimated', async () => {
    for (const [isRefused, prompt] of [
      [true, 11],
      [false, 18],
    ] as const) {
      const { meter, store } = bench();
      meter.current.end({ errorCode: 'timeout', isRefused });
      meter.begin(SECOND).accumulator.usage({ prompt: 11, completion: 5 });
      meter.settle({ kind: 'finished' });
      await meter.settled;
      expect(recordIn(store)).toMatchObject({ prompt_tokens: prompt, estimated: !isRefused });
    }
  });

  test('A5 a refused attempt that reported usage: that usage is added without an estimate', async () => {
    const { meter, store } = bench();
    const extraBilled = { prompt: 2, completion: 1, cached: 0, cacheWrite: 0, cacheWriteLong: 0 };
    meter.current.accumulator.usage({ prompt: 7, extraBilled });
    meter.current.end({ errorCode: 'MALFORMED_FUNCTION_CALL', isRefused: true });
    meter.begin(SECOND).accumulator.usage({ prompt: 11, completion: 5 });
    meter.settle({ kind: 'finished' });
    await meter.settled;
    const used = { prompt_tokens: 20, completion_tokens: 6, total_tokens: 26, estimated: false };
    expect(recordIn(store)).toMatchObject(used);
  });

  test('P1 the record has long cache writes and searches only if there are any', async () => {
    const { meter, store } = bench();
    meter.current.accumulator.usage({
      prompt: 7,
      completion: 1,
      cacheWrite: 6,
      cacheWriteLong: 4,
      searches: 2,
    });
    meter.settle({ kind: 'finished' });
    await meter.settled;
    expect(recordIn(store)).toMatchObject({ cache_write_tokens: 6, cache_write_long_tokens: 4, searches: 2 });
    const plain = bench();
    plain.meter.current.accumulator.usage({ prompt: 7, completion: 1 });
    plain.meter.settle({ kind: 'finished' });
    await plain.meter.settled;
    expect(Object.keys(recordIn(plain.store) ?? {})).not.toEqual(expect.arrayContaining(['searches']));
  });

  test('if the last attempt fails, too, its error is the record’s, and it ends only once', async () => {
    const { meter, store, advance } = bench();
    meter.current.end({ errorCode: 'upstream_overloaded', isRefused: true });
    const second = meter.begin(SECOND);
    second.end({ errorCode: 'upstream_error', isRefused: true });
    advance(500);
    meter.settle({ kind: 'failed', error });
    await meter.settled;
    expect(recordIn(store)).toMatchObject({
      status: 'failed',
      error_code: 'upstream_truncated',
      total_tokens: 0,
      attempts: [{ error_code: 'upstream_overloaded' }, { error_code: 'upstream_error', ms: 0 }],
    });
  });

  test('P1 the last service tier that the upstream names decides the price', async () => {
    const prices: readonly Price[] = [
      {
        provider: 'p',
        models: ['m'],
        since: '2026-11-01T00:00:00Z',
        currency: 'USD',
        input: 2,
        service_tiers: ['auto'],
      },
      {
        provider: 'p',
        models: ['m'],
        since: '2026-11-01T00:00:00Z',
        currency: 'USD',
        input: 3,
        service_tiers: ['fast'],
      },
    ];
    for (const [tiers, cost_nanos] of [
      [['auto'], 20_000],
      [['auto', 'fast'], 30_000],
      [['auto', 'priority'], null],
    ] as const) {
      const { meter, store } = bench(undefined, {}, prices);
      for (const tier of tiers) meter.current.accumulator.serviceTier(tier);
      meter.current.accumulator.usage({ prompt: 10, completion: 0 });
      meter.settle({ kind: 'finished' });
      await meter.settled;
      expect(recordIn(store)).toMatchObject({
        cost_nanos,
        cost_source: cost_nanos === null ? 'none' : 'table',
      });
    }
  });

  describe('R8 the cost of several attempts', () => {
    const price = { models: ['*'], since: '2026-11-01T00:00:00Z', input: 2, output: 3 };
    const P = { ...price, provider: 'p', currency: 'EUR' };
    const Q = { ...price, provider: 'q', currency: 'EUR' };
    const USED = { prompt: 10, completion: 5 };
    const COST = 20_000 + 15_000;
    const UNKNOWN = { cost_nanos: null, currency: null, cost_source: 'none', price_since: null };

    /** The record of two attempts that both report usage. */
    async function costOf(prices: readonly Price[], first: UsageReport | null, second: UsageReport) {
      const { meter, store } = bench(undefined, {}, prices);
      if (first !== null) meter.current.accumulator.usage(first);
      meter.current.end({ errorCode: 'content_filter', isRefused: first === null });
      meter.begin(SECOND).accumulator.usage(second);
      meter.settle({ kind: 'finished' });
      await meter.settled;
      return recordIn(store);
    }

    test('is the sum, each at its own price', async () => {
      const prices = [{ ...P, input: 4 }, Q];
      expect(await costOf(prices, USED, USED)).toMatchObject({
        cost_nanos: 2 * COST + 20_000,
        currency: 'EUR',
        cost_source: 'table',
        cost_estimated: false,
      });
    });

    test('is the sum of reported costs, or of reported and computed ones', async () => {
      const reported = { ...USED, cost: 77 };
      expect(await costOf([], reported, reported)).toMatchObject({
        cost_nanos: 154,
        currency: 'USD',
        cost_source: 'upstream',
        price_since: null,
      });
      const dollars = [{ ...Q, currency: 'USD' }];
      expect(await costOf(dollars, reported, USED)).toMatchObject({
        cost_nanos: 77 + COST,
        cost_source: 'table',
      });
    });

    test('is unknown if one cost is unknown or in another currency', async () => {
      expect(await costOf([Q], USED, USED)).toMatchObject(UNKNOWN);
      expect(await costOf([{ ...P, currency: 'USD' }, Q], USED, USED)).toMatchObject(UNKNOWN);
    });

    test('needs no price for an attempt without usage', async () => {
      expect(await costOf([Q], null, USED)).toMatchObject({ cost_nanos: COST, currency: 'EUR' });
    });
  });
});
