/** Children that send no messages: what they hold is charged whole, until a later message says what was used. */
import type { Amounts, ReportedCharge } from './allowance.ts';
import { createTables, HELD_TABLE, hasTable, SHARD_HELD_TABLE, type Sql } from './limit-tables.ts';
import { addReported } from './reservations.ts';
import { TEAM_HELD_TABLE } from './team-shares.ts';

/**
 * - `heard`: of children that hold something, the last message, and since when there was no other.
 * - `silent`: what was charged for children that are silent. Their next message takes it back.
 */
const TABLES = [
  'CREATE TABLE IF NOT EXISTS heard (user TEXT PRIMARY KEY, seq INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID',
  `CREATE TABLE IF NOT EXISTS silent (
    user TEXT NOT NULL, team TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL, PRIMARY KEY (user, team, day, currency)
  ) WITHOUT ROWID`,
];

type HoldingChild = { readonly user: string; readonly seq: number };
type HeardRow = HoldingChild & { readonly at: number };
type HeldAmounts = Amounts & { readonly team: string };
type SilentAmounts = HeldAmounts & { readonly user: string };

export class SilentChildren {
  readonly #sql: Sql;
  /** How long requests take at most. */
  readonly #silentMs: () => number;
  /** When a child was heard last, in ms since the epoch. The alarm stores it of those that hold something then. */
  readonly #heardAt = new Map<string, number>();
  /** When a child may have been silent for too long; null: none holds anything; undefined: not known after a restart. */
  #dueAt: number | null | undefined;

  constructor(sql: Sql, silentMs: () => number) {
    this.#sql = sql;
    this.#silentMs = silentMs;
  }

  /** When {@link charge} has work next, in ms since the epoch; null: never. After a restart the next alarm finds out. */
  get dueAt(): number | null {
    return this.#dueAt ?? null;
  }

  /** A message of the child was applied, after which it holds something or nothing. */
  heard(child: string, now: number): void {
    this.#heardAt.set(child, now);
    if (this.#dueAt !== undefined) this.#dueAt ??= now + this.#silentMs();
  }

  /**
   * Charges what children hold that were silent for too long, on the days of its grants and marked as estimated. Runs in a transaction.
   * @param team the current one
   * @param isAlarm looks also where it is not known since when children are silent
   * @returns what is charged
   */
  charge(now: number, team: string, isAlarm: boolean): readonly SilentAmounts[] {
    const due = this.#dueAt;
    if (due === null || now < (due ?? (isAlarm ? now : Number.POSITIVE_INFINITY))) return [];
    const existing = (tables: readonly string[]) => tables.filter((table) => hasTable(this.#sql, table));
    const heldTables = existing([HELD_TABLE, SHARD_HELD_TABLE, TEAM_HELD_TABLE]);
    const held = heldTables.map((table) => `SELECT user FROM ${table}`).join(' UNION ');
    const holding = existing(['key_users', 'key_shards']).flatMap((table) =>
      this.#sql.exec<HoldingChild>(`SELECT user, seq FROM ${table} WHERE user IN (${held})`).toArray(),
    );
    const known = this.#known;
    this.#dueAt = null;
    const charged: SilentAmounts[] = [];
    for (const { user, seq } of holding) {
      const row = known.get(user);
      known.delete(user);
      const since = row?.seq === seq ? row.at : (this.#heardAt.get(user) ?? now);
      const end = since + this.#silentMs();
      if (end <= now) {
        charged.push(...heldTables.flatMap((table) => this.#chargeOne(user, table, now, team)));
        this.#forget(user);
        continue;
      }
      this.#dueAt = Math.min(this.#dueAt ?? end, end);
      if (row?.seq === seq) continue;
      createTables(this.#sql, TABLES);
      this.#sql.exec('INSERT OR REPLACE INTO heard VALUES (?, ?, ?)', user, seq, since);
    }
    const holders = new Set(holding.map(({ user }) => user));
    for (const user of [...known.keys(), ...this.#heardAt.keys()]) if (!holders.has(user)) this.#forget(user);
    return charged;
  }

  get #known(): Map<string, HeardRow> {
    if (!hasTable(this.#sql, 'heard')) return new Map();
    const rows = this.#sql.exec<HeardRow>('SELECT user, seq, at FROM heard').toArray();
    return new Map(rows.map((row) => [row.user, row]));
  }

  #chargeOne(child: string, table: string, now: number, current: string): readonly SilentAmounts[] {
    const [team, values] = table === TEAM_HELD_TABLE ? ['team', []] : ['? AS team', [current]];
    const query = `DELETE FROM ${table} WHERE user = ? RETURNING day, currency, tokens, cost, ${team}`;
    const rows = this.#sql.exec<HeldAmounts>(query, child, ...values).toArray();
    createTables(this.#sql, TABLES);
    for (const row of rows) {
      const { day, currency, tokens, cost } = row;
      this.#sql.exec(
        'INSERT INTO silent VALUES (?, ?, ?, ?, ?, ?)',
        child,
        row.team,
        day,
        currency,
        tokens,
        cost,
      );
      this.#add(row, current, now);
    }
    return rows.map((row) => ({ user: child, ...row }));
  }

  /** Takes back what was charged for a child, which now says what was used. Runs in a transaction. */
  takeBack(child: string, current: string, now: number): void {
    if (!hasTable(this.#sql, 'silent')) return;
    const query = 'DELETE FROM silent WHERE user = ? RETURNING team, day, currency, tokens, cost';
    for (const row of this.#sql.exec<HeldAmounts>(query, child).toArray())
      this.#add({ ...row, tokens: -row.tokens, cost: -row.cost }, current, now);
  }

  #add(amounts: HeldAmounts, current: string, now: number): void {
    for (const kind of ['spent', 'expired'] as const) {
      const charge: ReportedCharge = { kind, ...amounts };
      addReported(this.#sql, charge, current, now);
    }
  }

  /** The object of a child is deleted. What was charged for it stays. */
  remove(child: string): void {
    if (hasTable(this.#sql, 'silent')) this.#sql.exec('DELETE FROM silent WHERE user = ?', child);
    this.#forget(child);
  }

  #forget(child: string): void {
    this.#heardAt.delete(child);
    if (hasTable(this.#sql, 'heard')) this.#sql.exec('DELETE FROM heard WHERE user = ?', child);
  }
}
