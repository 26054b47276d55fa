/** Responses with usage, records and refused requests: types for the handlers and the page. */
import type { RefusalGroup, RefusalSum } from '../metering/refusals.ts';
import type { Group, NamedGroups, Row, Sums } from '../metering/report.ts';
import type { Distribution } from '../metering/speeds.ts';
import type { RecordView } from './record-view.ts';

interface SpanView {
  readonly object: 'list';
  readonly from: string;
  readonly to: string;
}

/** The row of a report, with the name of its team. Absent: it has no team, or the team is deleted. */
export type NamedRow = Row & { readonly team_name?: string };

/** `GET /v1/usage` */
export interface ReportView extends SpanView {
  readonly group_by: readonly Group[];
  readonly data: readonly NamedRow[];
  readonly total: Sums;
  readonly distribution: Distribution;
  readonly named: NamedGroups;
}

/** `GET /v1/usage/refusals`: requests that were refused before any upstream was called. */
export interface RefusalsView extends SpanView {
  readonly group_by: readonly RefusalGroup[];
  readonly data: readonly RefusalSum[];
  readonly total: { readonly refused_requests: number };
}

/** `GET /v1/usage/records` */
export interface RecordPageView {
  readonly object: 'list';
  /** The latest first. */
  readonly data: readonly RecordView[];
  readonly has_more: boolean;
  /** Null: this is the last page. */
  readonly next_cursor: string | null;
}
