/**
 * Random runs over trees of three levels: two teams, their keys and people, the keys' users and shards. Calls and
 * answers are lost, objects lose their memory, days, weeks and months end, budgets are raised and get top-ups, keys
 * change their team, are rotated and revoked, and teams are deleted. What the checks name I1 to I7 are the invariants
 * of docs/decisions/0007-allowances.md.
 *
 * RUNS=100000 runs longer. SEED=7 RUNS=1 repeats a run.
 */
import { expect, test } from 'vitest';
import { type BudgetPeriod, periodName } from '../../../src/auth/key-limits.ts';
import { HELD_TABLE, hasTable, SHARD_HELD_TABLE } from '../../../src/ledger/limits/limit-tables.ts';
import { shardName } from '../../../src/ledger/limits/spread.ts';
import { currentTeam, TEAM_HELD_TABLE, teamOfRequest } from '../../../src/ledger/limits/team-shares.ts';
import { addToBudget } from '../../../src/ledger/limits/top-ups.ts';
import { seeded } from '../../random.ts';
import { repeatable, runsOf, SEED } from '../../random-run.ts';
import { HolderNetwork } from './holder-network.ts';
import { MINUTE } from './memory-sql.ts';
import { RandomHolders, tick } from './random-holders.ts';

const RUNS = runsOf(4, 150);
const STEPS = 25;
/** Requests of `t/plain` and some of `t/l` have no user with limits of its own. */
const KEYS = ['t/k', 't/l', 't/plain'];
/** Keys change between them, and may have none. */
const TEAMS = ['t', 'z'];
const SHARDS = [shardName('EU', 0), shardName('EU', 1), shardName('NA', 0)].map((name) => `t/plain/${name}`);
const PEOPLE = ['t/access_eve', 't/access_sam', 'z/access_eve'];
const CALLERS = ['t/k/ada', 't/k/bob', 't/k/', 't/l/ada', 't/l/cy', 't/plain', 't/l', ...SHARDS, ...PEOPLE];

interface Sent {
  readonly caller: string;
  readonly bound: number;
  /** The level that has refused it. */
  refusedBy?: string | undefined;
  isAdmitted: boolean;
  /** That has admitted it; `''`: none. */
  team: string;
  /** Undefined: it runs. */
  charged?: number;
  settledAs?: number;
  /** It was charged its bound, until it was settled. */
  hasExpired?: true;
}

interface Limit {
  readonly tokens: number;
  readonly per: BudgetPeriod;
  /** Top-ups, by the name of their period. */
  readonly added: Map<string, number>;
}

class Run extends RandomHolders {
  readonly network = new HolderNetwork();
  readonly limits = new Map<string, Limit>();
  readonly revoked = new Set<string>();
  readonly sent = new Map<string, Sent>();

  constructor(random: () => number) {
    super(random);
    const { network } = this;
    const size = this.pick(5, 30, 200, 2000);
    const per = this.pick<BudgetPeriod>('day', 'week', 'month', 'total');
    const rpm = this.pick(20, 150, 2000);
    const limit = (path: string, share: number) => {
      const tokens = 100 * Math.ceil(size / share) + this.upTo(100);
      this.limits.set(path, { tokens, per, added: new Map() });
      return { budget: { tokens, per } };
    };
    for (const team of TEAMS) {
      const perUser = { per_user: { ...limit(`${team}/`, this.pick(1, 4)), rpm } };
      network.add(team, 'team', { ...limit(team, 1), ...perUser, rpm });
    }
    for (const key of KEYS) {
      const perUser = key === 't/plain' ? {} : { per_user: { ...limit(`${key}/`, this.pick(1, 4)), rpm } };
      network.add(key, 'key', { ...limit(key, this.pick(1, 2, 5)), ...perUser });
    }
    for (const caller of CALLERS)
      if (!KEYS.includes(caller)) network.add(caller, SHARDS.includes(caller) ? 'shard' : 'user');
    if (per !== 'total') this.passMidnight(network, [...KEYS, ...CALLERS]);
  }

  /** Keys join their team when they are made. */
  async start(): Promise<void> {
    for (const key of KEYS) await this.network.patch(key, { team: 't' });
    this.disturb(this.network);
  }

  /** As the gateway does: a call that fails is repeated once, then released. */
  async reserve(caller: string, id: string): Promise<void> {
    // The gateway knows no revoked key.
    if (this.revoked.has(caller)) return;
    const outputTokens = this.pick(10, 90, 90, 300);
    const sent: Sent = { caller, bound: 10 + outputTokens, isAdmitted: false, team: '' };
    this.sent.set(id, sent);
    for (const isLast of [false, true]) {
      try {
        const answer = await this.network.reserveAt(caller, id, { outputTokens });
        sent.isAdmitted = answer.kind === 'reserved';
        sent.refusedBy = answer.kind === 'refused' ? answer.by : undefined;
        const { sql } = this.network.at(caller);
        sent.team = teamOfPerson(caller) ?? teamOfRequest(sql, id) ?? currentTeam(sql);
        return;
      } catch {
        if (isLast) this.network.settleAt(caller, id, 0);
      }
    }
  }

