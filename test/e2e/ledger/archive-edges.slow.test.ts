/**
 * Records that leave a ledger object before it is full, in workerd: orders of arrival, rollbacks, erasures, faults.
 * `archive.test.ts` has the main path.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FullKey } from '../../../src/metering/ledger.ts';
import type { UsageRecord } from '../../../src/metering/record.ts';
import { firstIdAt } from '../../../src/metering/time.ts';
import { record } from '../../metering/records.ts';
import {
  DAY,
  idsOf,
  LIMIT,
  NOW,
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
  test.each<[what: string, order: (records: UsageRecord[]) => readonly UsageRecord[]]>([
    ['in the order of their time', (records) => records],
    ['the latest first', (records) => records.toReversed()],
  ])('records that arrive %s: each is in the object or in the archive, once', async (_, order) => {
    const keyId = newKey();
    const records = recordsOf(keyId);
    await small.put(order(records));
    await small.expectEachOnce(keyId, records);
    const { bytes, pieces } = await small.places(keyId);
    expect(bytes).toBeLessThanOrEqual(LIMIT);
    expect(bytes).toBeGreaterThan(LIMIT / 2);
    expect(pieces).toBeGreaterThan(3);
    expect(small.logged).toEqual([]);
  });

  test('records of the last minutes leave, too', async () => {
    const keyId = newKey();
    const records = Array.from({ length: 400 }, (_, n) =>
      record({ key_id: keyId, time: new Date(NOW - 400 + n).toISOString() }),
    );
    await small.put(records);
    await small.expectEachOnce(keyId, records);
  });

  test('a record that arrives again after it has left does not count again', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId);
    await small.put(records);
    await small.put(records);
    await small.expectEachOnce(keyId, records);
  });

  test('a record that settles while a piece is on its way stays', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId, 300);
    const [some, others] = [records.filter((_, n) => n % 3 > 0), records.filter((_, n) => n % 3 === 0)];
    await small.ledger.put(some);
    await small.call(keyId, 'fireAlarmDuring', 'settle', others);
    await small.expectEachOnce(keyId, records);
  });

  test('its alarm comes at once when it becomes full again', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId, 900);
    await small.put(records.slice(0, 300));
    await small.ledger.put(records.slice(300));
    const places = () => small.places(keyId).then(({ bytes }) => bytes);
    await expect.poll(places, { interval: 50 }).toBeLessThanOrEqual(LIMIT);
    await small.expectEachOnce(keyId, records);
  });

  test('many pieces: they are found by id, listed with filters, and summed for parts of hours', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId, 600, 25);
    await small.put(records);
    for (const one of records.filter((_, n) => n % 37 === 0))
      expect(await small.ledger.find(one.request_id, keyId)).toEqual({ kind: 'ok', value: one });
    const unknown = record({ key_id: keyId, time: new Date(TODAY - 20 * DAY).toISOString() });
    expect(await small.ledger.find(unknown.request_id, keyId)).toEqual({ kind: 'ok', value: null });
    const failed = records.filter(({ status }) => status === 'failed');
    expect(await small.list(keyId, { statuses: ['failed'], limit: 7 })).toEqual(newestFirst(failed));
    const [fromMs, toMs] = [TODAY - 22 * DAY + 1_234_567, TODAY - 3 * DAY + 7_654_321];
    const inTime = records.filter(({ time }) => Date.parse(time) >= fromMs && Date.parse(time) < toMs);
    const range = { fromId: firstIdAt(fromMs), beforeId: firstIdAt(toMs) };
    expect(await small.list(keyId, { ...range, limit: 11 })).toEqual(newestFirst(inTime));
    const result = await small.ledger.report({ fromMs, toMs, keyId, groups: ['day', 'model', 'status'] });
    expect(result.kind === 'ok' && { rows: result.value.rows, total: result.value.total }).toEqual(
      sumsOf(inTime),
    );
  });
});

describe('L8 an archive that fails', () => {
  test('a reading that needs the archive says why it fails', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId);
    await small.put(records);
    await small.call(keyId, 'failArchive', true);
    const message = expect.stringContaining('The archive (WEIR_ARCHIVE) cannot be reached');
    const error = { kind: 'error', error: { code: 'ledger_unreachable', message } };
    expect(await small.ledger.find(records[0]?.request_id ?? '', keyId)).toMatchObject(error);
    const query = { fromId: firstIdAt(0), beforeId: firstIdAt(TODAY - DAY), model: null, statuses: null };
    expect(await small.ledger.list({ ...query, keyId, limit: 10 })).toMatchObject(error);
    await small.call(keyId, 'failArchive', false);
    expect(await small.list(keyId)).toEqual(newestFirst(records));
  });
});

test('L8 a new object of a key whose archive has records finds them', async () => {
  const keyId = newKey();
  const records = recordsOf(keyId);
  await small.put(records);
  for (const table of ['records', 'marks', 'left_ids'])
    await small.call(keyId, 'run', `DELETE FROM ${table}`);
  const { archived } = await small.places(keyId);
  expect(await small.list(keyId)).toEqual(archived.sort().reverse());
  expect(await small.ledger.find(records[0]?.request_id ?? '', keyId)).toMatchObject({ value: records[0] });
});

describe('L8 a rollback to 0.2.0, which knows the mark deleted_before and the tables of before', () => {
  test('takes what left for deleted, and what it stores and deletes is found once after the next deployment', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId, 400, 3);
    await small.put(records.slice(0, 300));
    const marks = new Map(
      (await small.call(keyId, 'run', 'SELECT name, value FROM marks')) as [string, number][],
    );
    const { archived } = await small.places(keyId);
    // What 0.2.0 takes for forgotten, and neither stores nor counts.
    const deletedBefore = firstIdAt(marks.get('deleted_before') ?? 0);
    expect(archived.every((id) => id < deletedBefore)).toBe(true);
    expect(records.slice(300).every(({ request_id }) => request_id >= deletedBefore)).toBe(true);
    // 0.2.0 stores by statements without names of columns.
    for (const one of records.slice(300, 320)) {
      const json = JSON.stringify(one).replaceAll("'", "''");
      await small.call(keyId, 'run', `INSERT OR IGNORE INTO records VALUES ('${one.request_id}', '${json}')`);
    }
    for (const table of ['hours', 'days', 'records', 'marks']) {
      const columns = (await small.call(
        keyId,
        'run',
        `SELECT COUNT(*) FROM pragma_table_info('${table}')`,
      )) as [[number]];
      const known = COLUMNS_OF_0_2_0[table];
      // At its start 0.2.0 copies a table of sums with further columns into one of its own.
      if (SUMS.includes(table)) expect(columns[0][0], table).toBeGreaterThanOrEqual(known ?? 0);
      else expect(columns[0][0], table).toBe(known);
    }
    // It deletes by age alone, and sets the mark back then.
    await small.call(
      keyId,
      'run',
      `UPDATE marks SET value = ${TODAY - 35 * DAY} WHERE name = 'deleted_before'`,
    );
    await small.put(records.slice(0, 320));
    const { stored, archived: all } = await small.places(keyId);
    expect([...stored, ...all].sort()).toEqual(idsOf(records.slice(0, 320)));
  });
});

/** `git show 970bcfec`: sum-columns.ts and records.ts. */
const SUMS = ['hours', 'days'];
const COLUMNS_OF_0_2_0: Readonly<Record<string, number>> = { hours: 28, days: 28, records: 2, marks: 2 };

