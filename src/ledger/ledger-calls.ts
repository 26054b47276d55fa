/** The RPC methods of the ledger objects, as the gateway calls them through the binding `WEIR_LEDGER`. */
import {
  type KeyStanding,
  type LimitStatus,
  type Limits,
  type LimitsResult,
  type NewTopUp,
  NO_USER,
  type TopUpResult,
} from '../auth/key-limits.ts';
import type { KeyChange, KeyChangeResult } from '../auth/keys.ts';
import type { PeopleChange, TeamRules } from '../auth/people.ts';
import type { PeopleResult } from '../http/context.ts';
import type { Erasure } from '../http/erasure.ts';
import type { SentPrefix } from '../metering/cache-breaks.ts';
import type { FullKey, RecordQuery, ReportQuery } from '../metering/ledger.ts';
import type { Charge, ChargedRecord, UsageRecord } from '../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../metering/refusals.ts';
import type { JsonObject } from '../shared/json.ts';
import type { OperatorAlert, ProviderCounts } from './alerts/operator-alerts.ts';
import type { ActiveHours } from './directory/active-keys.ts';
import type { ErasedSums, FoundRecord } from './directory/directory.ts';
import type { ReportPart } from './directory/directory-reports.ts';
import type { RecentPage } from './directory/recent-records.ts';
import type { Amounts, ParentCalls } from './limits/allowance.ts';
import type { LimitsRow } from './limits/limit-tables.ts';
import type { Reservation, ReserveRequest } from './limits/reservations.ts';
import { isShard, regionOf, SHARD_OBJECT, shardName } from './limits/spread.ts';
import type { FullLedger } from './records/full-ledgers.ts';
import type { LedgerPage } from './records/records.ts';
import type { DayRow } from './records/sum-columns.ts';
import type { RowsResult } from './records/sums.ts';
import type { SumsMessage } from './records/unsent-sums.ts';
import type { ErasedUserPart, UserCursor, UserPart, UsersPart } from './records/user-records.ts';

/** The Durable Object namespace of `LedgerObject`. */
export interface LedgerNamespace {
  /** @param name a key's id, {@link userObject}, or one of {@link DIRECTORIES} */
  getByName(name: string): LedgerStub;
}

/** A stub that has thrown may fail forever: get a new one from the namespace. */
export interface LedgerStub
  extends KeyObjectCalls,
    ShardObjectCalls,
    StoredRecordCalls,
    UserObjectCalls,
    TeamObjectCalls,
    DirectoryCalls,
    FirstDirectoryCalls,
    PeopleCalls,
    ErasureCalls,
    AlertCalls {}

/** Of the object of a key. */
export interface KeyObjectCalls extends RecordCalls, LimitCalls, SettleCalls, OwnLimitCalls, KeyCalls {
  /** The names of the objects of all shards that the key ever had. */
  shards(): Promise<readonly string[]>;
}

/** Of the object of a shard. */
export interface ShardObjectCalls extends RecordCalls, SettleCalls, Pick<UserCalls, 'clearUser'> {
  /** As {@link LimitCalls.reserve}. An object of an earlier version, which would take itself for that of a key, has no such method. */
  reserveInShard(request: ReserveRequest): Promise<Reservation>;
  /** Tells the key what was charged. */
  reportCharges(): Promise<void>;
}

/** Of the object of a user. */
export interface UserObjectCalls extends UserCalls, SettleCalls {}

/** Of the object of a team. */
export interface TeamObjectCalls extends TeamCalls, OwnLimitCalls {}

/** The usage records of one key. */
export interface RecordCalls {
  /**
   * Stores records of this key, all or none. A record that is already stored changes nothing.
   * @param recordDays how many days single records are kept from now on; absent: unchanged
   * @returns the ids of records that are not stored because they are older than the kept ones and may have been counted
   */
  settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]>;
  /**
   * What is stored under these names of a user, from the cursor on.
   * @returns also those of the names whose limits have an object of their own
   */
  readUser(
    names: readonly string[],
    cursor: UserCursor,
  ): Promise<UserPart & { readonly users: readonly string[] }>;
  /**
   * Erases what is stored under these names of a user, from the cursor on.
   * @param beforeId only records with a smaller id, and the sums of their days; null: all
   */
  eraseUser(names: readonly string[], cursor: UserCursor, beforeId: string | null): Promise<ErasedUserPart>;
}

/** What a key and its shards do in the same way with their records. */
export interface StoredRecordCalls {
  find(requestId: string): Promise<UsageRecord | null>;
  list(query: RecordQuery): Promise<LedgerPage>;
  report(query: ReportQuery): Promise<RowsResult>;
  /** As `report`, without rows if a directory has sums of this key. */
  reportUnsent(query: ReportQuery): Promise<RowsResult>;
  /** Sends the key's directory what it has not received. @returns whether it has all of it */
  sendSums(): Promise<boolean>;
  /** The users of records between two ids, up to 10,000 records at once. */
  usersOfRecords(after: string, beforeId: string): Promise<UsersPart>;
  /** Compares a request that is not sent yet with the earlier ones of its session. */
  compareCache(session: string, sent: SentPrefix): Promise<string>;
}

