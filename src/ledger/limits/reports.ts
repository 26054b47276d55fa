/** What a holder reports to its parent: a numbered message at a time, which can be repeated as it was. */
import type { HeldSum, LeaseMessage, ReportedCharge } from './allowance.ts';
import { createTables, hasTable, type Sql } from './limit-tables.ts';
import { runningByTeam, spentByTeam, sumsByTeam } from './team-shares.ts';

/**
 * - `link`: the last message to the parent, and whether its answer has arrived: 1, or 0, or -1 if it is one after which the parent forgets
 *   the holder. A key has `team_links`, a row for each team that counts something of it, with the limits of the team.
 * - `reported`: the charges that the parent has counted: before the message `seq` (`base`), and with it. A repeated message has the same
 *   difference. `kind` has the team after a space.
 */
const LINK = `CREATE TABLE IF NOT EXISTS link (
  only INTEGER PRIMARY KEY CHECK (only = 1), seq INTEGER NOT NULL, is_answered INTEGER NOT NULL
)`;
const TEAM_LINKS = `CREATE TABLE IF NOT EXISTS team_links (
  team TEXT PRIMARY KEY, seq INTEGER NOT NULL, is_answered INTEGER NOT NULL, limits TEXT
) WITHOUT ROWID`;
const REPORTED = `CREATE TABLE IF NOT EXISTS reported (
  kind TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, seq INTEGER NOT NULL, tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL, base_tokens INTEGER NOT NULL, base_cost INTEGER NOT NULL, PRIMARY KEY (kind, day, currency)
) WITHOUT ROWID`;

type Report = Pick<LeaseMessage, 'seq' | 'charges' | 'running'>;

/** The column `kind` of `reported`, for a row of `sums`. */
const KIND = "sums.kind || iif(sums.team = '', '', ' ' || sums.team)";

/** The teams to which a key has a link. */
export function linkedTeams(sql: Sql): readonly string[] {
  if (!hasTable(sql, 'team_links')) return [];
  return sql
    .exec<{ team: string }>('SELECT team FROM team_links')
    .toArray()
    .map(({ team }) => team);
}

/** The teams to which a key has charges to report: their sums differ from the reported ones. */
export function unreportedTeams(sql: Sql): readonly string[] {
  if (!hasTable(sql, 'team_links') || !hasTable(sql, 'reported')) return [];
  const query = `SELECT DISTINCT team FROM (${sumsWithReported(sql)}) WHERE team != '' AND ${DIFFERS}`;
  return sql
    .exec<{ team: string }>(query)
    .toArray()
    .map(({ team }) => team);
}

/**
 * A query of the sums by team, each with what is reported of it: `team, kind, day, currency, named, tokens, cost,
 * reported_tokens, reported_cost`. Of expired requests that were settled no row of the sums is left, only what is
 * reported.
 */
function sumsWithReported(sql: Sql): string {
  return `WITH sums AS (SELECT team, kind, day, currency, ${KIND} AS named, tokens, cost FROM (${sumsByTeam(sql)}) AS sums),
    now AS (
      SELECT * FROM sums
      UNION ALL SELECT substr(kind, length('expired ') + 1), 'expired', day, currency, kind, 0, 0 FROM reported
        WHERE kind GLOB 'expired*' AND (kind, day, currency) NOT IN (SELECT named, day, currency FROM sums)
    )
    SELECT now.*, coalesce(reported.tokens, 0) AS reported_tokens, coalesce(reported.cost, 0) AS reported_cost
    FROM now LEFT JOIN reported ON reported.kind = now.named AND reported.day = now.day AND reported.currency = now.currency`;
}

const DIFFERS = '(tokens IS NOT reported_tokens OR cost IS NOT reported_cost)';

/**
 * The charges of a message that the parent does not count, because it does not know the holder, are not reported. A parent that has got the
 * last message has counted them, and knows the holder no more.
 * @param link the row of the message, in SQL
 */
function takeBackUncounted(sql: Sql, link: string, isMine: string): void {
  sql.exec(
    `UPDATE reported SET tokens = base_tokens, cost = base_cost
      WHERE seq = (SELECT seq FROM ${link} AND is_answered = 0) AND ${isMine}`,
  );
  sql.exec(`UPDATE reported SET seq = 0 WHERE ${isMine}`);
}

/** Forgets the link of a shard to its key. The charges that the key has counted stay in `reported`. */
export function forgetParent(sql: Sql): void {
  takeBackUncounted(sql, 'link WHERE TRUE', 'TRUE');
  sql.exec('DELETE FROM link');
}

/** Whether a shard has charges that its key has not counted. */
export function hasUnreported(sql: Sql): boolean {
  createTables(sql, [LINK, REPORTED]);
  const query = `SELECT 1 FROM (${sumsWithReported(sql)}) WHERE ${DIFFERS} LIMIT 1`;
  return sql.exec(query).toArray().length > 0;
}

export class Reports {
  readonly #sql: Sql;
  /** The team that is the parent: only its own sums are reported to it. Null: the parent is a key, and gets the sums of all teams. */
  readonly #team: string | null;
  readonly #table: string;
  readonly #row: string;

  constructor(sql: Sql, team: string | null) {
    this.#sql = sql;
    this.#team = team;
    this.#table = team === null ? 'link' : 'team_links';
    this.#row = team === null ? '' : `WHERE team = '${team}'`;
  }

  /** Whether there is a link: the parent knows the holder. */
  get isLinked(): boolean {
    return this.#link !== undefined;
  }

