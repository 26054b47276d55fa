/** The response of `GET /admin/status`, for the handler, the page and openapi.json. */
import type { Fault } from '../canonical/fault.ts';
import type { FullKey } from '../metering/ledger.ts';
import type { Price } from '../metering/pricing/price.ts';

/** What each isolate has of its own. The next request may reach another isolate. */
export interface IsolateView {
  readonly in_flight: { readonly scope: 'isolate'; readonly requests: number };
  readonly circuits: { readonly scope: 'isolate'; readonly open: readonly CircuitView[] };
}

export interface CircuitView {
  readonly route: string;
  readonly model: string;
  /** Null: it is open for every key. */
  readonly key_id: string | null;
  readonly failures: number;
  readonly open_until: string;
}

export interface DeploymentView {
  readonly version: string;
  readonly commit: string | null;
  readonly version_id: string | null;
  readonly uploaded_at: string | null;
  readonly features: readonly string[];
  readonly settings: readonly SettingView[];
  readonly providers: readonly ProviderStatus[];
  readonly aliases: readonly AliasStatus[];
  readonly errors: readonly ProviderFailure[];
  readonly ledger: LedgerView;
}

export interface SettingView {
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
  readonly last_hour: LastHour;
}

export interface LastHour {
  readonly calls: number;
  readonly failed_calls: number;
  readonly error_rate: number | null;
  /** The part of the calls that were followed by another attempt. */
  readonly retry_rate: number | null;
  readonly median_first_token_ms: number | null;
  readonly p95_first_token_ms: number | null;
  readonly models: readonly string[];
}

/** The price in force of a target. */
export type AliasPrice = Omit<Price, 'provider' | 'models'>;

export interface AliasStatus {
  readonly name: string;
  readonly targets: readonly {
    readonly model: string;
    readonly weight: number;
    readonly timeout_seconds: number | null;
    /** Null: no price is known, as for a target with `*`. */
    readonly price: AliasPrice | null;
  }[];
}

export interface ProviderFailure {
  readonly provider: string;
  readonly model: string;
  readonly fault: Fault | null;
  readonly time: string;
  readonly status: number | null;
  readonly code: string | null;
  readonly message: string | null;
  readonly request_id: string;
}

/** Null where the ledger did not answer. */
interface LedgerView {
  readonly store: string | null;
  readonly has_queue: boolean | null;
  readonly waiting_records: number | null;
  readonly has_archive: boolean | null;
  readonly full_keys: readonly FullKey[];
  readonly newest_record: string | null;
  /** For how long the newest record of this isolate has not been visible; null: it delivered none in the last hour. */
  readonly lag_ms: number | null;
  readonly lost_by_this_isolate: number;
  readonly sampled_records: number;
  readonly problem: string | null;
}
