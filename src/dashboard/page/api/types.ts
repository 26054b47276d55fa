/** The API's responses as the page reads them. `docs/` documents each field. */
import type { RecordView } from '../../../api/record-view.ts';
import type { KeyFacts } from '../../../auth/key-facts.ts';
import type { Row, Sums, TagGroup } from '../../../metering/report.ts';

export type { Row, Sums };
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
  /** Until when the secret before the last rotation is valid; null: it has ended. Absent: the key was never rotated. */
  readonly old_key_expires_at?: string | null;
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
interface TopUp {
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

export interface Deployment {
  readonly version: string;
  readonly commit: string | null;
  readonly version_id: string | null;
  readonly uploaded_at: string | null;
  readonly features: readonly string[];
  readonly settings: readonly Setting[];
  readonly providers: readonly ProviderStatus[];
  readonly aliases: readonly AliasStatus[];
  readonly errors: readonly ProviderError[];
  readonly in_flight: { readonly requests: number };
  readonly circuits: { readonly open: readonly OpenCircuit[] };
  readonly ledger: LedgerState;
}

export interface Setting {
  readonly setting: string;
  readonly value: string | null;
  readonly source: string;
}

export interface ProviderStatus {
  readonly id: string;
  readonly is_set_up: boolean;
  readonly credential: string;
  /** The setting of its key. */
  readonly setting: string;
  readonly base_url: string | null;
  readonly last_hour: {
    readonly calls: number;
    readonly failed_calls: number;
    readonly error_rate: number | null;
    readonly retry_rate: number | null;
    readonly median_first_token_ms: number | null;
    readonly p95_first_token_ms: number | null;
    readonly models: readonly string[];
  };
}

export interface AliasStatus {
  readonly name: string;
  readonly targets: readonly {
    readonly model: string;
    readonly weight: number;
    readonly price: { readonly currency: string; readonly input: number; readonly output: number } | null;
  }[];
}

export interface ProviderError {
  readonly provider: string;
  readonly model: string;
  readonly fault: string;
  readonly time: string;
  readonly status: number | null;
  readonly code: string;
  readonly message: string | null;
  readonly request_id: string;
}

export interface OpenCircuit {
  readonly route: string;
  readonly model: string;
  /** Null: it is open for every key. */
  readonly key_id: string | null;
  readonly failures: number;
  readonly open_until: string;
}

/** A key whose ledger object was full. */
export interface FullKey {
  readonly key_id: string;
  readonly deleted_records: number;
  readonly deleted_before: string | null;
  readonly archive_failing_since: string | null;
  readonly reason: string | null;
}

interface LedgerState {
  readonly store: string | null;
  readonly has_queue: boolean | null;
  readonly waiting_records: number | null;
  readonly has_archive: boolean | null;
  readonly full_keys: readonly FullKey[];
  readonly newest_record: string | null;
  readonly lag_ms: number | null;
  readonly lost_by_this_isolate: number;
  readonly sampled_records: number;
  readonly problem: string | null;
}

export interface Model {
  readonly id: string;
}
