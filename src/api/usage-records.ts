/** `GET /v1/usage/records` and `/v1/usage/records/:id`: usage records of the calling key, or of any key for the admin. */
import type { TokenFilter } from '../auth/key-views.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { type ParamValues, readParams } from '../http/query.ts';
import { type Answer, jsonResponse } from '../http/respond.ts';
import type { ListedRecord, RecordQuery } from '../metering/ledger.ts';
import { matchesFilter } from '../metering/report.ts';
import { firstIdAt, isRequestId } from '../metering/time.ts';
import { ok, type Result } from '../shared/result.ts';
import { FACT_FILTERS, KEY_FILTER, RECORD_PARAMS } from './parameters.ts';
import { viewRecord } from './record-view.ts';
import { readFactFilter, readUsageQuery, spanOf, type UsageScope } from './usage.ts';
import type { RecordPageView } from './usage-views.ts';

/** Parameters that select records by a field of the same name. */
const FILTERS = ['provider', 'route', 'client', 'fault', 'error'] as const;

/** `GET /v1/usage/records`: one page of usage records, newest first. Refuses an invalid time span, filter or cursor. */
export async function handleListRecords(request: Request, context: RequestContext): Promise<Answer> {
  const read = await readUsageQuery(request, RECORD_PARAMS, context);
  if (read.kind === 'error') return read.error;
  const { scope, values } = read.value;
  const { isAdmin, hasRecords } = scope;
  const query = recordQuery(values, scope);
  if (query.kind === 'error') return query.error;
  const facts = await readFactFilter(values, context);
  if (facts.kind === 'error') return facts.error;
  const page =
    hasRecords && facts.value !== null
      ? await context.ledger.list({ ...query.value, only: { ...query.value.only, ...facts.value } })
      : ok({ records: [], next: null });
  if (page.kind === 'error') return page.error;
  const { records, next } = page.value;
  const view: RecordPageView = {
    object: 'list',
    data: records.map((record) => viewRecord(record, isAdmin)),
    has_more: next !== null,
    next_cursor: next,
  };
  return jsonResponse(view);
}

/** One usage record by its request id. `not_found` also for a record that the caller may not read. */
export async function handleFindRecord(
  request: Request,
  context: RequestContext,
  { id = '' }: { readonly id?: string | undefined },
): Promise<Answer> {
  const read = await readUsageQuery(request, KEY_FILTER, context);
  if (read.kind === 'error') return read.error;
  const { filter, isAdmin, keyId, hasRecords } = read.value.scope;
  const found = hasRecords && isRequestId(id) ? await context.ledger.find(id, keyId) : ok(null);
  if (found.kind === 'error') return found.error;
  if (found.value === null || (filter !== null && !(await isWithin(found.value, filter, context))))
    return apiError('not_found', 'There is no record of such a request');
  return jsonResponse(viewRecord(found.value, isAdmin));
}

/** Whether a record is one that a token may read. Its key has been compared. */
async function isWithin(
  record: ListedRecord,
  { key: _, ...filter }: TokenFilter,
  context: RequestContext,
): Promise<boolean> {
  const values = readParams(new URLSearchParams(filter), FACT_FILTERS, context.arrivedAt);
  const facts = values.kind === 'error' ? values : await readFactFilter(values.value, context);
  if (facts.kind === 'error' || facts.value === null) return false;
  const { provider } = filter;
  return matchesFilter(record, { ...facts.value, ...(provider !== undefined && { provider }) });
}

function recordQuery(
  values: ParamValues<typeof RECORD_PARAMS>,
  { keyId }: UsageScope,
): Result<RecordQuery, ApiError> {
  const span = spanOf(values);
  if (span.kind === 'error') return span;
  const { search, truncated, cursor, model, status: statuses, limit } = values;
  const only = {
    ...Object.fromEntries(FILTERS.flatMap((name) => (values[name] ? [[name, values[name]]] : []))),
    ...(truncated && { truncated: true as const }),
    ...(search && { search }),
  };
  const fromId = firstIdAt(span.value.fromMs);
  const end = firstIdAt(span.value.toMs);
  const next = cursor !== null && cursor.beforeId <= end ? cursor : { beforeId: end };
  return ok({ fromId, ...next, keyId, model, statuses, limit, only });
}
