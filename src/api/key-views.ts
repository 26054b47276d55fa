/** Responses about keys, teams and tokens that read usage: types for the handlers and the page. */
import type { KeyFacts } from '../auth/key-facts.ts';
import type { BudgetPeriod, WrittenLimits } from '../auth/key-limits.ts';
import type { ShownState } from '../auth/key-state.ts';
import type { KeyView, RevokedKey, TeamView, UsageToken } from '../auth/key-views.ts';
import type { JsonObject } from '../shared/json.ts';

/** What is probably not meant, such as a key that cannot be used as things are. */
export interface KeyWarning {
  /** The field that the warning is about; null: the whole key. */
  readonly param: string | null;
  readonly message: string;
}

interface Warned {
  /** Absent: there is nothing to say. */
  readonly warnings?: readonly KeyWarning[];
}

/** A changed key. */
export type ChangedKeyView = KeyView & Warned;

/** A key with its secret, which only the response that makes it has. */
export type NewKeyView = ChangedKeyView & { readonly key: string };

export type ChangedTeamView = TeamView & Warned;

/** As {@link NewKeyView}, of a token that reads usage. */
export type NewTokenView = UsageToken & { readonly key: string };

/** `GET /admin/keys` */
export interface KeyListView {
  readonly object: 'list';
  readonly data: readonly KeyView[];
  readonly tokens: readonly UsageToken[];
  /** The latest first. */
  readonly revoked: readonly RevokedKey[];
  /** The units in which a budget may be set. */
  readonly budget_units: readonly string[];
  /** The ids of keys that cannot be read. Absent: all can. */
  readonly unreadable?: readonly string[];
}

/** Amounts are in the unit of the budget. */
export interface BudgetView {
  readonly unit: string;
  /** The name of the current one. */
  readonly period: string;
  readonly limit: number;
  /** The part of `limit` that was added for this period alone. */
  readonly added?: number;
  readonly spent: number;
  readonly reserved: number;
  readonly remaining: number;
  /** The part of `spent` for requests that were never settled. */
  readonly estimated: number;
  /** The part of `spent` that was charged at its upper bound, because the provider did not report it. */
  readonly unreported: number;
  readonly resets_at: string | null;
}

export interface RateView {
  readonly limit: number;
  readonly remaining: number;
  readonly resets_in_ms: number;
}

/** The use of some limits. A field is null where there is no such limit. */
export interface LimitUse {
  readonly budget: BudgetView | null;
  /** All of them. Absent: there is one at most. */
  readonly budgets?: readonly BudgetView[];
  readonly requests: RateView | null;
  readonly tokens: RateView | null;
  readonly concurrent: { readonly limit: number; readonly running: number } | null;
}

/** What was added to a budget for one period. */
export type TopUpView = {
  readonly id: string;
  readonly time: string;
  readonly actor: string;
  readonly add: Readonly<Record<string, number>>;
  readonly per: BudgetPeriod;
  readonly period: string;
  readonly note: string;
};

/** A key without its limits. */
export type ShownKeyView = {
  readonly object: 'key';
  readonly id: string;
  readonly name: string | null;
  readonly models: readonly string[] | null;
  readonly expires_at: string | null;
  readonly created_at: string | null;
  readonly team?: string;
  /** Of the team under which a caller without a key falls. */
  readonly team_name?: string;
  /** What is stored of its responses. Absent: none are kept. */
  readonly kept?: JsonObject | undefined;
} & ShownState &
  KeyFacts;

/** The use of one user's own limits; the user is null for requests without one. */
export type UserUse = LimitUse & { readonly user: string | null };

/** A key with the use of its limits, which is absent where it has none. */
export type KeyStatusView = ShownKeyView & {
  readonly limits: WrittenLimits | null;
  /** Absent: nothing was added in this period, or the reader is no admin. */
  readonly top_ups?: readonly TopUpView[];
  readonly per_user?: UserUse;
  /** The number of ledger objects of a busy key by region. Absent: it has one. */
  readonly shards?: Readonly<Record<string, number>>;
} & Partial<LimitUse>;

/** A team, the number of its keys, and the use of its limits. */
export type TeamStatusView = Omit<TeamView, keyof WrittenLimits> &
  LimitUse & {
    readonly object: 'team';
    readonly keys: number;
    readonly limits: WrittenLimits | null;
    readonly top_ups?: readonly TopUpView[];
    /** Of a person without a key. */
    readonly per_user?: UserUse;
  };

export type AuditAction =
  | `key_${'created' | 'changed' | 'revoked'}`
  | `team_${'created' | 'changed' | 'deleted'}`
  | 'budget_added';

/** What was changed. */
export type AuditSubject =
  | { readonly key_id: string; readonly team?: undefined }
  | { readonly team: string; readonly key_id?: undefined };

/** An entry of the audit, as it is stored and listed. */
export type AuditEntry = AuditSubject & {
  /** The id of the request that made the change. */
  readonly id: string;
  readonly time: string;
  /** `admin token`, or the name of a user of Cloudflare Access. */
  readonly actor: string;
  readonly action: AuditAction;
  /** The fields that changed; null: there was no key. */
  readonly before: JsonObject | null;
  /** Null: there is no key any more. */
  readonly after: JsonObject | null;
};
