/** The few numbers that a ledger remembers about itself. */

export interface LedgerState {
  /** From this day on (days since the epoch) the hours tell what was counted; what was before is in `days`, too. */
  readonly open_day: number;
  /** Records from before this time (ms since the epoch) are gone. */
  readonly deleted_before: number;
  /** For so many days records are kept, as the gateway said last; 0: it has not said so yet. */
  readonly record_days: number;
}

export function createStateTable(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID',
  );
}

/** 0 for what was never set. */
export function readState(sql: SqlStorage): LedgerState {
  const marks = new Map(
    [...sql.exec('SELECT name, value FROM marks').raw()].map(([name, value]) => [name, Number(value)]),
  );
  const read = (name: keyof LedgerState) => marks.get(name) ?? 0;
  return {
    open_day: read('open_day'),
    deleted_before: read('deleted_before'),
    record_days: read('record_days'),
  };
}

export function setState(sql: SqlStorage, name: keyof LedgerState, value: number): void {
  sql.exec('INSERT INTO marks VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value', name, value);
}
