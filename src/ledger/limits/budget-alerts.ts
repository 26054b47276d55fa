/**
 * Alerts of the budgets of a key or a team: each percentage that the spend of a period reaches is logged once, and sent
 * to the operator's URL (G10).
 */

import {
  type Budget,
  type BudgetPeriod,
  budgetsOf,
  formatAmount,
  periodName,
  writeAmount,
} from '../../auth/key-limits.ts';
import { isUnreadable } from '../../canonical/secret.ts';
import { AUDIT_KEPT_DAYS } from '../../shared/limits.ts';
import type { Log } from '../../shared/log-event.ts';
import { type AlertSettings, plainText, sendAlert, wordsOf } from '../alerts/send-alert.ts';
import {
  addedTo,
  createTables,
  type Sql,
  storedLimits,
  sumOfPeriod,
  unreadableReason,
} from './limit-tables.ts';

export interface AlertPorts {
  /** Of the key; of a team the name of its object. */
  readonly keyId: string;
  /** Null: it is a key. */
  readonly teamId?: string | null;
  /** The name of the key or the team; null: it has none, or cannot be read now. Absent: no key has a name. */
  readonly keyName?: () => Promise<string | null>;
  readonly sql: Sql;
  readonly transaction: <Value>(act: () => Value) => Value;
  readonly settings: () => Promise<AlertSettings>;
  readonly fetch: typeof fetch;
  readonly log: Log;
}

const KEPT_MS = AUDIT_KEPT_DAYS * 24 * 60 * 60_000;

/** `next_at`: when the alert is sent, in ms since the epoch; null: it was, or there is nowhere to send it. */
const TABLE = `CREATE TABLE IF NOT EXISTS alerts (
  unit TEXT NOT NULL, period TEXT NOT NULL, percent INTEGER NOT NULL, per TEXT NOT NULL, at INTEGER NOT NULL,
  spent INTEGER NOT NULL, amount INTEGER NOT NULL, tries INTEGER NOT NULL, next_at INTEGER,
  PRIMARY KEY (unit, period, percent)
) WITHOUT ROWID`;

/** The name of a period says of which budget it is: `2026-11` is a month. */
type AlertRow = {
  readonly unit: string;
  readonly period: string;
  readonly percent: number;
  readonly per: BudgetPeriod;
  readonly at: number;
  readonly spent: number;
  readonly amount: number;
  readonly tries: number;
};

export class BudgetAlerts {
  readonly #ports: AlertPorts;
  #settings: Promise<AlertSettings> | null = null;

  constructor(ports: AlertPorts) {
    this.#ports = ports;
    createTables(ports.sql, [TABLE]);
  }

  /** When an alert is to be sent next, in ms since the epoch; null: none is. */
  get nextDue(): number | null {
    const query = 'SELECT min(next_at) AS at FROM alerts';
    return this.#ports.sql.exec<{ at: number | null }>(query).toArray()[0]?.at ?? null;
  }

