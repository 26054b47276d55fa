/** The part of a key's allowance that the objects of its users hold, as the key's ledger object counts it. */
import {
  type Budget,
  budgetUses,
  dayOf,
  isEnforced,
  type LimitStatus,
  type Limits,
  NO_LIMITS,
  NO_USER,
  OTHER_USERS,
  remainingOf,
  TOKENS,
} from '../../auth/key-limits.ts';
import type { JsonObject } from '../../shared/json.ts';
import {
  type Allowance,
  type Amounts,
  type LeaseAnswer,
  type LeaseMessage,
  type LimitRefusal,
  type OpenAnswer,
  type RunningSum,
  type SecondSum,
  times,
  type UpperBound,
} from './allowance.ts';
import { keepSpent, keptSpent } from './erased-spent.ts';
import {
  addToWindow,
  correctWindow,
  type HeldByUsers,
  hasTable,
  readLimitStatus,
  type Sql,
  secondOf,
  storedLimits,
  sumOfPeriod,
  UnreadableRow,
  WINDOW_SECONDS,
} from './limit-tables.ts';
import { addReported, refuse, withReservation } from './reservations.ts';

/** If the limits have room for fewer requests, nothing is leased in advance. */
const EXACT_BELOW = 100;
/** One user leases at most 1/100 of the room in advance. */
const LEASED_PART = 100;

/**
 * - `key_users`: the users that have an object, the last day on which they counted, and their last message.
 * - `held`: what their objects hold. `tokens`, `cost` and `running` are of running requests and of what was leased since the last
 *   message; `requests` and `rate_tokens` of the latter alone, because the minute counts what a message has reported in its second.
 */
const TABLES = [
  'CREATE TABLE IF NOT EXISTS key_users (user TEXT PRIMARY KEY, day TEXT NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID',
  `CREATE TABLE IF NOT EXISTS held (
    user TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
    running INTEGER NOT NULL, requests INTEGER NOT NULL, rate_tokens INTEGER NOT NULL, PRIMARY KEY (user, day, currency)
  ) WITHOUT ROWID`,
];

type HeldRow = RunningSum & { readonly requests: number; readonly rate_tokens: number };

export interface UserLeasesPorts {
  readonly sql: Sql;
  readonly transaction: <Value>(act: () => Value) => Value;
  readonly now: () => number;
  readonly isRevoked: () => boolean;
  /** Makes the object of a user return what it holds in advance. Never rejects, and waits a second at most. */
  readonly returnLease: (user: string) => Promise<void>;
}

/** How many objects of users return at once what they hold in advance. */
const MAX_RETURNING = 200;
/** How often a need is checked again after other users returned what they held. */
const MAX_ROUNDS = 3;

export class UserLeases {
  readonly #ports: UserLeasesPorts;
  readonly #sql: Sql;
  /** The calls to objects of users that are running, by user. */
  readonly #returning = new Map<string, Promise<void>>();
  /** Whether the tables exist. They are created with the first user that has limits. */
  #isUsed: boolean;
  /** The users that may hold something in advance. */
  readonly #ahead = new Set<string>();
  /** The number of users of a day, which is read from storage once. */
  #counted: { readonly day: string; readonly users: number } | null = null;

