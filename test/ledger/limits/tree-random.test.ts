/**
 * Random runs over trees of three levels: a team, its keys, their users. Calls are lost, objects lose their memory, days end,
 * keys change their team, and no limit of any level is ever passed.
 *
 * RUNS=100000 runs longer. SEED=7 RUNS=1 repeats a run.
 */
import { expect, test } from 'vitest';
import { currentTeam, teamOfRequest } from '../../../src/ledger/limits/team-shares.ts';
import { seeded } from '../../random.ts';
import { repeatable, runsOf, SEED } from '../../random-run.ts';
import { HolderNetwork } from './holder-network.ts';
import { MINUTE } from './memory-sql.ts';
import { RandomHolders, tick } from './random-holders.ts';

const RUNS = runsOf(4, 100);
const STEPS = 25;
/** Requests of `t/plain` and some of `t/l` have no user with limits of its own. */
const KEYS = ['t/k', 't/l', 't/plain'];
/** Keys change between them, and may have none. */
const TEAMS = ['t', 'z'];
const CALLERS = ['t/k/ada', 't/k/bob', 't/k/', 't/l/ada', 't/l/cy', 't/plain', 't/l'];

interface Sent {
  readonly caller: string;
  readonly bound: number;
  isAdmitted: boolean;
  /** That has admitted it; `''`: none. */
  team: string;
  /** Undefined: it runs. */
  charged?: number;
  settledAs?: number;
}

type Per = 'day' | 'total';

class Run extends RandomHolders {
  readonly network = new HolderNetwork();
  readonly limits = new Map<string, { readonly tokens: number; readonly per: Per }>();
  readonly sent = new Map<string, Sent>();

  constructor(random: () => number) {
    super(random);
    const { network } = this;
    const size = this.pick(5, 30, 200, 2000);
    const per = this.pick<Per>('day', 'total');
    const rpm = this.pick(20, 150, 2000);
    const limit = (path: string, share: number) => {
      const tokens = 100 * Math.ceil(size / share) + this.upTo(100);
      this.limits.set(path, { tokens, per });
      return { budget: { tokens, per } };
    };
    for (const team of TEAMS) network.add(team, 'team', { ...limit(team, 1), rpm });
    for (const key of KEYS) {
      const perUser = key === 't/plain' ? {} : { per_user: { ...limit(`${key}/`, this.pick(1, 4)), rpm } };
      network.add(key, 'key', { ...limit(key, this.pick(1, 2, 5)), ...perUser });
    }
    for (const caller of CALLERS) if (!KEYS.includes(caller)) network.add(caller, 'user');
    if (per === 'day') this.passMidnight(network, [...KEYS, ...CALLERS]);
    this.disturb(network);
  }

  /** As the gateway does: a call that fails is repeated once, then released. */
  async reserve(caller: string, id: string): Promise<void> {
    const outputTokens = this.pick(10, 90, 90, 300);
    const sent: Sent = { caller, bound: 10 + outputTokens, isAdmitted: false, team: '' };
    this.sent.set(id, sent);
    for (const isLast of [false, true]) {
      try {
        sent.isAdmitted = (await this.network.reserveAt(caller, id, { outputTokens })).kind === 'reserved';
        const { sql } = this.network.at(caller);
        sent.team = teamOfRequest(sql, id) ?? currentTeam(sql);
        return;
      } catch {
        if (isLast) this.network.settleAt(caller, id, 0);
      }
    }
  }

  async step(): Promise<void> {
    const { network } = this;
    const kind = this.upTo(20);
    if (kind < 9) {
      const caller = this.pick(...(CALLERS as [string, ...string[]]));
      for (let count = this.pick(1, 1, 3, 20); count > 0; count--)
        this.open.push(this.reserve(caller, `r${this.sent.size}`));
    } else if (kind < 14) {
      const admitted = [...this.sent].filter(([, { isAdmitted }]) => isAdmitted);
      for (const [id, sent] of admitted.filter(() => this.upTo(3) === 0)) this.settle(id, sent);
    } else if (kind < 16) {
      network.restartAt(this.pick('t', 'z', ...KEYS, ...CALLERS));
    } else if (kind < 17) {
      this.isFaulty = this.upTo(2) === 0;
      this.open.push(this.move(this.pick(...(KEYS as [string, ...string[]])), this.pick('t', 'z', null)));
    } else if (kind < 18) {
      await this.quiet();
      await this.wait(this.pick(500, 4000, 11_000, 70_000, 12 * MINUTE));
    } else {
      await tick();
    }
    if (this.upTo(4) === 0) await this.check();
  }

