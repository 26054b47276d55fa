/** `GET /v1/usage/refusals`: how many requests were refused before any upstream was asked, by code, key, hour and day (M6). */

import type { RequestContext } from '../http/context.ts';
import { errorResponse, jsonResponse } from '../http/respond.ts';
import { REFUSAL_GROUPS, RefusalReport } from '../metering/refusals.ts';
import { HOUR_MS } from '../metering/time.ts';
import { MAX_REPORT_ROWS } from '../shared/limits.ts';
import { ok } from '../shared/result.ts';
import { linesResponse } from './csv.ts';
import { invalid, readFormat, readGroups, readTimeSpan, readUsageScope } from './usage-query.ts';

export async function handleRefusals(request: Request, context: RequestContext): Promise<Response> {
  const params = new URL(request.url).searchParams;
  const scope = await readUsageScope(request, params, context);
  if (scope.kind === 'error') return errorResponse(scope.error);
  const read = readGroups(params, REFUSAL_GROUPS, 'code', scope.isAdmin);
  if (read.kind === 'error') return errorResponse(read.error);
  const span = readTimeSpan(params, context.arrivedAt);
  if (span.kind === 'error') return errorResponse(span.error);
  const form = readFormat(params);
  if (form.kind === 'error') return errorResponse(form.error);
  const { from, to, fromMs, toMs } = span;
  const { groups } = read;
  // An hour of which a part is asked for counts whole.
  const hours = { fromHour: Math.floor(fromMs / HOUR_MS), toHour: Math.ceil(toMs / HOUR_MS) };
  const found = scope.hasRecords
    ? await context.ledger.refusals({ ...hours, keyId: scope.keyId, groups })
    : ok([]);
  if (found.kind === 'error') return errorResponse(found.error);
  const report = new RefusalReport(groups);
  for (const row of found.value) report.add(row);
  if (report.isTooLarge) return errorResponse(TOO_LARGE.error);
  const { rows, total } = report;
  if (form.format === 'json') {
    const sums = { data: rows, total: { refused_requests: total } };
    return jsonResponse({ object: 'list', from, to, group_by: groups, ...sums });
  }
  const columns = [...groups, 'refused_requests'] as const;
  const lines = rows.map((row) => columns.map((column) => String(row[column])));
  return linesResponse([columns, ...lines], `refusals-${from.slice(0, 10)}-${to.slice(0, 10)}`);
}

const TOO_LARGE = invalid(`A report has at most ${MAX_REPORT_ROWS} rows: group by less`, 'group_by');
