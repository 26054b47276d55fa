/**
 * Random runs of users' objects and their key's: calls are lost, objects lose their memory, and no limit is ever passed.
 *
 * RUNS=100 runs longer. SEED=7 RUNS=1 repeats a run.
 */
import { expect, test } from 'vitest';
import { seeded } from '../../random.ts';
import { repeatable, runsOf, SEED } from '../../random-run.ts';
import { UserNetwork } from './holder-network.ts';
import { MINUTE } from './memory-sql.ts';
import { RandomHolders, tick } from './random-holders.ts';

const RUNS = runsOf(2, 16);
const STEPS = 150;
const USERS = ['ada', 'bob', 'cy', 'dee', ''];

interface Sent {
  readonly user: string;
  readonly bound: number;
  /** Null: not admitted, or not known to be. */
  admittedAt: number | null;
  /** Undefined: it runs. */
  charged?: number;
  settledAs?: number;
}

class Run extends RandomHolders {
  readonly network: UserNetwork;
  readonly limit: number;
  readonly rpm: number;
  readonly perUser: number;
  readonly per: 'day' | 'total';
  readonly sent = new Map<string, Sent>();

  constructor(random: () => number) {
    super(random);
    const size = this.pick(5, 30, 200, 2000);
    this.limit = 100 * size + this.upTo(100);
    this.rpm = this.pick(20, 150, 2000);
    this.perUser = 100 * Math.ceil(size / this.pick(1, 3, 8));
    this.per = this.pick('day', 'total');
    this.network = new UserNetwork({
      budget: { tokens: this.limit, per: this.per },
      rpm: this.rpm,
      per_user: { budget: { tokens: this.perUser, per: this.per }, rpm: Math.ceil(this.rpm / 2) },
    });
    if (this.per === 'day') this.passMidnight(this.network, USERS);
    this.disturb(this.network);
  }

  /** As the gateway does: a call that fails is repeated once, then released. */
  async reserve(user: string, id: string): Promise<void> {
    const outputTokens = this.pick(10, 90, 90, 300);
    const sent: Sent = { user, bound: 10 + outputTokens, admittedAt: null };
    this.sent.set(id, sent);
    for (const isLast of [false, true]) {
      try {
        const { kind } = await this.network.reserve(user, id, { outputTokens });
        if (kind === 'reserved') sent.admittedAt = this.network.now;
        return;
      } catch {
        if (isLast) this.network.settle(user, id, 0);
      }
    }
  }

  async step(): Promise<void> {
    const { network } = this;
    const user = this.pick(...(USERS as [string, ...string[]]));
    const kind = this.upTo(20);
    if (kind < 9) {
      const count = this.pick(1, 1, 3, 20);
      for (let i = 0; i < count; i++) this.open.push(this.reserve(user, `r${this.sent.size}`));
    } else if (kind < 14) {
      const admitted = [...this.sent].filter(([, { admittedAt }]) => admittedAt !== null);
      for (const [id, sent] of admitted.filter(() => this.upTo(3) === 0)) {
        sent.settledAs ??= this.upTo(sent.bound + 1);
        sent.charged = sent.settledAs;
        network.settle(sent.user, id, sent.settledAs);
      }
    } else if (kind < 15) {
      network.restart(user);
    } else if (kind < 16) {
      network.restartKey();
    } else if (kind < 17) {
      this.isFaulty = this.upTo(2) === 0;
    } else if (kind < 18) {
      await this.quiet();
      await this.wait(this.pick(500, 4000, 11_000, 70_000, 12 * MINUTE));
    } else {
      await tick();
    }
    if (this.upTo(4) === 0) await this.check();
  }

  async wait(ms: number): Promise<void> {
    const before = this.network.now;
    await this.network.wait(ms);
    for (const sent of this.sent.values()) {
      const { admittedAt, charged, bound } = sent;
      // It may also have expired on an earlier alarm of this wait.
      const isExpired = admittedAt !== null && admittedAt + 11 * MINUTE <= before + ms;
      if (isExpired && charged === undefined) sent.charged = bound;
    }
  }