  async step(): Promise<void> {
    const { network } = this;
    const kind = this.upTo(22);
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
    } else if (kind < 20) {
      await this.administer();
    } else if (kind < 21) {
      await this.probe();
    } else {
      await tick();
    }
    if (this.upTo(4) === 0) await this.check();
  }

  /** What admins do besides. */
  async administer(): Promise<void> {
    const { network } = this;
    const path = this.pick('t', 'z', ...KEYS);
    const { sql, limits } = network.at(path);
    const limit = this.limits.get(path);
    const amount = 100 * this.pick(1, 10, 100);
    switch (this.upTo(5)) {
      case 0: {
        const added = {
          id: `a${this.sent.size}`,
          actor: 'admin',
          note: '',
          unit: 'tokens',
          per: null,
          amount,
        };
        const result = addToBudget(sql, limits.limits(), added, network.now);
        if (limit === undefined || result.kind !== 'added' || !result.isNew) return;
        const { period } = result.topUp;
        limit.added.set(period, (limit.added.get(period) ?? 0) + amount);
        return;
      }
      case 1: {
        if (limit === undefined) return;
        const { per } = limit;
        const tokens = limit.tokens + amount;
        this.limits.set(path, { ...limit, tokens });
        this.open.push(network.patch(path, { budget: { tokens, per } }).catch(() => {}));
        return;
      }
      case 2:
        // A rotation, or any change of a key that changes no limit.
        this.open.push(network.patch(path, {}).catch(() => {}));
        return;
      case 3:
        if (!KEYS.includes(path) || this.revoked.size > 0) return;
        network.at(path).isRevoked = true;
        this.revoked.add(path);
        // As the object does when it is told.
        network.at(path).alarmAt = network.now;
        return;
      default:
        // A team with keys is not deleted.
        if (TEAMS.includes(path) && limits.children.members === 0) network.at(path).isRevoked = true;
    }
  }

  /** Nothing is lost, and all have time to report and to return what they hold in advance. */
  async rest(): Promise<void> {
    this.isFaulty = false;
    for (const ms of [70_000, 25_000]) {
      await this.quiet();
      await this.wait(ms);
    }
    await this.quiet();
  }

  /**
   * At rest a holder counts what runs and what was charged, and nothing else (I6). So a request is admitted if, and
   * only if, it has room at each level (I7).
   */
  async probe(): Promise<void> {
    await this.rest();
    const { network } = this;
    const all = [...this.limits.keys()].filter((path) => !path.endsWith('/'));
    for (const path of all) {
      const used = this.below(path).reduce((sum, { charged, bound }) => sum + (charged ?? bound), 0);
      const counted = [...this.counted(path).values()].reduce((sum, one) => sum + one, 0);
      expect(counted, `I6 ${path}`).toBe(used);
    }
    const caller = this.pick(...(CALLERS as [string, ...string[]]));
    const levels = this.levelsOf(caller);
    if (levels.some((path) => network.at(path).isRevoked)) return;
    const id = `r${this.sent.size}`;
    const rooms = new Map(levels.map((path) => [path, this.room(path)]));
    await this.reserve(caller, id);
    const { bound = 0, isAdmitted, refusedBy } = this.sent.get(id) ?? {};
    const full = levels.filter((path) => (rooms.get(path) ?? Number.POSITIVE_INFINITY) < bound);
    expect(isAdmitted, `I7 ${caller} ${bound} ${JSON.stringify([...rooms])}`).toBe(full.length === 0);
    if (!isAdmitted)
      expect(
        full.map((path) => network.at(path).level),
        'I7',
      ).toContain(refusedBy);
  }

  /** The holders that need room for a request of the caller. */
  levelsOf(caller: string): readonly string[] {
    const ofPerson = teamOfPerson(caller);
    if (ofPerson !== null) return [caller, ofPerson];
    const key = KEYS.find((one) => `${caller}/`.startsWith(`${one}/`)) ?? '';
    const team = currentTeam(this.network.at(key).sql);
    return [...new Set([caller, key, ...(team === '' ? [] : [team])])];
  }

  /** What is left of the budget of a holder, if it has one, in the current period. */
  room(path: string): number | undefined {
    const limit = this.limitOf(path);
    if (limit === undefined) return undefined;
    const period = periodName(limit.per, this.network.now);
    return limit.tokens + (limit.added.get(period) ?? 0) - (this.counted(path).get(period) ?? 0);
  }

  limitOf(path: string): Limit | undefined {
    return this.limits.get(path) ?? this.limits.get(path.slice(0, path.lastIndexOf('/') + 1));
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
    for (const [id, sent] of before)
      if (this.#reservation(sent.caller, id) === 0) {
        sent.charged = sent.bound;
        sent.hasExpired = true;
      }
  }

  #reservation(caller: string, id: string): number {
    const { limits, sql } = this.network.at(caller);
    return limits.isOpen ? sql.exec('SELECT 1 FROM reservations WHERE id = ?', id).toArray().length : 0;
  }

  /** What a holder counts, by the periods of its budget. */
  counted(path: string): Map<string, number> {
    const sums = new Map<string, number>();
    const { limits, sql } = this.network.at(path);
    if (!limits.isOpen) return sums;
    const per = this.limitOf(path)?.per ?? 'total';
    const tables = [HELD_TABLE, SHARD_HELD_TABLE, TEAM_HELD_TABLE].filter((table) => hasTable(sql, table));
    const query = ['spent', 'reservations', ...tables]
      .map((name) => `SELECT day, tokens FROM ${name}`)
      .join(' UNION ALL ');
    for (const { day, tokens } of sql.exec<{ day: string; tokens: number }>(query).toArray()) {
      const period = periodName(per, Date.parse(day));
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
      const limit = this.limitOf(path);
      if (limit === undefined || !member.limits.isOpen) continue;
      const counted = this.counted(path);
      for (const [period, sum] of counted)
        expect(sum, `I1 ${path}`).toBeLessThanOrEqual(limit.tokens + (limit.added.get(period) ?? 0));
      const below = this.below(path);
      const used = below.reduce((sum, { charged, bound }) => sum + (charged ?? bound), 0);
      const all = [...counted.values()].reduce((sum, one) => sum + one, 0);
      expect(all, `I1 ${path}`).toBeGreaterThanOrEqual(used);
    }
  }

  /** I2 and I3: after all are settled, the sums of all levels are what was charged, and nothing is reserved. */
  async finish(): Promise<void> {
    await this.check();
    await this.probe();
    // Reservations that are not known to the client expire.
    await this.wait(12 * MINUTE);
    for (const [id, sent] of this.sent) this.settle(id, sent);
    await this.quiet();
    await this.wait(3 * MINUTE);
    await this.quiet();
    for (const [path, { limits, sql, isRevoked }] of this.network.members) {
      if (!limits.isOpen) continue;
      const below = this.below(path);
      const charged = below.reduce((sum, { settledAs = 0 }) => sum + settledAs, 0);
      const [spent] = sql
        .exec<{ sum: number }>('SELECT coalesce(sum(tokens), 0) AS sum FROM spent')
        .toArray();
      const { budget, running } = limits.standing(limits.limits());
      const estimated = budget?.estimated ?? 0;
      expect([budget?.reserved ?? 0, running ?? 0], `I3 ${path}`).toEqual([0, 0]);
      if (isRevoked && TEAMS.includes(path)) {
        // A deleted team keeps what expired requests were charged when their key sent its last message.
        expect(spent?.sum, `I2 ${path}`).toBeGreaterThanOrEqual(charged);
        const asExpired = below.reduce(
          (sum, { settledAs = 0, bound, hasExpired }) => sum + (hasExpired ? bound : settledAs),
          0,
        );
        expect(spent?.sum, `I2 ${path}`).toBeLessThanOrEqual(asExpired);
      } else expect([spent?.sum, estimated], `I2 ${path}`).toEqual([charged, 0]);
    }
    await this.end();
  }

  /** Users of a revoked key and people of a deleted team end, and no team counts the key any more: nothing that was charged is lost. */
  async end(): Promise<void> {
    const { network } = this;
    const clear = async (path: string, users: readonly string[]) => {
      for (const user of users) {
        expect(await network.at(`${path}/${user}`).limits.drain(null), `I3 ${path}/${user}`).toBe(true);
        network.at(path).limits.children.remove(user);
      }
    };
    for (const team of TEAMS.filter((path) => network.at(path).isRevoked))
      await clear(team, network.at(team).limits.children.people(10));
    for (const path of this.revoked) {
      await clear(path, network.at(path).limits.children.names(10));
      await network.wait(3 * MINUTE);
      for (const team of TEAMS) {
        const { limits } = network.at(team);
        expect(limits.children.names(10), `I3 ${team}`).not.toContain(path.slice(path.lastIndexOf('/') + 1));
      }
    }
  }
}

/** Null: it has a key. */
function teamOfPerson(caller: string): string | null {
  return PEOPLE.includes(caller) ? caller.slice(0, caller.indexOf('/')) : null;
}

test(`Y6 no limit of a team, a key or a user is passed, and all sums agree at the end (SEED=${SEED}, ${RUNS} runs)`, async () => {
  for (let seed = SEED; seed < SEED + RUNS; seed++) {
    const run = new Run(seeded(seed));
    await repeatable(seed, async () => {
      await run.start();
      for (let step = 0; step < STEPS; step++) await run.step();
      await run.finish();
    });
  }
}, 3_600_000);
