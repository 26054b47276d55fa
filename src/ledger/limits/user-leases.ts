/** The part of a key's allowance that the objects of its users hold, as the key's ledger object counts it. */
import {
  type Budget,
  dayOf,
  type LimitStatus,
  type Limits,
  NO_LIMITS,
  NO_USER,
  OTHER_USERS,
  TOKENS,
} from '../../auth/key-limits.ts';
import type { JsonObject } from '../../shared/json.ts';
import {
  addToWindow,
  correctWindow,
  type Held,
  readLimitStatus,
  type Sql,
  secondOf,
  storedLimits,
  sumOfPeriod,
  UnreadableRow,
} from './limit-tables.ts';
import {
  addReported,
  type LimitRefusal,
  type ReportedCharge,
  refuse,
  type UpperBound,
  withReservation,
} from './reservations.ts';

/**
 * A message from the object of a user to the object of its key. The object of the user sends its next message after the answer to this
 * one, or repeats this one with the same `seq` and `charges`. So the key counts each charge once, even if messages or answers are lost.
 */
export interface LeaseMessage {
  readonly user: string;
  readonly seq: number;
  /** What was charged since the last message. */
  readonly charges: readonly ReportedCharge[];
  /** The running requests. They replace everything that the user's object held before. */
  readonly running: readonly RunningSum[];
  /** The used part of the last surplus. Null: unknown, so all of it counts. */
  readonly used: Rate | null;
  readonly corrections: readonly WindowCorrection[];
  readonly needs: readonly UpperBound[];
  /** For how many further requests, each like the last need, allowance is leased in advance. */
  readonly extra: number;
  /** The user's object deletes itself after this message. */
  readonly isLast: boolean;
  /** The limits that KV lists for the key, for an object of a key that never had any. */
  readonly limits?: JsonObject | null;
}

/** Running requests of one day and currency. */
export interface RunningSum {
  readonly day: string;
  readonly currency: string;
  readonly tokens: number;
  readonly cost: number;
  readonly running: number;
}

/** What `rpm` and `tpm` count. */
export interface Rate {
  readonly requests: number;
  readonly tokens: number;
}

/** The difference between the actual tokens of a request and the expected ones, which the minute counted. */
interface WindowCorrection {
  readonly second: number;
  readonly moreTokens: number;
}

/** Allowance for requests that have not arrived yet. */
export interface Surplus {
  readonly requests: number;
  readonly tokens: number;
  readonly expectedTokens: number;
  readonly currency: string;
  readonly cost: number;
}

/** The reason why a need is refused, or the second in which the key's minute counts it. */
type Outcome = LimitRefusal | number;

export type LeaseAnswer =
  | {
      readonly kind: 'leased';
      readonly limits: Limits;
      /** Of the key, with this lease. */
      readonly standing: LimitStatus;
      readonly outcomes: readonly Outcome[];
      readonly surplus: Surplus | null;
      /** So little is left that nothing is leased in advance, and each settlement is reported at once. */
      readonly isExact: boolean;
      /** The second in which the key's minute counts the used surplus. */
      readonly second: number;
    }
  /** The message was applied before. `seq`: of the last message that was applied. */
  | { readonly kind: 'repeated'; readonly seq: number }
  /** The user was removed: its object deletes its data. */
  | { readonly kind: 'unknown' }
  /** `max_users` other users had requests on this day: this one uses the shared allowance. */
  | { readonly kind: 'shared' }
  /** The key is revoked. */
  | { readonly kind: 'revoked' };

export type OpenAnswer =
  | { readonly kind: 'opened'; readonly limits: Limits; readonly seq: number }
  | Extract<LeaseAnswer, { kind: 'shared' | 'revoked' }>;

/** If the limits have room for fewer requests, nothing is leased in advance. */
const EXACT_BELOW = 100;
/** One user leases at most 1/100 of the room in advance. */
const LEASED_PART = 100;

