/** Tests the ledger in KV (M1, M4, L2, L3): each record has its own key, and reports and lists omit none. */
import { describe, expect, test } from 'vitest';
import type { ApiError } from '../../src/canonical/error.ts';
import {
  dayPrefix,
  KvLedger,
  MAX_REPORT_LISTINGS,
  REPORT_LISTINGS_AT_ONCE,
  recordKey,
} from '../../src/metering/kv-ledger.ts';
import type { RecordPage, RecordQuery } from '../../src/metering/ledger.ts';
import type { UsageRecord } from '../../src/metering/record.ts';
import { firstIdAt } from '../../src/metering/time.ts';
import { ok, type Result } from '../../src/shared/result.ts';
import { MemoryStore, record } from './records.ts';

/** A day of January 2026. */
const day = (number: number) => new Date(Date.UTC(2026, 0, number)).toISOString().slice(0, 10);
const ms = (number: number) => Date.parse(day(number));
const noon = (number: number) => `${day(number)}T12:00:00.000Z`;

/** Puts `count` records of one time and key into the store. */
async function fill(store: MemoryStore, count: number, fields: Partial<UsageRecord>): Promise<UsageRecord[]> {
  const records = Array.from({ length: count }, (_, n) => record(fields, n));
  await new KvLedger(store.asStore).put(records);
  return records;
}

/** The number of requests in a report over days, or the error message. */
async function count(store: MemoryStore, from: number, to: number, keyId: string | null = null) {
  const result = await new KvLedger(store.asStore).report({
    fromMs: ms(from),
    toMs: ms(to),
    keyId,
    groups: [],
  });
  return result.kind === 'ok' ? result.value.total.requests : result.error.message;
}

/** The ids of all pages of a list, and the sizes of the pages. */
async function listAll(store: MemoryStore, query: Partial<RecordQuery> = {}) {
  const ledger = new KvLedger(store.asStore);
  const ids: string[] = [];
  const sizes: number[] = [];
  let beforeId: string | null = query.beforeId ?? firstIdAt(ms(32));
  while (beforeId !== null && sizes.length < 100) {
    const defaults = { fromId: firstIdAt(ms(1)), keyId: null, model: null, statuses: null, limit: 10 };
    const page = await ledger.list({ ...defaults, ...query, beforeId });
    if (page.kind === 'error') throw new Error(page.error.message);
    const { records, next } = page.value;
    ids.push(...records.map(({ request_id }) => request_id));
    sizes.push(records.length);
    beforeId = next;
  }
  return { ids, sizes };
}

const newestFirst = (records: readonly UsageRecord[]) =>
  records
    .map(({ request_id }) => request_id)
    .sort()
    .reverse();

describe('recordKey and dayPrefix', () => {
  test('M4 L2 a KV key follows from the request id, and begins with the prefixes of its day and of its key', () => {
    const { request_id, key_id, time } = record();
    const key = recordKey({ request_id, key_id });
    expect(key).toBe(`usage/2026-11-20/0123456789abcdef/${time.slice(11)}-${request_id}`);
    expect(key.startsWith(dayPrefix('2026-11-20', null))).toBe(true);
    expect(key.startsWith(dayPrefix('2026-11-20', '0123456789abcdef'))).toBe(true);
    expect(key.startsWith(dayPrefix('2026-11-20', '0123456789abcde'))).toBe(false);
    expect(key.startsWith(dayPrefix('2026-11-2', null))).toBe(false);
    expect(new TextEncoder().encode(key).length).toBeLessThanOrEqual(512);
  });

  test('M4 two requests of the same millisecond and key have two KV keys', () => {
    expect(recordKey(record({}, 1))).not.toBe(recordKey(record({}, 2)));
  });

  test('M4 KV keys of one day and key sort by time', () => {
    const early = recordKey(record({ time: '2026-11-20T09:59:59.999Z' }, 9));
    expect(early < recordKey(record({ time: '2026-11-20T10:00:00.000Z' }, 1))).toBe(true);
  });
});

describe('KvLedger.put', () => {
  test('M1 M4 one write for a record: the value is the record, the metadata its summary', async () => {
    const store = new MemoryStore();
    await new KvLedger(store.asStore).put([record()]);
    expect([...store.entries.keys()]).toEqual([recordKey(record())]);
    expect(JSON.parse(store.entries.get(recordKey(record()))?.value ?? '')).toEqual(record());
    expect(await count(store, 1, 366)).toBe(1);
  });
});

