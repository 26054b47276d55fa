/** What a route's handler gets besides the request: settings, ports to the outside, shared state, and facts of the request. */

import type { ModelLists } from '../api/model-lists.ts';
import type { AccessUser, Caller } from '../auth/caller.ts';
import type { KeyStanding, LimitStatus, Limits, NewTopUp, TopUpResult } from '../auth/key-limits.ts';
import type { KeyChange, KeyChangeResult, KeyStore, KnownKeys } from '../auth/keys.ts';
import type { KnownPeople, PeopleChange, PeopleFields, TeamRules } from '../auth/people.ts';
import type { KnownTeams, Team } from '../auth/teams.ts';
import type { HashUser } from '../auth/user-hash.ts';
import type { ApiError } from '../canonical/error.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { LearnedRefusals } from '../fitting/learned.ts';
import type { InFlight } from '../metering/in-flight.ts';
import type { KnownCallers } from '../metering/known-callers.ts';
import type { LedgerStore } from '../metering/kv-ledger.ts';
import type { Ledger, LedgerStatus, ListedRecord } from '../metering/ledger.ts';
import type { PriceBook } from '../metering/pricing/price-book.ts';
import type { RecordWriter } from '../metering/record-writer.ts';
import type { ClientProtocol } from '../protocols/shared/client-protocol.ts';
import type { CircuitBreakers } from '../routing/circuit-breaker.ts';
import type { PlaceCheck } from '../settings/placement.ts';
import type { Settings } from '../settings/settings.ts';
import type { Running } from '../settings/version.ts';
import type { JsonObject } from '../shared/json.ts';
import type { Log } from '../shared/log-event.ts';
import type { Result } from '../shared/result.ts';
import type { TakeMemory } from '../stream/memory.ts';
import type { Clock } from '../stream/timers.ts';
import type { Fetch } from '../upstream/fetch.ts';
import type { Deadline } from './clock.ts';
import type { ErasedCounts, Erasure } from './erasure.ts';
import type { Users } from './users.ts';

