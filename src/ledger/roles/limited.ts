/**
 * What the objects of keys and of teams have in common: limits of their own, with alerts, and holders that lease from
 * them; and what these have.
 */
import type { KeyStanding, NewTopUp, TopUpResult } from '../../auth/key-limits.ts';
import type { KeyChange, KeyChangeResult, KeyStore } from '../../auth/keys.ts';
import type { Charge } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { OwnLimitCalls } from '../ledger-calls.ts';
import type { LeaseAnswer, LeaseMessage, OpenAnswer, ParentCalls } from '../limits/allowance.ts';
import { BudgetAlerts } from '../limits/budget-alerts.ts';
import { forgetSpent } from '../limits/erased-spent.ts';
import { Holder, type HolderPorts } from '../limits/holder.ts';
import { createLimitTables } from '../limits/limit-tables.ts';
import { boundedParents } from '../limits/parent-calls.ts';
import { nextExpiry, type Reservation, type ReserveRequest } from '../limits/reservations.ts';
import { addToBudget, currentTopUps } from '../limits/top-ups.ts';
import { reservedMs } from '../settings.ts';
import { StoredKey } from '../stored-key.ts';
import type { RolePorts } from './ports.ts';
import { answerWithin, type Job, succeeds } from './role.ts';

/** A request waits so long for what other users hold in advance. */
const MAX_RETURN_MS = 1000;
/** Objects of users that one alarm deletes. */
export const MAX_CLEARED = 100;
/** An object that does not respond must not delay the next alarm. */
const MAX_CLEAR_MS = 10_000;
const RETRY_AFTER_MS = 60_000;
/** KV must not delay the next alarm. */
const MAX_NAME_MS = 10_000;

/** What differs between the holders of users, keys and teams. */
interface HolderIdentity
  extends Pick<HolderPorts, 'level' | 'parentLevel' | 'name' | 'isRevoked' | 'silentMs'> {
  /** A new stub of the parent: the key of a user, or the team of a person; of a key its team of that id. Null: it has none. */
  readonly openParent: ((team: string) => ParentCalls) | null;
  /** In the log: a key's id, also for its users; of a team the name of its object. */
  readonly keyId: string;
  /** The name of the object of a child. */
  readonly childObject: (child: string) => string;
}

/** The limits of an object, with its alarm and the objects of its children. */
function openHolder(ports: RolePorts, identity: HolderIdentity): Holder {
  const { sql, transaction, now, alarm, objects, forget, log } = ports;
  const { level, parentLevel, name, openParent, isRevoked, silentMs, keyId, childObject } = identity;
  return new Holder({
    ...{ level, name, isRevoked, silentMs, sql, transaction, now, forget },
    ...(parentLevel !== undefined && { parentLevel }),
    parent: openParent && boundedParents(openParent, now),
    returnLease: (child) => succeeds(objects().getByName(childObject(child)).returnLease(), MAX_RETURN_MS),
    reportCharges: async (shard) => {
      await succeeds(objects().getByName(childObject(shard)).reportCharges(), MAX_RETURN_MS);
    },
    wakeBy: (time) => alarm.wakeBy(time),
    log: (entry) => log({ ...entry, key_id: keyId }),
  });
}

/** What the objects of users and of shards have in common: they lease from their parent, and have no children. */
export abstract class LeasingRole {
  protected readonly ports: RolePorts;
  protected readonly holder: Holder;

  constructor(
    ports: RolePorts,
    identity: Omit<HolderIdentity, 'openParent' | 'isRevoked' | 'silentMs' | 'childObject'>,
  ) {
    this.ports = ports;
    this.holder = openHolder(ports, {
      ...identity,
      openParent: () => ports.objects().getByName(identity.keyId),
      isRevoked: () => false,
      silentMs: () => reservedMs(0),
      childObject: (child) => child,
    });
  }

  protected async admit(request: ReserveRequest): Promise<Reservation> {
    await this.ports.alarm.read();
    return this.holder.reserve(request);
  }

  async settleReservation(id: string, charge: Charge): Promise<void> {
    await this.ports.alarm.read();
    this.holder.settle(id, charge);
  }

  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    await this.ports.alarm.read();
    await this.holder.settleUnreserved(id, charge, day);
  }

  async returnLease(): Promise<void> {
    await this.ports.alarm.read();
    await this.holder.returnLease();
  }

  async clearUser(): Promise<boolean> {
    await this.ports.alarm.read();
    return this.holder.drain(null);
  }
}

interface LimitedIdentity extends Omit<HolderIdentity, 'isRevoked' | 'silentMs'> {
  /** Reads its name from KV. */
  readonly readName: (store: KeyStore) => Promise<string | null>;
  /** Null: it is a key. */
  readonly teamId: string | null;
}

