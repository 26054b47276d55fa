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
import type { RecordPageView, RefusalsView, ReportView } from '../../../api/usage-views.ts';
import type { WrittenBudget, WrittenLimits } from '../../../auth/key-limits.ts';
import type { KeyView, RevokedKey, TeamView, UsageToken } from '../../../auth/key-views.ts';
import type { FullKey } from '../../../metering/ledger.ts';
import type { RefusalSum } from '../../../metering/refusals.ts';
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

export type Report = ReportView;
export type RefusalRow = RefusalSum;
/** The total is null where the active filters are none by which refusals are counted. */
export type Refusals = Pick<RefusalsView, 'data'> & {
  readonly total: Readonly<Record<keyof RefusalsView['total'], number | null>>;
};
export type RecordPage = RecordPageView;

export type Key = KeyView;
export type Keys = views.KeyListView;
export type NewKey = views.NewKeyView;
export type KeyStatus = views.KeyStatusView;
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
