/** The tables of a directory: what each of its keys last sent, and sums over them. */
import { type FactGroup, OTHER } from '../../metering/report.ts';
import { DAY_MS } from '../../metering/time.ts';
import { kindOf } from '../records/fact-sums.ts';
import { AMOUNTS, type DayRow, DIMENSIONS, NUMBER_SUMS, readColumns } from '../records/sum-columns.ts';
import {
  difference,
  keyText,
  requestsOf,
  type StoredSum,
  type SumKey,
  SumTable,
} from '../records/sum-tables.ts';
import { HOURS_PER_DAY } from '../records/sums.ts';
import type { SumsMessage } from '../records/unsent-sums.ts';
import type { SessionDay } from '../records/user-records.ts';

/**
 * Rows of one day for users, for sessions, for apps, for causes, and for all tags together. Further names are summed
 * under {@link OTHER}.
 */
export const MAX_DIRECTORY_FACT_ROWS = 50_000;

/** How long sums by hour over all keys are kept: longer than any report. */
const HOURS_KEPT_DAYS = 400;

/** Rows that one alarm deletes from a table. */
const MAX_DELETED = 10_000;

/** What each key sent, and the sum over the keys, which has no column `key`. The key is the second column. */
interface Pair {
  readonly ofKeys: SumTable;
  readonly ofAll: SumTable;
}

const DAYS: Pair = {
  ofKeys: new SumTable('key_days', { day: 'INTEGER', key: 'TEXT' }),
  ofAll: new SumTable('all_days', { day: 'INTEGER' }),
};
const HOURS: Pair = {
  ofKeys: new SumTable('key_hours', { hour: 'INTEGER', key: 'TEXT' }),
  ofAll: new SumTable('all_hours', { hour: 'INTEGER' }),
};
const FACTS: Pair = {
  ofKeys: new SumTable('key_facts', { day: 'INTEGER', key: 'TEXT', fact: 'TEXT', name: 'TEXT' }),
  ofAll: new SumTable('all_facts', { day: 'INTEGER', fact: 'TEXT', name: 'TEXT' }),
};

function createTables(sql: SqlStorage): void {
  for (const { ofKeys, ofAll } of [DAYS, HOURS, FACTS]) {
    ofKeys.create(sql);
    ofAll.create(sql);
  }
  // Days of keys whose hours and facts were not sent: they were old when this directory heard of them.
  sql.exec(
    'CREATE TABLE IF NOT EXISTS unsummed_days (day INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (day, key)) STRICT, WITHOUT ROWID',
  );
  sql.exec('CREATE TABLE IF NOT EXISTS known_keys (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID');
  sql.exec(
    'CREATE TABLE IF NOT EXISTS directory_marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID',
  );
}

/** Numbers that a directory stores about itself, 0 until they are set. */
export interface DirectoryState {
  /** Hours of keys, and sums by fact, are kept from this day on (since the epoch). */
  readonly details_from: number;
  /** Hours over all keys are kept from this day on. */
  readonly hours_from: number;
  /** How many days keys keep records. */
  readonly record_days: number;
}

export function readDirectoryState(sql: SqlStorage): DirectoryState {
  const rows = [...sql.exec('SELECT name, value FROM directory_marks').raw()];
  const values = new Map(rows.map(([name, value]) => [name, Number(value)]));
  const stateValue = (name: keyof DirectoryState) => values.get(name) ?? 0;
  return {
    details_from: stateValue('details_from'),
    hours_from: stateValue('hours_from'),
    record_days: stateValue('record_days'),
  };
}

function setState(sql: SqlStorage, name: keyof DirectoryState, value: number): void {
  const insert = 'INSERT INTO directory_marks VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value';
  sql.exec(insert, name, value);
}

