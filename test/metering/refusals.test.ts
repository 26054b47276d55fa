/** Tests the counts of refused requests: when and how often an isolate writes them, and how KV stores them (M6). */
import { describe, expect, test } from 'vitest';
import { KvLedger } from '../../src/metering/kv-ledger.ts';
import {
  MAX_REFUSAL_ROWS,
  type RefusalBatch,
  RefusalCounts,
  type RefusalGroup,
  RefusalReport,
} from '../../src/metering/refusals.ts';
import { MemoryStore } from './records.ts';

const HOUR = 3_600_000;
const START = Date.parse('2026-11-22T10:00:00Z');

/** An isolate with a clock that the test advances. */
class Isolate {
  now = START;
  readonly batches: RefusalBatch[] = [];
  readonly logged: unknown[] = [];
  readonly counts: RefusalCounts;
  #timers: { readonly at: number; readonly onFire: () => void }[] = [];
  isBroken = false;
  isHung = false;

  constructor() {
    this.counts = new RefusalCounts({
      put: async (batch) => {
        this.batches.push(batch);
        if (this.isBroken) throw new Error('KV is away');
        if (this.isHung) await new Promise(() => {});
      },
      now: () => this.now,
      random: () => crypto.randomUUID(),
      log: (entry) => this.logged.push(entry),
    });
  }

  /** A refused request, or without a code one that is served. */
  request(keyId: string, code?: string): void {
    if (code !== undefined) this.counts.add(keyId, code);
    this.counts.writeWhenDue({
      startTimer: (ms, onFire) => {
        this.#timers.push({ at: this.now + ms, onFire });
        return () => {};
      },
      waitUntil: () => {},
    });
  }

  async pass(ms: number): Promise<void> {
    const until = this.now + ms;
    for (;;) {
      await new Promise(setImmediate);
      const next = this.#timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.now = next.at;
      next.onFire();
    }
    this.now = until;
  }

  get written(): number {
    return this.batches.flatMap(({ rows }) => rows).reduce((sum, { requests }) => sum + requests, 0);
  }
}

describe('M6 the counts of an isolate', () => {
  test('a burst of refusals is one write, a second later, with a row for each key and code', async () => {
    const isolate = new Isolate();
    for (let n = 0; n < 500; n++) isolate.request(n % 2 === 0 ? 'a' : 'b', 'rate_limited');
    isolate.request('a', 'model_not_found');
    await isolate.pass(900);
    expect(isolate.batches).toEqual([]);
    await isolate.pass(200);
    const hour = START / HOUR;
    expect(isolate.batches.map(({ rows }) => rows)).toEqual([
      [
        { hour, keyId: 'a', code: 'rate_limited', requests: 250 },
        { hour, keyId: 'b', code: 'rate_limited', requests: 250 },
        { hour, keyId: 'a', code: 'model_not_found', requests: 1 },
      ],
    ]);
  });

  test.each([
    ['two a second', 500],
    ['one a minute', 60_000],
    ['one every quarter of an hour', 15 * 60_000],
  ])('a day of refusals (%s) causes at most 180 writes, and all are counted', async (_, everyMs) => {
    const isolate = new Isolate();
    let refused = 0;
    for (let ms = 0; ms < 24 * HOUR; ms += everyMs, refused++) {
      isolate.request('none', 'invalid_api_key');
      await isolate.pass(everyMs);
    }
    await isolate.pass(HOUR);
    isolate.request('a');
    await isolate.pass(HOUR);
    expect(isolate.batches.length).toBeLessThanOrEqual(180);
    expect(isolate.written).toBe(refused);
  });

  test('keys beyond the bound share one row for each code', async () => {
    const isolate = new Isolate();
    for (let n = 0; n < 5000; n++) isolate.request(`key-${n}`, 'model_not_found');
    await isolate.pass(2000);
    const rows = isolate.batches[0]?.rows ?? [];
    expect(rows).toHaveLength(MAX_REFUSAL_ROWS + 1);
    expect(rows.at(-1)).toMatchObject({ keyId: '(other)', requests: 5000 - MAX_REFUSAL_ROWS });
  });

  test('a failed write is logged and repeated with the same batch', async () => {
    const isolate = new Isolate();
    isolate.isBroken = true;
    isolate.request('a', 'rate_limited');
    await isolate.pass(1500);
    isolate.isBroken = false;
    isolate.request('a', 'rate_limited');
    await isolate.pass(60_000);
    isolate.request('a');
    await isolate.pass(60_000);
    const [first, second] = isolate.batches;
    expect(second).toEqual(first);
    expect(isolate.logged).toEqual([
      { event: 'refusals_not_written', reason: expect.stringContaining('KV is away') },
    ]);
    expect(isolate.written).toBe(3);
  });

  test('a later request repeats a hanging write with the same id', async () => {
    const isolate = new Isolate();
    isolate.isHung = true;
    isolate.request('a', 'rate_limited');
    await isolate.pass(60_000);
    isolate.isHung = false;
    isolate.request('a');
    await isolate.pass(1000);
    expect(isolate.batches).toHaveLength(2);
    expect(isolate.batches[1]).toEqual(isolate.batches[0]);
  });
});