test('L8 an object that is full to its last byte, as of a version without a limit, starts, makes room and counts again', async () => {
  const keyId = newKey();
  const records = recordsOf(keyId, 400);
  // The directory knows the days, and a new instance does not know the limit, so that no alarm comes before the next.
  await small.put(records.filter((_, n) => n % 20 === 0));
  await expect(small.call(keyId, 'loseAlarm')).rejects.toThrow('killed by the test');
  await small.ledger.put(records.slice(0, 300));
  await expect(small.call(keyId, 'becomeFull')).rejects.toThrow('killed by the test');
  await small.call(keyId, 'fireAlarm').catch(() => undefined);
  await small.put(records);
  await small.expectEachOnce(keyId, records);
  expect((await small.places(keyId)).bytes).toBeLessThanOrEqual(LIMIT);
});

test('L8 while the archive fails, an object of the largest size deletes its oldest records', async () => {
  await using store = await SmallLedger.start({ vars: { OBJECT_BYTES: '800000' } });
  const keyId = newKey();
  const records = recordsOf(keyId, 1200);
  await store.call(keyId, 'failArchive', true);
  await store.put(records);
  const { stored, archived, bytes } = await store.places(keyId);
  expect(archived).toEqual([]);
  expect(bytes).toBeGreaterThan(3 * LIMIT);
  expect(bytes).toBeLessThan(800_000);
  expect(stored).toEqual(idsOf(records).slice(-stored.length));
  expect(await store.report(keyId)).toEqual(sumsOf(records));
  expect(store.events(keyId, 'archive_failed').length).toBeGreaterThan(0);
  expect(store.events(keyId, 'records_deleted').length).toBeGreaterThan(0);
});