export interface RequestContext {
  readonly settings: Settings;
  readonly ports: Ports;
  readonly ledger: Ledger;
  readonly records: Pick<RecordWriter, 'write'>;
  readonly callers: CallerStores;
  readonly keyObjects: KeyObjects;
  /** Null where nothing is kept. */
  readonly showKept: ShowKept | null;
  readonly users: Users;
  /** What features store of users. */
  readonly userData: UserData;
  readonly upstreams: Upstreams;
  readonly takeMemory: TakeMemory;
  readonly prices: PriceBook;
  /** The caller that the host Worker identified; null: `AUTH` decides. */
  readonly hostCaller: Caller | null;
  /** The user of the request's token of Cloudflare Access, verified; null: no token. */
  readonly accessUser: AccessUser | null;
  /** The client protocol of the request's path. */
  readonly client: ErrorClient;
  readonly known: RequestState;
  readonly deployment: DeploymentFacts;
  readonly delivery: DeliveryState;
  /** Of this isolate. */
  readonly inFlight: InFlight;
  readonly deadline: Deadline;
  readonly requestId: string;
  /** In ms since the epoch. */
  readonly arrivedAt: number;
  /** The continent that the request comes from, as Cloudflare names it; null: it is not known. */
  readonly continent: string | null;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** What KV has of callers, and the isolate's memory of it. */
interface CallerStores {
  readonly keys: KnownKeys;
  readonly teams: KnownTeams;
  readonly people: KnownPeople;
  /** Callers under `AUTH=passthrough` whose credential an upstream has accepted. */
  readonly accepted: KnownCallers;
}

/** What an isolate keeps of the providers that it calls. */
interface Upstreams {
  readonly circuits: CircuitBreakers;
  readonly credentials: Credentials;
  /** What refusals said about models. */
  readonly learned: LearnedRefusals;
  readonly modelLists: ModelLists;
}

/** What holds for all requests of a deployment, besides its settings. */
interface DeploymentFacts {
  readonly enforces: Enforced;
  /** Users of Cloudflare Access may be admins. */
  readonly hasAccessAdmins: boolean;
  /** Whether `JURISDICTION` is that of the objects. */
  readonly placeCheck: PlaceCheck;
  /** What it consists of. */
  readonly running: Running;
}

/** How far records have come. */
interface DeliveryState {
  /** Of the store of records. */
  readonly status: () => Promise<LedgerStatus>;
  /** What this isolate delivered. */
  readonly byIsolate: Pick<RecordWriter, 'last' | 'lost'>;
}

/** What the listed features enforce. A key that needs more is refused. */
interface Enforced {
  /** The limits of keys: the feature `ledger`. */
  readonly limits: boolean;
  /** Keys that require a user, and limits for each user: the feature `attribution`. */
  readonly users: boolean;
  /** Teams that list groups: tokens of Cloudflare Access have a claim of them. */
  readonly groups: boolean;
}

/** The part of a client protocol that writes errors before the response's head. */
export type ErrorClient = Pick<ClientProtocol<unknown>, 'id' | 'errorResponse'>;

/** Facts that become known while a request is handled. A refused request is logged and counted with them. */
interface RequestState {
  /** The caller's key id; `none` until the caller is identified. */
  keyId: string;
  /** Who the admin is: `admin token`, or the name of a user of Cloudflare Access. Null until an admin is identified. */
  actor: string | null;
  /** The team of the lead who sent the request. Null: the sender is no team lead, or the route is not open to leads. */
  team: string | null;
  /** The request was sent to an upstream, so it has a usage record. */
  isSentOn: boolean;
  /** The ledger object of the key, or of its shard, that admits the request: its session is compared there. Absent: none yet. */
  admittedBy?: string;
}

/** Everything that Weir takes from outside: stores, the network, time, randomness and the log. */
export interface Ports {
  /** Keys and usage records (`WEIR_KV`). */
  readonly store: KeyStore & LedgerStore;
  /** The rate limiter in front of the key store (`LIMITER`), or null where none is bound. */
  readonly limiter: Pick<RateLimit, 'limit'> | null;
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** A random UUID (version 4). */
  readonly random: () => string;
  readonly log: Log;
}

/** Reads and changes what the ledger object of a key holds. The feature `ledger` implements it. */
export interface KeyObjects {
  /** @param listed the limits that KV lists for the key, for an object that never had any */
  readLimitStatus(
    context: KeyCallContext,
    keyId: string,
    listed: JsonObject,
  ): Promise<Result<KeyStanding, ApiError>>;
  /**
   * Raises the current period of one budget. The same id counts once.
   * @param listed the limits that KV lists for the key
   */
  addToBudget(
    context: KeyCallContext,
    keyId: string,
    added: NewTopUp,
    listed: JsonObject,
  ): Promise<Result<TopUpResult, ApiError>>;
  /** The stored limits as they are, and why they cannot be read (`problem`). */
  readLimitsRow(
    context: KeyCallContext,
    keyId: string,
  ): Promise<Result<{ readonly row: string | null; readonly problem: string | null }, ApiError>>;
  /**
   * The use of a user's own limits; null: the user had no requests.
   * @param user as it is stored; null: requests without a user
   * @param limits of the key
   */
  readUserStatus(
    context: KeyCallContext,
    keyId: string,
    user: string | null,
    limits: Limits,
  ): Promise<Result<LimitStatus | null, ApiError>>;
  /**
   * Sets the limits of a new key.
   * @returns the limits that are now set, in the form in which requests set them
   */
  setLimits(
    context: KeyCallContext,
    keyId: string,
    fields: JsonObject,
  ): Promise<Result<JsonObject | null, ApiError>>;
  /** Changes a key and its limits. Concurrent changes of one key are applied one after the other. */
  changeKey(context: KeyCallContext, change: KeyChange): Promise<Result<KeyChangeResult, ApiError>>;
  /** Makes the object refuse changes of a revoked key, and deletes the stored changes. */
  revokeKey(context: KeyCallContext, keyId: string): Promise<void>;
  /** The use of a team's limits. @param listed the limits that KV lists for the team */
  readTeamStatus(
    context: KeyCallContext,
    team: string,
    listed: JsonObject,
  ): Promise<Result<KeyStanding, ApiError>>;
  /** As `addToBudget`, of a team. */
  addToTeamBudget(
    context: KeyCallContext,
    team: string,
    added: NewTopUp,
    listed: JsonObject,
  ): Promise<Result<TopUpResult, ApiError>>;
  /** Creates or changes a team, which has the form of a key. */
  changeTeam(context: KeyCallContext, change: KeyChange): Promise<Result<KeyChangeResult, ApiError>>;
  /** Changes who falls under a team; without a field, nothing. */
  changePeople(
    context: KeyCallContext,
    team: Pick<TeamRules, 'id' | 'created_at'>,
    change: PeopleChange,
  ): Promise<Result<PeopleResult, ApiError>>;
  /** The use of the limits of one person of a team; null: the person had no requests. @param limits of the team */
  readPersonStatus(
    context: KeyCallContext,
    team: string,
    person: string,
    limits: Limits,
  ): Promise<Result<LimitStatus | null, ApiError>>;
  /** Deletes a team unless it has keys. @returns how many it has */
  deleteTeam(
    context: KeyCallContext,
    team: Pick<Team, 'id' | 'created_at'>,
  ): Promise<Result<number, ApiError>>;
}

export type PeopleResult =
  /** What was set, and is now. */
  | { readonly kind: 'changed'; readonly before: PeopleFields; readonly after: PeopleFields }
  /** Nothing is changed. */
  | { readonly kind: 'invalid'; readonly message: string; readonly param: string };

/** The responses that an owner keeps, and how many it may keep. The feature `durable-responses` implements it. */
export type ShowKept = (owner: KeptOwner, context: RequestContext) => Promise<Result<JsonObject, ApiError>>;

export interface KeptOwner {
  readonly keyId: string;
  /** Whom the key, the host or Cloudflare Access fixes; null: no user. */
  readonly fixedUser: string | null;
}

/** What a feature stores of users. No two features bring the same part. */
export interface UserData {
  /** In ledger objects and on the way to them. */
  readonly ledger?: readonly UserStore[];
  /** In kept responses. */
  readonly kept?: readonly UserStore[];
  /** In the objects of people of teams. */
  readonly people?: readonly UserStore[];
  /** Absent: there are no ledger objects, so no key has one. */
  readonly keyIdsAfter?: ListKeyIds;
  /** Absent: erasures are in KV, and their steps are taken by requests and by the daily run. */
  readonly erasures?: Erasures;
}

/** A store that has data of users. Features bring theirs, and `privacy` has those of KV. */
export type UserStore = WholeUserStore | KeyedUserStore;

/** A store that is searched as a whole. */
interface WholeUserStore {
  readonly scope: 'all';
  /** @param names all forms of the name */
  readonly read: (context: RequestContext, names: readonly string[]) => AsyncIterable<UserLine>;
  readonly erase: (context: RequestContext, user: ErasedUser, cursor: string | null) => Promise<ErasedPart>;
  /** Records may arrive after the user is erased, so that the store is searched a second time. */
  readonly hasLate?: true;
}

/** A store that is searched for one caller at a time. */
interface KeyedUserStore {
  readonly scope: 'key';
  /** @param names all forms of the name */
  readonly read: (
    context: RequestContext,
    names: readonly string[],
    keyId: string,
  ) => AsyncIterable<UserLine>;
  readonly erase: (
    context: RequestContext,
    user: ErasedUser,
    keyId: string,
    cursor: string | null,
  ) => Promise<ErasedPart>;
  readonly hasLate?: true;
}

/** Who is erased, for one step. */
export interface ErasedUser {
  /** All forms of the name; empty in the second search, which knows the hashes alone. */
  readonly names: readonly string[];
  /** Whether a stored name is one of the user's. */
  readonly isName: (name: string) => Promise<boolean>;
  readonly hash: HashUser;
  /** Only records with a smaller id are erased: the user may have come back. Null: all. */
  readonly beforeId: string | null;
  /** Keys that were the user's own. */
  readonly ownKeys: readonly string[];
}

/** What one bounded part of an erasure did. Repeating it changes nothing. */
export interface ErasedPart {
  /** Where the next part begins; null: the store has nothing more. */
  readonly next: string | null;
  /** Calls to stores that it took, about. */
  readonly calls: number;
  readonly counts?: Partial<ErasedCounts>;
  /** The same part must be repeated after this time, because requests of the user run. */
  readonly waitMs?: number;
  readonly callers?: readonly string[];
  readonly ownKeys?: readonly string[];
}

/** Starts erasures, and knows how far they are. */
export interface Erasures {
  /** @returns the erasure of the same user that runs already, or this one */
  start(context: RequestContext, erasure: Erasure): Promise<Erasure>;
  find(context: RequestContext, id: string): Promise<Erasure | null>;
}

/** A line of what is stored about a user. `fields` name the key (`key_id`) where it has one. */
export type UserLine =
  | { readonly type: 'record'; readonly record: ListedRecord }
  /** `input` and `response` are JSON. */
  | {
      readonly type: 'response';
      readonly keyId: string;
      readonly id: string;
      readonly input: string;
      readonly response: string;
    }
  | { readonly type: 'key' | 'token' | 'sum' | 'spent' | 'audit'; readonly fields: JsonObject };

/** Up to 1,000 ids of all keys that have objects, in order. @param after null: from the first one */
export type ListKeyIds = (after: string | null) => Promise<readonly string[]>;

export type KeyCallContext = Pick<RequestContext, 'ports' | 'requestId'>;