  /** What all requests of a user use, or may still use, by the days in which its object counts them. */
  usedBy(user: string): Map<string, number> {
    const { sql, limits } = this.network.member(user);
    // The key registers it before it creates its tables.
    if (!limits.isOpen) return new Map();
    const query = 'SELECT day, tokens FROM reservations UNION ALL SELECT day, tokens FROM spent';
    const rows = sql.exec<{ day: string; tokens: number }>(query).toArray();
    return sumByDay(rows, this.per);
  }

  /** What the object of the key counts, by day. */
  get counted(): Map<string, number> {
    const query = 'SELECT day, tokens FROM held UNION ALL SELECT day, tokens FROM spent';
    return sumByDay(this.network.key.exec<{ day: string; tokens: number }>(query).toArray(), this.per);
  }

  async check(): Promise<void> {
    await this.quiet();
    if (this.network.users.length === 0) return;
    const { counted } = this;
    const byUser = USERS.filter((user) => this.network.users.includes(user)).map((user) => this.usedBy(user));
    for (const used of byUser) for (const sum of used.values()) expect(sum).toBeLessThanOrEqual(this.perUser);
    for (const [day, sum] of counted) {
      const used = byUser.reduce((all, ofUser) => all + (ofUser.get(day) ?? 0), 0);
      expect(sum).toBeGreaterThanOrEqual(used);
      expect(sum).toBeLessThanOrEqual(this.limit);
    }
    const requests = [...this.sent.values()].filter(({ admittedAt }) => admittedAt !== null);
    const admitted = requests.reduce((sum, { charged, bound }) => sum + (charged ?? bound), 0);
    expect([...counted.values()].reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(admitted);
  }

  /** After all are settled, the sums of the key and of its users agree with what was charged. */
  async finish(): Promise<void> {
    await this.check();
    this.isFaulty = false;
    // Reservations that are not known to the client expire.
    await this.wait(12 * MINUTE);
    for (const [id, sent] of this.sent) {
      sent.settledAs ??= this.upTo(sent.bound + 1);
      this.network.settle(sent.user, id, sent.settledAs);
    }
    await this.quiet();
    await this.wait(3 * MINUTE);
    // Sums of all days.
    this.network.patch({
      budget: { tokens: 1e9 },
      per_user: { budget: { tokens: 1e9 }, rpm: Math.ceil(this.rpm / 2) },
    });
    const { budget, limits } = this.network.standing;
    const own = USERS.map((user) => this.network.member(user).limits.status(limits)?.budget);
    const admitted = [...this.sent.values()].filter(({ admittedAt }) => admittedAt !== null);
    const charged = admitted.reduce((sum, { settledAs = 0 }) => sum + settledAs, 0);
    expect(budget).toMatchObject({ spent: charged, reserved: 0, estimated: 0 });
    expect(own.reduce((sum, one) => sum + (one?.spent ?? 0), 0)).toBe(charged);
    for (const one of own) expect(one?.reserved ?? 0).toBe(0);
    checkMinutes(admitted, this.rpm);
    for (const user of USERS) {
      checkMinutes(
        admitted.filter((sent) => sent.user === user),
        Math.ceil(this.rpm / 2),
      );
    }
  }
}

/** All days together for a budget without a period. */
function sumByDay(
  rows: readonly { readonly day: string; readonly tokens: number }[],
  per: 'day' | 'total',
): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { day, tokens } of rows) {
    const period = per === 'day' ? day : per;
    sums.set(period, (sums.get(period) ?? 0) + tokens);
  }
  return sums;
}

function checkMinutes(admitted: readonly Sent[], rpm: number): void {
  const times = admitted.map(({ admittedAt }) => admittedAt ?? 0).sort((a, b) => a - b);
  for (const [i, at] of times.entries()) {
    const next = times[i + rpm];
    if (next !== undefined) expect(next - at).toBeGreaterThanOrEqual(MINUTE);
  }
}

test(`Y6 no limit of a user or its key is passed, and all sums agree at the end (SEED=${SEED}, ${RUNS} runs)`, async () => {
  for (let seed = SEED; seed < SEED + RUNS; seed++) {
    const run = new Run(seeded(seed));
    await repeatable(seed, async () => {
      for (let step = 0; step < STEPS; step++) await run.step();
      await run.finish();
    });
  }
}, 3_600_000);