test('L8 archived days are deleted after RECORD_DAYS, as the records of the object are', async () => {
  const keyId = newKey();
  const records = recordsOf(keyId, 500, 40, 3);
  await small.call(keyId, 'settle', [], 60);
  await small.put(records);
  const all = await small.places(keyId);
  expect(all.archived.length).toBeGreaterThan(200);
  await small.call(keyId, 'settle', [], 20);
  await small.call(keyId, 'fireAlarm');
  const { stored, archived } = await small.places(keyId);
  const border = firstIdAt(TODAY - 20 * DAY);
  expect([...stored, ...archived].sort()).toEqual(idsOf(records).filter((id) => id >= border));
  expect(await small.report(keyId)).toEqual(sumsOf(records));
});

describe('L8 Y9 Y10 a user with records in the archive', () => {
  const users = ['ada', 'bob', null];
  const ofUsers = (keyId: string, seed: number) =>
    recordsOf(keyId, 500, 3, seed).map((one, n) => {
      const user = users[n % 3] ?? null;
      return { ...one, user, session: user === null ? null : `${user}-${n % 5}` };
    });

  /** All parts of `readUser`. */
  async function exported(keyId: string, names: readonly string[]) {
    const ids: string[] = [];
    let cursor: unknown = { day: 0, id: '' };
    for (let parts = 0; cursor !== null; parts++) {
      if (parts > 100) throw new Error('The export does not end');
      const part = (await small.call(keyId, 'readUser', names, cursor)) as {
        readonly records: readonly UsageRecord[];
        readonly next: unknown;
      };
      ids.push(...part.records.map(({ request_id }) => request_id));
      cursor = part.next;
    }
    return ids;
  }

  async function erase(keyId: string, names: readonly string[], beforeId: string | null) {
    let records = 0;
    let cursor: unknown = { day: 0, id: '' };
    for (let parts = 0; cursor !== null; parts++) {
      if (parts > 100) throw new Error('The erasure does not end');
      const part = (await small.call(keyId, 'eraseUser', names, cursor, beforeId)) as {
        readonly records: number;
        readonly next: unknown;
      };
      records += part.records;
      cursor = part.next;
    }
    return records;
  }

  test('is exported once, and erased in the object and in the archive, with the sums of the sessions', async () => {
    const keyId = newKey();
    const records = ofUsers(keyId, 5);
    await small.put(records);
    const [own, others] = [
      records.filter(({ user }) => user === 'ada'),
      records.filter(({ user }) => user !== 'ada'),
    ];
    expect(await exported(keyId, ['ada'])).toEqual(idsOf(own));
    expect(await erase(keyId, ['ada'], firstIdAt(TODAY + DAY))).toBe(own.length);
    expect(await exported(keyId, ['ada'])).toEqual([]);
    const { stored, archived } = await small.places(keyId);
    expect([...stored, ...archived].sort()).toEqual(idsOf(others));
    const bySession = await small.report(keyId, ['session']);
    expect(bySession.rows.map(({ session }) => session).filter((name) => name?.startsWith('ada'))).toEqual(
      [],
    );
    // What was erased and arrives again stays erased.
    await small.put(own.slice(0, 100));
    expect(await exported(keyId, ['ada'])).toEqual([]);
  });

  test('an erasure by the hash finds the name among archived records, and keeps what is later', async () => {
    const keyId = newKey();
    const records = ofUsers(keyId, 6);
    await small.put(records);
    const names = new Set<string>();
    const border = firstIdAt(TODAY - DAY);
    for (let after: string | null = firstIdAt(TODAY - 3 * DAY); after !== null; ) {
      const part = (await small.call(keyId, 'usersOfRecords', after, border)) as {
        readonly names: readonly string[];
        readonly next: string | null;
      };
      for (const name of part.names) names.add(name);
      after = part.next;
    }
    expect([...names].sort()).toEqual(['ada', 'bob']);
    const gone = records.filter(({ user, request_id }) => user === 'bob' && request_id < border);
    expect(await erase(keyId, ['bob'], border)).toBe(gone.length);
    const { stored, archived } = await small.places(keyId);
    expect([...stored, ...archived].sort()).toEqual(idsOf(records.filter((one) => !gone.includes(one))));
  });

  test('an erasure while the archive fails reports it, and ends when it works again', async () => {
    const keyId = newKey();
    const records = ofUsers(keyId, 8);
    await small.put(records);
    await small.call(keyId, 'failArchive', true);
    const border = firstIdAt(TODAY + DAY);
    await expect(erase(keyId, ['ada'], border)).rejects.toThrow(
      'The archive (WEIR_ARCHIVE) cannot be reached',
    );
    await small.call(keyId, 'failArchive', false);
    await erase(keyId, ['ada'], border);
    expect(await exported(keyId, ['ada'])).toEqual([]);
  });
});

