/** The few numbers that a ledger remembers about itself. */

/**
 * `open_day`: from this day on (days since the epoch) the hours tell what was counted; what was before is in `days`, too.
 * `deleted_before`: records from before this time (ms since the epoch) are gone.
 */
type Mark = 'open_day' | 'deleted_before';

export function createMarks(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID',
  );
}

/** 0 where it was never set. */
export function readMark(sql: SqlStorage, name: Mark): number {
  const [row] = sql.exec('SELECT value FROM marks WHERE name = ?', name);
  return Number(row?.value ?? 0);
}

export function setMark(sql: SqlStorage, name: Mark, value: number): void {
  sql.exec('INSERT INTO marks VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value', name, value);
}