/**
 * - `key_users`: the users that have an object, the last day on which they counted, and their last message.
 * - `held`: what their objects hold. `tokens`, `cost` and `running` are of running requests and of the surplus; `requests` and
 *   `rate_tokens` of the surplus alone, because the minute counts running requests in their second.
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
  /** The number of users of a day, which is read from storage once. */
  #counted: { readonly day: string; readonly users: number } | null = null;

  constructor(ports: UserLeasesPorts) {
    this.#ports = ports;
    this.#sql = ports.sql;
    this.#isUsed = hasTable(ports.sql, 'held');
  }

  /** What all users hold; undefined: the key never had users with limits. */
  get held(): Held | undefined {
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
   * @throws UnreadableRow
   */
  open(user: string, listed: JsonObject | null = null): OpenAnswer {
    const { transaction, now, isRevoked } = this.#ports;
    return isRevoked() ? { kind: 'revoked' } : transaction(() => this.#register(user, listed, now()));
  }

  #register(user: string, listed: JsonObject | null, now: number): OpenAnswer {
    const limits = storedLimits(this.#sql, listed);
    if (!this.#isUsed) for (const table of TABLES) this.#sql.exec(table);
    this.#isUsed = true;
    const known = this.#find(user);
    const day = dayOf(now);
    if (!this.#countUser(user, known?.day, day, limits)) return { kind: 'shared' };
    if (known === undefined) this.#sql.exec('INSERT INTO key_users VALUES (?, ?, 0)', user, day);
    return { kind: 'opened', limits, seq: known?.seq ?? 0 };
  }

  /** Applies a message, and grants what it needs. Before a need is refused, other users return what they hold in advance. */
  async lease(message: LeaseMessage): Promise<LeaseAnswer> {
    const { transaction, now, isRevoked } = this.#ports;
    const { user, needs } = message;
    if (isRevoked()) {
      const answer = transaction(() => this.#exchange({ ...message, needs: [] }, now()));
      return answer.kind === 'leased' && needs.length > 0 ? { kind: 'revoked' } : answer;
    }
    let answer = transaction(() => this.#exchange(message, now()));
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (answer.kind !== 'leased') return answer;
      const { outcomes }: { outcomes: readonly Outcome[] } = answer;
      const refused = needs.filter((_, i) => typeof outcomes[i] === 'object');
      if (refused.length === 0 || !(await this.returnLeases(user))) return answer;
      const again = transaction(() => this.#exchangeAgain({ ...message, needs: refused }, now()));
      if (again.kind !== 'leased') return again;
      const later = [...again.outcomes];
      const all = outcomes.map((outcome) =>
        typeof outcome === 'number' ? outcome : (later.shift() ?? outcome),
      );
      answer = { ...answer, standing: again.standing, outcomes: all };
    }
    return answer;
  }

  /**
   * Users return what they hold in advance. Two objects never wait for each other: this waits only for users that held something
   * when the message of `except` was applied, and applying a message returns all that its user held in advance.
   * @returns false if no user holds anything
   */
  async returnLeases(except: string | null = null): Promise<boolean> {
    const users = this.#holders(except);
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

  #holders(except: string | null): readonly string[] {
    if (!this.#isUsed) return [];
    const query = 'SELECT DISTINCT user FROM held WHERE requests > 0 AND user IS NOT ? LIMIT ?';
    return this.#sql
      .exec<{ user: string }>(query, except, MAX_RETURNING)
      .toArray()
      .map(({ user }) => user);
  }

  #exchange(message: LeaseMessage, now: number): LeaseAnswer {
    const { user, seq, needs } = message;
    // Before anything is applied.
    const limits = storedLimits(this.#sql, message.limits);
    const known = this.#isUsed ? this.#find(user) : undefined;
    if (known === undefined) return { kind: 'unknown' };
    if (seq <= known.seq) return { kind: 'repeated', seq: known.seq };
    this.#apply(message, now);
    if (message.isLast) this.#sql.exec('DELETE FROM key_users WHERE user = ?', user);
    const day = dayOf(now);
    const isOwn = message.isLast || this.#countUser(user, known.day, day, limits);
    const update = 'UPDATE key_users SET seq = ?, day = ? WHERE user = ?';
    this.#sql.exec(update, seq, isOwn ? day : known.day, user);
    return isOwn || needs.length === 0 ? this.#grant(message, now) : { kind: 'shared' };
  }

  #exchangeAgain(message: LeaseMessage, now: number): LeaseAnswer {
    const seq = this.#find(message.user)?.seq;
    // A later message has replaced what the object holds: a grant for this one would never be returned.
    if (seq !== message.seq) return { kind: 'repeated', seq: seq ?? 0 };
    return this.#grant({ ...message, extra: 0 }, now);
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

  /** Removes a user whose object is deleted. */
  remove(user: string): void {
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

  #apply({ user, charges, running, used, corrections }: LeaseMessage, now: number): void {
    const before = this.#heldBy(user);
    const { requests, tokens } = used ?? {
      requests: sumOf(before.map((row) => row.requests)),
      tokens: sumOf(before.map((row) => row.rate_tokens)),
    };
    const { rpm, tpm } = storedLimits(this.#sql);
    const hasRate = rpm !== null || tpm !== null;
    if (hasRate && (requests > 0 || tokens > 0)) addToWindow(this.#sql, secondOf(now), tokens, requests);
    for (const { second, moreTokens } of corrections) correctWindow(this.#sql, second, moreTokens);
    for (const charge of charges) addReported(this.#sql, charge, now);
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

  #grant({ user, needs, extra }: LeaseMessage, now: number): LeaseAnswer {
    const held = this.held;
    let status = readLimitStatus(this.#sql, now, held);
    const { limits } = status;
    if (limits === NO_LIMITS && needs.length > 0) throw new UnreadableRow('the object has no limits');
    const second = secondOf(now);
    const granted: UpperBound[] = [];
    const outcomes = needs.map((need) => {
      const refusal = refuse(this.#sql, status, need, now, held);
      if (refusal !== null) return refusal;
      granted.push(need);
      status = withReservation(status, need, now);
      return second;
    });
    const last = granted.findLast(({ requests }) => requests === 1);
    const room = last === undefined ? 0 : roomFor(status, last);
    const isExact = needs.length > 0 && room < EXACT_BELOW;
    // While a message waits for others, its own user holds nothing in advance: see `returnLeases`.
    const isScarce = room < EXACT_BELOW || granted.length < needs.length;
    const count = isScarce ? 0 : Math.min(extra, Math.floor(room / LEASED_PART));
    const surplus = last === undefined || count === 0 ? null : multiply(last, count);
    this.#holdGranted(user, granted, surplus, dayOf(now));
    const started = granted.filter(({ requests }) => requests === 1);
    if (started.length > 0 && (status.requests !== null || status.tokens !== null)) {
      const tokens = sumOf(started.map(({ expectedTokens }) => expectedTokens));
      addToWindow(this.#sql, second, tokens, started.length);
    }
    return { kind: 'leased', limits, standing: status, outcomes, surplus, isExact, second };
  }

  #holdGranted(user: string, granted: readonly UpperBound[], surplus: Surplus | null, day: string): void {
    const before = this.#heldBy(user);
    for (const currency of new Set(granted.map((need) => need.currency))) {
      const own = granted.filter((need) => need.currency === currency);
      const ahead = surplus?.currency === currency ? surplus : null;
      const old = before.find((row) => isSameRow(row, { day, currency }));
      this.#hold(user, {
        day,
        currency,
        tokens: (old?.tokens ?? 0) + sumOf(own.map(({ tokens }) => tokens)) + (ahead?.tokens ?? 0),
        cost: (old?.cost ?? 0) + sumOf(own.map(({ cost }) => cost)) + (ahead?.cost ?? 0),
        running: (old?.running ?? 0) + sumOf(own.map(({ requests }) => requests)) + (ahead?.requests ?? 0),
        requests: (old?.requests ?? 0) + (ahead?.requests ?? 0),
        rate_tokens: (old?.rate_tokens ?? 0) + (ahead?.expectedTokens ?? 0),
      });
    }
  }
}

/** For how many more such requests every limit has room. */
function roomFor({ limits, budget, requests, tokens, running }: LimitStatus, need: UpperBound): number {
  const rooms: number[] = [];
  const add = (left: number, each: number) => rooms.push(each === 0 ? Number.POSITIVE_INFINITY : left / each);
  if (limits.budget?.mode === 'hard' && budget !== null) {
    const { amount, unit } = limits.budget;
    add(amount - budget.spent - budget.reserved, unit === TOKENS ? need.tokens : need.cost);
  }
  if (limits.rpm !== null && requests !== null) add(limits.rpm - requests.used, 1);
  if (limits.tpm !== null && tokens !== null) add(limits.tpm - tokens.used, need.expectedTokens);
  if (limits.maxConcurrent !== null && running !== null) add(limits.maxConcurrent - running, 1);
  return Math.min(...rooms);
}

function multiply({ tokens, expectedTokens, currency, cost }: UpperBound, count: number): Surplus {
  return {
    requests: count,
    tokens: tokens * count,
    expectedTokens: expectedTokens * count,
    currency,
    cost: cost * count,
  };
}

type RowKey = Pick<HeldRow, 'day' | 'currency'>;

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

export function hasTable(sql: Sql, name: string): boolean {
  const query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?";
  return sql.exec(query, name).toArray().length > 0;
}
