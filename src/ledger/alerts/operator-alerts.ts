/** The object of alerts to the operator: counts the failures of providers over all isolates, and has each alert sent once (G11). */
import type { JsonObject } from '../../shared/json.ts';
import type { Log, LogEvent } from '../../shared/log-event.ts';
import type { Sql } from '../limits/limit-tables.ts';
import type { Job, Role } from '../roles/role.ts';
import { type AlertSettings, plainText, sendAlert, wordsOf } from './send-alert.ts';

const HOUR_MS = 60 * 60_000;
/** The failures of a provider are counted over this time. */
export const WINDOW_MS = 5 * 60_000;
/** Calls are counted in parts of this length, so that the window is exact to one of them. */
export const SLOT_MS = 5000;
/** A provider with so many failures within the window, which are more than half of its calls, is failing. */
export const MIN_FAILURES = 10;
/** Isolates with failures of one provider whose counts are kept. Those of further ones are not counted. */
const MAX_ISOLATES = 1000;
/** Alerts of one event within an hour, over all providers and targets: callers choose names of models. */
const MAX_ALERTS_AN_HOUR = 20;
/** How long an alert is remembered: longer than it is tried, and than a week's summary may come again. */
const KEPT_MS = 8 * 24 * HOUR_MS;
/** Alerts that one alarm sends. */
const MAX_SENT_AT_ONCE = 20;

/** The calls that one isolate has made of a provider within the window. A later message replaces an earlier one. */
export interface ProviderCounts {
  readonly isolate: string;
  readonly provider: string;
  /** For each slot (of {@link SLOT_MS}, since the epoch): its calls, and those of them that failed by the provider's fault. */
  readonly slots: readonly (readonly [slot: number, calls: number, failures: number])[];
  /** The last failure, for the alert. */
  readonly last: JsonObject;
}

/** Something that an operator has to know. */
export interface OperatorAlert {
  readonly event: LogEvent &
    ('provider_failing' | 'credential_refused' | 'circuit_opened' | 'weekly_summary');
  /** The provider, target or week: there is one alert for it within `silentMs`. */
  readonly subject: string;
  readonly silentMs: number;
  readonly fields: JsonObject;
  /** A sentence for people, without the name of Weir at its beginning. */
  readonly text: string;
}

export const SILENT_MS = HOUR_MS;

export interface OperatorAlertPorts {
  readonly sql: Sql;
  /** In ms since the epoch. */
  readonly now: () => number;
  readonly settings: () => Promise<AlertSettings>;
  /** Has the alarm run at once. */
  readonly wake: () => Promise<void>;
  readonly fetch: typeof fetch;
  readonly log: Log;
}

