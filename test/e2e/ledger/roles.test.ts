/** The roles of the ledger objects in workerd: an object has the methods of what its name says, and no others. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ALERTS,
  DIRECTORIES,
  ERASURES,
  FIRST_DIRECTORY,
  type LedgerStub,
  PEOPLE,
  teamObject,
  userObject,
} from '../../../src/ledger/ledger-calls.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

type Method = keyof LedgerStub;

let ledgers: Ledgers;

beforeAll(async () => {
  ledgers = await startLedgers();
});
afterAll(() => ledgers[Symbol.asyncDispose]());

/** Of keys and users. */
const SETTLE: readonly Method[] = ['settleReservation', 'settleUnreserved', 'returnLease'];
/** Of keys and teams. */
const OWN_LIMITS: readonly Method[] = [
  ...(['openUser', 'lease', 'settleUnreserved', 'standing', 'addToBudget', 'changeKey'] as const),
];
const RECORDS: readonly Method[] = [
  ...(['settle', 'find', 'list', 'report', 'reportUnsent', 'sendSums', 'readUser', 'eraseUser'] as const),
  ...(['usersOfRecords', 'compareCache'] as const),
];

/** A method that Weir 0.2.0 calls stays in its role: during a rollout its Workers and objects call these. */
const ROLES: readonly (readonly [kind: string, name: string, methods: readonly Method[]])[] = [
  [
    'a key',
    'key-1',
    [...RECORDS, ...SETTLE, ...OWN_LIMITS, 'reserve', 'limitsRow', 'changeLimits', 'revokeKey'],
  ],
  [
    'a user',
    userObject('key-1', 'ann'),
    [...SETTLE, 'reserveForUser', 'userStanding', 'userSpent', 'eraseLimits', 'clearUser'],
  ],
  [
    'a user',
    userObject(teamObject('team-1'), 'access_1'),
    [...SETTLE, 'reserveForUser', 'userStanding', 'userSpent', 'eraseLimits', 'clearUser'],
  ],
  ['a team', teamObject('team-1'), [...OWN_LIMITS, 'deleteTeam', 'peopleAmong']],
  ['the people of teams', PEOPLE, ['changePeople']],
  [
    'a directory',
    DIRECTORIES[3] ?? '',
    ['takeSums', 'reportPart', 'listRecent', 'activeHours', 'findOfAll', 'keyIdsAfter', 'eraseSums'],
  ],
  [
    'the first directory',
    FIRST_DIRECTORY,
    ['takeDays', 'reportPart', 'keyIdsAfter', 'noteFull', 'fullLedgers', 'takeRefusals', 'refusals'],
  ],
  ['the erasures', ERASURES, ['startErasure', 'findErasure']],
  ['the alerts', ALERTS, ['takeCalls', 'noteAlert']],
];
const METHODS = [...new Set(ROLES.flatMap(([, , methods]) => methods))];

/** The text of the exception of a call without arguments; null: there was none. */
const thrown = (name: string, method: string) =>
  ledgers.call(name, method).then(
    () => null,
    (error: unknown) => String(error),
  );

/** All rows of all tables of an object. */
async function stored(name: string): Promise<unknown[]> {
  const select = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'";
  const tables = (await ledgers.call(name, 'run', select)) as string[][];
  const rows: unknown[] = [];
  for (const [table] of tables) rows.push([table, await ledgers.call(name, 'run', `SELECT * FROM ${table}`)]);
  return rows;
}

describe('a ledger object', () => {
  test.each(ROLES)(
    'that is %s has its methods; any other one is an error that names both, and changes nothing',
    async (kind, name, own) => {
      const before = await stored(name);
      const others = METHODS.filter((method) => !own.includes(method));
      const errors = await Promise.all(others.map((method) => thrown(name, method)));
      expect(errors).toEqual(
        others.map((method) => `Error: Error: The ledger object is ${kind}: it has no method ${method}`),
      );
      expect(await stored(name)).toEqual(before);
      const answers = await Promise.all(own.map((method) => thrown(name, method)));
      expect(answers.filter((text) => text?.includes('has no method'))).toEqual([]);
    },
  );

  test.each(['*later', '*16', ''])(
    'with the name "%s", which this version does not know: no call is taken for one of a key',
    async (name) => {
      const message = `This version of Weir has no ledger object with the name '${name}'`;
      expect(await thrown(name, 'settle')).toContain(message);
      expect(await thrown(name, 'reserve')).toContain(message);
    },
  );
});