/**
 * The object that counts refused requests, and was the directory of all keys in 0.2. No key has this id, and none begins with it.
 */
export const FIRST_DIRECTORY = '*';

/** 60,000 keys that are active in one minute are 63 messages a second for each; an object takes 200 to 500 writes a second. */
const DIRECTORY_COUNT = 16;

/** The names of the directories among the objects. */
export const DIRECTORIES: readonly string[] = Array.from({ length: DIRECTORY_COUNT }, (_, n) => `*${n}`);

/** The directory of a key: by a hash of its id (FNV-1a, 32 bits), which must stay the same. */
export function directoryOf(keyId: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < keyId.length; i++) hash = Math.imul(hash ^ keyId.charCodeAt(i), 0x01000193);
  return DIRECTORIES[(hash >>> 0) % DIRECTORY_COUNT] ?? FIRST_DIRECTORY;
}

/** The name of the object that runs erasures: no key has this id. */
export const ERASURES = '*erasures';

/** The erasures of users. Only the object named {@link ERASURES} has them. */
export interface ErasureCalls {
  /** Starts an erasure. @returns the one of the same user that runs already, or this one */
  startErasure(erasure: Erasure): Promise<Erasure>;
  findErasure(id: string): Promise<Erasure | null>;
}

/** The name of the object of alerts to the operator: no key has this id. */
export const ALERTS = '*alerts';

/** Alerts to the operator. Only the object named {@link ALERTS} has them. Repeated calls change nothing. */
export interface AlertCalls {
  /** @returns until when nothing more has to be reported of the provider (ms since the epoch); null: each further failure does */
  takeCalls(counts: ProviderCounts): Promise<number | null>;
  /** @returns until when there is no other alert of the subject (ms since the epoch) */
  noteAlert(alert: OperatorAlert): Promise<number>;
}

/** The sums over keys, and their records. Only the objects named in {@link DIRECTORIES} have them. */
export interface DirectoryCalls {
  /**
   * Stores what a key has. A repeated or late message changes nothing.
   * @returns the hours of the message (since the epoch) of which it has not all records
   */
  takeSums(keyId: string, message: SumsMessage): Promise<readonly number[]>;
  /**
   * A part of a report over all keys. {@link FIRST_DIRECTORY} has the keys whose directories do not know them yet.
   * @param after `next` of the part before; null: the first
   */
  reportPart(query: ReportQuery, after: string | null): Promise<ReportPart>;
  /** The latest records that match, as far as the directory has them. */
  listRecent(query: RecordQuery): Promise<RecentPage>;
  /**
   * When which keys had requests that may match, the latest hour first.
   * @param beforeKey only keys before it in the latest hour; null: all
   */
  activeHours(query: RecordQuery, beforeKey: string | null): Promise<ActiveHours>;
  /** Searches keys after `after` for a record; null: from the first. */
  findOfAll(requestId: string, after: string | null): Promise<FoundRecord>;
  /** The ids of keys that ever had requests, in order, up to 1,000 after this one. */
  keyIdsAfter(after: string): Promise<readonly string[]>;
  /** Erases what the directory has of users of a key. */
  eraseSums(keyId: string, erased: ErasedSums): Promise<void>;
}

/** Only the object named {@link FIRST_DIRECTORY} has these. */
export interface FirstDirectoryCalls {
  /** Objects of 0.2 call it with their day sums. */
  takeDays(keyId: string, rows: readonly DayRow[]): Promise<void>;
  /** Notes that the object of a key is full and deletes records, or cannot archive them, or can again. */
  noteFull(keyId: string, ledger: FullLedger): Promise<void>;
  fullLedgers(): Promise<readonly FullKey[]>;
  /** Adds counts of refused requests. A repeated batch changes nothing. */
  takeRefusals(batch: RefusalBatch): Promise<void>;
  /** The counts of one key or of all. */
  refusals(query: RefusalQuery): Promise<readonly RefusalRow[]>;
}

/** Requests that end. Keys and their users have them. */
export interface SettleCalls {
  /** Settles a request whose record is stored elsewhere (LEDGER=kv), or that was not sent. A repeated call changes nothing. */
  settleReservation(id: string, charge: Charge): Promise<void>;
  /** Settles a request that may have no reservation; it then counts on that UTC day. A repeated call changes nothing. */
  settleUnreserved(id: string, charge: Charge, day: string): Promise<void>;
  /** Returns to the parent what the object holds in advance. */
  returnLease(): Promise<void>;
}

