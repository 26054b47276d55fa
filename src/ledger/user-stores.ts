/** The data of users in the ledger objects of keys and of users, and in records that wait in KV for their object. */
import { listTeams } from '../auth/teams.ts';
import type { ErasedPart, ErasedUser, ListKeyIds, UserLine, UserStore } from '../http/context.ts';
import { isErased, LATE_AFTER_MS } from '../http/erasure.ts';
import type { UsageRecord } from '../metering/record.ts';
import { COUNTS } from '../metering/report.ts';
import { DAY_MS, firstIdAt, idTime, isoDay } from '../metering/time.ts';
import { callTwice } from '../shared/durable-objects.ts';
import type { JsonObject } from '../shared/json.ts';
import { wholeAmount } from '../shared/money.ts';
import type { DeadLetters } from './dead-letters.ts';
import { MAX_KEY_IDS } from './directory/directory.ts';
import {
  DIRECTORIES,
  FIRST_DIRECTORY,
  keyOfLedger,
  type LedgerNamespace,
  type LedgerStub,
  teamObject,
  userObject,
} from './ledger-calls.ts';
import { type DayRow, DIMENSIONS, fromColumns } from './records/sum-columns.ts';
import { USER_START, type UserCursor } from './records/user-records.ts';

/** The ids of the keys that the directories know, and the names of their shards. */
export function listKeyIds(ledgers: LedgerNamespace): ListKeyIds {
  return async (after) => {
    const pages = await Promise.all(
      [FIRST_DIRECTORY, ...DIRECTORIES].map((name) =>
        call(ledgers, name, (directory) => directory.keyIdsAfter(after ?? '')),
      ),
    );
    // Each page has the first ids of its directory, so these are the first of all.
    return [...new Set(pages.flat())].sort().slice(0, MAX_KEY_IDS);
  };
}

function call<Value>(
  ledgers: LedgerNamespace,
  name: string,
  send: (ledger: LedgerStub) => Promise<Value>,
): Promise<Value> {
  return callTwice(() => ledgers.getByName(name), send);
}

/** What the object of a key has of a user, and the user's own object. */
export function ledgersOfUsers(ledgers: LedgerNamespace): UserStore {
  return {
    scope: 'key',
    read: async function* (_context, names, keyId): AsyncGenerator<UserLine> {
      for (let next: UserCursor | null = USER_START; next !== null; ) {
        const cursor: UserCursor = next;
        const part = await call(ledgers, keyId, (ledger) => ledger.readUser(names, cursor));
        // Each part repeats the users.
        const users = cursor === USER_START ? part.users : [];
        const key_id = keyOfLedger(keyId);
        for (const user of users) yield* spentLines(ledgers, userObject(keyId, user), { key_id });
        for (const row of part.sums) yield { type: 'sum', fields: { key_id, ...writeSum(row) } };
        for (const record of part.records) yield { type: 'record', record };
        next = part.next;
      }
    },
    hasLate: true,
    erase: (_context, user, keyId, cursor) =>
      user.names.length === 0
        ? eraseLate(ledgers, user, keyId, cursor)
        : eraseNamed(ledgers, user, keyId, cursor),
  };
}

/** What an object of a user has spent, a line for each day and currency. @param of whose limits it is under */
async function* spentLines(ledgers: LedgerNamespace, name: string, of: JsonObject): AsyncGenerator<UserLine> {
  const spent = await call(ledgers, name, (ledger) => ledger.userSpent());
  for (const { currency, cost, ...amounts } of spent) {
    const money = currency === '' ? { currency: null, cost: null } : { currency, cost: wholeAmount(cost) };
    yield { type: 'spent', fields: { ...of, ...amounts, ...money } };
  }
}

/** What teams have of a person without a key. The names of a user include its ids as a caller of Cloudflare Access. */
export function ledgersOfPeople(ledgers: LedgerNamespace): UserStore {
  const among = (team: string, names: readonly string[]) =>
    call(ledgers, teamObject(team), (ledger) => ledger.peopleAmong(names));
  return {
    scope: 'all',
    read: async function* ({ ports: { store } }, names): AsyncGenerator<UserLine> {
      for (const { id: team } of await listTeams(store))
        for (const person of await among(team, names))
          yield* spentLines(ledgers, userObject(teamObject(team), person), { team });
    },
    erase: async ({ ports: { store } }, { names, hash }, cursor) => {
      const ids = (await listTeams(store)).map(({ id }) => id).sort();
      const teams = ids.filter((id) => cursor === null || id > cursor).slice(0, MAX_TEAMS);
      let [calls, limits] = [1 + ids.length / LISTED_AT_ONCE, 0];
      let done = cursor;
      for (const team of teams) {
        calls++;
        for (const person of await among(team, names)) {
          const object = userObject(teamObject(team), person);
          const hashed = await hash(person);
          calls++;
          if (!(await call(ledgers, object, (one) => one.eraseLimits(hashed))))
            return { next: done, calls, counts: { limits }, waitMs: BUSY_MS };
          limits++;
        }
        done = team;
      }
      return { next: teams.length < MAX_TEAMS ? null : done, calls, counts: { limits } };
    },
  };
}

