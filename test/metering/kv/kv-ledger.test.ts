/** Tests the ledger (M1, M4): every record under a key of its own, and a listing that omits none. */
import { describe, expect, test } from 'vitest';
import { MAX_REPORT_LISTINGS, REPORT_LISTINGS_AT_ONCE } from '../../../src/canonical/limits.ts';
import { dayPrefix, recordKey } from '../../../src/metering/kv/keys.ts';
import { eachRecord, KvLedger, type LedgerQuery } from '../../../src/metering/kv/kv-ledger.ts';
import type { RecordSummary, UsageRecord } from '../../../src/metering/record.ts';
import { MemoryStore, record } from '../records.ts';

/** Puts `count` records of one day and key into the store. */
async function fill(store: MemoryStore, count: number, fields: Partial<UsageRecord>): Promise<void> {
  for (let i = 0; i < count; i++) {
    await new KvLedger(store.asStore).put([record({ ...fields, request_id: `${fields.key_id}-${i}` })]);
  }
}

async function readIds(store: MemoryStore, query: LedgerQuery) {
  const ids: string[] = [];
  const isAll = await eachRecord(store.asStore, query, ({ request_id }) => ids.push(request_id));
  return { ids: ids.sort(), isAll };
}

const day = (number: number) => new Date(Date.UTC(2026, 0, number)).toISOString().slice(0, 10);
const days = (count: number) => Array.from({ length: count }, (_, i) => day(i + 1));
const at = (on: string) => `${on}T12:00:00.000Z`;

describe('recordKey and dayPrefix', () => {
  test('M4 a key: begins with the prefixes of its day, and of its day and key', () => {
    const key = recordKey(record());
    expect(key.startsWith(dayPrefix('2026-11-20', null))).toBe(true);
    expect(key.startsWith(dayPrefix('2026-11-20', '0123456789abcdef'))).toBe(true);
    expect(key.startsWith(dayPrefix('2026-11-20', '0123456789abcde'))).toBe(false);
    expect(key.startsWith(dayPrefix('2026-11-2', null))).toBe(false);
    expect(new TextEncoder().encode(key).length).toBeLessThanOrEqual(512);
  });

  test('M4 two requests of one millisecond and key: two keys', () => {
    expect(recordKey(record({ request_id: 'a' }))).not.toBe(recordKey(record({ request_id: 'b' })));
  });

  test('M4 keys of one day and key: sort by their time', () => {
    const early = recordKey(record({ time: '2026-11-20T09:59:59.999Z', request_id: 'z' }));
    expect(early < recordKey(record({ time: '2026-11-20T10:00:00.000Z', request_id: 'a' }))).toBe(true);
  });
});

describe('KvLedger.put', () => {
  test('M1 M4 a record: one write, its value is the whole record, its metadata reads as the same', async () => {
    const store = new MemoryStore();
    await new KvLedger(store.asStore).put([record()]);
    expect([...store.entries.keys()]).toEqual([recordKey(record())]);
    expect(JSON.parse(store.entries.get(recordKey(record()))?.value ?? '')).toEqual(record());
    const read: RecordSummary[] = [];
    await eachRecord(store.asStore, { days: ['2026-11-20'], keyId: null }, (one) => read.push(one));
    const { attempts, ...summary } = record();
    expect(attempts).toHaveLength(1);
    expect(read).toEqual([summary]);
  });
});

describe('eachRecord', () => {
  test('M5 one key: its records and those of no other key, not even of a longer one', async () => {
    const store = new MemoryStore();
    for (const key_id of ['a', 'ab', 'b']) await fill(store, 2, { key_id, time: at(day(1)) });
    const query = { days: [day(1)], keyId: 'a' };
    expect(await readIds(store, query)).toEqual({ ids: ['a-0', 'a-1'], isAll: true });
    expect((await readIds(store, { ...query, keyId: null })).ids).toHaveLength(6);
  });

  test('M4 more records than a page holds, on several days: every one, once', async () => {
    const store = new MemoryStore(3);
    for (const number of [1, 2, 3]) await fill(store, 7, { key_id: `k${number}`, time: at(day(number)) });
    const { ids, isAll } = await readIds(store, { days: days(3), keyId: null });
    expect(isAll).toBe(true);
    expect(ids).toEqual(
      [1, 2, 3].flatMap((number) => Array.from({ length: 7 }, (_, i) => `k${number}-${i}`)),
    );
    expect(store.listings).toBe(9);
  });

  test('M5 days that were not asked for: are not read', async () => {
    const store = new MemoryStore();
    for (const number of [1, 2, 3]) await fill(store, 1, { key_id: `k${number}`, time: at(day(number)) });
    expect((await readIds(store, { days: [day(2)], keyId: null })).ids).toEqual(['k2-0']);
    expect((await readIds(store, { days: [], keyId: null })).ids).toEqual([]);
  });

  test('M4 many days: read side by side, no more at once than the bound', async () => {
    const store = new MemoryStore();
    await readIds(store, { days: days(30), keyId: null });
    expect(store.listings).toBe(30);
    expect(store.mostAtOnce).toBe(REPORT_LISTINGS_AT_ONCE);
  });

  test('M4 exactly as many listings as the bound: all is read', async () => {
    const store = new MemoryStore(1);
    await fill(store, MAX_REPORT_LISTINGS - 9, { key_id: 'k', time: at(day(1)) });
    const { ids, isAll } = await readIds(store, { days: days(10), keyId: null });
    expect([store.listings, isAll, ids.length]).toEqual([MAX_REPORT_LISTINGS, true, MAX_REPORT_LISTINGS - 9]);
  });

  test('M4 one listing more than the bound: stops there, and reports that it is incomplete', async () => {
    const store = new MemoryStore(1);
    await fill(store, MAX_REPORT_LISTINGS - 8, { key_id: 'k', time: at(day(1)) });
    const { isAll } = await readIds(store, { days: days(10), keyId: null });
    expect([store.listings, isAll]).toEqual([MAX_REPORT_LISTINGS, false]);
  });

  test("M4 metadata that is not a record's: is left out, and the rest is read", async () => {
    const store = new MemoryStore();
    await fill(store, 2, { key_id: 'k', time: at(day(1)) });
    for (const [i, metadata] of [null, undefined, 'text', {}, { s: 'finished' }].entries()) {
      await store.put(`${dayPrefix(day(1), 'k')}${i}`, '', { metadata });
    }
    expect(await readIds(store, { days: [day(1)], keyId: 'k' })).toEqual({
      ids: ['k-0', 'k-1'],
      isAll: true,
    });
  });
});
