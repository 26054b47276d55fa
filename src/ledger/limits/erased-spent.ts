/** What erased users have spent in the current period of their budgets, under keyed hashes, so that an erasure resets no budget. */
import { budgetsOf, type Limits, limitsOfUser, periodDays, periodEnd } from '../../auth/key-limits.ts';
import type { ErasedSpent, SpentRow } from './allowance.ts';
import { createTables, hasTable, type Sql } from './limit-tables.ts';

const NAME = 'erased_spent';
/** `until` is null where the period has no end. */
const TABLE = `CREATE TABLE IF NOT EXISTS ${NAME} (
  hash TEXT NOT NULL, kind TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  until INTEGER, PRIMARY KEY (hash, kind, day, currency)
) STRICT, WITHOUT ROWID`;

/** In the object of a user: what its budgets still count. */
export function currentSpent(sql: Sql, limits: Limits, now: number): Omit<ErasedSpent, 'hash'> {
  const budgets = budgetsOf(limitsOfUser(limits));
  const spans = budgets.map(({ per }) => periodDays(per, now));
  const isCurrent = ({ day }: SpentRow) => spans.some(({ first, last }) => day >= first && day <= last);
  const ends = budgets.map(({ per }) => periodEnd(per, now));
  const rows = (['spent', 'unreported'] as const).flatMap((kind) =>
    sql
      .exec<SpentRow & Record<string, SqlStorageValue>>(
        `SELECT '${kind}' AS kind, day, currency, tokens, cost FROM ${kind}`,
      )
      .toArray(),
  );
  return {
    rows: rows.filter(isCurrent),
    until: ends.includes(null) ? null : Math.max(...ends.map((end) => end ?? 0)),
  };
}

/** In the object of a key: remembers what an erased user has spent, in place of an earlier erasure. */
export function keepSpent(sql: Sql, { hash, rows, until }: ErasedSpent): void {
  createTables(sql, [TABLE]);
  sql.exec(`DELETE FROM ${NAME} WHERE hash = ?`, hash);
  for (const { kind, day, currency, tokens, cost } of rows)
    sql.exec(
      `INSERT INTO ${NAME} VALUES (?, ?, ?, ?, ?, ?, ?)`,
      hash,
      kind,
      day,
      currency,
      tokens,
      cost,
      until,
    );
}

/** What the user with this hash has spent. */
export function keptSpent(sql: Sql, hash: string, now: number): readonly SpentRow[] {
  if (!hasTable(sql, NAME)) return [];
  const query = `SELECT kind, day, currency, tokens, cost FROM ${NAME} WHERE hash = ? AND (until IS NULL OR until > ?)`;
  return sql.exec<SpentRow & Record<string, SqlStorageValue>>(query, hash, now).toArray();
}

/** In the new object of a user: what the key remembers, and has counted already. */
export function restoreSpent(sql: Sql, rows: readonly SpentRow[]): void {
  for (const { kind, day, currency, tokens, cost } of rows) {
    sql.exec(`INSERT INTO ${kind} VALUES (?, ?, ?, ?)`, day, currency, tokens, cost);
    const values = [kind, day, currency, 0, tokens, cost, tokens, cost];
    sql.exec('INSERT INTO reported VALUES (?, ?, ?, ?, ?, ?, ?, ?)', ...values);
  }
}

/** Whether anything is remembered. */
export function hasErasedSpent(sql: Sql): boolean {
  return hasTable(sql, NAME) && sql.exec(`SELECT 1 AS one FROM ${NAME} LIMIT 1`).toArray().length > 0;
}

/**
 * Deletes what belongs to a period that is over, or to a revoked key.
 * @returns when there is more to delete, in ms since the epoch; null: never
 */
export function forgetSpent(sql: Sql, now: number, isRevoked: boolean): number | null {
  if (!hasTable(sql, NAME)) return null;
  sql.exec(`DELETE FROM ${NAME} WHERE ? OR until <= ?`, isRevoked ? 1 : 0, now);
  const [row] = sql.exec<{ until: number | null }>(`SELECT min(until) AS until FROM ${NAME}`).toArray();
  return row?.until ?? null;
}