describe('M6 LEDGER=kv', () => {
  const NOW = Date.parse('2026-11-22T23:00:00Z') / HOUR;
  const LONG = 'k'.repeat(36);
  const batch: RefusalBatch = {
    id: '01a200f1-5c65-7f49-b1d7-b4925c1b0fb4',
    rows: Array.from({ length: 60 }, (_, n) => ({
      hour: NOW + (n % 3),
      keyId: n % 2 === 0 ? LONG : 'none',
      code: `upstream_event_too_large${n}`,
      requests: Math.floor(Number.MAX_SAFE_INTEGER / 2 ** (n % 20)),
    })),
  };

  test('a batch is a few entries within the limit of metadata, and a repeated batch has no effect', async () => {
    const store = new MemoryStore();
    const ledger = new KvLedger(store.asStore);
    await ledger.putRefusals(batch);
    const once = [...store.entries];
    await ledger.putRefusals(batch);
    expect([...store.entries]).toEqual(once);
    expect(once).toHaveLength(6);
    for (const [, { metadata }] of once)
      expect(Buffer.byteLength(JSON.stringify(metadata))).toBeLessThanOrEqual(1024);
  });

  test.each([
    ['one day', NOW - 23, NOW + 1, 20],
    ['the next', NOW + 1, NOW + 25, 40],
    ['a year', NOW - 24 * 360, NOW + 48, 60],
  ])('reads the counts of %s, for all keys and for one', async (_, fromHour, toHour, count) => {
    const store = new MemoryStore();
    const ledger = new KvLedger(store.asStore);
    await ledger.putRefusals(batch);
    const rowsOf = async (keyId: string | null) => {
      const found = await ledger.refusals({ fromHour, toHour, keyId, groups: ['code'] });
      return found.kind === 'ok' ? found.value : [];
    };
    expect(await rowsOf(null)).toHaveLength(count);
    expect((await rowsOf(LONG)).every(({ keyId }) => keyId === LONG)).toBe(true);
    expect(await rowsOf(LONG)).toHaveLength(count / 2);
    expect(store.listings).toBeLessThan(20 * 3);
  });
});

test.each<[RefusalGroup[], unknown[]]>([
  [
    ['code'],
    [
      { code: 'a', refused_requests: 7 },
      { code: 'b', refused_requests: 1 },
    ],
  ],
  [['day', 'key'], [{ day: '2026-11-22', key: 'k', refused_requests: 8 }]],
  [
    ['hour'],
    [
      { hour: '2026-11-22T10:00Z', refused_requests: 3 },
      { hour: '2026-11-22T11:00Z', refused_requests: 5 },
    ],
  ],
])('M6 a report grouped by %s sums the rows', (groups, rows) => {
  const report = new RefusalReport(groups);
  const hour = START / HOUR;
  report.add({ hour, keyId: 'k', code: 'a', requests: 2 });
  report.add({ hour, keyId: 'k', code: 'b', requests: 1 });
  report.add({ hour: hour + 1, keyId: 'k', code: 'a', requests: 5 });
  expect(report.rows).toEqual(rows);
  expect(report.total).toBe(8);
});
