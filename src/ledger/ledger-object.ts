/**
 * The Durable Object of the ledger. Its name says what an object is: a key, a team, a user, a directory, or one of a few others. The
 * class hands each call on to that role.
 */
import { DurableObject } from 'cloudflare:workers';
import type { KeyStore } from '../auth/keys.ts';
import type { Erasure } from '../http/erasure.ts';
import { log } from '../http/log.ts';
import { DAY_MS } from '../metering/time.ts';
import { inJurisdiction, type PlaceableNamespace } from '../settings/placement.ts';
import { SettingsReader } from '../settings/reader.ts';
import { callTwice } from '../shared/durable-objects.ts';
import { OperatorAlerts } from './alerts/operator-alerts.ts';
import type { AlertSettings } from './alerts/send-alert.ts';
import { Directory } from './directory/directory.ts';
import { FirstDirectory } from './directory/first-directory.ts';
import { MAX_RECENT_BYTES } from './directory/recent-records.ts';
import { ErasureRun } from './erasures.ts';
import {
  ALERTS,
  type AlertCalls,
  DIRECTORIES,
  type DirectoryCalls,
  ERASURES,
  FIRST_DIRECTORY,
  type LedgerStub,
  PEOPLE,
  readObjectName,
  type StoredRecordCalls,
  teamIdOf,
} from './ledger-calls.ts';
import { forgetTables } from './limits/limit-tables.ts';
import { PeopleRole } from './people.ts';
import type { ArchiveBucket } from './records/archive.ts';
import type { RoomLimits } from './records/key-records.ts';
import { KeyRole } from './roles/key.ts';
import type { RolePorts } from './roles/ports.ts';
import { ObjectAlarm, type Role } from './roles/role.ts';
import { ShardRole } from './roles/shard.ts';
import { TeamRole } from './roles/team.ts';
import { UserRole } from './roles/user.ts';
import { readAlertSettings, readRecordDays, readReservedMs, readRoomLimits } from './settings.ts';

/** The part of an object's storage that the class uses. */
export type LedgerStorage = Pick<
  DurableObjectStorage,
  'sql' | 'transactionSync' | 'getAlarm' | 'setAlarm' | 'deleteAlarm' | 'deleteAll'
>;

export interface LedgerEnv {
  readonly WEIR_LEDGER: PlaceableNamespace<LedgerStub>;
  readonly WEIR_ARCHIVE?: ArchiveBucket;
  readonly WEIR_KV?: KeyStore;
  readonly [name: string]: unknown;
}

/** A role with the calls that it takes, of which some are those of its records. */
type AnyRole = Role & Partial<LedgerStub> & { readonly records?: StoredRecordCalls };

type Args<Method extends keyof LedgerStub> = Parameters<LedgerStub[Method]>;

export class LedgerObject extends DurableObject<LedgerEnv> implements LedgerStub {
  readonly #alarm: ObjectAlarm;
  readonly #role: AnyRole;

  /** @param storage the object's own, or a wrapper around it */
  constructor(context: DurableObjectState, env: LedgerEnv, storage: LedgerStorage = context.storage) {
    super(context, env);
    this.#alarm = new ObjectAlarm(storage);
    this.#role = this.#createRole(context.id.name ?? '', this.#portsOf(storage));
    context.waitUntil(this.#setMissingAlarm());
  }

  #portsOf(storage: LedgerStorage): RolePorts {
    const { sql } = storage;
    return {
      sql,
      transaction: (act) => {
        try {
          return storage.transactionSync(act);
        } catch (error) {
          forgetTables(sql);
          throw error;
        }
      },
      now: () => Date.now(),
      startTimer: (ms, onFire) => {
        const timer = setTimeout(onFire, ms);
        return () => clearTimeout(timer);
      },
      alarm: this.#alarm,
      forget: async () => {
        this.#alarm.removed();
        await storage.deleteAlarm();
        const deleted = storage.deleteAll();
        forgetTables(sql);
        await deleted;
      },
      objects: () => inJurisdiction(this.env.WEIR_LEDGER, this.ctx.id.jurisdiction),
      store: this.env.WEIR_KV ?? null,
      bucket: this.env.WEIR_ARCHIVE ?? null,
      recordDays: () => readRecordDays(this.env),
      alertSettings: () => this.alertSettings(),
      roomLimits: () => this.roomLimits(),
      reservedMs: () => this.reservedMs(),
      fetch: (input, init) => fetch(input, init),
      log,
    };
  }