/** `next_at`: when the alert is sent, in ms since the epoch; null: it was, or there is nowhere to send it. */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS operator_alerts (
    id TEXT PRIMARY KEY, event TEXT NOT NULL, subject TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
    tries INTEGER NOT NULL, next_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS provider_calls (
    provider TEXT NOT NULL, isolate TEXT NOT NULL, at INTEGER NOT NULL, slots TEXT NOT NULL, PRIMARY KEY (provider, isolate)
  ) STRICT, WITHOUT ROWID`,
];

type AlertRow = {
  readonly id: string;
  readonly at: number;
  readonly body: string;
  readonly tries: number;
};

export class OperatorAlerts implements Role {
  readonly kind = 'the alerts';
  readonly jobs: readonly Job[] = [(now) => this.send(now)];
  readonly #ports: OperatorAlertPorts;

  constructor(ports: OperatorAlertPorts) {
    this.#ports = ports;
    for (const table of TABLES) ports.sql.exec(table);
  }

  get hasWork(): boolean {
    return this.nextDue !== null;
  }

  /** When an alert is to be sent next, in ms since the epoch; null: none is. */
  get nextDue(): number | null {
    const query = 'SELECT min(next_at) AS at FROM operator_alerts';
    return this.#ports.sql.exec<{ at: number | null }>(query).toArray()[0]?.at ?? null;
  }

  /**
   * Counts what an isolate has seen of a provider, and notes that it is failing. A repeated message changes nothing.
   * @returns until when nothing more has to be reported of it; null: each further failure does
   */
  async takeCalls(counts: ProviderCounts): Promise<number | null> {
    const { sql } = this.#ports;
    const now = this.#ports.now();
    const { isolate, provider, slots, last } = counts;
    sql.exec('DELETE FROM provider_calls WHERE at <= ?', now - WINDOW_MS);
    const known = sql.exec<{ isolate: string }>(
      'SELECT isolate FROM provider_calls WHERE provider = ?',
      provider,
    );
    const isolates = known.toArray().map((row) => row.isolate);
    if (isolates.length >= MAX_ISOLATES && !isolates.includes(isolate)) return now + WINDOW_MS;
    sql.exec(
      'INSERT INTO provider_calls VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET at = ?3, slots = ?4',
      ...[provider, isolate, now, JSON.stringify(slots)],
    );
    const [sum] = sql
      .exec<{ calls: number; failures: number }>(
        `SELECT total(slot.value ->> 1) AS calls, total(slot.value ->> 2) AS failures
          FROM provider_calls, json_each(slots) AS slot WHERE provider = ? AND (slot.value ->> 0) > ?`,
        ...[provider, Math.floor((now - WINDOW_MS) / SLOT_MS)],
      )
      .toArray();
    const { calls = 0, failures = 0 } = sum ?? {};
    if (failures < MIN_FAILURES || failures * 2 <= calls) return null;
    return this.noteAlert(providerFailing(provider, { calls, failures, last }));
  }

  /**
   * Notes and logs an alert, unless there was one of its subject lately.
   * @returns until when there is no other of this subject, in ms since the epoch
   */
  async noteAlert({ event, subject, silentMs, fields, text }: OperatorAlert): Promise<number> {
    const { settings, log, wake, sql } = this.#ports;
    const now = this.#ports.now();
    const { target } = await settings();
    // Without an await from here to the insertion, so that two isolates cannot both note it.
    const [earlier] = sql
      .exec<{ at: number }>(
        'SELECT at FROM operator_alerts WHERE event = ? AND subject = ? AND at > ?',
        ...[event, subject, now - silentMs],
      )
      .toArray();
    if (earlier !== undefined) return earlier.at + silentMs;
    const id = `${event}/${subject}/${new Date(now).toISOString()}`;
    const lately = sql
      .exec<{ alerts: number }>(
        'SELECT count(*) AS alerts FROM operator_alerts WHERE event = ? AND at > ?',
        ...[event, now - HOUR_MS],
      )
      .toArray();
    if ((lately[0]?.alerts ?? 0) >= MAX_ALERTS_AN_HOUR) {
      log({
        event: 'alert_lost',
        id,
        reason: `More than ${MAX_ALERTS_AN_HOUR} alerts of this event within an hour`,
      });
      return now + silentMs;
    }
    const alert = { event, id, time: new Date(now).toISOString(), ...fields };
    const body = JSON.stringify({ ...alert, ...wordsOf(`Weir: ${plainText(text)}`) });
    sql.exec('DELETE FROM operator_alerts WHERE at < ?', now - KEPT_MS);
    sql.exec(
      'INSERT INTO operator_alerts VALUES (?, ?, ?, ?, ?, 0, ?)',
      ...[id, event, subject, now, body, target === null ? null : now],
    );
    // The isolate whose circuit it is has logged it.
    if (event !== 'circuit_opened') log(alert);
    if (target !== null) await wake();
    return now + silentMs;
  }

  /**
   * Sends the alerts that are due. One that fails is sent again later, for a day.
   * @param now in ms since the epoch
   * @returns when the next one is due; null: none is
   */
  async send(now: number): Promise<number | null> {
    const { sql, settings } = this.#ports;
    const query = `SELECT id, at, body, tries FROM operator_alerts WHERE next_at <= ? ORDER BY at LIMIT ${MAX_SENT_AT_ONCE}`;
    const due = sql.exec<AlertRow>(query, now).toArray();
    if (due.length === 0) return this.nextDue;
    const { target } = await settings();
    await Promise.all(due.map((row) => this.#sendOne(row, target, now)));
    return this.nextDue;
  }

  async #sendOne(row: AlertRow, target: AlertSettings['target'], now: number): Promise<void> {
    const { sql, log, fetch: send } = this.#ports;
    const { problem, tries, nextAt } = await sendAlert(row, target, { fetch: send, now });
    if (problem !== null)
      log({ event: nextAt === null ? 'alert_lost' : 'alert_failed', id: row.id, reason: problem });
    sql.exec('UPDATE operator_alerts SET tries = ?, next_at = ? WHERE id = ?', tries, nextAt, row.id);
  }
}

function providerFailing(
  provider: string,
  { calls, failures, last }: { readonly calls: number; readonly failures: number; readonly last: JsonObject },
): OperatorAlert {
  const minutes = WINDOW_MS / 60_000;
  return {
    event: 'provider_failing',
    subject: provider,
    silentMs: SILENT_MS,
    fields: { provider, requests: calls, failed_requests: failures, minutes, last },
    text: `${provider} is failing: ${failures} of its last ${calls} requests within ${minutes} minutes, the last with ${failureText(last)}`,
  };
}

/** What came of a call, for a sentence: `503 upstream_overloaded (openai/gpt-5.5)`. */
export function failureText({ provider, model, status, error_code, message }: JsonObject): string {
  const said = typeof message === 'string' ? `: ${message}` : '';
  return `${status ?? 'no response,'} ${String(error_code)} (${String(provider)}/${String(model)})${said}`;
}
