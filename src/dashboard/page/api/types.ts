/** The API's answers as the page reads them: README and the routes' own files say what each field means. */
import type { RecordView } from '../../../api/record-view.ts';
import type { Row, Sums } from '../../../metering/report.ts';

export type { Row, Sums };
export type UsageRecord = RecordView;
export type Status = UsageRecord['status'];

/** What the overview groups by. */
export type GroupName = 'provider' | 'model' | 'key' | 'status';

export interface Report {
  readonly data: readonly Row[];
  readonly total: Sums;
}

/** Requests that were refused before any upstream was asked. */
export interface RefusalRow {
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

/** A key that was made or changed. */
export interface NewKey extends Key {
  /** What keeps it from being of use. */
  readonly warnings?: readonly { readonly message: string }[];
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

export interface Keys extends List<Key> {
  /** What a budget may be counted in. */
  readonly budget_units: readonly string[];
}

export interface Model {
  readonly id: string;
}
