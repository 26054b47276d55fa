/** What the callers of one key keep: a row for each kept response, and the sums of each owner, which limits bound. */
import type { Claim, ClaimResult, KeptOfUser, KeptSums, SettledResponse } from './response-calls.ts';
import type { Sql } from './tables.ts';

/** The version of the rows that this code writes. Each change writes the sums, so theirs is the version of all rows of an owner. */
const VERSION = 1;

/** `user` is the name as usage records have it; null: none. */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS kept (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, user TEXT, bytes INTEGER NOT NULL, expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  'CREATE INDEX IF NOT EXISTS kept_by_expiry ON kept (expires_at)',
  `CREATE TABLE IF NOT EXISTS kept_sums (
    owner TEXT PRIMARY KEY, version INTEGER NOT NULL, responses INTEGER NOT NULL, bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
];

/** Rows that have expired count no more. The alarm deletes those of a key that stores nothing new, at most once in this time. */
const SWEEP_MS = 3_600_000;

/** The rows that one call lists. */
const MAX_LISTED = 1000;

export interface IndexPorts {
  readonly sql: Sql;
  /** All of the writes, or none. */
  readonly transaction: (write: () => void) => void;
  /** In ms since the epoch. */
  readonly now: () => number;
  readonly setAlarm: (at: number) => Promise<void>;
  /** In ms since the epoch; null: none is set. */
  readonly getAlarm: () => Promise<number | null>;
  /** Deletes the alarm and everything that is stored. */
  readonly deleteAll: () => Promise<void>;
}

export class KeptIndex {
  readonly #ports: IndexPorts;
  #hasTables = false;

  constructor(ports: IndexPorts) {
    this.#ports = ports;
  }

  /** Takes the place of a response, if its owner's limits have room for it. A repeated call changes nothing. */
  async claim({ id, owner, user, bytes, expiresAt, limits }: Claim): Promise<ClaimResult> {
    const { sql, transaction, getAlarm, setAlarm } = this.#ports;
    const alarm = await getAlarm();
    let result: ClaimResult = { kind: 'claimed' };
    transaction(() => {
      this.#createTables();
      this.#sweep();
      if (sql.exec('SELECT id FROM kept WHERE id = ?', id).toArray().length > 0) return;
      const sums = this.#sums(owner);
      if (sums.responses + 1 > limits.responses || sums.bytes + bytes > limits.bytes) {
        result = { kind: 'full', sums };
        return;
      }
      sql.exec('INSERT INTO kept VALUES (?, ?, ?, ?, ?)', id, owner, user, bytes, expiresAt);
      this.#add(owner, { responses: 1, bytes });
    });
    // Without an await after the transaction, so that there is never a row without an alarm.
    if (result.kind === 'claimed' && alarm === null) await setAlarm(expiresAt + SWEEP_MS);
    return result;
  }

  /** Sets what a run has stored at its end. Without a row nothing changes: the response was deleted. */
  settle({ id, bytes, expiresAt }: SettledResponse): void {
    this.#change(id, (owner, before) => {
      this.#ports.sql.exec('UPDATE kept SET bytes = ?, expires_at = ? WHERE id = ?', bytes, expiresAt, id);
      this.#add(owner, { responses: 0, bytes: bytes - before });
    });
  }

  /** Gives the place of a deleted response back. A repeated call changes nothing. */
  release(id: string): void {
    this.#change(id, (owner, bytes) => {
      this.#ports.sql.exec('DELETE FROM kept WHERE id = ?', id);
      this.#add(owner, { responses: -1, bytes: -bytes });
    });
  }

  sums(owner: string): KeptSums {
    if (!this.#exists) return NOTHING;
    this.#ports.transaction(() => this.#sweep());
    return this.#sums(owner);
  }

  /**
   * The rows of a user or of these owners, in the order of their ids, from the one after `after`. Those that have
   * expired are listed, too.
   */
  ofUser(users: readonly string[], owners: readonly string[], after: string): readonly KeptOfUser[] {
    if (!this.#exists) return [];
    const isIn = (column: string) => `${column} IN (SELECT value FROM json_each(?))`;
    const rows = this.#ports.sql.exec<{ id: string; owner: string }>(
      `SELECT id, owner FROM kept WHERE (${isIn('user')} OR ${isIn('owner')}) AND id > ? ORDER BY id LIMIT ${MAX_LISTED}`,
      JSON.stringify(users),
      JSON.stringify(owners),
      after,
    );
    return rows.toArray().map(({ id, owner }) => ({ id: String(id), owner: String(owner) }));
  }

  async alarm(): Promise<void> {
    if (!this.#exists) return;
    const { sql, transaction, now, setAlarm, deleteAll } = this.#ports;
    transaction(() => this.#sweep());
    const [row] = sql.exec<{ at: number | null }>('SELECT min(expires_at) AS at FROM kept').toArray();
    const next = row?.at ?? null;
    if (next !== null) return setAlarm(Math.max(next, now()) + SWEEP_MS);
    this.#hasTables = false;
    await deleteAll();
  }

  /** Reading creates no table, so that an unknown key stores nothing. */
  get #exists(): boolean {
    const query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'kept'";
    this.#hasTables ||= this.#ports.sql.exec(query).toArray().length > 0;
    return this.#hasTables;
  }

  #createTables(): void {
    if (this.#exists) return;
    for (const table of TABLES) this.#ports.sql.exec(table);
    this.#hasTables = true;
  }

  /** Deletes what has expired. What another version has written stays, because its sums may mean something else. */
  #sweep(): void {
    const { sql, now } = this.#ports;
    const expired =
      'FROM kept WHERE expires_at <= ? AND owner IN (SELECT owner FROM kept_sums WHERE version = ?)';
    const sums = sql
      .exec<{ owner: string; responses: number; bytes: number }>(
        `SELECT owner, count(*) AS responses, sum(bytes) AS bytes ${expired} GROUP BY owner`,
        now(),
        VERSION,
      )
      .toArray();
    if (sums.length === 0) return;
    sql.exec(`DELETE ${expired}`, now(), VERSION);
    for (const { owner, responses, bytes } of sums)
      this.#add(String(owner), { responses: -Number(responses), bytes: -Number(bytes) });
  }

  #change(id: string, change: (owner: string, bytes: number) => void): void {
    if (!this.#exists) return;
    this.#ports.transaction(() => {
      const [row] = this.#ports.sql
        .exec<{ owner: string; bytes: number }>('SELECT owner, bytes FROM kept WHERE id = ?', id)
        .toArray();
      if (row !== undefined) change(String(row.owner), Number(row.bytes));
    });
  }

  /** @throws for rows of another version, so that nothing is kept or refused by sums that this code does not understand */
  #sums(owner: string): KeptSums {
    const [row] = this.#ports.sql
      .exec<{ version: number; responses: number; bytes: number }>(
        'SELECT version, responses, bytes FROM kept_sums WHERE owner = ?',
        owner,
      )
      .toArray();
    if (row === undefined) return NOTHING;
    const version = Number(row.version);
    if (version !== VERSION)
      throw new Error(
        `The index of kept responses has the version ${version}, and this code reads ${VERSION}`,
      );
    return { responses: Number(row.responses), bytes: Number(row.bytes) };
  }

  #add(owner: string, { responses, bytes }: KeptSums): void {
    const before = this.#sums(owner);
    const { sql } = this.#ports;
    if (before.responses + responses <= 0)
      return void sql.exec('DELETE FROM kept_sums WHERE owner = ?', owner);
    sql.exec(
      'INSERT INTO kept_sums VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET responses = ?3, bytes = ?4',
      owner,
      VERSION,
      before.responses + responses,
      before.bytes + bytes,
    );
  }
}

const NOTHING: KeptSums = { responses: 0, bytes: 0 };