/** Teams that one part of an erasure asks. */
const MAX_TEAMS = 100;
/** Entries that one call of KV lists. */
const LISTED_AT_ONCE = 1000;

/** How long requests of the user have to end before they are asked for again. */
const BUSY_MS = 10_000;

async function eraseNamed(
  ledgers: LedgerNamespace,
  { names, hash }: ErasedUser,
  keyId: string,
  cursor: string | null,
): Promise<ErasedPart> {
  let limits = 0;
  if (cursor === null) {
    const { users } = await call(ledgers, keyId, (ledger) => ledger.readUser(names, NOTHING_MORE));
    for (const name of users) {
      const hashed = await hash(name);
      const isErased = await call(ledgers, userObject(keyId, name), (user) => user.eraseLimits(hashed));
      if (!isErased) return { next: cursor, calls: 2, waitMs: BUSY_MS };
      limits++;
    }
  }
  const from = cursor === null ? USER_START : readCursor(cursor);
  const part = await call(ledgers, keyId, (ledger) => ledger.eraseUser(names, from, null));
  const { next, records, sums } = part;
  return {
    next: next === null ? null : JSON.stringify(next),
    calls: 2 + limits,
    counts: { limits, records, sums },
  };
}

/** Finds the name again by its hash. */
async function eraseLate(
  ledgers: LedgerNamespace,
  { isName, beforeId }: ErasedUser,
  keyId: string,
  cursor: string | null,
): Promise<ErasedPart> {
  if (beforeId === null) return { next: null, calls: 0 };
  const first = firstIdAt(idTime(beforeId) - LATE_AFTER_MS);
  const { names, next } = await call(ledgers, keyId, (ledger) =>
    ledger.usersOfRecords(cursor ?? first, beforeId),
  );
  const userKeys: string[] = [];
  for (const name of names) if (await isName(name)) userKeys.push(name);
  let [calls, records, sums] = [1, 0, 0];
  for (let from: UserCursor | null = userKeys.length === 0 ? null : USER_START; from !== null; calls++) {
    const at: UserCursor = from;
    const part = await call(ledgers, keyId, (ledger) => ledger.eraseUser(userKeys, at, beforeId));
    records += part.records;
    sums += part.sums;
    from = part.next;
  }
  return { next, calls, counts: { records, sums } };
}

const NOTHING_MORE: UserCursor = { day: null, id: null };

/** Only {@link eraseNamed} writes these texts. */
function readCursor(text: string): UserCursor {
  return JSON.parse(text) as UserCursor; // decode
}

function writeSum({ day, dimensions, columns }: DayRow) {
  const { currency, cost, ...amounts } = fromColumns(
    dimensions[DIMENSIONS.indexOf('currency')] ?? '',
    columns,
  );
  const groups = DIMENSIONS.filter((name) => name !== 'currency').map((name) => [
    name,
    dimensions[DIMENSIONS.indexOf(name)] || null,
  ]);
  return {
    day: isoDay(day * DAY_MS),
    ...Object.fromEntries(groups),
    ...Object.fromEntries(COUNTS.map((name) => [name, amounts[name]])),
    currency,
    cost: currency === null ? null : wholeAmount(Number(cost)),
  };
}

/** Records whose ledger object could not be reached. */
export function deadLettersOfUsers(deadLetters: DeadLetters): UserStore {
  return {
    scope: 'all',
    read: async function* (_context, names): AsyncGenerator<UserLine> {
      for await (const records of deadLetters.pages())
        for (const record of records)
          if (record.user !== null && names.includes(record.user)) yield { type: 'record', record };
    },
    hasLate: true,
    erase: async (_context, user) => {
      let calls = 0;
      let records = 0;
      for await (const page of deadLetters.pages()) {
        calls += 2;
        const userRecords: UsageRecord[] = [];
        for (const record of page) if (await isErased(record, user)) userRecords.push(record);
        await deadLetters.remove(userRecords);
        calls += userRecords.length;
        records += userRecords.length;
      }
      return { next: null, calls, counts: { records } };
    },
  };
}
