/** Who asks for usage, and of which time: what the routes of usage have in common (M5, L2). */
import { isAdmin } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { ADMIN, identifyCaller } from '../http/identify.ts';
import { STATUSES } from '../metering/record.ts';
import { DAY_MS, isoDay } from '../metering/time.ts';
import { MAX_REPORT_DAYS } from '../shared/limits.ts';

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z)?$/;
/** What may name a ledger: a key's id, of any kind that there is. */
const KEY_ID = /^[\w-]{1,64}$/;

export interface UsageScope {
  readonly isAdmin: boolean;
  /** Whose usage is asked for: one key's, or all (null), which only the admin may. */
  readonly keyId: string | null;
  /** False where nothing can be stored: the answer is empty, and no store is asked. */
  readonly hasRecords: boolean;
}

export interface TimeSpan {
  /** As asked, for the answer. */
  readonly from: string;
  readonly to: string;
  /** ms since the epoch; `to` is not within. */
  readonly fromMs: number;
  readonly toMs: number;
}

export interface QueryRefusal {
  readonly kind: 'error';
  readonly error: ApiError;
}

/** The admin may name a key in `key`; everyone else sees what is under the own one, whatever the parameters are. */
export async function readUsageScope(
  request: Request,
  params: URLSearchParams,
  context: RequestContext,
): Promise<({ readonly kind: 'asker' } & UsageScope) | QueryRefusal> {
  const { adminToken } = context.settings;
  const named = params.get('key');
  if (await isAdmin(adminToken, request.headers)) {
    context.known.keyId = ADMIN;
    if (named !== null && !KEY_ID.test(named)) return invalid('key must be the id of a key', 'key');
    return { kind: 'asker', isAdmin: true, keyId: named, hasRecords: true };
  }
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return identified;
  if (named !== null) return invalid('key is for the admin token: you see the usage of your own key', 'key');
  const { keyId, credential } = identified.value;
  const hasRecords = credential === null || (await context.knownCallers.has(keyId));
  return { kind: 'asker', isAdmin: false, keyId, hasRecords };
}

/** Without `from`: this month; without `to`: up to the end of today (UTC). */
export function readTimeSpan(
  params: URLSearchParams,
  nowMs: number,
): ({ readonly kind: 'span' } & TimeSpan) | QueryRefusal {
  const from = params.get('from') ?? `${isoDay(nowMs).slice(0, 7)}-01`;
  const to = params.get('to') ?? isoDay(nowMs + DAY_MS);
  const fromMs = parseTime(from);
  const toMs = parseTime(to);
  if (Number.isNaN(fromMs))
    return invalid('from must be a day or a UTC time, as 2026-11-01 or 2026-11-01T12:00:00Z', 'from');
  if (Number.isNaN(toMs))
    return invalid('to must be a day or a UTC time, as 2026-12-01 or 2026-12-01T12:00:00Z', 'to');
  if (toMs <= fromMs)
    return invalid('to must be later than from: it is not within, so for one day it is the next day', 'to');
  if (toMs - fromMs > MAX_REPORT_DAYS * DAY_MS)
    return invalid(`At most ${MAX_REPORT_DAYS} days are read at once`, 'from');
  return { kind: 'span', from, to, fromMs, toMs };
}

/** Statuses of records, of which a list may name several; null for any. */
export function readStatuses(
  params: URLSearchParams,
): { readonly kind: 'statuses'; readonly statuses: readonly string[] | null } | QueryRefusal {
  const statuses = params.get('status')?.split(',') ?? null;
  return statuses?.some((status) => !STATUSES.some((known) => known === status))
    ? invalid(`status must be one of: ${STATUSES.join(', ')}`, 'status')
    : { kind: 'statuses', statuses };
}

/** @param byDefault what a report without `group_by` is grouped by */
export function readGroups<Group extends string>(
  params: URLSearchParams,
  groups: readonly Group[],
  byDefault: Group,
  isAdmin: boolean,
): { readonly kind: 'groups'; readonly groups: readonly Group[] } | QueryRefusal {
  const read: Group[] = [];
  for (const word of (params.get('group_by') ?? byDefault).split(',')) {
    const group = groups.find((known) => known === word.trim());
    if (group === undefined) return invalid(`group_by takes ${groups.join(', ')}`, 'group_by');
    if (read.includes(group)) return invalid(`group_by names ${group} twice`, 'group_by');
    if (group === 'key' && !isAdmin) return invalid('group_by=key is for the admin token', 'group_by');
    read.push(group);
  }
  return { kind: 'groups', groups: read };
}

/** JSON, or lines for a spreadsheet. */
export function readFormat(
  params: URLSearchParams,
): { readonly kind: 'format'; readonly format: 'json' | 'csv' } | QueryRefusal {
  const format = params.get('format') ?? 'json';
  return format === 'json' || format === 'csv'
    ? { kind: 'format', format }
    : invalid('format must be json or csv', 'format');
}

export function invalid(message: string, param: string): QueryRefusal {
  return { kind: 'error', error: apiError('invalid_request', message, param) };
}

/** ms since the epoch; NaN where the text is no ISO 8601 time, or names a day that its month does not have. */
function parseTime(text: string): number {
  const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) || isoDay(ms) !== text.slice(0, 10) ? Number.NaN : ms;
}
