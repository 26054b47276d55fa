/**
 * The object `*`: counts of refused requests, and keys whose objects are full. It was the directory of all keys in 0.2: has them tell
 * their own directories, and answers for those that have not.
 */
import type { FullKey, ReportQuery } from '../../metering/ledger.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../../metering/refusals.ts';
import type { FirstDirectoryCalls, LedgerStub } from '../ledger-calls.ts';
import { createFullLedgers, type FullLedger, listFull, noteFull } from '../records/full-ledgers.ts';
import type { DayRow } from '../records/sum-columns.ts';
import { requestsOf, SumTable } from '../records/sum-tables.ts';
import type { Job, Role } from '../roles/role.ts';
import { MergedRows, type ReportPart, readKeys } from './directory-reports.ts';
import { createRefusals, sumRefusals, takeRefusals } from './refusals.ts';

/** What 0.2 reads after a rollback. */
const LEDGER_DAYS = new SumTable('ledger_days', { day: 'INTEGER', key: 'TEXT' });

/** Keys that one alarm asks. */
const MAX_ASKED = 100;
/** Keys that are asked at a time: each may send all its days. */
const ASKED_AT_ONCE = 10;
const RETRY_AFTER_MS = 60_000;

export interface FirstDirectoryPorts {
  readonly sql: SqlStorage;
  readonly transaction: <Value>(act: () => Value) => Value;
  /** In ms since the epoch. */
  readonly now: () => number;
  /** Has the alarm run at once. */
  readonly wake: () => Promise<void>;
  /** Calls the object of a key. */
  readonly read: <Value>(keyId: string, call: (ledger: LedgerStub) => Promise<Value>) => Promise<Value>;
}

export class FirstDirectory implements Role, FirstDirectoryCalls {
  readonly kind = 'the first directory';
  readonly jobs: readonly Job[] = [(now) => this.#askKeys(now)];
  readonly #ports: FirstDirectoryPorts;

  constructor(ports: FirstDirectoryPorts) {
    this.#ports = ports;
    createRefusals(ports.sql);
    createFullLedgers(ports.sql);
    LEDGER_DAYS.create(ports.sql);
    ports.sql.exec('CREATE TABLE IF NOT EXISTS unannounced (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID');
    ports.sql.exec(
      'CREATE TABLE IF NOT EXISTS listed_days (day INTEGER PRIMARY KEY, requests INTEGER NOT NULL) STRICT, WITHOUT ROWID',
    );
    ports.transaction(() => this.#listKeys());
  }

  /** Lists the keys of days that grew since the last time: 0.2 ran, for the first time or after a rollback. */
  #listKeys(): void {
    const { sql } = this.#ports;
    const [{ day = 0, requests = 0 } = {}] = sql.exec('SELECT day, requests FROM listed_days');
    const select = 'SELECT MAX(day) AS last, TOTAL(requests) AS total FROM ledger_days WHERE day >= ?';
    const { last, total } = sql.exec(select, day).one();
    if (last === null || Number(total) === Number(requests)) return;
    sql.exec('INSERT OR IGNORE INTO unannounced SELECT DISTINCT key FROM ledger_days WHERE day >= ?', day);
    sql.exec('DELETE FROM listed_days');
    sql.exec('INSERT INTO listed_days SELECT ?1, TOTAL(requests) FROM ledger_days WHERE day >= ?1', last);
  }

  /** Stores day sums from an object of 0.2, for readers of 0.2. */
  async takeDays(keyId: string, rows: readonly DayRow[]): Promise<void> {
    const { sql, transaction, wake } = this.#ports;
    transaction(() => {
      const sums = rows.map(({ day, dimensions, columns }) => ({
        key: [day, keyId, ...dimensions],
        columns,
      }));
      const stored = new Map(
        LEDGER_DAYS.read(
          sql,
          sums.map(({ key }) => key),
        ).map(({ key, columns }) => [JSON.stringify(key), columns]),
      );
      LEDGER_DAYS.replace(
        sql,
        sums.filter(({ key, columns }) => {
          const before = stored.get(JSON.stringify(key));
          return before === undefined || requestsOf(columns) > requestsOf(before);
        }),
      );
      this.#listKeys();
    });
    await wake();
  }

  async noteFull(keyId: string, ledger: FullLedger): Promise<void> {
    const { sql, transaction, now } = this.#ports;
    transaction(() => noteFull(sql, keyId, ledger, now()));
  }

  async fullLedgers(): Promise<readonly FullKey[]> {
    return listFull(this.#ports.sql, this.#ports.now());
  }

  async takeRefusals(batch: RefusalBatch): Promise<void> {
    const { sql, transaction } = this.#ports;
    transaction(() => takeRefusals(sql, batch));
  }

  async refusals(query: RefusalQuery): Promise<readonly RefusalRow[]> {
    return sumRefusals(this.#ports.sql, query);
  }

  /** The report of the keys whose directories know nothing of them yet. */
  async reportPart(query: ReportQuery, after: string | null): Promise<ReportPart> {
    const { read } = this.#ports;
    const keyIds = this.#unannounced(after ?? '');
    const span = { from: query.fromMs, to: query.toMs };
    const next = keyIds.length === MAX_ASKED ? (keyIds.at(-1) ?? null) : null;
    return readKeys(
      query,
      new Map(keyIds.map((keyId) => [keyId, [span]])),
      new MergedRows(query),
      next,
      (keyId, own) => read(keyId, (ledger) => ledger.reportUnsent(own)),
    );
  }

  /** The ids of keys that wait to be asked, in order, after this one. */
  async keyIdsAfter(after: string): Promise<readonly string[]> {
    return this.#unannounced(after);
  }

  #unannounced(after: string): readonly string[] {
    const select = `SELECT key FROM unannounced WHERE key > ? ORDER BY key LIMIT ${MAX_ASKED}`;
    return [...this.#ports.sql.exec(select, after).raw()].map(([key]) => String(key));
  }

  get hasWork(): boolean {
    return this.#unannounced('').length > 0;
  }

  /** Asks keys to tell their directories what they have. @returns when the alarm is due again */
  async #askKeys(now: number): Promise<number | null> {
    const { sql, read } = this.#ports;
    const keyIds = this.#unannounced('');
    let isStuck = false;
    for (let at = 0; at < keyIds.length; at += ASKED_AT_ONCE) {
      const some = keyIds.slice(at, at + ASKED_AT_ONCE);
      const told = await Promise.all(
        some.map((keyId) => read(keyId, (ledger) => ledger.sendSums()).catch(() => false)),
      );
      for (const [i, keyId] of some.entries())
        if (told[i]) sql.exec('DELETE FROM unannounced WHERE key = ?', keyId);
      isStuck ||= told.includes(false);
    }
    if (!this.hasWork) return null;
    return isStuck ? now + RETRY_AFTER_MS : now;
  }
}
