/** Tables of sums, as they are now: one that an earlier version made is copied into a new one, with what it has (L4). */
import { AMOUNTS, DEFINITIONS, DIMENSIONS } from './columns.ts';
import { FROM_STEP_COLUMNS } from './speed-text.ts';

/**
 * Makes a table that is not there. All that it does is one write, as no turn passes in between.
 * @param before the columns before the dimensions, with their types: together they are the primary key
 */
export function createSumTable(
  sql: SqlStorage,
  table: string,
  before: Readonly<Record<string, 'INTEGER' | 'TEXT'>>,
): void {
  const keys = [...Object.keys(before), ...DIMENSIONS];
  const create = (name: string) =>
    sql.exec(`CREATE TABLE IF NOT EXISTS ${name} (
      ${Object.entries(before)
        .map(([column, type]) => `${column} ${type} NOT NULL, `)
        .join('')}
      ${DEFINITIONS}, PRIMARY KEY (${keys.join(', ')})
    ) STRICT, WITHOUT ROWID`);
  create(table);
  const columns = [...keys, ...AMOUNTS];
  const { columnNames } = sql.exec(`SELECT * FROM ${table} LIMIT 0`);
  // Their order counts, too: rows are inserted by it.
  if (columns.join() === columnNames.join()) return;
  create(`${table}_new`);
  sql.exec(
    `INSERT INTO ${table}_new SELECT ${columns.map((name) => columnOf(name, columnNames))} FROM ${table}`,
  );
  sql.exec(`DROP TABLE ${table}`);
  sql.exec(`ALTER TABLE ${table}_new RENAME TO ${table}`);
}

/** What was not summed until then has nothing in it. */
function columnOf(name: string, present: readonly string[]): string {
  if (present.includes(name)) return name;
  if (name !== 'speeds') return '0';
  return present.includes('speed_0') ? FROM_STEP_COLUMNS : "''";
}
