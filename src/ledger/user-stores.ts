/** The data of users in the ledger objects of keys and of users, and in records that wait in KV for their object. */
import type { ListKeyIds, UserLine, UserStore } from '../http/context.ts';
import { COUNTS } from '../metering/report.ts';
import { DAY_MS, isoDay } from '../metering/time.ts';
import { callTwice } from '../shared/durable-objects.ts';
import { wholeAmount } from '../shared/money.ts';
import type { DeadLetters } from './dead-letters.ts';
import { DIRECTORY, type LedgerNamespace, type LedgerStub, userObject } from './ledger-calls.ts';
import { type DayRow, DIMENSIONS, fromColumns } from './records/sum-columns.ts';
import { USER_START, type UserCursor } from './records/user-records.ts';

/** The ids of the keys that the directory knows. */
export function listKeyIds(ledgers: LedgerNamespace): ListKeyIds {
  return (after) => call(ledgers, DIRECTORY, (directory) => directory.keyIdsAfter(after ?? ''));
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
        for (const user of users) {
          const spent = await call(ledgers, userObject(keyId, user), (ledger) => ledger.userSpent());
          for (const { currency, cost, ...amounts } of spent) {
            const money =
              currency === '' ? { currency: null, cost: null } : { currency, cost: wholeAmount(cost) };
            yield { type: 'spent', fields: { key_id: keyId, ...amounts, ...money } };
          }
        }
        for (const row of part.sums) yield { type: 'sum', fields: { key_id: keyId, ...writeSum(row) } };
        for (const record of part.records) yield { type: 'record', record };
        next = part.next;
      }
    },
  };
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
  };
}
