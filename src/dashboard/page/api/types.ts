/** The API's responses as the page reads them. `docs/` documents each field. */
import type { RecordView } from '../../../api/record-view.ts';
import type {
  AliasStatus,
  CircuitView,
  DeploymentView,
  IsolateView,
  ProviderFailure,
  ProviderStatus,
  SettingView,
} from '../../../api/status-view.ts';
import type { KeyFacts } from '../../../auth/key-facts.ts';
import type { FullKey } from '../../../metering/ledger.ts';
import type { NamedGroups, Row, Sums, TagGroup } from '../../../metering/report.ts';
import type { Distribution, Spread } from '../../../metering/speeds.ts';

export type { Distribution, NamedGroups, Row, Spread, Sums };
export type UsageRecord = RecordView;
export type Status = UsageRecord['status'];

/** A grouping of the overview. */
export type GroupName =
  | 'fault'
  | 'error'
  | 'provider'
  | 'model'
  | 'key'
  | 'status'
  | 'user'
  | 'session'
  | 'app'
  | TagGroup;

export interface Report {
  readonly data: readonly Row[];
  readonly total: Sums;
  readonly distribution: Distribution;
  readonly named: NamedGroups;
}

/** Requests that were refused before any upstream was called. */
export interface RefusalRow {
  readonly hour?: string;
  readonly day?: string;
  readonly code?: string;
  readonly key?: string;
  readonly refused_requests: number;
}

export interface Refusals {
  readonly data: readonly RefusalRow[];
  readonly total: { readonly refused_requests: number | null };
}

export interface RecordPage {
  readonly data: readonly UsageRecord[];
  readonly next_cursor: string | null;
}

export interface BudgetLimit {
  readonly per: 'day' | 'week' | 'month' | 'total';
  readonly mode: 'hard' | 'running' | 'warn';
  readonly [unit: string]: number | string;
}

/** A list where there are several, which all hold. */
export type BudgetLimits = BudgetLimit | readonly BudgetLimit[] | undefined;

export interface Limits {
  readonly budget?: Exclude<BudgetLimits, undefined>;
  readonly rpm?: number;
  readonly tpm?: number;
  readonly max_concurrent?: number;
  readonly max_output_tokens?: number;
  /** The limits of each user of the key. */
  readonly per_user?: Limits & { readonly max_users?: number };
}

export interface Key extends Limits, KeyFacts {
  readonly id: string;
  readonly name: string;
  readonly models: readonly string[] | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  /** Its requests are refused until it is enabled. */
  readonly disabled?: boolean;
  /** The id of its team. */
  readonly team?: string;
  /** Until when the secret before the last rotation is valid; null: it has ended. Absent: the key was never rotated. */
  readonly old_key_expires_at?: string | null;
}

/** Limits over several keys. */
export interface Team extends Limits {
  readonly id: string;
  readonly name: string;
  readonly models: readonly string[] | null;
  readonly created_at: string;
  /** The limits of each of its keys that sets none of that kind. */
  readonly per_key?: Limits;
}

/** A team, the number of its keys, and the use of its limits. */
export interface TeamStatus extends LimitUse {
  readonly keys: number;
  readonly top_ups?: readonly TopUp[];
}

/** The response to a created or changed key. */
export interface NewKey extends Key {
  /** Reasons why the key can't be used. */
  readonly warnings?: readonly { readonly message: string }[];
  /** The secret. Only the response that creates the key has it. */
  readonly key: string;
}

interface Rate {
  readonly limit: number;
  readonly remaining: number;
}

export interface BudgetUse {
  readonly unit: string;
  readonly limit: number;
  /** The part of `limit` for this period alone. */
  readonly added?: number;
  readonly spent: number;
  readonly reserved: number;
  readonly remaining: number;
  readonly estimated: number;
  /** The part of `spent` at its upper bound, because the provider reported no usage. */
  readonly unreported?: number;
  readonly resets_at: string | null;
}

/** What was added to a budget for one period. */
export interface TopUp {
  readonly id: string;
  readonly time: string;
  readonly actor: string;
  readonly add: Readonly<Record<string, number>>;
  readonly period: string;
  readonly note: string;
}

/** The use of some limits. */
export interface LimitUse {
  readonly budget?: BudgetUse | null;
  /** All of them, where there are several. */
  readonly budgets?: readonly BudgetUse[];
  readonly requests?: Rate | null;
  readonly tokens?: Rate | null;
  readonly concurrent?: { readonly limit: number; readonly running: number } | null;
}

/** One of the ledger objects of a busy key. */
export type Shard = Readonly<Record<string, string | number | boolean | null>>;

/** A key and the use of its limits. */
export interface KeyStatus extends LimitUse {
  readonly id: string;
  readonly name: string | null;
  /** The user whom the key, Cloudflare Access or the host names. */
  readonly user?: string;
  readonly models: readonly string[] | null;
  readonly expires_at: string | null;
  readonly created_at: string | null;
  readonly limits: Limits | null;
  readonly top_ups?: readonly TopUp[];
  /** The ledger objects over which a busy key is spread. Absent: it has one. */
  readonly shards?: readonly Shard[];
  /** The use of one user's own limits; the user is null for requests without one. */
  readonly per_user?: LimitUse & { readonly user: string | null };
}

export interface List<Item> {
  readonly data: readonly Item[];
}

export interface RevokedKey {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly revoked_at: string;
}

/** A token that reads usage. */
export interface UsageToken {
  readonly id: string;
  readonly name: string;
  readonly filter: Readonly<Record<string, string>> | null;
  readonly expires_at: string | null;
  readonly created_at: string;
}

/** The response that creates it, the only one with the secret. */
export interface NewUsageToken extends UsageToken {
  readonly key: string;
}

export interface Keys extends List<Key> {
  readonly tokens: readonly UsageToken[];
  /** The latest first. */
  readonly revoked: readonly RevokedKey[];
  /** The units in which a budget may be set. */
  readonly budget_units: readonly string[];
}

export interface AuditEntry {
  readonly id: string;
  readonly time: string;
  readonly actor: string;
  readonly action: string;
  readonly key_id: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

export interface AuditPage extends List<AuditEntry> {
  readonly has_more: boolean;
}

/** The response of the status. */
export type Deployment = IsolateView & DeploymentView;
export type { AliasStatus, CircuitView, FullKey, ProviderFailure, ProviderStatus, SettingView };

export interface Model {
  readonly id: string;
}
