/** Which keys of a directory had requests when, so that only their objects are read. */
import type { RecordQuery } from '../../metering/ledger.ts';
import { CACHE_CAUSE, FACTS, OTHER, TEAM } from '../../metering/report.ts';
import { endOfIds, HOUR_MS, idTime } from '../../metering/time.ts';
import { MAX_QUERIED_LEDGERS } from '../../shared/limits.ts';
import { HOURS_PER_DAY } from '../records/sums.ts';
import { INCOMPLETE } from './recent-records.ts';

/** A key that had requests in an hour. */
export interface ActiveHour {
  /** Hours since the epoch. */
  readonly hour: number;
  readonly keyId: string;
  /** Of those that the sums tell apart. */
  readonly requests: number;
}

export interface ActiveHours {
  /** The latest hour first, in each hour the last key first. */
  readonly hours: readonly ActiveHour[];
  /** There are more than one page may read: earlier ones are left out. */
  readonly isCut: boolean;
}

/** Filters of a list that sums know, too. The model of a filter may be the name that was asked for. */
const SUMMED_FILTERS = ['provider', 'route', 'fault', 'error'] as const;
/** A tag beyond the limits of a day has no sums. */
const NAMED_FACTS = [...FACTS, CACHE_CAUSE, TEAM] as const;

/**
 * The hours and keys that may have matching records.
 * @param beforeKey only keys before it in the latest hour; null: all
 */
export function activeHours(
  sql: SqlStorage,
  { fromId, beforeId, statuses, only = {} }: RecordQuery,
  beforeKey: string | null,
): ActiveHours {
  const last = Math.floor((endOfIds(beforeId) - 1) / HOUR_MS);
  const conditions = ['hour >= ?', 'hour <= ?'];
  const bindings: (string | number)[] = [Math.floor(idTime(fromId) / HOUR_MS), last];
  if (beforeKey !== null) {
    conditions.push('(hour < ? OR key < ?)');
    bindings.push(last, beforeKey);
  }
  if (statuses !== null) {
    conditions.push('status IN (SELECT value FROM json_each(?))');
    bindings.push(JSON.stringify(statuses));
  }
  for (const name of SUMMED_FILTERS) {
    const value = only[name];
    if (value === undefined) continue;
    conditions.push(`${name} = ?`);
    bindings.push(value);
  }
  for (const fact of NAMED_FACTS) {
    const name = only[fact];
    if (name === undefined || name === '') continue;
    conditions.push(
      `EXISTS (SELECT 1 FROM key_facts WHERE day = hour / ${HOURS_PER_DAY} AND key_facts.key = key_hours.key AND fact = ? AND name IN (?, ?))`,
    );
    bindings.push(fact, name, OTHER);
  }
  const select = `SELECT hour, key, SUM(requests) FROM key_hours WHERE ${conditions.join(' AND ')}
    GROUP BY hour, key ORDER BY hour DESC, key DESC LIMIT ?`;
  const rows = [...sql.exec(select, ...bindings, MAX_QUERIED_LEDGERS + 1).raw()];
  const hours = rows.map(([hour, key, requests]) => ({
    hour: Number(hour),
    keyId: String(key),
    requests: Number(requests),
  }));
  return { hours: hours.slice(0, MAX_QUERIED_LEDGERS), isCut: hours.length > MAX_QUERIED_LEDGERS };
}

/**
 * The keys whose records of an hour (since the epoch) the directory does not have, in order, after this one: as many as
 * one call may read.
 */
export function keysOfHour(sql: SqlStorage, hour: number, after: string): readonly string[] {
  const select = `SELECT key FROM (${INCOMPLETE}) WHERE key > ? ORDER BY key LIMIT ?`;
  return [...sql.exec(select, hour, hour + 1, after, MAX_QUERIED_LEDGERS).raw()].map(([key]) => String(key));
}