  constructor(ports: UserLeasesPorts) {
    this.#ports = ports;
    this.#sql = ports.sql;
    this.#isUsed = hasTable(ports.sql, 'held');
    if (!this.#isUsed) return;
    const holders = this.#sql.exec<{ user: string }>('SELECT DISTINCT user FROM held WHERE requests > 0');
    for (const { user } of holders.toArray()) this.#ahead.add(user);
  }

  /** What all users hold; undefined: the key never had users with limits. */
  get held(): HeldByUsers | undefined {
    if (!this.#isUsed) return undefined;
    const query = `SELECT coalesce(sum(running), 0) AS running, coalesce(sum(requests), 0) AS requests,
      coalesce(sum(rate_tokens), 0) AS tokens FROM held`;
    const [row] = this.#sql.exec<{ running: number; requests: number; tokens: number }>(query).toArray();
    return {
      running: row?.running ?? 0,
      requests: row?.requests ?? 0,
      tokens: row?.tokens ?? 0,
      ofBudget: (budget: Budget, now: number) => sumOfPeriod(this.#sql, 'held', budget, now),
    };
  }

  /**
   * Registers a user whose object is new. A repeated call changes nothing.
   * @param listed the limits that KV lists for the key
   * @param hash of the name: what an erased user has spent is remembered under it
   * @throws UnreadableRow
   */
  open(user: string, listed: JsonObject | null = null, hash?: string): OpenAnswer {
    const { transaction, now, isRevoked } = this.#ports;
    if (isRevoked()) return { kind: 'revoked' };
    const opened = transaction(() => this.#register(user, listed, now()));
    // The object of a known user has it already.
    if (hash === undefined || opened.kind !== 'opened' || opened.seq > 0) return opened;
    return { ...opened, spent: keptSpent(this.#sql, hash, now()) };
  }

  #register(user: string, listed: JsonObject | null, now: number): OpenAnswer {
    const limits = storedLimits(this.#sql, listed);
    if (!this.#isUsed) for (const table of TABLES) this.#sql.exec(table);
    this.#isUsed = true;
    const lease = this.#find(user);
    const day = dayOf(now);
    if (!this.#countUser(user, lease?.day, day, limits)) return { kind: 'shared' };
    if (lease === undefined) this.#sql.exec('INSERT INTO key_users VALUES (?, ?, 0)', user, day);
    return { kind: 'opened', limits, seq: lease?.seq ?? 0 };
  }

  /** Applies a message, and grants what it needs. Before a need is refused, other users return what they hold in advance. */
  async lease(message: LeaseMessage): Promise<LeaseAnswer> {
    const { transaction, now, isRevoked } = this.#ports;
    const { user, needs } = message;
    // All grants of a message count in one day, also if it ends while other users return what they hold.
    const day = dayOf(now());
    if (isRevoked()) {
      const answer = transaction(() => this.#exchange({ ...message, needs: [] }, now(), day));
      return answer.kind === 'leased' && needs.length > 0 ? { kind: 'revoked' } : answer;
    }
    let answer = transaction(() => this.#exchange(message, now(), day));
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (answer.kind !== 'leased') return answer;
      const { refusals }: { refusals: readonly unknown[] } = answer;
      const refused = needs.filter((_, i) => refusals[i] !== null);
      if (refused.length === 0 || !(await this.returnLeases(user))) return answer;
      const again = transaction(() => this.#exchangeAgain({ ...message, needs: refused }, now(), day));
      if (again.kind !== 'leased') return again;
      const later = [...again.refusals];
      const all = answer.refusals.map((refusal) => (refusal === null ? null : (later.shift() ?? null)));
      answer = { ...answer, standing: again.standing, refusals: all };
    }
    return answer;
  }

  /**
   * Users return what they hold in advance. Two objects never wait for each other: this waits only for users that held something
   * when the message of `except` was applied, and applying a message returns all that its user held in advance.
   * @returns false if no user holds anything
   */
  async returnLeases(except: string | null = null): Promise<boolean> {
    const users = [...this.#ahead].filter((user) => user !== except).slice(0, MAX_RETURNING);
    const calls = users.map((user) => {
      const running = this.#returning.get(user);
      if (running !== undefined) return running;
      const call = this.#ports.returnLease(user).finally(() => this.#returning.delete(user));
      this.#returning.set(user, call);
      return call;
    });
    await Promise.all(calls);
    return users.length > 0;
  }

  #exchange(message: LeaseMessage, now: number, day: string): LeaseAnswer {
    const { user, seq, needs } = message;
    // Before anything is applied.
    const limits = storedLimits(this.#sql, message.limits);
    const lease = this.#isUsed ? this.#find(user) : undefined;
    if (lease === undefined) return { kind: 'unknown' };
    if (seq <= lease.seq) return { kind: 'repeated', seq: lease.seq };
    this.#apply(message, now);
    if (message.isLast) this.#sql.exec('DELETE FROM key_users WHERE user = ?', user);
    if (message.erased !== undefined) keepSpent(this.#sql, message.erased);
    const isOwn = message.isLast || this.#countUser(user, lease.day, day, limits);
    const update = 'UPDATE key_users SET seq = ?, day = ? WHERE user = ?';
    this.#sql.exec(update, seq, isOwn ? day : lease.day, user);
    return isOwn || needs.length === 0 ? this.#grant(message, now, day) : { kind: 'shared' };
  }

  #exchangeAgain(message: LeaseMessage, now: number, day: string): LeaseAnswer {
    const seq = this.#find(message.user)?.seq;
    // A later message has replaced what the object holds: a grant for this one would never be returned.
    if (seq !== message.seq) return { kind: 'repeated', seq: seq ?? 0 };
    return this.#grant({ ...message, extra: 0 }, now, day);
  }

  /** The users that have an object. */
  users(max: number): readonly string[] {
    if (!this.#isUsed) return [];
    const query = 'SELECT user FROM key_users LIMIT ?';
    return this.#sql
      .exec<{ user: string }>(query, max)
      .toArray()
      .map(({ user }) => user);
  }

  /** Those of the names that have an object. */
  among(names: readonly string[]): readonly string[] {
    return this.#isUsed ? names.filter((name) => this.#find(name) !== undefined) : [];
  }

  /** Removes a user whose object is deleted. */
  remove(user: string): void {
    this.#ahead.delete(user);
    this.#sql.exec('DELETE FROM held WHERE user = ?', user);
    this.#sql.exec('DELETE FROM key_users WHERE user = ?', user);
  }

  #find(user: string): { readonly day: string; readonly seq: number } | undefined {
    const query = 'SELECT day, seq FROM key_users WHERE user = ?';
    return this.#sql.exec<{ day: string; seq: number }>(query, user).toArray()[0];
  }

  /** Whether the user has separate limits on this day. Counts a user that has. */
  #countUser(user: string, lastDay: string | undefined, day: string, { perUser }: Limits): boolean {
    if (user === NO_USER || user === OTHER_USERS || lastDay === day) return true;
    if (this.#counted?.day !== day) {
      const query = 'SELECT count(*) AS users FROM key_users WHERE day = ? AND user NOT IN (?, ?)';
      const [row] = this.#sql.exec<{ users: number }>(query, day, NO_USER, OTHER_USERS).toArray();
      this.#counted = { day, users: row?.users ?? 0 };
    }
    const { users } = this.#counted;
    if (perUser !== null && users >= perUser.maxUsers) return false;
    this.#counted = { day, users: users + 1 };
    return true;
  }

  #apply({ user, charges, running, minute }: LeaseMessage, now: number): void {
    const before = this.#heldBy(user);
    const { rpm, tpm } = storedLimits(this.#sql);
    if (rpm !== null || tpm !== null) this.#count(minute ?? [leasedBy(before, now)], now);
    for (const charge of charges) addReported(this.#sql, charge, now);
    this.#ahead.delete(user);
    const after = running.map((sum) => ({ ...sum, requests: 0, rate_tokens: 0 }));
    for (const row of before) {
      if (after.some((kept) => isSameRow(kept, row))) continue;
      this.#sql.exec(
        'DELETE FROM held WHERE user = ? AND day = ? AND currency = ?',
        user,
        row.day,
        row.currency,
      );
    }
    for (const row of after) {
      const old = before.find((one) => isSameRow(one, row));
      if (old === undefined || !isEqualRow(old, row)) this.#hold(user, row);
    }
  }

  /** Adds what a user reports to the minute. */
  #count(seconds: readonly SecondSum[], now: number): void {
    for (const { second: reported, requests, tokens } of seconds) {
      const second = Math.min(reported, secondOf(now));
      if (second <= secondOf(now) - WINDOW_SECONDS) continue;
      if (requests > 0) addToWindow(this.#sql, second, tokens, requests);
      else correctWindow(this.#sql, second, tokens);
    }
  }

  #heldBy(user: string): readonly HeldRow[] {
    const query =
      'SELECT day, currency, tokens, cost, running, requests, rate_tokens FROM held WHERE user = ?';
    return this.#sql.exec<HeldRow & Record<string, SqlStorageValue>>(query, user).toArray();
  }

  #hold(user: string, row: HeldRow): void {
    const { day, currency, tokens, cost, running, requests, rate_tokens } = row;
    this.#sql.exec(
      'INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      ...[user, day, currency, tokens, cost, running, requests, rate_tokens],
    );
  }

  /** @param today the day in which new requests count */
  #grant({ user, needs, extra }: LeaseMessage, now: number, today: string): LeaseAnswer {
    const limits = storedLimits(this.#sql);
    if (limits === NO_LIMITS && needs.length > 0) throw new UnreadableRow('the object has no limits');
    const refused = new Map<UpperBound, LimitRefusal>();
    const grantOn = (day: string) => {
      const { held } = this;
      let status = readLimitStatus(this.#sql, now, held, limits, day);
      const granted: UpperBound[] = [];
      for (const need of needs) {
        if ((need.day ?? today) !== day) continue;
        const refusal = refuse(this.#sql, status, need, now, held);
        if (refusal !== null) refused.set(need, refusal);
        else {
          granted.push(need);
          status = withReservation(status, need, now);
        }
      }
      return { status, granted };
    };
    // Each day is read once what was granted before is held: days may share a month.
    const earlier = new Set(needs.flatMap(({ day = today }) => (day === today ? [] : [day])));
    for (const day of earlier) this.#holdGranted(user, grantOn(day).granted, day);
    const { status, granted } = grantOn(today);
    const last = granted.findLast(({ requests }) => requests === 1);
    const room = last === undefined ? 0 : roomFor(status, last);
    const isExact = needs.length > 0 && room < EXACT_BELOW;
    // While a message waits for others, its own user holds nothing in advance: see `returnLeases`.
    const isScarce = room < EXACT_BELOW || refused.size > 0;
    const count = isScarce ? 0 : Math.min(extra, Math.floor(room / LEASED_PART));
    const surplus = last === undefined || count === 0 ? null : times(last, count);
    this.#holdGranted(user, surplus === null ? granted : [...granted, surplus], today);
    if (surplus !== null) this.#ahead.add(user);
    const refusals = needs.map((need) => refused.get(need) ?? null);
    return { kind: 'leased', limits, day: today, standing: status, refusals, surplus, isExact };
  }

  #holdGranted(user: string, leased: readonly Allowance[], day: string): void {
    if (leased.length === 0) return;
    const before = this.#heldBy(user);
    for (const [currency, own] of Map.groupBy(leased, (one) => one.currency)) {
      const old = before.find((row) => isSameRow(row, { day, currency }));
      const requests = sumOf(own.map((one) => one.requests));
      this.#hold(user, {
        day,
        currency,
        tokens: (old?.tokens ?? 0) + sumOf(own.map(({ tokens }) => tokens)),
        cost: (old?.cost ?? 0) + sumOf(own.map(({ cost }) => cost)),
        running: (old?.running ?? 0) + requests,
        requests: (old?.requests ?? 0) + requests,
        rate_tokens: (old?.rate_tokens ?? 0) + rateTokensOf(own),
      });
    }
  }
}

/** What `tpm` counts: a further attempt is part of a request that already runs. */
function rateTokensOf(leased: readonly Allowance[]): number {
  return sumOf(leased.map(({ expectedTokens }) => expectedTokens));
}

/** All that was leased since the last message, as if it were used now. */
function leasedBy(rows: readonly HeldRow[], now: number): SecondSum {
  const requests = sumOf(rows.map((row) => row.requests));
  return { second: secondOf(now), requests, tokens: sumOf(rows.map((row) => row.rate_tokens)) };
}

/** For how many more such requests every limit has room. */
function roomFor(status: LimitStatus, need: UpperBound): number {
  const { limits, requests, tokens, running } = status;
  const rooms: number[] = [];
  const add = (left: number, each: number) => rooms.push(each === 0 ? Number.POSITIVE_INFINITY : left / each);
  for (const one of budgetUses(status)) {
    const each = one.budget.unit === TOKENS ? need.tokens : need.cost;
    if (isEnforced(one.budget)) add(remainingOf(one), each);
  }
  if (limits.rpm !== null && requests !== null) add(limits.rpm - requests.used, 1);
  if (limits.tpm !== null && tokens !== null) add(limits.tpm - tokens.used, need.expectedTokens);
  if (limits.maxConcurrent !== null && running !== null) add(limits.maxConcurrent - running, 1);
  return Math.min(...rooms);
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