  /** A key changes its team. What runs stays with the team of its admission. */
  async move(key: string, team: string | null): Promise<void> {
    await this.network.patch(key, { team }).catch(() => {});
  }

  settle(id: string, sent: Sent): void {
    sent.settledAs ??= this.upTo(sent.bound + 1);
    sent.charged = sent.settledAs;
    this.network.settleAt(sent.caller, id, sent.settledAs);
  }

  async wait(ms: number): Promise<void> {
    const before = new Map([...this.sent].filter(([, { charged }]) => charged === undefined));
    await this.network.wait(ms);
    for (const [id, sent] of before) if (this.#reservation(sent.caller, id) === 0) sent.charged = sent.bound;
  }

  #reservation(caller: string, id: string): number {
    const { limits, sql } = this.network.at(caller);
    return limits.isOpen ? sql.exec('SELECT 1 FROM reservations WHERE id = ?', id).toArray().length : 0;
  }

  /** What a holder counts, by the periods of its budget. */
  counted(path: string, per: Per): Map<string, number> {
    const { sql } = this.network.at(path);
    const hasHeld = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'held'").toArray().length > 0;
    const hasTeams = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'team_held'").toArray().length > 0;
    const held =
      (hasHeld ? 'UNION ALL SELECT day, tokens FROM held ' : '') +
      (hasTeams ? 'UNION ALL SELECT day, tokens FROM team_held' : '');
    const query = `SELECT day, tokens FROM spent UNION ALL SELECT day, tokens FROM reservations ${held}`;
    const sums = new Map<string, number>();
    for (const { day, tokens } of sql.exec<{ day: string; tokens: number }>(query).toArray()) {
      const period = per === 'day' ? day : per;
      sums.set(period, (sums.get(period) ?? 0) + tokens);
    }
    return sums;
  }

  /** The requests that a holder counts. */
  below(path: string): readonly Sent[] {
    return [...this.sent.values()].filter(
      ({ caller, isAdmitted, team }) =>
        isAdmitted && (TEAMS.includes(path) ? team === path : `${caller}/`.startsWith(`${path}/`)),
    );
  }

  /** I1: each holder counts what its children count, and no more than its limit. */
  async check(): Promise<void> {
    await this.quiet();
    for (const [path, member] of this.network.members) {
      const of = path.slice(path.lastIndexOf('/') + 1);
      const limit = this.limits.get(path) ?? this.limits.get(path.slice(0, path.length - of.length));
      if (limit === undefined || !member.limits.isOpen) continue;
      const { tokens, per } = limit;
      const counted = this.counted(path, per);
      for (const sum of counted.values()) expect(sum, path).toBeLessThanOrEqual(tokens);
      const below = this.below(path);
      const used = below.reduce((sum, { charged, bound }) => sum + (charged ?? bound), 0);
      const all = [...counted.values()].reduce((sum, one) => sum + one, 0);
      expect(all, path).toBeGreaterThanOrEqual(used);
    }
  }

  /** I2 and I3: after all are settled, the sums of all levels are what was charged, and nothing is reserved. */
  async finish(): Promise<void> {
    await this.check();
    this.isFaulty = false;
    // Reservations that are not known to the client expire.
    await this.wait(12 * MINUTE);
    for (const [id, sent] of this.sent) this.settle(id, sent);
    await this.quiet();
    await this.wait(3 * MINUTE);
    await this.quiet();
    for (const [path, { limits, sql }] of this.network.members) {
      if (!limits.isOpen) continue;
      const below = this.below(path);
      const charged = below.reduce((sum, { settledAs = 0 }) => sum + settledAs, 0);
      const [spent] = sql
        .exec<{ sum: number }>('SELECT coalesce(sum(tokens), 0) AS sum FROM spent')
        .toArray();
      expect(spent?.sum, path).toBe(charged);
      const { budget, running } = limits.standing(limits.limits());
      expect([budget?.reserved ?? 0, budget?.estimated ?? 0, running ?? 0], path).toEqual([0, 0, 0]);
    }
  }
}

test(`Y6 no limit of a team, a key or a user is passed, and all sums agree at the end (SEED=${SEED}, ${RUNS} runs)`, async () => {
  for (let seed = SEED; seed < SEED + RUNS; seed++) {
    const run = new Run(seeded(seed));
    await repeatable(seed, async () => {
      for (let step = 0; step < STEPS; step++) await run.step();
      await run.finish();
    });
  }
}, 3_600_000);