  /** @throws where this version has no object of that name: what is meant for it must not be stored as a key's */
  #createRole(name: string, ports: RolePorts): AnyRole {
    const { keyId, user, shard } = readObjectName(name);
    if (user !== null) return new UserRole(ports, keyId, user);
    if (shard !== null) return new ShardRole(ports, keyId, shard);
    const teamId = teamIdOf(name);
    if (teamId !== null) return new TeamRole(ports, teamId);
    const wake = () => this.#alarm.setBy(Date.now());
    const directoryPorts = {
      ...ports,
      read: <Value>(id: string, call: (ledger: LedgerStub) => Promise<Value>) =>
        callTwice(() => ports.objects().getByName(id), call),
    };
    if (DIRECTORIES.includes(name))
      return new Directory({
        ...directoryPorts,
        maxRecordBytes: this.maxRecentBytes,
      }) satisfies DirectoryCalls;
    if (name === FIRST_DIRECTORY) {
      const directory = new FirstDirectory({ ...directoryPorts, wake });
      if (directory.hasWork) this.ctx.waitUntil(wake());
      return directory;
    }
    if (name === ERASURES)
      return new ErasureRun({
        ...ports,
        store: () => {
          if (ports.store === null)
            throw new Error('WEIR_KV is not bound in the Worker that has LedgerObject');
          return ports.store;
        },
        step: (erasure) => this.stepErasure(erasure),
        setAlarm: (at) => this.#alarm.setBy(at),
      });
    if (name === PEOPLE) return new PeopleRole(ports);
    if (name === ALERTS)
      return new OperatorAlerts({ ...ports, settings: ports.alertSettings, wake }) satisfies AlertCalls;
    if (name === '' || name.startsWith(FIRST_DIRECTORY))
      throw new Error(`This version of Weir has no ledger object with the name '${name}'`);
    return new KeyRole(ports, name);
  }

  /** Sets the alarm of an object that has work for it: one whose tries all failed is gone. A later day is early enough, as it is rare. */
  async #setMissingAlarm(): Promise<void> {
    if ((await this.#alarm.read()) !== null || !this.#role.hasWork) return;
    await this.#alarm.setBy(Date.now() + DAY_MS);
  }

  /** What the records of a directory take at most. */
  protected get maxRecentBytes(): number {
    return MAX_RECENT_BYTES;
  }

  /** Takes steps of an erasure. A Worker overrides it with its gateway, which knows all stores. */
  protected async stepErasure(_erasure: Erasure): Promise<Erasure | null> {
    throw new Error('This class has no gateway: export gateway.objects.LedgerObject');
  }

  /** Where alerts go, by the variables of the Worker. A Worker overrides it with the settings of its gateway, which has options. */
  protected async alertSettings(): Promise<AlertSettings> {
    return readAlertSettings(new SettingsReader(this.env));
  }

  /**
   * What the object may keep, by the variables of the Worker. A Worker overrides it with the settings of its gateway,
   * which has options.
   */
  protected async roomLimits(): Promise<RoomLimits> {
    return readRoomLimits(new SettingsReader(this.env));
  }

  /**
   * After which time reservations expire, by the variables of the Worker. A Worker overrides it with the settings of
   * its gateway, which has options.
   */
  protected async reservedMs(): Promise<number> {
    return readReservedMs(new SettingsReader(this.env));
  }

  override async alarm(): Promise<void> {
    // The runtime has removed it.
    this.#alarm.removed();
    const next: number[] = [];
    const problems: unknown[] = [];
    for (const job of this.#role.jobs) {
      try {
        const time = await job(Date.now());
        if (time !== null) next.push(time);
      } catch (error) {
        // The last job may make the room that another one lacks.
        problems.push(error);
      }
    }
    if (next.length > 0) await this.#alarm.setBy(Math.min(...next));
    // The runtime tries again.
    if (problems.length > 0) throw problems[0];
  }

  /** The role, which has this method. @throws where it has not: the call is for an object of another role */
  #with<Method extends keyof LedgerStub>(method: Method): Pick<LedgerStub, Method> {
    const role = this.#role;
    const { records = {} } = role;
    if (hasMethod(role, method)) return role;
    if (hasMethod(records, method)) return records;
    throw new Error(`The ledger object is ${role.kind}: it has no method ${method}`);
  }

  async settle(...args: Args<'settle'>) {
    return this.#with('settle').settle(...args);
  }

  async find(...args: Args<'find'>) {
    return this.#with('find').find(...args);
  }

  async list(...args: Args<'list'>) {
    return this.#with('list').list(...args);
  }

  async report(...args: Args<'report'>) {
    return this.#with('report').report(...args);
  }

  async reportUnsent(...args: Args<'reportUnsent'>) {
    return this.#with('reportUnsent').reportUnsent(...args);
  }

  async sendSums(...args: Args<'sendSums'>) {
    return this.#with('sendSums').sendSums(...args);
  }

  async readUser(...args: Args<'readUser'>) {
    return this.#with('readUser').readUser(...args);
  }

  async eraseUser(...args: Args<'eraseUser'>) {
    return this.#with('eraseUser').eraseUser(...args);
  }

  async usersOfRecords(...args: Args<'usersOfRecords'>) {
    return this.#with('usersOfRecords').usersOfRecords(...args);
  }

  async shards(...args: Args<'shards'>) {
    return this.#with('shards').shards(...args);
  }

  async reserveInShard(...args: Args<'reserveInShard'>) {
    return this.#with('reserveInShard').reserveInShard(...args);
  }

  async reportCharges(...args: Args<'reportCharges'>) {
    return this.#with('reportCharges').reportCharges(...args);
  }

  async compareCache(...args: Args<'compareCache'>) {
    return this.#with('compareCache').compareCache(...args);
  }

  async reserve(...args: Args<'reserve'>) {
    return this.#with('reserve').reserve(...args);
  }

  async settleReservation(...args: Args<'settleReservation'>) {
    return this.#with('settleReservation').settleReservation(...args);
  }

  async settleUnreserved(...args: Args<'settleUnreserved'>) {
    return this.#with('settleUnreserved').settleUnreserved(...args);
  }

  async returnLease(...args: Args<'returnLease'>) {
    return this.#with('returnLease').returnLease(...args);
  }

  async limitsRow(...args: Args<'limitsRow'>) {
    return this.#with('limitsRow').limitsRow(...args);
  }

  async changeLimits(...args: Args<'changeLimits'>) {
    return this.#with('changeLimits').changeLimits(...args);
  }

  async standing(...args: Args<'standing'>) {
    return this.#with('standing').standing(...args);
  }

  async addToBudget(...args: Args<'addToBudget'>) {
    return this.#with('addToBudget').addToBudget(...args);
  }

  async openUser(...args: Args<'openUser'>) {
    return this.#with('openUser').openUser(...args);
  }

  async lease(...args: Args<'lease'>) {
    return this.#with('lease').lease(...args);
  }

  async changeKey(...args: Args<'changeKey'>) {
    return this.#with('changeKey').changeKey(...args);
  }

  async revokeKey(...args: Args<'revokeKey'>) {
    return this.#with('revokeKey').revokeKey(...args);
  }

  async reserveForUser(...args: Args<'reserveForUser'>) {
    return this.#with('reserveForUser').reserveForUser(...args);
  }

  async userStanding(...args: Args<'userStanding'>) {
    return this.#with('userStanding').userStanding(...args);
  }

  async userSpent(...args: Args<'userSpent'>) {
    return this.#with('userSpent').userSpent(...args);
  }

  async eraseLimits(...args: Args<'eraseLimits'>) {
    return this.#with('eraseLimits').eraseLimits(...args);
  }

  async clearUser(...args: Args<'clearUser'>) {
    return this.#with('clearUser').clearUser(...args);
  }

  async deleteTeam(...args: Args<'deleteTeam'>) {
    return this.#with('deleteTeam').deleteTeam(...args);
  }

  async peopleAmong(...args: Args<'peopleAmong'>) {
    return this.#with('peopleAmong').peopleAmong(...args);
  }

  async changePeople(...args: Args<'changePeople'>) {
    return this.#with('changePeople').changePeople(...args);
  }

  async takeSums(...args: Args<'takeSums'>) {
    return this.#with('takeSums').takeSums(...args);
  }

  async reportPart(...args: Args<'reportPart'>) {
    return this.#with('reportPart').reportPart(...args);
  }

  async listRecent(...args: Args<'listRecent'>) {
    return this.#with('listRecent').listRecent(...args);
  }

  async activeHours(...args: Args<'activeHours'>) {
    return this.#with('activeHours').activeHours(...args);
  }

  async findOfAll(...args: Args<'findOfAll'>) {
    return this.#with('findOfAll').findOfAll(...args);
  }

  async keyIdsAfter(...args: Args<'keyIdsAfter'>) {
    return this.#with('keyIdsAfter').keyIdsAfter(...args);
  }

  async eraseSums(...args: Args<'eraseSums'>) {
    return this.#with('eraseSums').eraseSums(...args);
  }

  async takeDays(...args: Args<'takeDays'>) {
    return this.#with('takeDays').takeDays(...args);
  }

  async noteFull(...args: Args<'noteFull'>) {
    return this.#with('noteFull').noteFull(...args);
  }

  async fullLedgers(...args: Args<'fullLedgers'>) {
    return this.#with('fullLedgers').fullLedgers(...args);
  }

  async takeRefusals(...args: Args<'takeRefusals'>) {
    return this.#with('takeRefusals').takeRefusals(...args);
  }

  async refusals(...args: Args<'refusals'>) {
    return this.#with('refusals').refusals(...args);
  }

  async startErasure(...args: Args<'startErasure'>) {
    return this.#with('startErasure').startErasure(...args);
  }

  async findErasure(...args: Args<'findErasure'>) {
    return this.#with('findErasure').findErasure(...args);
  }

  async takeCalls(...args: Args<'takeCalls'>) {
    return this.#with('takeCalls').takeCalls(...args);
  }

  async noteAlert(...args: Args<'noteAlert'>) {
    return this.#with('noteAlert').noteAlert(...args);
  }
}

function hasMethod<Method extends keyof LedgerStub>(
  role: Partial<LedgerStub>,
  method: Method,
): role is Partial<LedgerStub> & Pick<LedgerStub, Method> {
  return role[method] !== undefined;
}
