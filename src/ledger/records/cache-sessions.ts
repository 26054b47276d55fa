/** The last requests of each session of a key, as hashes, with which its next request is compared to explain breaks of the prompt cache. */
import {
  comparePrefix,
  compareRecord,
  type EarlierRequest,
  type SentPrefix,
  withEarlier,
  writeChange,
} from '../../metering/cache-breaks.ts';
import type { CacheReport, ChargedRecord, UsageRecord } from '../../metering/record.ts';
import { DAY_MS } from '../../metering/time.ts';
import { isObject, parseJson, readArray } from '../../shared/json.ts';

/** Sessions of one key. The one whose last request is the oldest makes room. */
export const MAX_CACHE_SESSIONS = 10_000;
/** How long the requests of a session are kept after its last one. */
const KEPT_MS = 30 * DAY_MS;
/** Sessions that one new session deletes at most, so that the work of a request is bounded. */
const MAX_DELETED_SESSIONS = 10;

export function createCacheSessions(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS cache_sessions (session TEXT PRIMARY KEY, used INTEGER NOT NULL, requests TEXT NOT NULL) STRICT, WITHOUT ROWID',
  );
  sql.exec('CREATE INDEX IF NOT EXISTS cache_sessions_used ON cache_sessions (used)');
}

/** Compares the records with the earlier requests of their sessions, and keeps them for later ones. */
export function compareRecords(sql: SqlStorage, records: readonly ChargedRecord[]): readonly ChargedRecord[] {
  return records.map((record) => {
    const report = compare(sql, record);
    return report === null ? record : { ...record, cache: report };
  });
}

function compare(sql: SqlStorage, record: UsageRecord): CacheReport | null {
  const { session, prefix } = record;
  if (session === null || prefix === undefined) return null;
  const earlier = readSession(sql, session);
  const report = compareRecord(record, earlier ?? []);
  if (report === null) return null;
  const used = Date.parse(record.ended);
  if (earlier === null) makeRoom(sql, used);
  sql.exec(
    'INSERT INTO cache_sessions VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET used = MAX(used, excluded.used), requests = excluded.requests',
    session,
    used,
    JSON.stringify(withEarlier(earlier ?? [], record)),
  );
  return report;
}

/** The comparison of a request that is not sent yet, as the header has it. */
export function compareSent(sql: SqlStorage, session: string, sent: SentPrefix): string {
  return writeChange(comparePrefix(sent, readSession(sql, session) ?? []));
}

function readSession(sql: SqlStorage, session: string): readonly EarlierRequest[] | null {
  const [row] = sql.exec('SELECT requests FROM cache_sessions WHERE session = ?', session);
  return row === undefined ? null : readArray(parseJson(String(row.requests))).filter(isEarlier);
}

/** Whether `compare` has written it. What another release wrote in another form is not compared. */
function isEarlier(value: unknown): value is EarlierRequest {
  if (!isObject(value)) return false;
  const { id, prefix, provider, model, asked, cachedAt, endedAt, promptTokens } = value;
  return (
    [id, prefix, provider, model, asked].every((text) => typeof text === 'string') &&
    [cachedAt, endedAt, promptTokens].every((count) => typeof count === 'number')
  );
}

/** Deletes these sessions, and those whose requests all have no records any more, because nothing says whose they are. */
export function deleteCacheSessions(sql: SqlStorage, sessions: readonly string[], before: number): void {
  const query = 'DELETE FROM cache_sessions WHERE session IN (SELECT value FROM json_each(?)) OR used < ?';
  sql.exec(query, JSON.stringify(sessions), before);
}

function makeRoom(sql: SqlStorage, now: number): void {
  const oldest = (condition: string, limit: number) =>
    `DELETE FROM cache_sessions WHERE session IN (SELECT session FROM cache_sessions ${condition} ORDER BY used LIMIT ${limit})`;
  sql.exec(oldest('WHERE used < ?', MAX_DELETED_SESSIONS), now - KEPT_MS);
  const { sessions } = sql.exec('SELECT COUNT(*) AS sessions FROM cache_sessions').one();
  if (Number(sessions) >= MAX_CACHE_SESSIONS) sql.exec(oldest('', 1));
}
