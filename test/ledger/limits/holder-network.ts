/** The objects of a tree of holders in memory, with a clock, alarms, lost calls and objects that lose their memory. */
import type { HolderKind, Level } from '../../../src/ledger/limits/allowance.ts';
import { Holder } from '../../../src/ledger/limits/holder.ts';
import { changeLimits } from '../../../src/ledger/limits/limit-tables.ts';
import { forgetParent } from '../../../src/ledger/limits/reports.ts';
import type { Reservation, ReserveRequest } from '../../../src/ledger/limits/reservations.ts';
import { failure, ok } from '../../../src/shared/result.ts';
import type { JsonObject } from '../../../tools/simulator/json.ts';
import { MemorySql, MINUTE, NOW, transaction } from './memory-sql.ts';

/** `before`: the call is lost. `after`: it runs, and its answer is lost. */
type Fault = 'before' | 'after' | null;

interface Member {
  readonly name: string;
  readonly level: HolderKind;
  /** Null: it has none. */
  readonly parent: string | null;
  readonly sql: MemorySql;
  limits: Holder;
  /** Rejects when the object loses its memory: calls to it fail. */
  lost: PromiseWithResolvers<never>;
  alarmAt: number | null;
  isRevoked: boolean;
}

/** After which time reservations expire. */
export const SILENT_MS = 11 * MINUTE;
const ALARM_RETRY_MS = 2000;
const NO_WAIT = () => Promise.resolve();

/** The path of a holder names its ancestors: `team/key/user`. */
export class HolderNetwork {
  /** By the clock of the highest holder. */
  now = NOW;
  /** How much later it is by the clocks of objects, in ms. */
  skewOf: (path: string) => number = () => 0;
  readonly members = new Map<string, Member>();
  /** Calls of children to their parents, by method, and of parents that ask a child to return what it holds. */
  readonly calls = { open: 0, lease: 0, recall: 0 };
  /** Decides the fault of each call between objects. @param to the name of the called one */
  fault: (to: string) => Fault = () => null;
  /** The time that each call takes, on its way and back. */
  latency: () => Promise<void> = NO_WAIT;
  readonly logged: Readonly<Record<string, unknown>>[] = [];

  /** @param limits null: the object is new */
  add(path: string, level: HolderKind, limits: JsonObject | null = null): Member {
    const at = path.lastIndexOf('/');
    const parent = at < 0 ? null : path.slice(0, at);
    // A key begins in the team of its path.
    const inTeam = level === 'key' && parent !== null ? { ...limits, team: parent } : limits;
    const known = { name: path.slice(at + 1), level, parent, sql: new MemorySql(inTeam) };
    const lost = lostSignal();
    const member: Member = {
      ...{ ...known, lost, alarmAt: null, isRevoked: false },
      limits: this.#open(path, known, lost),
    };
    this.members.set(path, member);
    return member;
  }

  at(path: string): Member {
    const member = this.members.get(path);
    if (member === undefined) throw new Error(`There is no holder ${path}`);
    return member;
  }