  /**
   * Notes and logs what the budgets have newly reached. Of several percentages at once, the highest counts.
   * @param now in ms since the epoch
   * @returns whether there is something to send
   */
  async note(now: number): Promise<boolean> {
    const { percents, target } = await this.#readSettings();
    if (percents.length === 0) return false;
    const { sql, transaction, log } = this.#ports;
    const noted = readBudgets(sql).flatMap((budget) => newAlert(sql, budget, percents, now) ?? []);
    if (noted.length === 0) return false;
    transaction(() => {
      for (const row of noted) insert(sql, row, target === null ? null : now);
    });
    for (const row of noted) log({ event: 'budget_alert', ...view(this.#ports, row) });
    return target !== null;
  }

  /**
   * Sends the alerts that are due. One that fails is sent again later, for a day.
   * @param now in ms since the epoch
   * @returns when the next one is due; null: none is
   */
  async send(now: number): Promise<number | null> {
    const { sql } = this.#ports;
    const due = sql.exec<AlertRow>('SELECT * FROM alerts WHERE next_at <= ?', now).toArray();
    await Promise.all(due.map((row) => this.#sendOne(row, now)));
    return this.nextDue;
  }

  /** There are no alerts while the settings cannot be read: what was used is counted all the same. */
  async #readSettings(): Promise<AlertSettings> {
    const { keyId, settings, log } = this.#ports;
    this.#settings ??= settings().catch((error: unknown) => {
      this.#settings = null;
      log({ event: 'budget_alert_failed', key_id: keyId, id: null, reason: String(error) });
      return { percents: [], target: null };
    });
    const read = await this.#settings;
    if (isUnreadable(read.target)) this.#settings = null;
    return read;
  }

  async #sendOne(row: AlertRow, now: number): Promise<void> {
    const { sql, transaction, log, keyId, fetch: send } = this.#ports;
    const { unit, period, percent, at } = row;
    const { target } = await this.#readSettings();
    const body = JSON.stringify({
      event: 'budget_alert',
      ...view(this.#ports, row),
      ...(await this.#words(row)),
    });
    const { problem, tries, nextAt } = await sendAlert({ body, at, tries: row.tries }, target, {
      fetch: send,
      now,
    });
    if (problem !== null) {
      const event = nextAt === null ? 'budget_alert_lost' : 'budget_alert_failed';
      log({ event, key_id: keyId, id: idOf(keyId, row), reason: problem });
    }
    transaction(() =>
      sql.exec(
        'UPDATE alerts SET tries = ?, next_at = ? WHERE unit = ? AND period = ? AND percent = ?',
        ...[tries, nextAt, unit, period, percent],
      ),
    );
  }

  /** The name of the key and a sentence for people. */
  async #words(row: AlertRow) {
    const { keyId, teamId = null, keyName } = this.#ports;
    const name = (await keyName?.().catch(() => null)) ?? null;
    return { name, ...wordsOf(sentenceOf(teamId === null ? 'key' : 'team', name ?? teamId ?? keyId, row)) };
  }
}

/** None where the limits cannot be read, which refuses requests and must not keep what they used from being counted. */
function readBudgets(sql: Sql): readonly Budget[] {
  try {
    return budgetsOf(storedLimits(sql));
  } catch (error) {
    if (unreadableReason(error) === null) throw error;
    return [];
  }
}

/** What the budget has newly reached; null: nothing. */
function newAlert(sql: Sql, budget: Budget, percents: readonly number[], now: number): AlertRow | null {
  const { unit, per } = budget;
  const spent = sumOfPeriod(sql, 'spent', budget, now);
  const [lowest = 0] = percents;
  // Top-ups only raise the limit. They are not read for each request.
  if (spent < (budget.amount * lowest) / 100) return null;
  const amount = budget.amount + addedTo(sql, budget, now);
  const percent = percents.findLast((one) => amount > 0 && spent >= (amount * one) / 100);
  if (percent === undefined) return null;
  const period = periodName(per, now);
  const query = 'SELECT 1 AS one FROM alerts WHERE unit = ? AND period = ? AND percent >= ?';
  const isKnown = sql.exec(query, unit, period, percent).toArray().length > 0;
  return isKnown ? null : { unit, period, percent, per, at: now, spent, amount, tries: 0 };
}

function insert(sql: Sql, row: AlertRow, nextAt: number | null): void {
  const { unit, period, percent, per, at, spent, amount, tries } = row;
  sql.exec("DELETE FROM alerts WHERE at < ? AND per != 'total'", at - KEPT_MS);
  sql.exec(
    'INSERT INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ...[unit, period, percent, per, at, spent, amount, tries, nextAt],
  );
}

/** The same for every try, so that a receiver can tell a repeated alert. */
function idOf(keyId: string, { unit, period, percent }: AlertRow): string {
  return [keyId, unit, period, percent].join('/');
}

/** Amounts are in the budget's unit: tokens, or money. */
function view({ keyId, teamId = null }: Pick<AlertPorts, 'keyId' | 'teamId'>, row: AlertRow) {
  const { unit, period, percent, per, at, spent, amount } = row;
  return {
    id: idOf(keyId, row),
    ...(teamId === null ? { key_id: keyId } : { team: teamId }),
    ...{ time: new Date(at).toISOString(), percent, unit, per, period },
    ...{ spent: writeAmount(spent, unit), limit: writeAmount(amount, unit) },
  };
}

function sentenceOf(
  owner: 'key' | 'team',
  name: string,
  { unit, period, percent, per, spent, amount }: AlertRow,
): string {
  const limit = `${formatAmount(amount, unit)} ${per === 'total' ? 'in total' : `a ${per}`}`;
  const when = per === 'total' ? '' : ` in ${period}`;
  return `Weir: the ${owner} ${plainText(name)} has reached ${percent} % of its budget of ${limit}: ${formatAmount(spent, unit)} are spent${when}`;
}