describe('L8 without a bucket', () => {
  let store: SmallLedger;
  beforeAll(async () => {
    store = await SmallLedger.start({ hasBucket: false });
  });
  afterAll(() => store[Symbol.asyncDispose]());

  test('records in any order, each twice: the sums are exact, and what is deleted does not come back', async () => {
    const keyId = newKey();
    const records = shuffled(recordsOf(keyId, 400, 10, 7));
    await store.put(records);
    await store.put(records);
    expect(await store.report(keyId)).toEqual(sumsOf(records));
    expect(small.logged).toEqual([]);
  });

  test('a part of an hour whose records are deleted is refused, and whole hours are not', async () => {
    const keyId = newKey();
    const records = recordsOf(keyId);
    await store.put(records);
    const query = { fromMs: TODAY - 3 * DAY + 1, toMs: TODAY, keyId, groups: ['model'] as const };
    expect(await store.ledger.report(query)).toMatchObject({
      kind: 'error',
      error: { code: 'invalid_request' },
    });
    expect(await store.ledger.report({ ...query, fromMs: TODAY - 3 * DAY })).toMatchObject({ kind: 'ok' });
  });
});

describe('L8 what the directory knows of full objects', () => {
  const full = async (ledger: SmallLedger, keyId: string) =>
    ((await ledger.call('*', 'fullLedgers')) as FullKey[]).find(({ key_id }) => key_id === keyId);

  test('an object without a bucket: how many records it has deleted, and from when', async () => {
    await using store = await SmallLedger.start({ hasBucket: false });
    const keyId = newKey();
    const records = recordsOf(keyId);
    await store.put(records.slice(0, 100));
    expect(await full(store, keyId)).toBeUndefined();
    await store.put(records.slice(100));
    const stored = await store.stored(keyId);
    const deleted = records.slice(0, records.length - stored.length);
    expect(await full(store, keyId)).toEqual({
      key_id: keyId,
      deleted_records: deleted.length,
      deleted_before: new Date(Date.parse(deleted.at(-1)?.time ?? '') + 1).toISOString(),
      archive_failing_since: null,
      reason: null,
    });
  });

  test('an object whose archive fails: since when and why, until it works again', async () => {
    const keyId = newKey();
    await small.call(keyId, 'failArchive', true);
    const before = Date.now();
    await small.put(recordsOf(keyId));
    const shown = await full(small, keyId);
    expect(shown).toMatchObject({ deleted_records: 0, deleted_before: null });
    expect(Date.parse(shown?.archive_failing_since ?? '')).toBeGreaterThanOrEqual(before);
    expect(shown?.reason).toContain('R2 is broken by the test');
    await small.call(keyId, 'failArchive', false);
    await small.call(keyId, 'fireAlarm');
    expect(await full(small, keyId)).toBeUndefined();
  });
});