  #open(
    path: string,
    { name, level, parent, sql }: Pick<Member, 'name' | 'level' | 'parent' | 'sql'>,
    lost: Member['lost'],
  ): Holder {
    // An object that has lost its memory runs nothing that waited.
    const isLost = () => (this.members.get(path)?.lost ?? lost) !== lost;
    const call = async <Value>(
      to: string,
      act: (parent: Holder) => Promise<Value> | Value,
    ): Promise<Value> => {
      if (isLost()) return new Promise(() => {});
      const sent = this.#call(this.at(to), (member) => act(member.limits));
      const outcome = await Promise.race([sent.then(ok, failure), lost.promise.catch(() => null)]);
      if (outcome === null || isLost()) return new Promise(() => {});
      if (outcome.kind === 'error') throw outcome.error;
      return outcome.value;
    };
    return new Holder({
      ...{
        name,
        level,
        sql,
        parentLevel: parentLevelOf(level, parent === null ? null : this.at(parent).level),
      },
      transaction: (act) => {
        if (isLost()) throw new Error('The object has lost its memory');
        return transaction(sql, act);
      },
      now: () => this.now + this.skewOf(path),
      parent:
        level === 'team'
          ? null
          : (team) => {
              const to = level === 'key' ? team : (parent ?? '');
              return {
                openUser: (child, listed) => {
                  this.calls.open++;
                  return call(to, (one) => one.openChild(child, listed));
                },
                lease: (message) => {
                  this.calls.lease++;
                  return call(to, (one) => one.lend(structuredClone(message)));
                },
                settleUnreserved: (id, charge, day) => this.at(to).limits.settleUnreserved(id, charge, day),
              };
            },
      isRevoked: () => this.at(path).isRevoked,
      returnLease: async (child) => {
        const isKey = (one: Member) => one.level === 'key' && one.name === child;
        // A key may have changed its team. People of a team do not.
        const key = level === 'team' ? [...this.members.values()].find(isKey) : undefined;
        const member = key ?? this.members.get(`${path}/${child}`);
        if (member === undefined) return false;
        this.calls.recall++;
        return this.#call(member, ({ limits }) => limits.returnLease()).then(
          () => true,
          () => false,
        );
      },
      silentMs: () => SILENT_MS,
      reportCharges: async (shard) => {
        const member = this.members.get(`${path}/${shard}`);
        if (member !== undefined) await this.#call(member, ({ limits }) => limits.report()).catch(() => {});
      },
      wakeBy: (time) => {
        const member = this.at(path);
        const at = time - this.skewOf(path);
        member.alarmAt = Math.min(at, member.alarmAt ?? at);
      },
      forget: async () => {
        if (level === 'shard') return forgetParent(sql);
        this.at(path).alarmAt = null;
        sql.clear();
      },
      log: (entry) => this.logged.push(entry),
    });
  }

  /** Calls an object. What it does for a call is lost with its memory. */
  async #call<Value>(member: Member, act: (member: Member) => Promise<Value> | Value): Promise<Value> {
    const fault = this.fault(member.name);
    await this.latency();
    if (fault === 'before') throw new Error('The call is lost');
    // Before the call, in which the object may lose its memory.
    const { lost } = member;
    const value = await Promise.race([act(member), lost.promise]);
    await this.latency();
    if (fault === 'after') throw new Error('The answer is lost');
    return structuredClone(value);
  }

  /** Reserves 10 tokens of prompt and 90 of output. */
  async reserveAt(path: string, id: string, fields: Partial<ReserveRequest> = {}): Promise<Reservation> {
    const { limits, lost } = this.at(path);
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

  settleAt(path: string, id: string, tokens: number): void {
    this.at(path).limits.settle(id, { tokens, cost: null });
  }

  /** An object loses its memory, as it does when it is moved or restarted. */
  restartAt(path: string): void {
    const member = this.at(path);
    member.lost.reject(new Error('The object has lost its memory'));
    member.lost = lostSignal();
    member.limits = this.#open(path, member, member.lost);
  }

  /** Lets time pass, and runs the alarms that become due. */
  async wait(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      const due = [...this.members].filter(([, { alarmAt }]) => alarmAt !== null && alarmAt <= end);
      const [first] = due.sort(([, a], [, b]) => (a.alarmAt ?? 0) - (b.alarmAt ?? 0));
      if (first === undefined) break;
      const [path, member] = first;
      this.now = Math.max(this.now, member.alarmAt ?? 0);
      member.alarmAt = null;
      const { lost } = member;
      // The runtime runs an alarm again that did not end.
      const rerun = lost.promise.catch(() => this.now + this.skewOf(path) + ALARM_RETRY_MS);
      const next = await Promise.race([member.limits.alarm(), rerun]);
      const again = next === null ? null : next - this.skewOf(path);
      if (again !== null) member.alarmAt = Math.min(again, member.alarmAt ?? again);
      // An alarm that is due at once again runs a little later.
      if (member.alarmAt !== null) member.alarmAt = Math.max(member.alarmAt, this.now + 1);
    }
    this.now = end;
  }

  /** Changes limits as an admin does. A key that is revoked, or that the team refuses, is not changed. */
  async patch(path: string, fields: JsonObject): Promise<void> {
    const member = this.at(path);
    const { sql, limits, lost } = member;
    const { team } = fields;
    const act = async () => {
      if (member.isRevoked) return;
      if (typeof team === 'string') {
        member.alarmAt = Math.min(this.now + MINUTE, member.alarmAt ?? Number.POSITIVE_INFINITY);
        const hasJoined = await limits.join(team);
        // An object that has lost its memory writes nothing more.
        if (!hasJoined || member.isRevoked || member.lost !== lost) return;
      }
      transaction(sql, () => changeLimits(sql, fields));
      await limits.changed();
    };
    await Promise.race([act(), lost.promise]);
  }

  standingOf(path: string) {
    const { limits } = this.at(path);
    return limits.standing(limits.limits());
  }
}

