/** What a holder has lent to its children, as it counts it: their running requests, and what they may still use. */
import { ACCESS_PREFIX } from '../../auth/caller-ids.ts';
import { type Budget, dayOf, type Limits, NO_USER, OTHER_USERS } from '../../auth/key-limits.ts';
import type { Allowance, Amounts, HeldSum, HolderKind, LeaseMessage, SecondSum } from './allowance.ts';
import {
  addToWindow,
  correctWindow,
  createTables,
  HELD_TABLE,
  type HeldByChildren,
  hasTable,
  SHARD_HELD_TABLE,
  type Sql,
  secondOf,
  sumOfPeriod,
  WINDOW_SECONDS,
} from './limit-tables.ts';
import { addReported } from './reservations.ts';
import { SilentChildren } from './silent-children.ts';
import { isShard } from './spread.ts';
import { createTeamTables, NO_TEAM, TEAM_HELD_TABLE } from './team-shares.ts';

/**
 * - `key_users`: the children that have an object, the last day on which they counted, and their last message.
 * - `held`: what their objects hold. `tokens`, `cost` and `running` are of running requests and of what was leased since the last
 *   message; `requests` and `rate_tokens` of what no second of the minute counts yet.
 * - `key_shards`, `shard_held`: the same of shards, which 0.2.0 would take for users.
 */
interface Tables {
  readonly known: 'key_users' | 'key_shards';
  readonly held: typeof HELD_TABLE | typeof SHARD_HELD_TABLE;
}

const OF_USERS: Tables = { known: 'key_users', held: HELD_TABLE };
const OF_SHARDS: Tables = { known: 'key_shards', held: SHARD_HELD_TABLE };

function tablesOf(child: string): Tables {
  return isShard(child) ? OF_SHARDS : OF_USERS;
}

function createChildTables(sql: Sql, { known, held }: Tables): void {
  createTables(sql, [
    `CREATE TABLE IF NOT EXISTS ${known} (user TEXT PRIMARY KEY, day TEXT NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID`,
    `CREATE TABLE IF NOT EXISTS ${held} (
    user TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
    running INTEGER NOT NULL, requests INTEGER NOT NULL, rate_tokens INTEGER NOT NULL, PRIMARY KEY (user, day, currency)
  ) WITHOUT ROWID`,
  ]);
}

type HeldRow = Required<Omit<HeldSum, 'team'>>;

/** `day` of a child that has left, and only ends what it has. */
const LEFT = '';

/** Whether a child of a team is a person, or stands for those beyond `max_users`. All others are keys, which have other ids. */
export function isPerson(child: string): boolean {
  return child.startsWith(ACCESS_PREFIX) || child === OTHER_USERS;
}

/** The same in SQL, with two parameters. */
const IS_PERSON = '(user GLOB ? OR user = ?)';
const PERSON = [`${ACCESS_PREFIX}*`, OTHER_USERS] as const;

/** How many children return at once what they hold in advance. */
const MAX_RETURNING = 200;
/** A child that did not return what it holds is not asked again for this time. */
const FAILED_RECALL_MS = 10_000;

interface ChildrenPorts {
  readonly sql: Sql;
  /** Of the holder. The children of a team are keys and people. */
  readonly level: HolderKind;
  /** Makes a child return what it holds in advance. Never rejects, and ends within a bound. @returns false: it fails */
  readonly returnLease: (child: string) => Promise<boolean>;
  /** Makes a shard report what it was charged. Never rejects, and ends within a bound. */
  readonly reportCharges: (shard: string) => Promise<void>;
  readonly now: () => number;
  /** How long requests take at most. A child that sends no message for so long is counted as if all that it holds were used. */
  readonly silentMs: () => number;
}

