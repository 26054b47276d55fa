/** How a key stands against its limits at a moment: for refusals, headers and `GET /v1/key` (G5, G8). */

import { TOKENS } from './amount.ts';
import type { Budget, Limits } from './limits.ts';
import { daysPrefix, periodEnd } from './period.ts';
import { type Rate, Window } from './sliding-window.ts';
import { type Sql, storedLimits } from './tables.ts';

/** Amounts are in the budget's unit: integers of tokens, or of 10^-9 of the currency. */
interface BudgetStanding {
  readonly spent: number;
  /** Of the requests that run: what they may cost at most; 0 where the budget only warns. */
  readonly reserved: number;
  /** Of `spent`: reservations that were charged because nothing settled them (G3). */
  readonly estimated: number;
  /** Of `spent`: charged at its bound, because the provider did not report what it used (G3). */
  readonly unreported: number;
  /** When it starts again, in ms since the epoch; null: never. */
  readonly resetsAt: number | null;
}

/** Null is what has no limit. */
export interface LimitStatus {
  readonly limits: Limits;
  readonly budget: BudgetStanding | null;
  readonly requests: Rate | null;
  readonly tokens: Rate | null;
  /** Requests that run. */
  readonly running: number | null;
}

/** @param now in ms since the epoch */
export function readLimitStatus(sql: Sql, now: number): LimitStatus {
  const limits = storedLimits(sql);
  const { budget, rpm, tpm, maxConcurrent } = limits;
  const window = rpm === null && tpm === null ? null : Window.read(sql, now);
  return {
    limits,
    budget: budget === null ? null : readBudgetStanding(sql, budget, now),
    requests: rpm === null || window === null ? null : window.rate('requests'),
    tokens: tpm === null || window === null ? null : window.rate('tokens'),
    running: maxConcurrent === null ? null : countRunning(sql),
  };
}

function countRunning(sql: Sql): number {
  const [row] = sql.exec<{ running: number }>('SELECT count(*) AS running FROM reservations').toArray();
  return row?.running ?? 0;
}

function readBudgetStanding(sql: Sql, budget: Budget, now: number): BudgetStanding {
  return {
    spent: sumOf(sql, 'spent', budget, now),
    reserved: budget.mode === 'hard' ? sumOf(sql, 'reservations', budget, now) : 0,
    estimated: sumOf(sql, 'expired', budget, now),
    unreported: sumOf(sql, 'unreported', budget, now),
    resetsAt: periodEnd(budget.per, now),
  };
}

/** The table's rows of the budget's period, in its unit. Days are texts: a period is all that begin alike. */
function sumOf(
  sql: Sql,
  table: 'spent' | 'unreported' | 'reservations' | 'expired',
  { unit, per }: Budget,
  now: number,
): number {
  const prefix = daysPrefix(per, now);
  const days = `FROM ${table} WHERE day >= ?1 AND day <= ?1 || '~'`;
  const sum =
    unit === TOKENS
      ? sql.exec<{ sum: number }>(`SELECT coalesce(sum(tokens), 0) AS sum ${days}`, prefix)
      : sql.exec<{ sum: number }>(
          `SELECT coalesce(sum(cost), 0) AS sum ${days} AND currency = ?2`,
          prefix,
          unit,
        );
  return sum.toArray()[0]?.sum ?? 0;
}