const KEY = 'k';

/** A key and its users. */
export class UserNetwork {
  readonly tree = new HolderNetwork();
  readonly key: MemorySql;

  /** @param limits null: the object of the key is new */
  constructor(limits: JsonObject | null) {
    this.key = this.tree.add(KEY, 'key', limits).sql;
  }

  get now() {
    return this.tree.now;
  }

  set now(now: number) {
    this.tree.now = now;
  }

  set skewOf(skewOf: (user: string) => number) {
    this.tree.skewOf = (path) => (path === KEY ? 0 : skewOf(path.slice(KEY.length + 1)));
  }

  set fault(fault: () => Fault) {
    this.tree.fault = fault;
  }

  set latency(latency: () => Promise<void>) {
    this.tree.latency = latency;
  }

  get calls() {
    return this.tree.calls;
  }

  get logged() {
    return this.tree.logged;
  }

  set isRevoked(isRevoked: boolean) {
    this.tree.at(KEY).isRevoked = isRevoked;
  }

  member(user: string): Member {
    return this.tree.members.get(`${KEY}/${user}`) ?? this.tree.add(`${KEY}/${user}`, 'user');
  }

  /** Reserves 10 tokens of prompt and 90 of output for a user. */
  async reserve(user: string, id: string, fields: Partial<ReserveRequest> = {}): Promise<Reservation> {
    this.member(user);
    return this.tree.reserveAt(`${KEY}/${user}`, id, fields);
  }

  settle(user: string, id: string, tokens: number): void {
    this.member(user);
    this.tree.settleAt(`${KEY}/${user}`, id, tokens);
  }

  restart(user: string): void {
    this.member(user);
    this.tree.restartAt(`${KEY}/${user}`);
  }

  restartKey(): void {
    this.tree.restartAt(KEY);
  }

  async patch(limits: JsonObject): Promise<void> {
    this.key.limit(limits);
    await this.tree.at(KEY).limits.children.recall();
  }

  wait(ms: number): Promise<void> {
    return this.tree.wait(ms);
  }

  get standing() {
    return this.tree.standingOf(KEY);
  }

  get users(): readonly string[] {
    return this.tree.at(KEY).limits.children.names(1000);
  }

  alarmOf(user: string): number | null {
    return this.member(user).alarmAt;
  }
}

/** The parent of a user is a key, or the team of a person. */
function parentLevelOf(level: HolderKind, ofParent: HolderKind | null): Level {
  if (level === 'user') return ofParent === 'team' ? 'team' : 'key';
  return level === 'shard' ? 'key' : 'team';
}

function lostSignal(): PromiseWithResolvers<never> {
  const signal = Promise.withResolvers<never>();
  signal.promise.catch(() => {});
  return signal;
}