export class Children {
  readonly #ports: ChildrenPorts;
  readonly #sql: Sql;
  /** Those that send no messages while they hold something. */
  readonly #silent: SilentChildren;
  /** The calls to children that are running, by child. */
  readonly #returning = new Map<string, Promise<void>>();
  /** Until when children are not asked that did not return what they hold, in ms since the epoch. */
  readonly #failedUntil = new Map<string, number>();
  /** The tables that exist. They are created with the first child of their kind. */
  readonly #used: Set<Tables>;
  /** The children that may hold something in advance. */
  readonly #ahead = new Set<string>();
  /** The number of users of a day, which is read from storage once. */
  #counted: { readonly day: string; readonly users: number } | null = null;

  constructor(ports: ChildrenPorts) {
    this.#ports = ports;
    this.#sql = ports.sql;
    this.#silent = new SilentChildren(ports.sql, ports.silentMs);
    this.#used = new Set([OF_USERS, OF_SHARDS].filter(({ held }) => hasTable(ports.sql, held)));
    for (const { held } of this.#used) {
      const query = `SELECT DISTINCT user FROM ${held} WHERE requests > 0`;
      for (const { user } of this.#sql.exec<{ user: string }>(query).toArray()) this.#ahead.add(user);
    }
  }

  /** What all children hold; undefined: there never were any. */
  get held(): HeldByChildren | undefined {
    if (this.#used.size === 0) return undefined;
    const tables = this.#heldTables;
    const query = `SELECT coalesce(sum(running), 0) AS running, coalesce(sum(requests), 0) AS requests,
      coalesce(sum(rate_tokens), 0) AS tokens FROM (${tables.map((table) => `SELECT running, requests, rate_tokens FROM ${table}`).join(' UNION ALL ')})`;
    const [row] = this.#sql.exec<{ running: number; requests: number; tokens: number }>(query).toArray();
    return {
      running: row?.running ?? 0,
      requests: row?.requests ?? 0,
      tokens: row?.tokens ?? 0,
      ofBudget: (budget: Budget, now: number) =>
        sumOf(tables.map((table) => sumOfPeriod(this.#sql, table, budget, now))),
    };
  }

  get #heldTables() {
    return [...[...this.#used].map(({ held }) => held), ...this.#teamTables];
  }

  /** What children hold of the allowance of teams other than the current one. */
  get #teamTables(): readonly (typeof TEAM_HELD_TABLE)[] {
    return hasTable(this.#sql, TEAM_HELD_TABLE) ? [TEAM_HELD_TABLE] : [];
  }

  /** The number of keys of a team that have not left. */
  get members(): number {
    if (!this.#used.has(OF_USERS)) return 0;
    const query = `SELECT count(*) AS members FROM key_users WHERE day != ? AND NOT ${IS_PERSON}`;
    return this.#sql.exec<{ members: number }>(query, LEFT, ...PERSON).toArray()[0]?.members ?? 0;
  }

  /** Keys of a team that have not left, and whose last message came before that day. */
  membersBefore(day: string, max: number): readonly string[] {
    if (!this.#used.has(OF_USERS)) return [];
    const query = `SELECT user FROM key_users WHERE day != ? AND day < ? AND NOT ${IS_PERSON} LIMIT ?`;
    const rows = this.#sql.exec<{ user: string }>(query, LEFT, day, ...PERSON, max).toArray();
    return rows.map(({ user }) => user);
  }

  /** A key of a team is no member any more. What it still reports counts. */
  leave(child: string): void {
    this.#sql.exec('UPDATE key_users SET day = ? WHERE user = ?', LEFT, child);
  }

  /** The people of a team that have an object. */
  people(max: number): readonly string[] {
    if (!this.#used.has(OF_USERS)) return [];
    const query = `SELECT user FROM key_users WHERE ${IS_PERSON} LIMIT ?`;
    const rows = this.#sql.exec<{ user: string }>(query, ...PERSON, max).toArray();
    return rows.map(({ user }) => user);
  }

  /** Whether any child may hold something in advance. */
  get areAhead(): boolean {
    return this.#ahead.size > 0;
  }

  /**
   * Registers a child whose object is new. A repeated call changes nothing.
   * @returns the number of its last message; null: it has no limits of its own on this day
   */
  register(child: string, limits: Limits, now: number): number | null {
    const tables = tablesOf(child);
    if (!this.#used.has(tables)) createChildTables(this.#sql, tables);
    this.#used.add(tables);
    const known = this.#find(child);
    const day = dayOf(now);
    if (!this.#count(child, known?.day, day, limits)) return null;
    if (known === undefined) this.#sql.exec(`INSERT INTO ${tables.known} VALUES (?, ?, 0)`, child, day);
    else if (known.day === LEFT)
      this.#sql.exec(`UPDATE ${tables.known} SET day = ? WHERE user = ?`, day, child);
    return known?.seq ?? 0;
  }

  /** The number of the child's last message; undefined: it is not known. */
  seqOf(child: string): number | undefined {
    return this.#used.has(tablesOf(child)) ? this.#find(child)?.seq : undefined;
  }

  /**
   * Applies a message with a new number: it replaces all that the child held.
   * @param limits of this holder
   * @param day in which new requests count
   * @param team the current one
   */
  apply(
    { user: child, seq, charges, running, minute, isLast, isAhead = false, isLeaving }: LeaseMessage,
    limits: Limits,
    now: number,
    day: string,
    team: string,
  ): { readonly isOwn: boolean; readonly seconds: readonly SecondSum[] } {
    this.#silent.takeBack(child, team, now);
    this.#silent.heard(child, now);
    this.#failedUntil.delete(child);
    const tables = tablesOf(child);
    const before = this.#heldBy(child);
    const others = this.#teamTables.flatMap((table) => this.#heldBy(child, table));
    const seconds = currentSeconds(minute ?? [leasedBy([...before, ...others], now)], now);
    if (limits.rpm !== null || limits.tpm !== null) this.#addToMinute(seconds);
    for (const charge of charges) addReported(this.#sql, charge, team, now);
    if (isAhead) this.#ahead.add(child);
    else this.#ahead.delete(child);
    const isCurrent = ({ team: of = NO_TEAM }: HeldSum) => of === team;
    const after = running
      .filter(isCurrent)
      .map(({ team: _, ...sum }) => ({ requests: 0, rate_tokens: 0, ...sum }));
    this.#storeOthers(
      child,
      running.filter((sum) => !isCurrent(sum)),
    );
    for (const row of before) {
      if (after.some((kept) => isSameRow(kept, row))) continue;
      const remove = `DELETE FROM ${tables.held} WHERE user = ? AND day = ? AND currency = ?`;
      this.#sql.exec(remove, child, row.day, row.currency);
    }
    for (const row of after) {
      const old = before.find((one) => isSameRow(one, row));
      if (old === undefined || !isEqualRow(old, row)) this.#store(child, row);
    }
    if (isLast) {
      this.#sql.exec(`DELETE FROM ${tables.known} WHERE user = ?`, child);
      this.#silent.remove(child);
    }
    const lastDay = this.#find(child)?.day ?? day;
    const isOwn = isLast || this.#count(child, lastDay, day, limits);
    const update = `UPDATE ${tables.known} SET seq = ?, day = ? WHERE user = ?`;
    this.#sql.exec(update, seq, isLeaving ? LEFT : isOwn ? day : lastDay, child);
    return { isOwn, seconds };
  }

  /**
   * Counts what the child was granted as used until its next message.
   * @param surplus what it holds in advance
   * @param day of what names no other
   */
  hold(child: string, granted: readonly UpperBoundOfDay[], surplus: Allowance | null, day: string): void {
    if (surplus !== null) this.#ahead.add(child);
    const leased = surplus === null ? granted : [...granted, surplus];
    const byDay = Map.groupBy(leased, (one: UpperBoundOfDay) => one.day ?? day);
    const before = leased.length === 0 ? [] : this.#heldBy(child);
    for (const [of, ofDay] of byDay)
      for (const [currency, own] of Map.groupBy(ofDay, (one) => one.currency)) {
        const old = before.find((row) => isSameRow(row, { day: of, currency }));
        const requests = sumOf(own.map((one) => one.requests));
        this.#store(child, {
          day: of,
          currency,
          tokens: (old?.tokens ?? 0) + sumOf(own.map(({ tokens }) => tokens)),
          cost: (old?.cost ?? 0) + sumOf(own.map(({ cost }) => cost)),
          running: (old?.running ?? 0) + requests,
          requests: (old?.requests ?? 0) + requests,
          // A further attempt is part of a request that already runs.
          rate_tokens: (old?.rate_tokens ?? 0) + sumOf(own.map(({ expectedTokens }) => expectedTokens)),
        });
      }
  }

  /**
   * Children return what they hold in advance. Two objects never wait for each other: this waits only for children that held something
   * when the message of `except` was applied, and applying a message returns all that its sender held in advance.
   * @returns false if no child holds anything
   */
  async recall(except: string | null = null): Promise<boolean> {
    const { now } = this.#ports;
    const isAsked = (child: string) => child !== except && (this.#failedUntil.get(child) ?? 0) <= now();
    const children = [...this.#ahead].filter(isAsked).slice(0, MAX_RETURNING);
    const calls = children.map((child) => {
      const running = this.#returning.get(child);
      if (running !== undefined) return running;
      const call = this.#askFor(child).finally(() => this.#returning.delete(child));
      this.#returning.set(child, call);
      return call;
    });
    await Promise.all(calls);
    return children.length > 0;
  }

  async #askFor(child: string): Promise<void> {
    const { returnLease, now } = this.#ports;
    const hasReturned = await returnLease(child);
    // Its message may have been applied although the call failed.
    if (hasReturned || !this.#ahead.has(child)) this.#failedUntil.delete(child);
    else this.#failedUntil.set(child, now() + FAILED_RECALL_MS);
  }

  /**
   * Charges what children hold that sent no message for too long, as {@link SilentChildren.charge}. Runs in a transaction.
   * @returns what is charged
   */
  chargeSilent(now: number, team: string, isAlarm: boolean): readonly Amounts[] {
    if (this.#used.size === 0) return [];
    const charged = this.#silent.charge(now, team, isAlarm);
    for (const { user } of charged) this.#ahead.delete(user);
    return charged;
  }

  /** When {@link chargeSilent} has work next, in ms since the epoch; null: never. */
  get silentAt(): number | null {
    return this.#used.size === 0 ? null : this.#silent.dueAt;
  }

  /** Shards report what they were charged, so that the sums are those of a key without shards. There are at most 512. */
  async reportShards(): Promise<void> {
    if (!this.#used.has(OF_SHARDS)) return;
    const shards = this.#sql.exec<{ user: string }>('SELECT user FROM key_shards').toArray();
    await Promise.all(shards.map(({ user }) => this.#ports.reportCharges(user)));
  }

  /** Those that have an object. */
  names(max: number): readonly string[] {
    return [...this.#used]
      .flatMap(({ known }) =>
        this.#sql.exec<{ user: string }>(`SELECT user FROM ${known} LIMIT ?`, max).toArray(),
      )
      .slice(0, max)
      .map(({ user }) => user);
  }

  /** Those of the names that have an object. */
  among(names: readonly string[]): readonly string[] {
    return names.filter((name) => this.seqOf(name) !== undefined);
  }

  /** Removes a child whose object is deleted. */
  remove(child: string): void {
    this.#ahead.delete(child);
    this.#failedUntil.delete(child);
    this.#silent.remove(child);
    for (const table of this.#heldTables) this.#sql.exec(`DELETE FROM ${table} WHERE user = ?`, child);
    this.#sql.exec(`DELETE FROM ${tablesOf(child).known} WHERE user = ?`, child);
  }

  #find(child: string): { readonly day: string; readonly seq: number } | undefined {
    const query = `SELECT day, seq FROM ${tablesOf(child).known} WHERE user = ?`;
    return this.#sql.exec<{ day: string; seq: number }>(query, child).toArray()[0];
  }

  /** Whether the child has separate limits on this day. Counts a user that has. The keys of a team are not counted. */
  #count(child: string, lastDay: string | undefined, day: string, { perUser }: Limits): boolean {
    if (child === NO_USER || child === OTHER_USERS || isShard(child) || lastDay === day) return true;
    const isTeam = this.#ports.level === 'team';
    if (isTeam && !isPerson(child)) return true;
    if (this.#counted?.day !== day) {
      const counted = isTeam ? `${IS_PERSON} AND` : '';
      const query = `SELECT count(*) AS users FROM key_users WHERE ${counted} day = ? AND user NOT IN (?, ?)`;
      const bindings = [...(isTeam ? PERSON : []), day, NO_USER, OTHER_USERS];
      const [row] = this.#sql.exec<{ users: number }>(query, ...bindings).toArray();
      this.#counted = { day, users: row?.users ?? 0 };
    }
    const { users } = this.#counted;
    if (perUser !== null && users >= perUser.maxUsers) return false;
    this.#counted = { day, users: users + 1 };
    return true;
  }

  /** Adds what a child reports to the minute. */
  #addToMinute(seconds: readonly SecondSum[]): void {
    for (const { second, requests, tokens } of seconds)
      if (requests > 0) addToWindow(this.#sql, second, tokens, requests);
      else correctWindow(this.#sql, second, tokens);
  }

  /** Replaces what the child holds of the allowance of teams other than the current one. */
  #storeOthers(child: string, sums: readonly HeldSum[]): void {
    if (sums.length > 0) createTeamTables(this.#sql);
    else if (this.#teamTables.length === 0) return;
    this.#sql.exec(`DELETE FROM ${TEAM_HELD_TABLE} WHERE user = ?`, child);
    for (const {
      day,
      currency,
      tokens,
      cost,
      running,
      requests = 0,
      rate_tokens = 0,
      team = NO_TEAM,
    } of sums)
      this.#sql.exec(
        `INSERT INTO ${TEAM_HELD_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[child, day, currency, tokens, cost, running, requests, rate_tokens, team],
      );
  }

  #heldBy(child: string, table: string = tablesOf(child).held): readonly HeldRow[] {
    const query = `SELECT day, currency, tokens, cost, running, requests, rate_tokens FROM ${table} WHERE user = ?`;
    return this.#sql.exec<HeldRow & Record<string, SqlStorageValue>>(query, child).toArray();
  }

  #store(child: string, row: HeldRow): void {
    const { day, currency, tokens, cost, running, requests, rate_tokens } = row;
    this.#sql.exec(
      `INSERT OR REPLACE INTO ${tablesOf(child).held} VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[child, day, currency, tokens, cost, running, requests, rate_tokens],
    );
  }
}

type UpperBoundOfDay = Allowance & { readonly day?: string };

/** Those of the current minute, none of them later than now. */
function currentSeconds(seconds: readonly SecondSum[], now: number): readonly SecondSum[] {
  const current = secondOf(now);
  return seconds
    .map((one) => ({ ...one, second: Math.min(one.second, current) }))
    .filter(({ second }) => second > current - WINDOW_SECONDS);
}

/** All that was leased since the last message, as if it were used now. */
function leasedBy(rows: readonly HeldRow[], now: number): SecondSum {
  const requests = sumOf(rows.map((row) => row.requests));
  return { second: secondOf(now), requests, tokens: sumOf(rows.map((row) => row.rate_tokens)) };
}

type RowKey = Pick<Amounts, 'day' | 'currency'>;

function isSameRow(a: RowKey, b: RowKey): boolean {
  return a.day === b.day && a.currency === b.currency;
}

function isEqualRow(a: HeldRow, b: HeldRow): boolean {
  const { tokens, cost, running, requests, rate_tokens } = b;
  return (
    a.tokens === tokens &&
    a.cost === cost &&
    a.running === running &&
    a.requests === requests &&
    a.rate_tokens === rate_tokens
  );
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((sum, amount) => sum + amount, 0);
}