describe('KvLedger.report', () => {
  test('M5 a report for one key has only its records, also if another id begins with it', async () => {
    const store = new MemoryStore();
    for (const key_id of ['a', 'ab', 'b']) await fill(store, 2, { key_id, time: noon(1) });
    expect([await count(store, 1, 2, 'a'), await count(store, 1, 2)]).toEqual([2, 6]);
  });

  test('M4 more records than a page holds, on several days: each counts once', async () => {
    const store = new MemoryStore(3);
    for (const number of [1, 2, 3]) await fill(store, 7, { key_id: `k${number}`, time: noon(number) });
    expect(await count(store, 1, 4)).toBe(21);
    expect(store.listings).toBe(9);
  });

  test('M5 other days are not read', async () => {
    const store = new MemoryStore();
    for (const number of [1, 2, 3]) await fill(store, 1, { key_id: `k${number}`, time: noon(number) });
    expect([await count(store, 2, 3), store.listings]).toEqual([1, 1]);
  });

  test('M4 many days are read concurrently, up to the bound', async () => {
    const store = new MemoryStore();
    await count(store, 1, 31);
    expect(store.listings).toBe(30);
    expect(store.mostAtOnce).toBe(REPORT_LISTINGS_AT_ONCE);
  });

  test('L3 exactly as many listings as allowed: everything is read', async () => {
    const store = new MemoryStore(1);
    await fill(store, MAX_REPORT_LISTINGS - 9, { key_id: 'k', time: noon(1) });
    expect(await count(store, 1, 11)).toBe(MAX_REPORT_LISTINGS - 9);
    expect(store.listings).toBe(MAX_REPORT_LISTINGS);
  });

  test('L3 one listing more than allowed: an error that names LEDGER=object', async () => {
    const store = new MemoryStore(1);
    await fill(store, MAX_REPORT_LISTINGS - 8, { key_id: 'k', time: noon(1) });
    expect(await count(store, 1, 11)).toMatch(/LEDGER=object/);
    expect(store.listings).toBe(MAX_REPORT_LISTINGS);
  });

  test('M4 metadata that is not a record is skipped', async () => {
    const store = new MemoryStore();
    await fill(store, 2, { key_id: 'k', time: noon(1) });
    for (const [i, metadata] of [null, undefined, 'text', {}, { s: 'finished' }].entries()) {
      await store.put(`${dayPrefix(day(1), 'k')}${i}`, '', { metadata });
    }
    expect(await count(store, 1, 2, 'k')).toBe(2);
  });
});

