/** The objects of a key and of its users in memory, with a clock, alarms, lost calls and objects that lose their memory. */

import { readLimitStatus } from '../../../src/ledger/limits/limit-tables.ts';
import type { ReserveRequest } from '../../../src/ledger/limits/reservations.ts';
import { settleUnreserved } from '../../../src/ledger/limits/reservations.ts';
import { UserLeases } from '../../../src/ledger/limits/user-leases.ts';
import { UserLimits, type UserReservation } from '../../../src/ledger/limits/user-limits.ts';
import { failure, ok } from '../../../src/shared/result.ts';
import type { JsonObject } from '../../../tools/simulator/json.ts';
import { MemorySql, MINUTE, NOW } from './memory-sql.ts';

/** `before`: the call is lost. `after`: it runs, and its answer is lost. */
type Fault = 'before' | 'after' | null;

interface Member {
  readonly sql: MemorySql;
  limits: UserLimits;
  /** Rejects when the object loses its memory: calls to it fail. */
  lost: PromiseWithResolvers<never>;
  alarmAt: number | null;
}

const NO_WAIT = () => Promise.resolve();

export class UserNetwork {
  /** By the clock of the key's object. */
  now = NOW;
  /** How much later it is by the clocks of users' objects, in ms. */
  skewOf: (user: string) => number = () => 0;
  readonly key: MemorySql;
  readonly #users = new Map<string, Member>();
  #leases: UserLeases;
  isRevoked = false;
  /** Calls of users' objects to the key's, by method. */
  readonly calls = { open: 0, lease: 0 };
  /** Decides the fault of each call between objects. */
  fault: () => Fault = () => null;
  /** The time that each call takes, on its way and back. */
  latency: () => Promise<void> = NO_WAIT;
  readonly logged: Readonly<Record<string, unknown>>[] = [];

  /** @param limits null: the object of the key is new */
  constructor(limits: JsonObject | null) {
    this.key = new MemorySql(limits);
    this.#leases = this.#openKey();
  }

  #openKey(): UserLeases {
    return new UserLeases({
      sql: this.key,
      transaction: (act) => transaction(this.key, act),
      now: () => this.now,
      isRevoked: () => this.isRevoked,
      returnLease: async (user) => {
        const { limits, lost } = this.member(user);
        const returned = this.#call(() => limits.returnLease());
        await Promise.race([returned, lost.promise]).catch(() => {});
      },
    });
  }

  member(user: string): Member {
    const known = this.#users.get(user);
    if (known !== undefined) return known;
    const sql = new MemorySql();
    const lost = lostSignal();
    const member: Member = { sql, lost, limits: this.#openUser(user, sql, lost), alarmAt: null };
    this.#users.set(user, member);
    return member;
  }

  #openUser(user: string, sql: MemorySql, lost: Member['lost']): UserLimits {
    // An object that has lost its memory runs nothing that waited.
    const isLost = () => this.member(user).lost !== lost;
    const call = async <Value>(act: () => Promise<Value>): Promise<Value> => {
      if (isLost()) return new Promise(() => {});
      const outcome = await Promise.race([this.#call(act).then(ok, failure), lost.promise.catch(() => null)]);
      if (outcome === null || isLost()) return new Promise(() => {});
      if (outcome.kind === 'error') throw outcome.error;
      return outcome.value;
    };
    return new UserLimits({
      user,
      sql,
      transaction: (act) => {
        if (isLost()) throw new Error('The object has lost its memory');
        return transaction(sql, act);
      },
      now: () => this.now + this.skewOf(user),
      key: () => ({
        openUser: (name, listed) => {
          this.calls.open++;
          return call(async () => this.#leases.open(name, listed));
        },
        lease: (message) => {
          this.calls.lease++;
          return call(() => this.#leases.lease(structuredClone(message)));
        },
        settleUnreserved: async (id, charge, day) => settleUnreserved(this.key, id, charge, day, this.now),
      }),
      wakeBy: (time) => {
        const member = this.member(user);
        const at = time - this.skewOf(user);
        member.alarmAt = Math.min(at, member.alarmAt ?? at);
      },
      deleteAll: async () => {
        this.member(user).alarmAt = null;
        sql.clear();
      },
      log: (entry) => this.logged.push(entry),
    });
  }

  async #call<Value>(act: () => Promise<Value>): Promise<Value> {
    const fault = this.fault();
    await this.latency();
    if (fault === 'before') throw new Error('The call is lost');
    const value = await act();
    await this.latency();
    if (fault === 'after') throw new Error('The answer is lost');
    return structuredClone(value);
  }

  /** Reserves 10 tokens of prompt and 90 of output for a user. */
  reserve(user: string, id: string, fields: Partial<ReserveRequest> = {}): Promise<UserReservation> {
    const { limits, lost } = this.member(user);
    const reserved = limits.reserve({
      id,
      promptTokens: 10,
      estimatedPromptTokens: 4,
      outputTokens: 90,
      choices: 1,
      price: { currency: 'USD', prompt: 1_000_000, output: 2_000_000 },
      expiresAfterMs: 11 * MINUTE,
      ...fields,
    });
    return Promise.race([reserved, lost.promise]);
  }

  settle(user: string, id: string, tokens: number): void {
    this.member(user).limits.settle(id, { tokens, cost: null });
  }

  /** The object of a user loses its memory, as it does when it is moved or restarted. */
  restart(user: string): void {
    const member = this.member(user);
    member.lost.reject(new Error('The object has lost its memory'));
    member.lost = lostSignal();
    member.limits = this.#openUser(user, member.sql, member.lost);
  }

  restartKey(): void {
    this.#leases = this.#openKey();
  }

  async patch(limits: JsonObject): Promise<void> {
    this.key.limit(limits);
    await this.#leases.returnLeases();
  }

  /** Lets time pass, and runs the alarms that become due. */
  async wait(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      const due = [...this.#users].filter(([, { alarmAt }]) => alarmAt !== null && alarmAt <= end);
      const [first] = due.sort(([, a], [, b]) => (a.alarmAt ?? 0) - (b.alarmAt ?? 0));
      if (first === undefined) break;
      const [user, member] = first;
      this.now = Math.max(this.now, member.alarmAt ?? 0);
      member.alarmAt = null;
      const next = await member.limits.alarm();
      const again = next === null ? null : next - this.skewOf(user);
      if (again !== null) member.alarmAt = Math.min(again, member.alarmAt ?? again);
      // An alarm that is due at once again runs a little later.
      if (member.alarmAt !== null) member.alarmAt = Math.max(member.alarmAt, this.now + 1);
    }
    this.now = end;
  }

  get standing() {
    return readLimitStatus(this.key, this.now, this.#leases.held);
  }

  get users(): readonly string[] {
    return this.#leases.users(1000);
  }

  alarmOf(user: string): number | null {
    return this.member(user).alarmAt;
  }
}

function lostSignal(): PromiseWithResolvers<never> {
  const signal = Promise.withResolvers<never>();
  signal.promise.catch(() => {});
  return signal;
}

function transaction<Value>(sql: MemorySql, act: () => Value): Value {
  sql.exec('SAVEPOINT act');
  try {
    const value = act();
    sql.exec('RELEASE act');
    return value;
  } catch (error) {
    sql.exec('ROLLBACK TO act');
    sql.exec('RELEASE act');
    throw error;
  }
}
