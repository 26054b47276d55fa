/** A rollback to 0.2.0 reads the tables of limits: it writes rows without names of columns, so none is added to a table that it has. */
import { expect, test } from 'vitest';
import { UserNetwork } from './holder-network.ts';

/** The columns that 0.2.0 gives to the tables of the object of a key, and of a user. */
const COLUMNS_OF_0_2_0: Readonly<Record<string, readonly string[]>> = {
  limits: ['only', 'json'],
  reservations: [
    ...['id', 'day', 'second', 'expires_at', 'tokens', 'expected_tokens', 'currency', 'cost'],
    'output_tokens',
  ],
  spent: ['day', 'currency', 'tokens', 'cost'],
  unreported: ['day', 'currency', 'tokens', 'cost'],
  expired: ['id', 'day', 'tokens', 'currency', 'cost', 'expired_at'],
  unreserved: ['id', 'settled_at'],
  seconds: ['slot', 'second', 'requests', 'tokens'],
  counted: ['slot', 'hash', 'tokens', 'at'],
};
const OF_KEYS = {
  key_users: ['user', 'day', 'seq'],
  held: ['user', 'day', 'currency', 'tokens', 'cost', 'running', 'requests', 'rate_tokens'],
};
const OF_USERS = {
  link: ['only', 'seq', 'is_answered'],
  reported: ['kind', 'day', 'currency', 'seq', 'tokens', 'cost', 'base_tokens', 'base_cost'],
};

test('G4 Y6 the tables of limits have the columns of 0.2.0', async () => {
  const network = new UserNetwork({ budget: { tokens: 1000, per: 'day' }, per_user: { rpm: 5 } });
  await network.reserve('ada', 'a');
  for (const [sql, more] of [
    [network.key, OF_KEYS],
    [network.member('ada').sql, OF_USERS],
  ] as const) {
    for (const [table, columns] of Object.entries({ ...COLUMNS_OF_0_2_0, ...more })) {
      const found = sql.exec<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`).toArray();
      expect({ [table]: found.map(({ name }) => name) }).toEqual({ [table]: columns });
    }
  }
});