  get #link() {
    if (!hasTable(this.#sql, this.#table)) return undefined;
    type Row = { readonly seq: number; readonly is_answered: number; readonly limits?: string | null };
    return this.#sql.exec<Row>(`SELECT * FROM ${this.#table} ${this.#row}`).toArray()[0];
  }

  /** @param seq of the last message that the parent knows */
  create(seq: number): void {
    createTables(this.#sql, [this.#team === null ? LINK : TEAM_LINKS, REPORTED]);
    if (this.#team === null) this.#sql.exec('INSERT OR REPLACE INTO link VALUES (1, ?, 1)', seq);
    else this.#sql.exec('INSERT OR REPLACE INTO team_links VALUES (?, ?, 1, NULL)', this.#team, seq);
  }

  /** The parent knows a message with this number. */
  atLeast(seq: number): void {
    this.#sql.exec(`UPDATE ${this.#table} SET seq = max(seq, ?) ${this.#row}`, seq);
  }

  /** Removes the link to a team. The charges that the team has counted stay in `reported`. */
  remove(): void {
    takeBackUncounted(this.#sql, `team_links ${this.#row}`, this.#isMine);
    this.#sql.exec(`DELETE FROM team_links ${this.#row}`);
  }

  /** The limits of the team, as JSON; null: they are not known. */
  get limits(): string | null {
    return this.#link?.limits ?? null;
  }

  /** @returns whether they differ from the stored ones */
  storeLimits(json: string): boolean {
    if (this.limits === json) return false;
    this.#sql.exec(`UPDATE team_links SET limits = ? ${this.#row}`, json);
    return true;
  }

  get isAnswered(): boolean {
    return this.#link?.is_answered === 1;
  }

  /** @param seq of the last message that the parent knows, if it is not the one that was sent */
  markAnswered(seq?: number): void {
    this.#sql.exec(
      `UPDATE ${this.#table} SET is_answered = 1, seq = coalesce(?, seq) ${this.#row}`,
      seq ?? null,
    );
  }

  /**
   * Numbers the next message, and stores what has been charged since the last one, so that it can be repeated.
   * @param isLast the parent forgets the holder after it
   */
  next(isLast = false): Report {
    const [link] = this.#sql
      .exec<{ seq: number }>(
        `UPDATE ${this.#table} SET seq = seq + 1, is_answered = ? ${this.#row} RETURNING seq`,
        isLast ? -1 : 0,
      )
      .toArray();
    this.#sql.exec(
      `INSERT INTO reported
        SELECT named, day, currency, ?1, tokens, cost, reported_tokens, reported_cost
        FROM (SELECT * FROM (${sumsWithReported(this.#sql)}) ${this.#row}) WHERE ${DIFFERS}
      ON CONFLICT DO UPDATE SET seq = ?1, base_tokens = tokens, base_cost = cost,
        tokens = excluded.tokens, cost = excluded.cost`,
      link?.seq ?? 0,
    );
    return this.last();
  }

  /** The last message with the same charges, and what is held now: the requests that run, and what was lent. */
  last(): Report {
    const seq = this.#link?.seq ?? 0;
    type Row = Omit<ReportedCharge, 'kind'> & { readonly kind: string } & Record<string, SqlStorageValue>;
    const charges = this.#sql
      .exec<Row>(
        `SELECT kind, day, currency, tokens - base_tokens AS tokens, cost - base_cost AS cost FROM reported
          WHERE seq = ? AND ${this.#isMine}`,
        seq,
      )
      .toArray();
    return {
      seq,
      charges: charges.map(({ kind: named, ...amounts }) => {
        const [name = '', team = ''] = named.split(' ');
        const kind = name === 'unreported' || name === 'expired' ? name : 'spent';
        return { kind, ...amounts, ...this.#named(team) };
      }),
      running: this.running,
    };
  }

  /** Running requests and lent allowance, with charges that were not reported: the parent still holds their allowance. */
  get running(): readonly HeldSum[] {
    type Row = HeldSum & { readonly team: string } & Record<string, SqlStorageValue>;
    const rows = this.#sql.exec<Row>(
      `SELECT team, day, currency, sum(tokens) AS tokens, sum(cost) AS cost, sum(running) AS running, sum(requests) AS requests,
        sum(rate_tokens) AS rate_tokens FROM (
        ${runningByTeam(this.#sql)}
        UNION ALL SELECT sums.team, sums.day, sums.currency, max(0, sums.tokens - coalesce(reported.tokens, 0)),
            max(0, sums.cost - coalesce(reported.cost, 0)), 0, 0, 0
          FROM (${spentByTeam(this.#sql)}) AS sums LEFT JOIN reported ON reported.kind = ${KIND}
            AND reported.day = sums.day AND reported.currency = sums.currency
          WHERE sums.tokens > coalesce(reported.tokens, 0) OR sums.cost > coalesce(reported.cost, 0)
      ) ${this.#row} GROUP BY team, day, currency`,
    );
    return rows.toArray().map(({ team, ...sums }) => ({ ...sums, ...this.#named(team) }));
  }

  /** The field `team` of a row in a message to a key. A message to a team has none. */
  #named(team: string): { readonly team?: string } {
    return team === '' || this.#team !== null ? {} : { team };
  }

  get #isMine(): string {
    return this.#team === null ? 'TRUE' : `kind GLOB '* ${this.#team}'`;
  }
}