/** Stores sums. The counts of each day and kind of fact are in memory. */
export class DirectoryTables {
  readonly #sql: SqlStorage;
  /** Rows of names, by kind of fact, of days that were written last. */
  readonly #counts = new Map<number, Map<string, number>>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    createTables(sql);
  }

  /** Stores what a key sent. The caller wraps this in a transaction. */
  take(keyId: string, { days, hours, facts, factTotals, recordDays }: Omit<SumsMessage, 'records'>): void {
    const sql = this.#sql;
    sql.exec('INSERT OR IGNORE INTO known_keys VALUES (?)', keyId);
    const { details_from, record_days } = readDirectoryState(sql);
    if (recordDays !== record_days) setState(sql, 'record_days', recordDays);
    const isKept = (day: number) => day >= details_from;
    const summed = new Set(hours.map(({ key: [hour] }) => Math.floor(Number(hour) / HOURS_PER_DAY)));
    this.#noteDays(keyId, days, (day) => summed.has(day) && isKept(day));
    this.#add(
      DAYS,
      keyId,
      days.map(({ day, dimensions, columns }) => ({ key: [day, ...dimensions], columns })),
    );
    this.#add(
      HOURS,
      keyId,
      hours.filter(({ key: [hour] }) => isKept(Math.floor(Number(hour) / HOURS_PER_DAY))),
    );
    const kept = facts.filter(({ key: [day] }) => isKept(Number(day)));
    this.#addFacts(keyId, kept, factTotals);
  }

  /** Notes the days of which only the sums of days were sent. A day that was known stays as it is. */
  #noteDays(keyId: string, rows: readonly DayRow[], isSummed: (day: number) => boolean): void {
    const sql = this.#sql;
    for (const day of new Set(rows.map((row) => row.day))) {
      if (isSummed(day)) sql.exec('DELETE FROM unsummed_days WHERE day = ? AND key = ?', day, keyId);
      else
        sql.exec(
          `INSERT OR IGNORE INTO unsummed_days SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM key_days WHERE day = ?1 AND key = ?2)`,
          ...[day, keyId],
        );
    }
  }

  /** A key's count of requests only grows, so a late or repeated message changes nothing. */
  #add({ ofKeys, ofAll }: Pair, keyId: string, rows: readonly StoredSum[]): void {
    const sql = this.#sql;
    const sent = rows.map(({ key, columns }) => ({ key: withKey(key, keyId), columns }));
    const keys = sent.map(({ key }) => key);
    const before = new Map(ofKeys.read(sql, keys).map(({ key, columns }) => [keyText(key), columns]));
    const grown = sent.filter(({ key, columns }) => {
      const stored = before.get(keyText(key));
      return stored === undefined || requestsOf(columns) > requestsOf(stored);
    });
    ofKeys.replace(sql, grown);
    ofAll.add(
      sql,
      grown.map(({ key, columns }) => {
        const stored = before.get(keyText(key));
        const added = stored === undefined ? columns : difference(columns, stored);
        return { key: withoutKey(key), columns: added };
      }),
    );
  }

  #addFacts(keyId: string, facts: readonly StoredSum[], totals: readonly StoredSum[]): void {
    const sql = this.#sql;
    const keys = facts.map(({ key }) => withKey(key, keyId));
    const known = new Set(FACTS.ofKeys.read(sql, keys).map(({ key }) => keyText(key)));
    const stored: StoredSum[] = [];
    for (const [i, row] of facts.entries()) {
      const counts = this.#countsOf(Number(row.key[0]));
      const kind = kindOf(String(row.key[1]));
      const count = counts.get(kind) ?? 0;
      const isKnown = known.has(keyText(keys[i] ?? []));
      const isFull = count >= MAX_DIRECTORY_FACT_ROWS;
      // Where names are missing, the row of the others is what remains of the total.
      if (isFull && (!isKnown || row.key[2] === OTHER)) continue;
      if (!isKnown) counts.set(kind, count + 1);
      stored.push(row);
    }
    this.#add(FACTS, keyId, stored);
    for (const total of totals) {
      const [day, fact] = total.key;
      if ((this.#countsOf(Number(day)).get(kindOf(String(fact))) ?? 0) >= MAX_DIRECTORY_FACT_ROWS)
        this.#setOthers(keyId, total);
    }
  }

  /** Stores what a key's total has beyond the names that are stored. */
  #setOthers(keyId: string, { key: [day = 0, fact = '', ...dimensions], columns }: StoredSum): void {
    const sql = this.#sql;
    const same = DIMENSIONS.map((name) => `${name} = ?`).join(' AND ');
    const select = `SELECT ${NUMBER_SUMS}, '' FROM key_facts WHERE day = ? AND key = ? AND fact = ? AND name <> ? AND ${same}`;
    const [named = []] = sql.exec(select, day, keyId, fact, OTHER, ...dimensions).raw();
    const key = [day, keyId, fact, OTHER, ...dimensions];
    const others = difference(columns, readColumns(named));
    const before = FACTS.ofKeys.read(sql, [key]);
    FACTS.ofAll.subtract(sql, before.map(ofAllKeys));
    if (requestsOf(others) === 0) return FACTS.ofKeys.subtract(sql, before);
    const row = { key, columns: others };
    FACTS.ofKeys.replace(sql, [row]);
    FACTS.ofAll.add(sql, [ofAllKeys(row)]);
  }

  #countsOf(day: number): Map<string, number> {
    const known = this.#counts.get(day);
    if (known !== undefined) return known;
    const rows = this.#sql
      .exec('SELECT fact, COUNT(*) FROM key_facts WHERE day = ? GROUP BY fact', day)
      .raw();
    const counts = new Map<string, number>();
    for (const [fact, count] of rows) {
      const kind = kindOf(String(fact));
      counts.set(kind, (counts.get(kind) ?? 0) + Number(count));
    }
    this.#counts.set(day, counts);
    for (const oldest of [...this.#counts.keys()].slice(0, -MAX_COUNTED_DAYS)) this.#counts.delete(oldest);
    return counts;
  }

  /**
   * Deletes a key's sums by these users and sessions, up to a day. The caller wraps this in a transaction.
   * @param until the last day of users; null: all
   */
  erase(
    keyId: string,
    users: readonly string[],
    until: number | null,
    sessions: readonly SessionDay[],
  ): void {
    const [{ first = null, last = null } = {}] = this.#sql.exec(
      'SELECT MIN(day) AS first, MAX(day) AS last FROM key_facts',
    );
    if (first === null || last === null) return;
    const end = until === null ? Number(last) : Math.min(Number(last), until);
    const days = Array.from({ length: Math.max(end - Number(first) + 1, 0) }, (_, i) => Number(first) + i);
    this.#erase(keyId, 'user', users, days);
    for (const [day, own] of Map.groupBy(sessions, (session) => session.day)) {
      this.#erase(keyId, 'session', [...new Set(own.map(({ name }) => name))], [day]);
    }
    // The rows that are left are counted again.
    this.#counts.clear();
  }

  #erase(keyId: string, fact: FactGroup, names: readonly string[], days: readonly number[]): void {
    const within = 'IN (SELECT value FROM json_each(?))';
    const erased = this.#sql.exec(
      `DELETE FROM key_facts WHERE day ${within} AND key = ? AND fact = ? AND name ${within}
        RETURNING ${[...FACTS.ofKeys.keys, ...AMOUNTS].join(', ')}`,
      ...[JSON.stringify(days), keyId, fact, JSON.stringify(names)],
    );
    const rows = [...erased.raw()].map((row) => ofAllKeys(FACTS.ofKeys.decode(row)));
    FACTS.ofAll.subtract(this.#sql, rows);
  }

  /**
   * Deletes what has been kept long enough. The caller wraps this in a transaction.
   * @param now in ms since the epoch
   * @returns whether there may be more
   */
  deleteOld(now: number): boolean {
    const sql = this.#sql;
    const { details_from, record_days } = readDirectoryState(sql);
    if (record_days === 0) return false;
    const today = Math.floor(now / DAY_MS);
    const from = Math.max(details_from, today - record_days);
    if (from > details_from) setState(sql, 'details_from', from);
    const hoursFrom = today - HOURS_KEPT_DAYS;
    setState(sql, 'hours_from', hoursFrom);
    const deleted = [
      deleteBefore(sql, HOURS.ofKeys.name, 'hour', from * HOURS_PER_DAY),
      deleteBefore(sql, 'recent', 'hour', from * HOURS_PER_DAY),
      deleteBefore(sql, FACTS.ofKeys.name, 'day', from),
      deleteBefore(sql, FACTS.ofAll.name, 'day', from),
      deleteBefore(sql, HOURS.ofAll.name, 'hour', hoursFrom * HOURS_PER_DAY),
      deleteBefore(sql, 'unsummed_days', 'day', hoursFrom),
    ];
    return deleted.some((rows) => rows >= MAX_DELETED);
  }

  get isEmpty(): boolean {
    return this.#sql.exec('SELECT 1 FROM known_keys LIMIT 1').toArray().length === 0;
  }

  /** Ids of keys, in order, after this one. */
  keyIdsAfter(after: string, limit: number): readonly string[] {
    const select = 'SELECT key FROM known_keys WHERE key > ? ORDER BY key LIMIT ?';
    return [...this.#sql.exec(select, after, limit).raw()].map(([key]) => String(key));
  }
}

/** Yesterday's and today's requests end today. */
const MAX_COUNTED_DAYS = 3;

function withKey([first = 0, ...rest]: SumKey, keyId: string): SumKey {
  return [first, keyId, ...rest];
}

function withoutKey([first = 0, _key, ...rest]: SumKey): SumKey {
  return [first, ...rest];
}

function ofAllKeys({ key, columns }: StoredSum): StoredSum {
  return { key: withoutKey(key), columns };
}

/** @returns the number of deleted rows */
function deleteBefore(sql: SqlStorage, table: string, column: string, value: number): number {
  // Tables have no row ids: the limit is on the values of the first column.
  const limit = `SELECT ${column} FROM ${table} WHERE ${column} < ?1 ORDER BY ${column} LIMIT 1 OFFSET ${MAX_DELETED}`;
  const query = `DELETE FROM ${table} WHERE ${column} < MIN(?1, COALESCE((${limit}) + 1, ?1))`;
  return sql.exec(query, value).rowsWritten;
}