export abstract class LimitedRole implements OwnLimitCalls {
  protected readonly ports: RolePorts;
  protected readonly holder: Holder;
  readonly #alerts: BudgetAlerts;
  readonly #isTeam: boolean;
  readonly #childObject: (child: string) => string;
  #key: StoredKey | null = null;
  /** After which time reservations expire; null: it was not read yet. */
  #reservedMs: number | null = null;
  protected readonly settleExpired: Job = async () => {
    await this.#readReservedMs();
    return this.holder.alarm();
  };
  protected readonly sendAlerts: Job = async (now) => {
    await this.#alerts.note(now);
    return this.#alerts.send(now);
  };

  constructor(ports: RolePorts, { readName, teamId, ...identity }: LimitedIdentity) {
    const { sql, transaction, alertSettings, store, fetch, log } = ports;
    this.ports = ports;
    this.#isTeam = teamId !== null;
    this.#childObject = identity.childObject;
    this.holder = openHolder(ports, {
      ...identity,
      // A team is stored from its creation on.
      isRevoked: () => this.key.isRevoked || (this.#isTeam && !this.key.isStored),
      silentMs: () => this.#reservedMs ?? reservedMs(0),
    });
    createLimitTables(sql);
    this.#alerts = new BudgetAlerts({
      ...{ keyId: identity.keyId, teamId, sql, transaction, settings: alertSettings, fetch, log },
      keyName: async () => store && (await answerWithin(readName(store), MAX_NAME_MS)),
    });
  }

  /** The key or the team itself. Its table is created with the first use. */
  protected get key(): StoredKey {
    const { sql, transaction, store, startTimer } = this.ports;
    this.#key ??= new StoredKey({
      ...{ sql, transaction, store },
      isTeam: this.#isTeam,
      wait: (ms) => new Promise((resolve) => startTimer(ms, resolve)),
    });
    return this.#key;
  }

  /** Deletes what erased users have spent in periods that are over. */
  protected readonly forgetErased: Job = (now) => {
    const { sql, transaction } = this.ports;
    return transaction(() => forgetSpent(sql, now, this.key.isSurelyRevoked));
  };

  /**
   * Deletes the objects of users of a revoked key, or of people of a deleted team, which counts what they were charged.
   * @param users some of them
   */
  protected async clear(users: readonly string[], now: number): Promise<number | null> {
    if (users.length === 0 || !this.key.isSurelyRevoked) return null;
    const { objects, transaction } = this.ports;
    const cleared = await Promise.all(
      users.map(async (user) => {
        const object = objects().getByName(this.#childObject(user));
        // An object of an earlier version returns nothing.
        const clearing = object.clearUser().then((isDone) => isDone !== false);
        const isCleared = (await answerWithin(clearing, MAX_CLEAR_MS)) === true;
        if (isCleared) transaction(() => this.holder.children.remove(user));
        return isCleared;
      }),
    );
    return cleared.every((isCleared) => isCleared) ? now : now + RETRY_AFTER_MS;
  }

  protected get hasLimitWork(): boolean {
    return nextExpiry(this.ports.sql) !== null || this.#alerts.nextDue !== null;
  }

  /** Has alerts sent by the alarm, as soon as what was spent reaches one. */
  protected async noteAlerts(): Promise<void> {
    const now = this.ports.now();
    if (await this.#alerts.note(now)) await this.ports.alarm.setBy(now);
  }

  async standing(listed: JsonObject | null = null): Promise<KeyStanding> {
    const { sql, now } = this.ports;
    const limits = this.holder.limits(listed);
    return { ...this.holder.standing(limits), topUps: currentTopUps(sql, limits, now()) };
  }

  async addToBudget(added: NewTopUp, listed: JsonObject | null = null): Promise<TopUpResult> {
    const { sql, transaction, now } = this.ports;
    const limits = this.holder.limits(listed);
    return transaction(() => addToBudget(sql, limits, added, now()));
  }

  async changeKey(change: KeyChange): Promise<KeyChangeResult> {
    const result = await this.key.changeKey(change);
    await this.holder.changed();
    return result;
  }

  async openUser(child: string, listed: JsonObject | null = null, hash?: string): Promise<OpenAnswer> {
    await this.ports.alarm.read();
    return this.holder.openChild(child, listed, hash);
  }

  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    await this.ports.alarm.read();
    await this.holder.settleUnreserved(id, charge, day);
    await this.noteAlerts();
  }

  async lease(message: LeaseMessage): Promise<LeaseAnswer> {
    const { alarm } = this.ports;
    await this.#readReservedMs();
    await alarm.read();
    const answer = await this.holder.lend(message);
    const until = message.erased?.until ?? null;
    if (until !== null) await alarm.setBy(until);
    if (message.charges.length > 0) await this.noteAlerts();
    return answer;
  }

  /** A setting that cannot be read stops nothing: the longest time counts. */
  async #readReservedMs(): Promise<void> {
    this.#reservedMs ??= await this.ports.reservedMs().catch(() => null);
  }
}
