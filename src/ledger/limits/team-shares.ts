/**
 * Which team counts the requests and charges of a key: a request belongs to the team that admitted it, also after the
 * key changes its team.
 */
import { createTables, HELD_TABLE, hasTable, SHARD_HELD_TABLE, type Sql } from './limit-tables.ts';
import { IS_SHARD } from './spread.ts';

/** Stands for the team of a key without one. */
export const NO_TEAM = '';

const CURRENT = 'team_now';
const REQUESTS = 'team_requests';
export const TEAM_HELD_TABLE = 'team_held';
/**
 * What the key has of teams other than the current one, which `team_now` names. All other rows of the object belong to the current team.
 * - `team_requests`: the reservations, expired ones included, that another team admitted.
 * - `team_spent`: the part of `spent` and `unreported` that belongs to other teams.
 * - `team_held`: what children hold of the allowance of other teams. `held` has only that of the current team.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS ${CURRENT} (only INTEGER PRIMARY KEY CHECK (only = 1), team TEXT NOT NULL)`,
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

/** The current team: requests that are admitted now belong to it. */
export function currentTeam(sql: Sql): string {
  if (!hasTable(sql, CURRENT)) return NO_TEAM;
  return sql.exec<{ team: string }>(`SELECT team FROM ${CURRENT}`).toArray()[0]?.team ?? NO_TEAM;
}

/** What children hold of the current team, each with the condition on their names. */
const HELD = [
  [HELD_TABLE, `NOT ${IS_SHARD}`],
  [SHARD_HELD_TABLE, IS_SHARD],
] as const;

/** Creates the tables, for a holder with requests or charges of several teams. */
export function createTeamTables(sql: Sql): void {
  createTables(sql, TABLES);
  sql.exec(`INSERT OR IGNORE INTO ${CURRENT} VALUES (1, ?)`, NO_TEAM);
}

/** Makes a team the current one. What the object has already stays with the team before. Runs in a transaction. */
export function switchTeam(sql: Sql, team: string): void {
  const before = currentTeam(sql);
  if (before === team) return;
  createTeamTables(sql);
  sql.exec(
    `INSERT OR IGNORE INTO ${REQUESTS} SELECT id, ?1 FROM reservations UNION ALL SELECT id, ?1 FROM expired`,
    before,
  );
  sql.exec(`INSERT OR REPLACE INTO team_spent ${ownSums('?1')}`, before);
  for (const [table, isOwn] of HELD) {
    if (!hasTable(sql, table)) continue;
    sql.exec(`INSERT INTO ${TEAM_HELD_TABLE} SELECT *, ? FROM ${table}`, before);
    sql.exec(`DELETE FROM ${table}`);
    const columns = 'user, day, currency, tokens, cost, running, requests, rate_tokens';
    sql.exec(
      `INSERT INTO ${table} SELECT ${columns} FROM ${TEAM_HELD_TABLE} WHERE team = ? AND ${isOwn}`,
      team,
    );
  }
  for (const table of [REQUESTS, 'team_spent', TEAM_HELD_TABLE])
    sql.exec(`DELETE FROM ${table} WHERE team = ?`, team);
  sql.exec(`UPDATE ${CURRENT} SET team = ?`, team);
}

/**
 * A query of the part of `spent` and `unreported` that belongs to the current team.
 * @param team what the column `team` of its rows has, in SQL
 * @param all of all teams
 */
function ownSums(team: string, all = SUMS): string {
  return `SELECT ${team} AS team, kind, day, currency,
    sums.tokens - coalesce(others.tokens, 0) AS tokens, sums.cost - coalesce(others.cost, 0) AS cost
    FROM (${all}) AS sums LEFT JOIN (
      SELECT kind, day, currency, sum(tokens) AS tokens, sum(cost) AS cost FROM team_spent GROUP BY kind, day, currency
    ) AS others USING (kind, day, currency)`;
}

const SPENT = "SELECT 'spent' AS kind, day, currency, tokens, cost FROM spent";
const SUMS = `${SPENT} UNION ALL SELECT 'unreported', day, currency, tokens, cost FROM unreported`;

/** A query of the sums of charges by team, as `team, kind, day, currency, tokens, cost`. */
export function sumsByTeam(sql: Sql): string {
  const expired = (team: string, more = '') => `SELECT ${team} AS team, 'expired' AS kind, day, currency,
    sum(tokens) AS tokens, sum(cost) AS cost FROM expired ${more} GROUP BY 1, day, currency`;
  if (!hasTable(sql, CURRENT))
    return `SELECT '${NO_TEAM}' AS team, * FROM (${SUMS}) UNION ALL ${expired(`'${NO_TEAM}'`)}`;
  return `${ownSums(CURRENT_TEAM)} UNION ALL SELECT team, kind, day, currency, tokens, cost FROM team_spent
    UNION ALL ${expired(`coalesce(${REQUESTS}.team, ${CURRENT_TEAM})`, `LEFT JOIN ${REQUESTS} USING (id)`)}`;
}

/** Those of the kind `spent`. */
export function spentByTeam(sql: Sql): string {
  if (!hasTable(sql, CURRENT)) return `SELECT '${NO_TEAM}' AS team, * FROM (${SPENT})`;
  return `${ownSums(CURRENT_TEAM, SPENT)} UNION ALL SELECT team, kind, day, currency, tokens, cost FROM team_spent WHERE kind = 'spent'`;
}

const CURRENT_TEAM = `(SELECT team FROM ${CURRENT})`;

/** A query of running requests and of lent allowance, as `team, day, currency, tokens, cost, running, requests, rate_tokens`. */
export function runningByTeam(sql: Sql): string {
  const hasTeams = hasTable(sql, CURRENT);
  const now = hasTeams ? CURRENT_TEAM : `'${NO_TEAM}'`;
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
  for (const [table] of HELD) if (hasTable(sql, table)) parts.push(`SELECT ${now}, ${lent} FROM ${table}`);
  return parts.join(' UNION ALL ');
}

/** The team that a request belongs to; null: the current one. */
export function teamOfRequest(sql: Sql, id: string): string | null {
  if (!hasTable(sql, REQUESTS)) return null;
  return (
    sql.exec<{ team: string }>(`SELECT team FROM ${REQUESTS} WHERE id = ?`, id).toArray()[0]?.team ?? null
  );
}

/** Stores that a request belongs to another team than the current one. */
export function keepTeamOfRequest(sql: Sql, id: string, team: string): void {
  sql.exec(`INSERT OR REPLACE INTO ${REQUESTS} VALUES (?, ?)`, id, team);
}

/** Deletes the teams of requests that have no reservation any more. */
export function forgetTeamsOfRequests(sql: Sql): void {
  if (!hasTable(sql, REQUESTS)) return;
  sql.exec(
    `DELETE FROM ${REQUESTS} WHERE id NOT IN (SELECT id FROM reservations UNION ALL SELECT id FROM expired)`,
  );
}

/** Adds a charge to the sums of a team other than the current one. */
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