/** What a key has, and a team as well. */
export interface OwnLimitCalls extends ParentCalls, Pick<KeyCalls, 'changeKey'> {
  /** @param listed the limits that KV lists for the key, for an object that never had any */
  standing(listed?: JsonObject | null): Promise<KeyStanding>;
  /** Raises the current period of one budget. A repeated call changes nothing. */
  addToBudget(added: NewTopUp, listed?: JsonObject | null): Promise<TopUpResult>;
}

/** The limits of one key. */
export interface LimitCalls {
  /** Admits or refuses a request: one call checks all limits. */
  reserve(request: ReserveRequest): Promise<Reservation>;
  /** The stored limits as they are. */
  limitsRow(): Promise<LimitsRow>;
  /** Sets the limits that the fields name, as `readLimits` reads them. Invalid fields change nothing. */
  changeLimits(fields: JsonObject): Promise<LimitsResult>;
}

/** The limits of one user of a key. Only the objects that {@link userObject} names have them. */
interface UserCalls {
  /** As `reserve`, for the limits of the user and of the key. */
  reserveForUser(request: ReserveRequest): Promise<Reservation>;
  /** The use of these limits; null: the user had no requests. */
  userStanding(limits: Limits): Promise<LimitStatus | null>;
  /** What the user has spent. */
  userSpent(): Promise<readonly Amounts[]>;
  /**
   * Deletes the object of a user who is erased. The key remembers what was spent, under the hash of the name.
   * @returns false while requests of the user run
   */
  eraseLimits(hash: string): Promise<boolean>;
  /**
   * Deletes the object of a user whose key is revoked, once the key has counted all charges.
   * @returns false while requests of the user run
   */
  clearUser(): Promise<boolean>;
}

/** A team. Only the objects that {@link teamObject} names have these. */
interface TeamCalls {
  /**
   * Deletes the team, and who falls under it, unless it has keys. It still counts what its former keys and people end.
   * @param created_at of the team
   * @returns how many keys it has
   */
  deleteTeam(created_at?: string): Promise<number>;
  /** Those of these people whose limits have an object of their own. */
  peopleAmong(people: readonly string[]): Promise<readonly string[]>;
}

/** The name of the object that has who falls under which team: no key has this id. */
export const PEOPLE = '*people';

/** Who falls under which team. Only the object named {@link PEOPLE} has these. Repeated calls change nothing. */
export interface PeopleCalls {
  /** Changes who falls under a team; without a field, nothing. */
  changePeople(team: Pick<TeamRules, 'id' | 'created_at'>, change: PeopleChange): Promise<PeopleResult>;
}

const TEAM_OBJECT = 'team/';

/** The name of a team's object. No key has such an id. */
export function teamObject(team: string): string {
  return TEAM_OBJECT + team;
}

/** The id of the team whose object has this name; null: it is another object. */
export function teamIdOf(name: string): string | null {
  return name.startsWith(TEAM_OBJECT) ? name.slice(TEAM_OBJECT.length) : null;
}

const USER_OBJECT = '/u/';

/** The name of a user's object. @param user as it is stored; null: requests without a user */
export function userObject(keyId: string, user: string | null): string {
  return keyId + USER_OBJECT + (user ?? NO_USER);
}

/** The name of the object of a shard. @param shard its name among the children of the key */
export function objectOfShard(keyId: string, shard: string): string {
  return `${keyId}${SHARD_OBJECT}${regionOf(shard)}/${shard.slice(shard.lastIndexOf(' ') + 1)}`;
}

/** The name of the object of a child of a key. */
export function childObject(keyId: string, child: string): string {
  return isShard(child) ? objectOfShard(keyId, child) : userObject(keyId, child);
}

/** The key of a ledger, the object of a key or of a shard, whose name this is. */
export function keyOfLedger(ledger: string): string {
  const at = ledger.indexOf(SHARD_OBJECT);
  return at < 0 ? ledger : ledger.slice(0, at);
}

/** The folder of a ledger in the archive. That of a key must have no folders of others. */
export function archiveOf(ledger: string): string {
  return ledger.replaceAll('/', '~');
}

/** The parts of an object's name. `user` and `shard` are null for the object of a key; `shard` is a name among its children. */
export function readObjectName(name: string): {
  readonly keyId: string;
  readonly user: string | null;
  readonly shard: string | null;
} {
  const at = name.indexOf(USER_OBJECT);
  if (at >= 0) return { keyId: name.slice(0, at), user: name.slice(at + USER_OBJECT.length), shard: null };
  const keyId = keyOfLedger(name);
  const [region = '', n] = name.slice(keyId.length + SHARD_OBJECT.length).split('/');
  return { keyId, user: null, shard: n === undefined ? null : shardName(region, Number(n)) };
}

/** The key itself. Repeated calls change nothing. */
export interface KeyCalls {
  changeKey(change: KeyChange): Promise<KeyChangeResult>;
  /** Refuses every later change, and deletes the stored ones. */
  revokeKey(id: string): Promise<void>;
}
