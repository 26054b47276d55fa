/** Tables of sums that an earlier version made get the columns that they lack (L4). */
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { AMOUNTS, addMissingColumns } from '../../src/metering/object/columns.ts';

test('L4 a table of an earlier version: its sums stay, and new columns begin at zero', () => {
  const database = new DatabaseSync(':memory:');
  const sql = {
    exec: (query: string) => {
      const statement = database.prepare(query);
      const columnNames = statement.columns().map(({ name }) => name);
      return { columnNames, rows: statement.all() };
    },
  };
  sql.exec(
    'CREATE TABLE hours (hour INTEGER NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (hour)) STRICT, WITHOUT ROWID',
  );
  sql.exec('INSERT INTO hours VALUES (7, 3)');
  for (let start = 0; start < 2; start++) addMissingColumns(sql as unknown as SqlStorage, 'hours');
  const [row] = sql.exec('SELECT * FROM hours').rows;
  expect(Object.keys(row ?? {})).toEqual([
    'hour',
    'requests',
    ...AMOUNTS.filter((name) => name !== 'requests'),
  ]);
  expect(row).toMatchObject({ hour: 7, requests: 3, cut_requests: 0, speed_0: 0 });
});
