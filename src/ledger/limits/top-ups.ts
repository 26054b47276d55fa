/** What admins add to a key's budgets for one period. */
import {
  type Budget,
  budgetsOf,
  formatAmount,
  type Limits,
  MAX_AMOUNT,
  type NewTopUp,
  periodName,
  type TopUp,
  type TopUpResult,
} from '../../auth/key-limits.ts';
import { AUDIT_KEPT_DAYS } from '../../shared/limits.ts';
import type { Sql } from './limit-tables.ts';

/** Top-ups of one budget in one period. */
const MAX_TOP_UPS = 100;
const KEPT_MS = AUDIT_KEPT_DAYS * 24 * 60 * 60 * 1000;

/** Raises a budget's current period. A repeated call changes nothing. @param now in ms since the epoch */
export function addToBudget(sql: Sql, limits: Limits, added: NewTopUp, now: number): TopUpResult {
  const storedTopUp = readTopUps(sql, 'id = ?', added.id)[0];
  if (storedTopUp !== undefined) {
    const isSame = storedTopUp.unit === added.unit && storedTopUp.amount === added.amount;
    return isSame
      ? { kind: 'added', topUp: storedTopUp, isNew: false }
      : invalid(`This id has added ${formatAmount(storedTopUp.amount, storedTopUp.unit)} already`, 'id');
  }
  const { unit, per, amount } = added;
  const ofUnit = budgetsOf(limits).filter((budget) => budget.unit === unit);
  const [budget, other] = ofUnit.filter((one) => per === null || one.per === per);
  if (budget === undefined) return invalid(`There is no such budget: ${namesOf(limits)}`, 'add');
  if (other !== undefined) return invalid(`per must name one of the budgets: ${namesOf(limits)}`, 'per');
  const period = periodName(budget.per, now);
  const before = readTopUps(sql, 'unit = ? AND period = ?', unit, period);
  if (before.length >= MAX_TOP_UPS)
    return invalid(`A budget takes ${MAX_TOP_UPS} top-ups in a period`, 'add');
  const sum = before.reduce((all, one) => all + one.amount, budget.amount + amount);
  if (sum > MAX_AMOUNT) return invalid(`A budget is at most ${formatAmount(MAX_AMOUNT, unit)}`, 'add');
  const { id, actor, note } = added;
  const topUp: TopUp = { id, at: now, actor, note, unit, per: budget.per, period, amount };
  sql.exec("DELETE FROM top_ups WHERE at < ? AND per != 'total'", now - KEPT_MS);
  sql.exec(
    'INSERT INTO top_ups VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    ...[id, now, actor, note, unit, budget.per, period, amount],
  );
  return { kind: 'added', topUp, isNew: true };
}

/** What was added to the key's budgets in their current periods, the latest first. @param now in ms since the epoch */
export function currentTopUps(sql: Sql, limits: Limits, now: number): readonly TopUp[] {
  const ofBudget = ({ unit, per }: Budget) =>
    readTopUps(sql, 'unit = ? AND period = ?', unit, periodName(per, now));
  return budgetsOf(limits)
    .flatMap(ofBudget)
    .sort((a, b) => b.at - a.at);
}

function readTopUps(sql: Sql, where: string, ...values: readonly string[]): TopUp[] {
  type Row = TopUp & Record<string, SqlStorageValue>;
  const query = `SELECT id, at, actor, note, unit, per, period, amount FROM top_ups WHERE ${where}`;
  return sql.exec<Row>(query, ...values).toArray();
}

function namesOf(limits: Limits): string {
  const names = budgetsOf(limits).map(({ unit, per }) => `${unit} ${per}`);
  return names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
}

function invalid(message: string, param: string): TopUpResult {
  return { kind: 'invalid', message, param };
}
