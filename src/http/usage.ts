/** `GET /v1/usage`: the calling key's metered usage, or everyone's for the admin (M5). */
import { identify, isAdmin } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { MAX_REPORT_DAYS, MAX_REPORT_ROWS } from '../canonical/limits.ts';
import { eachRecord } from '../metering/kv/kv-ledger.ts';
import { GROUPS, type Group, Report } from '../metering/report.ts';
import type { RequestContext } from './context.ts';
import { errorResponse, jsonResponse } from './respond.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z)?$/;

interface Query {
  /** As asked, for the answer. */
  readonly from: string;
  readonly to: string;
  /** ms since the epoch; `to` is not within. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly groups: readonly Group[];
}

type QueryResult =
  | { readonly kind: 'query'; readonly query: Query }
  | { readonly kind: 'error'; readonly error: ApiError };

export async function handleUsage(request: Request, context: RequestContext): Promise<Response> {
  const { settings, ports, arrivedAt } = context;
  let keyId: string | null = null;
  if (!(await isAdmin(settings.adminToken, request.headers))) {
    const identified = await identify(
      settings.auth,
      settings.adminToken,
      request.headers,
      ports.store,
      new Date(arrivedAt),
    );
    if (identified.kind === 'error') return errorResponse(identified.error);
    keyId = identified.caller.keyId;
  }
  const read = readQuery(new URL(request.url).searchParams, arrivedAt, keyId === null);
  if (read.kind === 'error') return errorResponse(read.error);
  const { from, to, fromMs, toMs, groups } = read.query;
  const report = new Report(groups);
  const hasRecords =
    keyId === null || settings.auth !== 'passthrough' || (await context.knownCallers.has(keyId));
  const days = hasRecords ? daysBetween(fromMs, toMs) : [];
  const isWhole = await eachRecord(ports.store, { days, keyId }, (record) => {
    const time = Date.parse(record.time);
    if (time >= fromMs && time < toMs) report.add(record);
  });
  if (report.isTooLarge)
    return errorResponse(
      apiError('invalid_request', `A report has at most ${MAX_REPORT_ROWS} rows: group by less`, 'group_by'),
    );
  if (!isWhole)
    return errorResponse(
      apiError('invalid_request', 'Too many records for one report: ask for fewer days', 'from'),
    );
  return jsonResponse({ object: 'list', from, to, group_by: groups, data: report.rows, total: report.total });
}

/** Without `from`: this month; without `to`: up to the end of today (UTC); without `group_by`: by day. */
function readQuery(params: URLSearchParams, nowMs: number, isAdminAsking: boolean): QueryResult {
  const from = params.get('from') ?? `${isoDay(nowMs).slice(0, 7)}-01`;
  const to = params.get('to') ?? isoDay(nowMs + DAY_MS);
  const groups: Group[] = [];
  for (const word of (params.get('group_by') ?? 'day').split(',')) {
    const group = GROUPS.find((known) => known === word.trim());
    if (group === undefined) return invalid(`group_by takes ${GROUPS.join(', ')}`, 'group_by');
    if (groups.includes(group)) return invalid(`group_by names ${group} twice`, 'group_by');
    if (group === 'key' && !isAdminAsking) return invalid('group_by=key is for the admin token', 'group_by');
    groups.push(group);
  }
  const fromMs = parseTime(from);
  const toMs = parseTime(to);
  if (Number.isNaN(fromMs))
    return invalid('from must be a day or a UTC time, as 2026-11-01 or 2026-11-01T12:00:00Z', 'from');
  if (Number.isNaN(toMs))
    return invalid('to must be a day or a UTC time, as 2026-12-01 or 2026-12-01T12:00:00Z', 'to');
  if (toMs <= fromMs)
    return invalid('to must be later than from: it is not within, so for one day it is the next day', 'to');
  if (toMs - fromMs > MAX_REPORT_DAYS * DAY_MS)
    return invalid(`A report covers at most ${MAX_REPORT_DAYS} days`, 'from');
  return { kind: 'query', query: { from, to, fromMs, toMs, groups } };
}

function invalid(message: string, param: string): QueryResult {
  return { kind: 'error', error: apiError('invalid_request', message, param) };
}

/** ms since the epoch; NaN where the text is no ISO 8601 time, or names a day that its month does not have. */
function parseTime(text: string): number {
  const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) || isoDay(ms) !== text.slice(0, 10) ? Number.NaN : ms;
}

function daysBetween(fromMs: number, toMs: number): string[] {
  const days: string[] = [];
  for (let ms = Math.floor(fromMs / DAY_MS) * DAY_MS; ms < toMs; ms += DAY_MS) days.push(isoDay(ms));
  return days;
}

function isoDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
