/** `GET /v1/usage`: the calling key's metered usage, or everyone's for the admin, as JSON or CSV (M5, L7). */

import type { RequestContext } from '../http/context.ts';
import { errorResponse, jsonResponse } from '../http/respond.ts';
import { FILTERS, GROUPS, Report, type ReportFilter } from '../metering/report.ts';
import { MAX_REPORT_ROWS } from '../shared/limits.ts';
import { ok } from '../shared/result.ts';
import { csvResponse } from './csv.ts';
import {
  invalid,
  type QueryRefusal,
  readFormat,
  readGroups,
  readStatuses,
  readTimeSpan,
  readUsageScope,
} from './usage-query.ts';

export async function handleUsage(request: Request, context: RequestContext): Promise<Response> {
  const params = new URL(request.url).searchParams;
  const scope = await readUsageScope(request, params, context);
  if (scope.kind === 'error') return errorResponse(scope.error);
  const read = readGroups(params, GROUPS, 'day', scope.isAdmin);
  if (read.kind === 'error') return errorResponse(read.error);
  const span = readTimeSpan(params, context.arrivedAt);
  if (span.kind === 'error') return errorResponse(span.error);
  const form = readFormat(params);
  if (form.kind === 'error') return errorResponse(form.error);
  const filtered = readFilter(params);
  if (filtered.kind === 'error') return errorResponse(filtered.error);
  const { only } = filtered;
  const { from, to, fromMs, toMs } = span;
  const { groups } = read;
  const result = scope.hasRecords
    ? await context.ledger.report({ fromMs, toMs, keyId: scope.keyId, groups, only })
    : ok(new Report(groups));
  if (result.kind === 'error') return errorResponse(result.error);
  const { rows, total, isTooLarge } = result.value;
  if (isTooLarge) return errorResponse(TOO_LARGE.error);
  return form.format === 'csv'
    ? csvResponse(rows, groups, `usage-${from.slice(0, 10)}-${to.slice(0, 10)}`)
    : jsonResponse({ object: 'list', from, to, group_by: groups, data: rows, total });
}

const TOO_LARGE = invalid(`A report has at most ${MAX_REPORT_ROWS} rows: group by less`, 'group_by');

/** Each filter takes one value, as the rows have it. */
function readFilter(
  params: URLSearchParams,
): { readonly kind: 'filter'; readonly only: ReportFilter } | QueryRefusal {
  const read = readStatuses(params);
  if (read.kind === 'error') return read;
  if (read.statuses !== null && read.statuses.length > 1)
    return invalid('A report is narrowed to one status: group_by=status has each', 'status');
  const given = FILTERS.flatMap((name) => {
    const value = params.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  return { kind: 'filter', only: Object.fromEntries(given) };
}
