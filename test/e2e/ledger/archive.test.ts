/** Records that leave a ledger object before it is full, in workerd: into a bucket of R2, or deleted where none is bound. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UsageRecord } from '../../../src/metering/record.ts';
import { firstIdAt } from '../../../src/metering/time.ts';
import { decodeObject, textOf } from '../../../tools/simulator/json.ts';
import {
  DAY,
  idsOf,
  LIMIT,
  newestFirst,
  newKey,
  recordsOf,
  SmallLedger,
  shuffled,
  sumsOf,
  TODAY,
} from './small-ledger.ts';

let small: SmallLedger;
beforeAll(async () => {
  small = await SmallLedger.start();
});
afterAll(() => small[Symbol.asyncDispose]());

describe('L8 an object that is full', () => {
  test('records that arrive in any order: each is in the object or in the archive, once', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId);
    await small.put(shuffled(records));
    await small.expectEachOnce(keyId, records);
    const { bytes, pieces } = await small.places(keyId);
    expect(bytes).toBeLessThanOrEqual(LIMIT);
    expect(bytes).toBeGreaterThan(LIMIT / 2);
    expect(pieces).toBeGreaterThan(3);
    expect(small.logged).toEqual([]);
  });

  test('a piece has records of one UTC day, and its name has its first and last id', async () => {
    const keyId = newKey();
    await small.put(recordsOf(keyId));
    const pieces = await small.objects.archived(`records/${keyId}/`);
    const days = new Set<string>();
    for (const [name, text] of pieces) {
      const [, , day = '', range = ''] = name.split('/');
      const lines = text.trimEnd().split('\n').map(decodeObject);
      expect(range).toBe(`${textOf(lines.at(-1)?.request_id)}_${textOf(lines[0]?.request_id)}.ndjson`);
      expect(new Set(lines.map((line) => textOf(line?.time).slice(0, 10)))).toEqual(new Set([day]));
      days.add(day);
    }
    expect(days.size).toBeGreaterThan(2);
  });
});

describe('L8 an archive that fails', () => {
  test('while R2 cannot be reached, all stays in the object and is found; then it leaves, once', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId);
    await small.put(records.slice(0, 200));
    await small.call(keyId, 'failArchive', true);
    await small.put(records.slice(200));
    const { stored, archived } = await small.places(keyId);
    expect([...stored, ...archived].sort()).toEqual(idsOf(records));
    expect(stored.length).toBeGreaterThan(400);
    // What is in the object is listed without R2.
    const newest = await small.ledger.list({
      ...{ keyId, fromId: firstIdAt(TODAY - 60 * DAY), beforeId: firstIdAt(TODAY + DAY) },
      ...{ model: null, statuses: null, limit: 300 },
    });
    expect(newest.kind === 'ok' && idsOf(newest.value.records as UsageRecord[])).toEqual(
      idsOf(records.slice(-300)),
    );
    expect(await small.report(keyId)).toEqual(sumsOf(records));
    expect(small.events(keyId, 'archive_failed').length).toBeGreaterThan(0);
    await small.call(keyId, 'failArchive', false);
    await small.call(keyId, 'fireAlarm');
    await small.expectEachOnce(keyId, records);
    expect((await small.places(keyId)).bytes).toBeLessThanOrEqual(LIMIT);
  });
});

test('L8 an object that is restored: what it has, and what the archive has, is found once', async () => {
  const keyId = newKey();
  const records = recordsOf(keyId, 700);
  await small.put(records.slice(0, 300));
  await small.call(keyId, 'save');
  const before = await small.places(keyId);
  await small.put(records.slice(300));
  await expect(small.call(keyId, 'restore')).rejects.toThrow('killed by the test');
  // Its own check was long ago.
  await small.call(keyId, 'run', "UPDATE marks SET value = 0 WHERE name = 'archive_checked'");
  const after = await small.places(keyId);
  expect(after.stored).toEqual(before.stored);
  expect(after.archived.length).toBeGreaterThan(before.archived.length + 200);
  const known = new Set([...after.stored, ...after.archived]);
  const kept = records.filter(({ request_id }) => known.has(request_id));
  expect(await small.list(keyId)).toEqual(newestFirst(kept));
  // It goes on: new records, and those that the restoration lost and a Queue delivers again.
  await small.put(records.slice(300));
  await small.expectEachOnce(keyId, records);
});

describe('L8 without a bucket', () => {
  let store: SmallLedger;
  beforeAll(async () => {
    store = await SmallLedger.start({ hasBucket: false });
  });
  afterAll(() => store[Symbol.asyncDispose]());

  test('the oldest records are deleted, with a log event, and the sums stay', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId);
    await store.put(records);
    const stored = await store.stored(keyId);
    expect(stored.length).toBeGreaterThan(60);
    expect(stored).toEqual(idsOf(records).slice(-stored.length));
    expect(await store.list(keyId)).toEqual(stored.toReversed());
    expect(await store.report(keyId)).toEqual(sumsOf(records));
    const deleted = store.events(keyId, 'records_deleted');
    const sum = deleted.reduce((all, line) => all + Number(line.records), 0);
    expect(sum).toBe(records.length - stored.length);
    expect(store.events(keyId, 'archive_failed')).toEqual([]);
  });
});
