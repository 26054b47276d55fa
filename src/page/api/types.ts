/** The API's answers as the page reads them: README and the routes' own files say what each field means. */

export interface Sums {
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  readonly estimated_requests: number;
  readonly failed_requests: number;
  readonly unpriced_requests: number;
  readonly cancelled_requests: number;
  readonly cut_requests: number;
  readonly median_first_token_ms: number | null;
  readonly median_tokens_per_second: number | null;
  readonly cost: Readonly<Record<string, number>>;
  readonly estimated_cost: Readonly<Record<string, number>>;
}

export type GroupName = 'provider' | 'model' | 'key' | 'status';
type Group = GroupName | 'day' | 'hour';

export type Row = Sums & { readonly [G in Group]?: string };

export interface Report {
  readonly data: readonly Row[];
  readonly total: Sums;
}

export type Status = 'finished' | 'failed' | 'timed_out' | 'cancelled';
export const STATUSES: readonly Status[] = ['finished', 'failed', 'timed_out', 'cancelled'];

interface Attempt {
  readonly provider: string;
  readonly model: string;
  readonly status: number | null;
  readonly error_code: string | null;
  readonly ms: number | null;
}

export interface UsageRecord {
  readonly request_id: string;
  readonly time: string;
  readonly ended: string;
  readonly key_id: string;
  readonly asked: string;
  readonly provider: string;
  readonly model: string;
  readonly route: string;
  readonly status: Status;
  readonly error_code: string | null;
  readonly finish_reason: string | null;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly cached_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly vendor_events: number;
  readonly vendor_tokens: number;
  readonly first_token_ms: number | null;
  readonly total_ms: number;
  readonly bytes_out: number;
  readonly estimated: boolean;
  readonly cost: number | null;
  readonly currency: string | null;
  readonly cost_source: 'none' | 'upstream' | 'table';
  readonly price_since: string | null;
  readonly cost_estimated: boolean;
  readonly attempts?: readonly Attempt[];
  readonly dropped?: readonly string[];
  readonly changed?: readonly string[];
}

export interface RecordPage {
  readonly data: readonly UsageRecord[];
  readonly next_cursor: string | null;
}

export interface BudgetLimit {
  readonly per: 'day' | 'month' | 'total';
  readonly mode: 'hard' | 'warn';
  readonly [unit: string]: number | string;
}

export interface Limits {
  readonly budget?: BudgetLimit;
  readonly rpm?: number;
  readonly tpm?: number;
  readonly max_concurrent?: number;
  readonly max_output_tokens?: number;
}

export interface Key extends Limits {
  readonly id: string;
  readonly name: string;
  readonly models: readonly string[] | null;
  readonly expires_at: string | null;
  readonly created_at: string;
}

export interface NewKey extends Key {
  /** The only time that it is told. */
  readonly key: string;
}

interface Rate {
  readonly limit: number;
  readonly remaining: number;
}

/** A key and how it stands against its limits. */
export interface Standing {
  readonly id: string;
  readonly name: string | null;
  readonly models: readonly string[] | null;
  readonly expires_at: string | null;
  readonly created_at: string | null;
  readonly limits: Limits | null;
  readonly budget?: {
    readonly unit: string;
    readonly limit: number;
    readonly spent: number;
    readonly reserved: number;
    readonly remaining: number;
    readonly estimated: number;
    readonly resets_at: string | null;
  } | null;
  readonly requests?: Rate | null;
  readonly tokens?: Rate | null;
  readonly concurrent?: { readonly limit: number; readonly running: number } | null;
}

export interface List<Item> {
  readonly data: readonly Item[];
}

export interface Model {
  readonly id: string;
}
