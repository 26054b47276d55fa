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
import type { Erasure } from '../http/erasure.ts';
import type { SentPrefix } from '../metering/cache-breaks.ts';
import type { FullKey, RecordQuery, ReportQuery } from '../metering/ledger.ts';
import type { Charge, ChargedRecord, UsageRecord } from '../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../metering/refusals.ts';
import type { JsonObject } from '../shared/json.ts';
import type { Amounts, KeyLeases } from './limits/allowance.ts';
import type { LimitsRow } from './limits/limit-tables.ts';
import type { Reservation, ReserveRequest } from './limits/reservations.ts';
import type { UserReservation } from './limits/user-limits.ts';
import type { ActiveDays } from './records/directory.ts';
import type { FullLedger } from './records/full-ledgers.ts';
import type { LedgerPage } from './records/records.ts';
import type { DayRow, SumRow } from './records/sum-columns.ts';
import type { RowsResult } from './records/sums.ts';
import type { ErasedUserPart, UserCursor, UserPart, UsersPart } from './records/user-records.ts';

/** The Durable Object namespace of `LedgerObject`. */
export interface LedgerNamespace {
  /** @param name a key's id, {@link userObject}, or {@link DIRECTORY} */
  getByName(name: string): LedgerStub;
}

/** A stub that has thrown may fail forever: get a new one from the namespace. */
export interface LedgerStub
  extends RecordCalls,
    DirectoryCalls,
    LimitCalls,
    KeyCalls,
    KeyLeases,
    UserCalls,
    ErasureCalls {}

/** The usage records of one key. */
interface RecordCalls {
  /**
   * Stores records of this key, all or none. A record that is already stored changes nothing.
   * @param recordDays how many days single records are kept from now on; absent: unchanged
   * @returns the ids of records that are not stored because they are older than the kept ones and may have been counted
   */
  settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]>;
  find(requestId: string): Promise<UsageRecord | null>;
  list(query: RecordQuery): Promise<LedgerPage>;
  report(query: ReportQuery): Promise<RowsResult>;
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
  /** The users of records between two ids, up to 10,000 records at once. */
  usersOfRecords(after: string, beforeId: string): Promise<UsersPart>;
  /** Compares a request that is not sent yet with the earlier ones of its session. */
  compareCache(session: string, sent: SentPrefix): Promise<string>;
}

/** The directory's name among the objects: no key has this id. */
export const DIRECTORY = '*';

/** The name of the object that runs erasures: no key has this id. */
export const ERASURES = '*erasures';

/** The erasures of users. Only the object named {@link ERASURES} has them. */
interface ErasureCalls {
  /** Starts an erasure. @returns the one of the same user that runs already, or this one */
  startErasure(erasure: Erasure): Promise<Erasure>;
  findErasure(id: string): Promise<Erasure | null>;
}

/** The sums over all keys. Only the object named {@link DIRECTORY} has them. */
interface DirectoryCalls {
  /** Stores a key's day sums. */
  takeDays(keyId: string, rows: readonly DayRow[]): Promise<void>;
  /** Reports over all keys, for whole days. */
  reportAll(query: ReportQuery): Promise<readonly SumRow[]>;
  /** The keys that had requests on these days (since the epoch, both inclusive), latest day first. */
  activeDays(from: number, to: number): Promise<ActiveDays>;
  /** The ids of keys that ever had requests, in order, up to 1,000 after this one. */
  keyIdsAfter(after: string): Promise<readonly string[]>;
  /** Notes that the object of a key is full and deletes records, or cannot archive them, or can again. */
  noteFull(keyId: string, ledger: FullLedger): Promise<void>;
  fullLedgers(): Promise<readonly FullKey[]>;
  /** Adds counts of refused requests. A repeated batch changes nothing. */
  takeRefusals(batch: RefusalBatch): Promise<void>;
  /** The counts of one key or of all. */
  refusals(query: RefusalQuery): Promise<readonly RefusalRow[]>;
}

/** The limits of one key. */
export interface LimitCalls {
  /** Admits or refuses a request: one call checks all limits. */
  reserve(request: ReserveRequest): Promise<Reservation>;
  /** Settles a request whose record is stored elsewhere (LEDGER=kv), or that was not sent. A repeated call changes nothing. */
  settleReservation(id: string, charge: Charge): Promise<void>;
  /** Settles a request that may have no reservation; it then counts on that UTC day. A repeated call changes nothing. */
  settleUnreserved(id: string, charge: Charge, day: string): Promise<void>;
  /** @param listed the limits that KV lists for the key, for an object that never had any */
  standing(listed?: JsonObject | null): Promise<KeyStanding>;
  /** Raises the current period of one budget. A repeated call changes nothing. */
  addToBudget(added: NewTopUp, listed?: JsonObject | null): Promise<TopUpResult>;
  /** The stored limits as they are. */
  limitsRow(): Promise<LimitsRow>;
  /** Sets the limits that the fields name, as `readLimits` reads them. Invalid fields change nothing. */
  changeLimits(fields: JsonObject): Promise<LimitsResult>;
}

/** The limits of one user of a key. Only the objects that {@link userObject} names have them. */
interface UserCalls {
  /** As `reserve`, for the limits of the user and of the key. */
  reserveForUser(request: ReserveRequest): Promise<UserReservation>;
  /** The use of these limits; null: the user had no requests. */
  userStanding(limits: Limits): Promise<LimitStatus | null>;
  /** What the user has spent. */
  userSpent(): Promise<readonly Amounts[]>;
  /**
   * Deletes the object of a user who is erased. The key remembers what was spent, under the hash of the name.
   * @returns false while requests of the user run
   */
  eraseLimits(hash: string): Promise<boolean>;
  /** Returns to the key what the user's object holds in advance. */
  returnLease(): Promise<void>;
  /** Deletes the object of a user whose key is revoked. */
  clearUser(): Promise<void>;
}

const USER_OBJECT = '/u/';

/** The name of a user's object. @param user as it is stored; null: requests without a user */
export function userObject(keyId: string, user: string | null): string {
  return keyId + USER_OBJECT + (user ?? NO_USER);
}

/** The parts of an object's name. `user` is null for the object of a key. */
export function readObjectName(name: string): { readonly keyId: string; readonly user: string | null } {
  const at = name.indexOf(USER_OBJECT);
  return at < 0
    ? { keyId: name, user: null }
    : { keyId: name.slice(0, at), user: name.slice(at + USER_OBJECT.length) };
}

/** The key itself. Repeated calls change nothing. */
export interface KeyCalls {
  changeKey(change: KeyChange): Promise<KeyChangeResult>;
  /** Refuses every later change, and deletes the stored ones. */
  revokeKey(id: string): Promise<void>;
}