describe('KvLedger.list', () => {
  test('L2 records of several keys and days: the latest first, each once over all pages', async () => {
    const store = new MemoryStore(7);
    const records = [];
    for (const number of [1, 2, 9, 20, 31])
      for (const key_id of ['a', 'b'])
        records.push(
          ...(await fill(store, 6, { key_id, time: `${day(number)}T0${key_id === 'a' ? 1 : 2}:00:00.000Z` })),
        );
    const { ids, sizes } = await listAll(store);
    expect(ids).toEqual(newestFirst(records));
    expect(sizes).toEqual([10, 10, 10, 10, 10, 10]);
    const own = await listAll(store, { keyId: 'a', limit: 4 });
    expect(own.ids).toEqual(newestFirst(records.filter(({ key_id }) => key_id === 'a')));
  });

  test('L2 more records in a day than are kept in memory: the latest are listed', async () => {
    const store = new MemoryStore();
    const records = await fill(store, 100, { key_id: 'k', time: noon(3) });
    expect((await listAll(store, { limit: 3 })).ids).toEqual(newestFirst(records));
  });

  test('L2 filters by status, and by the requested model or the address that served', async () => {
    const store = new MemoryStore();
    await fill(store, 3, { key_id: 'a', time: noon(1) });
    await fill(store, 2, { key_id: 'b', time: noon(1), asked: 'fast', model: 'm', provider: 'p' });
    await fill(store, 1, { key_id: 'c', time: noon(1), asked: 'fast', status: 'failed' });
    const length = async (query: Partial<RecordQuery>) => (await listAll(store, query)).ids.length;
    expect(await length({ model: 'fast' })).toBe(3);
    expect(await length({ model: 'p/m' })).toBe(2);
    expect(await length({ model: 'm' })).toBe(0);
    expect(await length({ statuses: ['failed'] })).toBe(1);
    expect(await length({ statuses: ['finished'], model: 'fast' })).toBe(2);
    expect(await length({ statuses: ['finished', 'failed'], model: 'fast' })).toBe(3);
  });

  test('L2 filters by provider, route, client, truncated, and by part of a name or id', async () => {
    const store = new MemoryStore();
    const [first] = await fill(store, 2, { key_id: 'a', time: noon(1) });
    await fill(store, 1, {
      key_id: 'b',
      time: noon(1),
      asked: 'Fast',
      model: 'm',
      provider: 'p',
      client: 'messages',
    });
    await fill(store, 1, { key_id: 'c', time: noon(1), route: 'fim', status: 'failed' });
    await fill(store, 1, { key_id: 'd', time: noon(1), status: 'failed', first_token_ms: null });
    const facts = { user: 'Ada', session: 's-77', app: 'claude-cli' };
    await fill(store, 1, { key_id: 'key-5', time: noon(1), ...facts });
    const length = async (only: RecordQuery['only']) =>
      (await listAll(store, { ...(only && { only }) })).ids.length;
    expect(await length({})).toBe(6);
    expect(await length({ provider: 'p' })).toBe(1);
    for (const search of ['ada', '-77', 'claude-', 'key-5']) expect(await length({ search }), search).toBe(1);
    expect(await length({ user: 'Ada', search: 's-77' })).toBe(1);
    expect(await length({ user: 'Bob', search: 's-77' })).toBe(0);
    expect(await length({ client: 'messages' })).toBe(1);
    expect(await length({ route: 'fim' })).toBe(1);
    expect(await length({ truncated: true })).toBe(1);
    expect(await length({ search: 'fas' })).toBe(1);
    expect(await length({ search: 'small-lat' })).toBe(5);
    expect(await length({ search: first?.request_id.slice(4, 30) ?? '' })).toBeGreaterThan(0);
    expect(await length({ search: 'nothing' })).toBe(0);
  });

  test('L2 `fromId` is inclusive, `beforeId` exclusive', async () => {
    const store = new MemoryStore();
    const records = [];
    for (const number of [1, 2, 3, 4])
      records.push(...(await fill(store, 1, { key_id: 'k', time: noon(number) })));
    const fromId = records[1]?.request_id ?? '';
    const beforeId = records[3]?.request_id ?? '';
    expect((await listAll(store, { fromId, beforeId })).ids).toEqual(newestFirst(records.slice(1, 3)));
  });

  test('L3 a day with too many records: a page with the complete days first, then an error', async () => {
    const store = new MemoryStore(1);
    const late = await fill(store, 2, { key_id: 'k', time: noon(20) });
    await fill(store, MAX_REPORT_LISTINGS + 1, { key_id: 'k', time: noon(2) });
    const ledger = new KvLedger(store.asStore);
    const query = { fromId: firstIdAt(ms(1)), keyId: null, model: null, statuses: null, limit: 10 };
    const first: Result<RecordPage, ApiError> = await ledger.list({ ...query, beforeId: firstIdAt(ms(32)) });
    if (first.kind === 'error') throw new Error(first.error.message);
    expect(first.value.records.map(({ request_id }) => request_id)).toEqual(newestFirst(late));
    // The next page begins with that day.
    let page: Result<RecordPage, ApiError> = first;
    for (let pages = 0; page.kind === 'ok' && pages < 31; pages++)
      page = await ledger.list({ ...query, beforeId: page.value.next ?? '' });
    expect(page).toMatchObject({ kind: 'error', error: { code: 'invalid_request' } });
  });

  test('L2 a listed record is complete, or a summary if KV does not return its value yet', async () => {
    const store = new MemoryStore();
    const [one, other] = await fill(store, 2, { key_id: 'k', time: noon(1), dropped: ['user'] });
    if (one === undefined || other === undefined) throw new Error();
    const entry = store.entries.get(recordKey(one));
    store.entries.set(recordKey(one), { value: 'null', metadata: entry?.metadata });
    const { attempts: _, dropped: __, tags: ___, ...summary } = one;
    const query = {
      fromId: firstIdAt(ms(1)),
      beforeId: firstIdAt(ms(2)),
      keyId: 'k',
      model: null,
      statuses: null,
    };
    const page = await new KvLedger(store.asStore).list({ ...query, limit: 10 });
    expect(page).toEqual(ok({ records: [other, summary], next: null }));
  });
});

describe('KvLedger.find', () => {
  test('L2 a record of the given key: one read and no listing', async () => {
    const store = new MemoryStore();
    await fill(store, 3, { key_id: 'k', time: noon(1), dropped: ['user'] });
    const wanted = record({ key_id: 'k', time: noon(1), dropped: ['user'] }, 1);
    expect(await new KvLedger(store.asStore).find(wanted.request_id, 'k')).toEqual(ok(wanted));
    expect(store.listings).toBe(0);
  });

  test('L2 a record of another key: null', async () => {
    const store = new MemoryStore();
    const [one] = await fill(store, 1, { key_id: 'k', time: noon(1) });
    const found = await new KvLedger(store.asStore).find(one?.request_id ?? '', 'other');
    expect(found).toEqual(ok(null));
  });

  test('L2 without a key: found by its day', async () => {
    const store = new MemoryStore(2);
    await fill(store, 5, { key_id: 'a', time: noon(1) });
    const [wanted] = await fill(store, 1, { key_id: 'b', time: noon(1) });
    const ledger = new KvLedger(store.asStore);
    expect(await ledger.find(wanted?.request_id ?? '', null)).toEqual(ok(wanted));
    expect(await ledger.find(record({ time: noon(2) }).request_id, null)).toEqual(ok(null));
  });
});
