/** Which of its teams counts what a key has: a request belongs to the team of its admission, also after the key has changed its team. */
import { HELD_TABLE, hasTable, type Sql } from './limit-tables.ts';

/** Stands for the team of a key without one. */
export const NO_TEAM = '';

const NOW = 'team_now';
const REQUESTS = 'team_requests';
export const TEAM_HELD_TABLE = 'team_held';
/**
 * All that no table names another team of belongs to the team of `team_now`.
 * - `team_requests`: reservations, and expired ones, that another team has admitted.
 * - `team_spent`: what belongs to other teams of `spent` and `unreported`.
 * - `team_held`: what children hold of other teams, beside `held`.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS ${NOW} (only INTEGER PRIMARY KEY CHECK (only = 1), team TEXT NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${REQUESTS} (id TEXT PRIMARY KEY, team TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS team_spent (
    team TEXT NOT NULL, kind TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL, PRIMARY KEY (team, kind, day, currency)
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS ${TEAM_HELD_TABLE} (
    user TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
    running INTEGER NOT NULL, requests INTEGER NOT NULL, rate_tokens INTEGER NOT NULL, team TEXT NOT NULL,
    PRIMARY KEY (user, team, day, currency)
  ) WITHOUT ROWID`,
];

/** The team of what is admitted now. */
export function currentTeam(sql: Sql): string {
  if (!hasTable(sql, NOW)) return NO_TEAM;
  return sql.exec<{ team: string }>(`SELECT team FROM ${NOW}`).toArray()[0]?.team ?? NO_TEAM;
}

/** Creates the tables, for a holder that may have to do with several teams. */
export function createTeamTables(sql: Sql): void {
  for (const table of TABLES) sql.exec(table);
  sql.exec(`INSERT OR IGNORE INTO ${NOW} VALUES (1, ?)`, NO_TEAM);
}

/** From now on requests belong to that team, and all that is there stays with the team before. Runs in a transaction. */
export function switchTeam(sql: Sql, team: string): void {
  const before = currentTeam(sql);
  if (before === team) return;
  createTeamTables(sql);
  sql.exec(
    `INSERT OR IGNORE INTO ${REQUESTS} SELECT id, ?1 FROM reservations UNION ALL SELECT id, ?1 FROM expired`,
    before,
  );
  sql.exec(`INSERT OR REPLACE INTO team_spent ${ownSums('?1')}`, before);
  const hasHeld = hasTable(sql, HELD_TABLE);
  if (hasHeld) {
    sql.exec(`INSERT INTO ${TEAM_HELD_TABLE} SELECT *, ? FROM ${HELD_TABLE}`, before);
    sql.exec(`DELETE FROM ${HELD_TABLE}`);
    const columns = 'user, day, currency, tokens, cost, running, requests, rate_tokens';
    sql.exec(`INSERT INTO ${HELD_TABLE} SELECT ${columns} FROM ${TEAM_HELD_TABLE} WHERE team = ?`, team);
  }
  for (const table of [REQUESTS, 'team_spent', TEAM_HELD_TABLE])
    sql.exec(`DELETE FROM ${table} WHERE team = ?`, team);
  sql.exec(`UPDATE ${NOW} SET team = ?`, team);
}

/** What of `spent` and `unreported` belongs to the team of `team_now`, under another name of it. */
function ownSums(team: string): string {
  return `SELECT ${team} AS team, kind, day, currency,
    sums.tokens - coalesce(others.tokens, 0) AS tokens, sums.cost - coalesce(others.cost, 0) AS cost
    FROM (${SUMS}) AS sums LEFT JOIN (
      SELECT kind, day, currency, sum(tokens) AS tokens, sum(cost) AS cost FROM team_spent GROUP BY kind, day, currency
    ) AS others USING (kind, day, currency)`;
}

const SUMS = `SELECT 'spent' AS kind, day, currency, tokens, cost FROM spent
  UNION ALL SELECT 'unreported', day, currency, tokens, cost FROM unreported`;

/** A query of the sums of charges by team, as `team, kind, day, currency, tokens, cost`. */
export function sumsByTeam(sql: Sql): string {
  const expired = (team: string, more = '') => `SELECT ${team} AS team, 'expired' AS kind, day, currency,
    sum(tokens) AS tokens, sum(cost) AS cost FROM expired ${more} GROUP BY 1, day, currency`;
  if (!hasTable(sql, NOW))
    return `SELECT '${NO_TEAM}' AS team, * FROM (${SUMS}) UNION ALL ${expired(`'${NO_TEAM}'`)}`;
  return `${ownSums(TEAM_NOW)} UNION ALL SELECT team, kind, day, currency, tokens, cost FROM team_spent
    UNION ALL ${expired(`coalesce(${REQUESTS}.team, ${TEAM_NOW})`, `LEFT JOIN ${REQUESTS} USING (id)`)}`;
}

const TEAM_NOW = `(SELECT team FROM ${NOW})`;

/** A query of what runs and what is lent, as `team, day, currency, tokens, cost, running, requests, rate_tokens`. */
export function runningByTeam(sql: Sql): string {
  const hasTeams = hasTable(sql, NOW);
  const now = hasTeams ? TEAM_NOW : `'${NO_TEAM}'`;
  const lent = 'day, currency, tokens, cost, running, requests, rate_tokens';
  const parts = hasTeams
    ? [
        `SELECT coalesce(team, ${now}) AS team, day, currency, tokens, cost, 1 AS running, 0 AS requests, 0 AS rate_tokens
          FROM reservations LEFT JOIN ${REQUESTS} USING (id)`,
        `SELECT team, ${lent} FROM ${TEAM_HELD_TABLE}`,
      ]
    : [
        `SELECT ${now} AS team, day, currency, tokens, cost, 1 AS running, 0 AS requests, 0 AS rate_tokens FROM reservations`,
      ];
  if (hasTable(sql, HELD_TABLE)) parts.push(`SELECT ${now}, ${lent} FROM ${HELD_TABLE}`);
  return parts.join(' UNION ALL ');
}

/** The other team that a request belongs to; null: it is that of now. */
export function teamOfRequest(sql: Sql, id: string): string | null {
  if (!hasTable(sql, REQUESTS)) return null;
  return (
    sql.exec<{ team: string }>(`SELECT team FROM ${REQUESTS} WHERE id = ?`, id).toArray()[0]?.team ?? null
  );
}

/** A request belongs to another team. */
export function keepTeamOfRequest(sql: Sql, id: string, team: string): void {
  sql.exec(`INSERT OR REPLACE INTO ${REQUESTS} VALUES (?, ?)`, id, team);
}

/** Deletes what belongs to no reservation any more. */
export function forgetTeamsOfRequests(sql: Sql): void {
  if (!hasTable(sql, REQUESTS)) return;
  sql.exec(
    `DELETE FROM ${REQUESTS} WHERE id NOT IN (SELECT id FROM reservations UNION ALL SELECT id FROM expired)`,
  );
}

/** Adds to what belongs to another team than that of now. */
export function addToTeam(
  sql: Sql,
  team: string,
  kind: 'spent' | 'unreported',
  { day, currency, tokens, cost }: { day: string; currency: string; tokens: number; cost: number },
): void {
  sql.exec(
    `INSERT INTO team_spent VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost`,
    ...[team, kind, day, currency, tokens, cost],
  );
}
