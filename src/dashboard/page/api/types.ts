/** The API's responses as the page reads them. `docs/` documents each field. */
import type * as views from '../../../api/key-views.ts';
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
import type { WrittenBudget, WrittenLimits } from '../../../auth/key-limits.ts';
import type { KeyView, RevokedKey, TeamView, UsageToken } from '../../../auth/key-views.ts';
import type { FullKey } from '../../../metering/ledger.ts';
import type { NamedGroups, Row, Sums, TagGroup } from '../../../metering/report.ts';
import type { Distribution, Spread } from '../../../metering/speeds.ts';

export type { Distribution, NamedGroups, RevokedKey, Row, Spread, Sums, UsageToken };
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

export type Key = KeyView;
export type Keys = views.KeyListView;
export type NewKey = views.NewKeyView;
export type KeyStatus = views.KeyStatusView;
export type Shard = views.ShardView;
export type Team = TeamView;
export type TeamStatus = views.TeamStatusView;
export type NewUsageToken = views.NewTokenView;
export type BudgetUse = views.BudgetView;
export type TopUp = views.TopUpView;
export type AuditEntry = views.AuditEntry;

export type BudgetLimit = WrittenBudget;
/** A list where there are several, which all hold. */
export type BudgetLimits = WrittenLimits['budget'];
export type Limits = WrittenLimits;
/** The use of limits; empty for a key that has none. */
export type LimitUse = Partial<views.LimitUse>;

export interface List<Item> {
  readonly data: readonly Item[];
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
