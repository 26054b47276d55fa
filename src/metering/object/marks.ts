/** The few numbers that a ledger remembers about itself. */

export interface Marks {
  /** From this day on (days since the epoch) the hours tell what was counted; what was before is in `days`, too. */
  readonly open_day: number;
  /** Records from before this time (ms since the epoch) are gone. */
  readonly deleted_before: number;
}

export function createMarks(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID',
  );
}

/** 0 for what was never set. */
export function readMarks(sql: SqlStorage): Marks {
  const marks = new Map(
    [...sql.exec('SELECT name, value FROM marks').raw()].map(([name, value]) => [name, Number(value)]),
  );
  return { open_day: marks.get('open_day') ?? 0, deleted_before: marks.get('deleted_before') ?? 0 };
}

export function setMark(sql: SqlStorage, name: keyof Marks, value: number): void {
  sql.exec('INSERT INTO marks VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value', name, value);
}
