/** What a holder reports to its parent: a numbered message at a time, which can be repeated as it was. */
import type { HeldSum, LeaseMessage, ReportedCharge } from './allowance.ts';
import { HELD_TABLE, hasTable, type Sql } from './limit-tables.ts';

/**
 * - `link`: the last message to the parent, and whether its answer has arrived.
 * - `reported`: the charges that the parent has counted: before the message `seq` (`base`), and with it. A repeated message has the same
 *   difference.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS link (
    only INTEGER PRIMARY KEY CHECK (only = 1), seq INTEGER NOT NULL, is_answered INTEGER NOT NULL
  )`,
  `CREATE TABLE IF NOT EXISTS reported (
    kind TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, seq INTEGER NOT NULL, tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL, base_tokens INTEGER NOT NULL, base_cost INTEGER NOT NULL, PRIMARY KEY (kind, day, currency)
  ) WITHOUT ROWID`,
];

/** The table that every holder with a parent has. */
export const LINK_TABLE = 'link';

type Report = Pick<LeaseMessage, 'seq' | 'charges' | 'running'>;

/** @param seq of the last message that the parent knows */
export function createReportTables(sql: Sql, seq: number): void {
  for (const table of TABLES) sql.exec(table);
  sql.exec('INSERT OR REPLACE INTO link VALUES (1, ?, 1)', seq);
}

export function isAnswered(sql: Sql): boolean {
  return sql.exec<{ is_answered: number }>('SELECT is_answered FROM link').toArray()[0]?.is_answered === 1;
}

/** @param seq of the last message that the parent knows, if it is not the one that was sent */
export function markAnswered(sql: Sql, seq?: number): void {
  sql.exec('UPDATE link SET is_answered = 1, seq = coalesce(?, seq)', seq ?? null);
}

/** Numbers the next message, and stores what has been charged since the last one, so that it can be repeated. */
export function nextReport(sql: Sql): Report {
  const [link] = sql
    .exec<{ seq: number }>('UPDATE link SET seq = seq + 1, is_answered = 0 RETURNING seq')
    .toArray();
  sql.exec(
    `INSERT INTO reported
      SELECT now.kind, now.day, now.currency, ?1, now.tokens, now.cost, coalesce(old.tokens, 0), coalesce(old.cost, 0)
      FROM (
        SELECT 'spent' AS kind, day, currency, tokens, cost FROM spent
        UNION ALL SELECT 'unreported', day, currency, tokens, cost FROM unreported
        UNION ALL SELECT 'expired', day, currency, sum(tokens), sum(cost) FROM expired GROUP BY day, currency
        UNION ALL SELECT kind, day, currency, 0, 0 FROM reported
          WHERE kind = 'expired' AND NOT EXISTS (
            SELECT 1 FROM expired WHERE expired.day = reported.day AND expired.currency = reported.currency
          )
      ) AS now LEFT JOIN reported AS old USING (kind, day, currency)
      WHERE now.tokens IS NOT coalesce(old.tokens, 0) OR now.cost IS NOT coalesce(old.cost, 0)
    ON CONFLICT DO UPDATE SET seq = ?1, base_tokens = tokens, base_cost = cost,
      tokens = excluded.tokens, cost = excluded.cost`,
    link?.seq ?? 0,
  );
  return lastReport(sql);
}

/** The last message with the same charges, and what is held now: the requests that run, and what was lent. */
export function lastReport(sql: Sql): Report {
  const seq = sql.exec<{ seq: number }>('SELECT seq FROM link').toArray()[0]?.seq ?? 0;
  const charges = sql.exec<ReportedCharge & Record<string, SqlStorageValue>>(
    `SELECT kind, day, currency, tokens - base_tokens AS tokens, cost - base_cost AS cost FROM reported WHERE seq = ?`,
    seq,
  );
  const lent = hasTable(sql, HELD_TABLE)
    ? `UNION ALL SELECT day, currency, tokens, cost, running, requests, rate_tokens FROM ${HELD_TABLE}`
    : '';
  // The charges of a message do not include later ones. The parent still holds their allowance.
  const running = sql.exec<HeldSum & Record<string, SqlStorageValue>>(
    `SELECT day, currency, sum(tokens) AS tokens, sum(cost) AS cost, sum(running) AS running, sum(requests) AS requests,
      sum(rate_tokens) AS rate_tokens FROM (
      SELECT day, currency, tokens, cost, 1 AS running, 0 AS requests, 0 AS rate_tokens FROM reservations ${lent}
      UNION ALL SELECT day, currency, max(0, spent.tokens - coalesce(known.tokens, 0)),
        max(0, spent.cost - coalesce(known.cost, 0)), 0, 0, 0
        FROM spent LEFT JOIN (SELECT * FROM reported WHERE kind = 'spent') AS known USING (day, currency)
        WHERE spent.tokens > coalesce(known.tokens, 0) OR spent.cost > coalesce(known.cost, 0)
    ) GROUP BY day, currency`,
  );
  return { seq, charges: charges.toArray(), running: running.toArray() };
}
