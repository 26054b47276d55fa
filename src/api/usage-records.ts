/** `GET /v1/usage/records` and `/v1/usage/records/:id`: usage records of the calling key, or of any key for the admin. */
import { invalidField } from '../auth/body-fields.ts';
import type { TokenFilter } from '../auth/usage-tokens.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { type Answer, jsonResponse } from '../http/respond.ts';
import { type ListedRecord, type RecordQuery, readCursor } from '../metering/ledger.ts';
import { matchesFilter } from '../metering/report.ts';
import { firstIdAt, isRequestId } from '../metering/time.ts';
import { ok, type Result } from '../shared/result.ts';
import { viewRecord } from './record-view.ts';
import {
  NAMED_FACTS,
  readFactFilter,
  readStatuses,
  readTimeSpan,
  readUsageScope,
  SPAN_PARAMS,
  type UsageScope,
} from './usage.ts';

/** Records in one page of a list. */
const MAX_LIST_RECORDS = 1000;

const DEFAULT_LIMIT = 100;
const MAX_SEARCH_CHARS = 200;
/** Parameters that select records by a field of the same name. */
const FILTERS = ['provider', 'route', 'client', 'fault', 'error'] as const;

/** The parameters of `GET /v1/usage/records`. */
export const RECORD_PARAMS = [
  ...SPAN_PARAMS,
  'limit',
  'cursor',
  'search',
  'key',
  'model',
  'status',
  'truncated',
  ...FILTERS,
  ...NAMED_FACTS,
  'tag',
] as const;

/** `GET /v1/usage/records`: one page of usage records, newest first. Refuses an invalid time span, filter or cursor. */
export async function handleListRecords(request: Request, context: RequestContext): Promise<Answer> {
  const params = new URL(request.url).searchParams;
  const scope = await readUsageScope(request, params, RECORD_PARAMS, context);
  if (scope.kind === 'error') return scope.error;
  const { isAdmin, hasRecords } = scope.value;
  const query = readRecordQuery(params, context.arrivedAt, scope.value);
  if (query.kind === 'error') return query.error;
  const facts = await readFactFilter(params, context);
  if (facts.kind === 'error') return facts.error;
  const page =
    hasRecords && facts.value !== null
      ? await context.ledger.list({ ...query.value, only: { ...query.value.only, ...facts.value } })
      : ok({ records: [], next: null });
  if (page.kind === 'error') return page.error;
  const { records, next } = page.value;
  return jsonResponse({
    object: 'list',
    data: records.map((record) => viewRecord(record, isAdmin)),
    has_more: next !== null,
    next_cursor: next,
  });
}

/** One usage record by its request id. `not_found` also for a record that the caller may not read. */
export async function handleFindRecord(
  request: Request,
  context: RequestContext,
  { id = '' }: { readonly id?: string | undefined },
): Promise<Answer> {
  const params = new URL(request.url).searchParams;
  const scope = await readUsageScope(request, params, ['key'], context);
  if (scope.kind === 'error') return scope.error;
  const { filter, isAdmin, keyId, hasRecords } = scope.value;
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
  const facts = await readFactFilter(new URLSearchParams(filter), context);
  if (facts.kind === 'error' || facts.value === null) return false;
  const { provider } = filter;
  return matchesFilter(record, { ...facts.value, ...(provider !== undefined && { provider }) });
}

function readRecordQuery(
  params: URLSearchParams,
  nowMs: number,
  { keyId }: UsageScope,
): Result<RecordQuery, ApiError> {
  const span = readTimeSpan(params, nowMs);
  if (span.kind === 'error') return span;
  const statuses = readStatuses(params);
  if (statuses.kind === 'error') return statuses;
  const limit = readListLimit(params);
  if (limit.kind === 'error') return limit;
  const cursor = params.get('cursor');
  const position = cursor === null ? null : readCursor(cursor);
  if (cursor !== null && position === null)
    return invalidField('cursor must be the next_cursor of the page before', 'cursor');
  const truncated = params.get('truncated');
  if (truncated !== null && truncated !== 'true') return invalidField('truncated takes true', 'truncated');
  const search = params.get('search')?.trim().toLowerCase() ?? '';
  if (search.length > MAX_SEARCH_CHARS)
    return invalidField(`search has at most ${MAX_SEARCH_CHARS} characters`, 'search');
  const only = {
    ...Object.fromEntries(FILTERS.flatMap((name) => (params.get(name) ? [[name, params.get(name)]] : []))),
    ...(truncated && { truncated: true as const }),
    ...(search && { search }),
  };
  const fromId = firstIdAt(span.value.fromMs);
  const end = firstIdAt(span.value.toMs);
  const next = position !== null && position.beforeId <= end ? position : { beforeId: end };
  const model = params.get('model');
  return ok({ fromId, ...next, keyId, model, statuses: statuses.value, limit: limit.value, only });
}

/** How many items a page of a list has. */
export function readListLimit(params: URLSearchParams): Result<number, ApiError> {
  const limit = Number(params.get('limit') ?? DEFAULT_LIMIT);
  return Number.isSafeInteger(limit) && limit >= 1 && limit <= MAX_LIST_RECORDS
    ? ok(limit)
    : invalidField(`limit must be a whole number from 1 to ${MAX_LIST_RECORDS}`, 'limit');
}
