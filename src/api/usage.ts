/** `GET /v1/usage` and `GET /v1/usage/refusals`: reports of metered usage and of refused requests, as JSON or CSV. */

import { invalidField } from '../auth/body-fields.ts';
import { listTeams, TEAM_ID } from '../auth/teams.ts';
import type { TokenFilter } from '../auth/usage-tokens.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import type { RequestContext } from '../http/context.ts';
import { unknownParam } from '../http/query.ts';
import { identifyAdmin, identifyReader } from '../http/request.ts';
import { type Answer, jsonResponse } from '../http/respond.ts';
import { COST_PARTS, STATUSES } from '../metering/record.ts';
import { REFUSAL_GROUPS, RefusalReport } from '../metering/refusals.ts';
import {
  CACHE_CAUSE,
  COUNTS,
  FACTS,
  type FactGroup,
  FILTERS,
  GROUPS,
  type Group,
  isFactGroup,
  isTagGroup,
  OTHER,
  Report,
  type ReportFilter,
  type Row,
  TEAM,
  tagOf,
} from '../metering/report.ts';
import { DAY_MS, HOUR_MS, isoDay } from '../metering/time.ts';
import { MAX_REPORT_ROWS, MAX_TAGS, TAG_NAME } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { csvResponse, decimalText } from './csv.ts';

/** Days in one usage report. Each day takes at least one KV listing. */
const MAX_REPORT_DAYS = 366;

export const SPAN_PARAMS = ['from', 'to'] as const;

/** The parameters of `GET /v1/usage`. */
export const USAGE_PARAMS = [
  ...SPAN_PARAMS,
  'group_by',
  'limit',
  'format',
  'key',
  ...FILTERS,
  'tag',
] as const;

/** The usage of the calling key, or of all keys for the admin. */
export async function handleUsage(request: Request, context: RequestContext): Promise<Answer> {
  const params = new URL(request.url).searchParams;
  const scope = await readUsageScope(request, params, USAGE_PARAMS, context);
  if (scope.kind === 'error') return scope.error;
  const { keyId, hasRecords } = scope.value;
  const query = readReportQuery(params, USAGE_GROUPS, 'day', scope.value, context.arrivedAt);
  if (query.kind === 'error') return query.error;
  const filter = readFilter(params);
  if (filter.kind === 'error') return filter.error;
  const { groups, from, to, fromMs, toMs, format, days } = query.value;
  const limit = readRowLimit(params, groups);
  if (limit.kind === 'error') return limit.error;
  const facts = await readFactFilter(params, context);
  if (facts.kind === 'error') return facts.error;
  const isPossible = hasRecords && facts.value !== null;
  const report = isPossible
    ? await context.ledger.report({ fromMs, toMs, keyId, groups, only: { ...filter.value, ...facts.value } })
    : ok(new Report(groups));
  if (report.kind === 'error') return report.error;
  const { total, isTooLarge, distribution, named } = report.value;
  if (isTooLarge) return TOO_LARGE;
  const rows = await withTeamNames(report.value.largest(limit.value), groups, context);
  return format === 'csv'
    ? csvResponse(csvLines(rows, groups), `usage-${days}`)
    : jsonResponse({
        ...{ object: 'list', from, to, group_by: groups, data: rows, total, distribution, named },
      });
}

/** The row of a report, with the name of its team. Absent: it has no team, or the team is deleted. */
type NamedRow = Row & { readonly team_name?: string };

/** Adds the names of teams to the rows of a report by team; none where KV cannot be read. */
async function withTeamNames(
  rows: readonly Row[],
  groups: readonly Group[],
  { ports }: Pick<RequestContext, 'ports'>,
): Promise<readonly NamedRow[]> {
  if (!groups.includes(TEAM) || rows.every(({ team }) => !TEAM_ID.test(team ?? ''))) return rows;
  const teams = await listTeams(ports.store).catch(() => []);
  const names = new Map(teams.map(({ id, name }) => [id, name]));
  return rows.map((row) => {
    const name = names.get(row.team ?? '');
    return name === undefined ? row : { ...row, team_name: name };
  });
}

/** The parameters of `GET /v1/usage/refusals`. */
export const REFUSAL_PARAMS = [...SPAN_PARAMS, 'group_by', 'format', 'key'] as const;

/** The counts of requests that were refused before they were sent to an upstream. */
export async function handleRefusals(request: Request, context: RequestContext): Promise<Answer> {
  const params = new URL(request.url).searchParams;
  const scope = await readUsageScope(request, params, REFUSAL_PARAMS, context);
  if (scope.kind === 'error') return scope.error;
  const { filter, keyId, hasRecords } = scope.value;
  const [unknown] = Object.keys(filter ?? {}).filter((name) => name !== 'key');
  if (unknown !== undefined)
    return invalidField(
      `Refused requests are counted by key and code, and this token is bound to ${unknown}`,
      unknown,
    ).error;
  const query = readReportQuery(params, KNOWN_REFUSAL_GROUPS, 'code', scope.value, context.arrivedAt);
  if (query.kind === 'error') return query.error;
  const { groups, from, to, fromMs, toMs, format, days } = query.value;
  // Refusals are counted by the hour, so an hour that is partly in the time span counts in full.
  const hours = { fromHour: Math.floor(fromMs / HOUR_MS), toHour: Math.ceil(toMs / HOUR_MS) };
  const found = hasRecords ? await context.ledger.refusals({ ...hours, keyId, groups }) : ok([]);
  if (found.kind === 'error') return found.error;
  const report = new RefusalReport(groups);
  for (const row of found.value) report.add(row);
  if (report.isTooLarge) return TOO_LARGE;
  const { rows, total } = report;
  if (format === 'json') {
    const sums = { data: rows, total: { refused_requests: total } };
    return jsonResponse({ object: 'list', from, to, group_by: groups, ...sums });
  }
  const columns = [...groups, 'refused_requests'] as const;
  const lines = rows.map((row) => columns.map((column) => String(row[column])));
  return csvResponse([columns, ...lines], `refusals-${days}`);
}

/** Rows of a report by user, session, app or tag, unless `limit` sets another number. */
const DEFAULT_FACT_ROWS = 1000;

/** The rows of a report beyond the limit are summed. */
function readRowLimit(params: URLSearchParams, groups: readonly Group[]): Result<number, ApiError> {
  const byDefault = groups.some(isFactGroup) ? DEFAULT_FACT_ROWS : MAX_REPORT_ROWS;
  const limit = Number(params.get('limit') ?? byDefault);
  return Number.isSafeInteger(limit) && limit >= 1 && limit <= MAX_REPORT_ROWS
    ? ok(limit)
    : invalidField(`limit must be a whole number from 1 to ${MAX_REPORT_ROWS}`, 'limit');
}

/**
 * Reads `user`, `session`, `app` and `tag=<name>:<value>`. An empty value selects the requests without the fact.
 * @returns null if no record can match
 */
export async function readFactFilter(
  params: URLSearchParams,
  { users: { names: factNames } }: Pick<RequestContext, 'users'>,
): Promise<Result<ReportFilter | null, ApiError>> {
  const requestedFacts: (readonly [FactGroup, string])[] = NAMED_FACTS.flatMap((fact) => {
    const value = params.get(fact);
    return value === null ? [] : [[fact, value] as const];
  });
  for (const tag of params.getAll('tag')) {
    const name = tagName(tag);
    if (!TAG_NAME.test(name)) return invalidField('tag must be <name>:<value>, as tag=team:search', 'tag');
    requestedFacts.push([`tag:${name}`, tag.slice(name.length + 1)]);
  }
  if (requestedFacts.length > MAX_FACT_FILTERS)
    return invalidField(`At most ${MAX_FACT_FILTERS} facts are compared`, 'tag');
  const filter: [string, string][] = [];
  for (const [fact, plain] of requestedFacts) {
    const isName = plain !== '' && plain !== OTHER;
    const value = !isName ? plain : await (fact === 'user' ? factNames.user(plain) : factNames.fact(plain));
    if (value === null) return ok(null);
    if (isUnreadable(value)) return failure(secretUnreadable(value));
    filter.push([fact, value]);
  }
  return ok(Object.fromEntries(filter));
}

export const NAMED_FACTS = [...FACTS, CACHE_CAUSE, TEAM] as const;
const MAX_FACT_FILTERS = NAMED_FACTS.length + MAX_TAGS;

const TOO_LARGE = apiError(
  'invalid_request',
  `A report has at most ${MAX_REPORT_ROWS} rows: group by less`,
  'group_by',
);

const DERIVED = [
  'cached_share',
  'median_first_token_ms',
  'median_tokens_per_second',
  'p95_first_token_ms',
  'p99_first_token_ms',
  'p5_tokens_per_second',
  'p1_tokens_per_second',
] as const;
const MONEY = ['cost', 'estimated_cost'] as const;
/** Only in a report in which something was lost. */
const LOST = { count: 'lost_tokens', money: 'lost_cost' } as const;

/** Only in a report in which a cost is divided by kinds of tokens. */
const PARTS = COST_PARTS.map((part) => `${part}_cost`);

/** A line for each row, without the total. Money has a column for each currency in the rows. */
function csvLines(rows: readonly NamedRow[], groups: readonly Group[]): readonly (readonly string[])[] {
  const currencies = [...new Set(rows.flatMap((row) => Object.keys(row.cost)))].sort();
  const hasParts = rows.some((row) => row.cost_parts !== undefined);
  const hasLosses = rows.some((row) => row.lost_tokens !== undefined);
  const isByTeam = groups.includes(TEAM);
  const header = [
    ...groups,
    ...(isByTeam ? ['team_name'] : []),
    ...COUNTS,
    ...DERIVED,
    ...MONEY.flatMap((field) => currencies.map((currency) => `${field}_${currency}`)),
    ...(hasParts ? PARTS.flatMap((field) => currencies.map((currency) => `${field}_${currency}`)) : []),
    ...(hasLosses ? [LOST.count, ...currencies.map((currency) => `${LOST.money}_${currency}`)] : []),
  ];
  const lines = rows.map((row) => [
    ...groups.map((group) => row[group] ?? ''),
    ...(isByTeam ? [row.team_name ?? ''] : []),
    ...COUNTS.map((count) => String(row[count])),
    ...DERIVED.map((figure) => String(row[figure] ?? '')),
    ...MONEY.flatMap((field) => currencies.map((currency) => decimalText(row[field][currency]))),
    ...(hasParts
      ? COST_PARTS.flatMap((part) =>
          currencies.map((currency) => decimalText(row.cost_parts?.[part][currency])),
        )
      : []),
    ...(hasLosses
      ? [
          String(row.lost_tokens ?? 0),
          ...currencies.map((currency) => decimalText(row.lost_cost?.[currency])),
        ]
      : []),
  ]);
  return [header, ...lines];
}

/** Whose usage a request may read. */
export interface UsageScope {
  readonly isAdmin: boolean;
  /** Whether it may read the usage of several keys. */
  readonly hasAllKeys: boolean;
  /** What the request's token is bound to; its parameters have it, too. Null: nothing. */
  readonly filter: TokenFilter | null;
  /** One key's usage; null for all. */
  readonly keyId: string | null;
  /** False: there are no records of this caller, so the response is empty and no store is read. */
  readonly hasRecords: boolean;
}

/**
 * The admin, and a token that reads usage, may select a key with `key`. Every other caller reads the usage of its own key.
 * @param params what the token is bound to is added
 * @param known the names of the route's parameters; another one is an error
 */
export async function readUsageScope(
  request: Request,
  params: URLSearchParams,
  known: readonly string[],
  context: RequestContext,
): Promise<Result<UsageScope, ApiError>> {
  const reader = await identifyReader(request, context, await identifyAdmin(request, context));
  if (reader.kind === 'error') return reader;
  const unknown = unknownParam(params, known);
  if (unknown !== null) return failure(unknown);
  if (reader.value.kind === 'admin') {
    const selected = readKeyFilter(params);
    return selected.kind === 'error' ? selected : ok({ ...ALL_KEYS, isAdmin: true, keyId: selected.value });
  }
  if (reader.value.kind === 'token') {
    const { filter } = reader.value.token;
    const bound = bindParams(params, filter ?? {});
    const selected = bound.kind === 'error' ? bound : readKeyFilter(params);
    return selected.kind === 'error' ? selected : ok({ ...ALL_KEYS, filter, keyId: selected.value });
  }
  if (params.has('key'))
    return invalidField('key is for the admin token: you see the usage of your own key', 'key');
  const { keyId, credential } = reader.value.caller;
  const hasRecords = credential === null || (await context.knownCallers.has(keyId));
  return ok({ isAdmin: false, hasAllKeys: false, filter: null, keyId, hasRecords });
}

const ALL_KEYS = { isAdmin: false, hasAllKeys: true, filter: null, hasRecords: true } as const;

/** Adds what a token is bound to. Another value of such a parameter is an error. */
function bindParams(params: URLSearchParams, filter: TokenFilter): Result<null, ApiError> {
  for (const [name, value] of Object.entries(filter)) {
    const isOther = (other: string) =>
      other !== value && (name !== 'tag' || tagName(other) === tagName(value));
    if (params.getAll(name).some(isOther))
      return invalidField(`This token reads ${name}=${value} only`, name);
    if (!params.getAll(name).includes(value)) params.append(name, value);
  }
  return ok(null);
}

/** The name in `<name>:<value>`; empty where there is none. */
function tagName(tag: string): string {
  return tag.slice(0, Math.max(tag.indexOf(':'), 0));
}

/** The key that the admin selects with `key`; null: all. */
export function readKeyFilter(params: URLSearchParams): Result<string | null, ApiError> {
  const key = params.get('key');
  return key === null || KEY_ID.test(key) ? ok(key) : invalidField('key must be the id of a key', 'key');
}

/** The key id of a gateway key, a host's caller or a hashed credential. */
const KEY_ID = /^[\w-]{1,64}$/;

interface UsageQuery<Group> extends TimeSpan {
  readonly groups: readonly Group[];
  readonly format: 'json' | 'csv';
  /** The days of the time span, for the name of a CSV file. */
  readonly days: string;
}

interface KnownGroups<Group> {
  /** For messages. */
  readonly names: string;
  readonly find: (word: string) => Group | undefined;
}

const KNOWN_REFUSAL_GROUPS: KnownGroups<(typeof REFUSAL_GROUPS)[number]> = {
  names: REFUSAL_GROUPS.join(', '),
  find: (word) => REFUSAL_GROUPS.find((name) => name === word),
};

const USAGE_GROUPS: KnownGroups<Group> = {
  names: `${GROUPS.join(', ')}, tag:<name>`,
  find: (word) =>
    isTagGroup(word) && TAG_NAME.test(tagOf(word)) ? word : GROUPS.find((name) => name === word),
};

/** @param byDefault the group of a report without `group_by` */
function readReportQuery<Group extends string>(
  params: URLSearchParams,
  known: KnownGroups<Group>,
  byDefault: Group,
  { hasAllKeys }: UsageScope,
  nowMs: number,
): Result<UsageQuery<Group>, ApiError> {
  const groups: Group[] = [];
  for (const word of (params.get('group_by') ?? byDefault).split(',')) {
    const group = known.find(word.trim());
    if (group === undefined) return invalidField(`group_by takes ${known.names}`, 'group_by');
    if (groups.includes(group)) return invalidField(`group_by names ${group} twice`, 'group_by');
    if (group === 'key' && !hasAllKeys)
      return invalidField('group_by=key is for the admin token', 'group_by');
    groups.push(group);
  }
  const span = readTimeSpan(params, nowMs);
  if (span.kind === 'error') return span;
  const { from, to } = span.value;
  const format = params.get('format') ?? 'json';
  if (format !== 'json' && format !== 'csv') return invalidField('format must be json or csv', 'format');
  return ok({ ...span.value, groups, format, days: `${from.slice(0, 10)}-${to.slice(0, 10)}` });
}

export interface TimeSpan {
  /** As the client wrote them. */
  readonly from: string;
  readonly to: string;
  /** In ms since the epoch. `toMs` is exclusive. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Default: from the first of this month to the end of today, in UTC. */
export function readTimeSpan(params: URLSearchParams, nowMs: number): Result<TimeSpan, ApiError> {
  const from = params.get('from') ?? `${isoDay(nowMs).slice(0, 7)}-01`;
  const to = params.get('to') ?? isoDay(nowMs + DAY_MS);
  const fromMs = parseTime(from);
  const toMs = parseTime(to);
  if (Number.isNaN(fromMs))
    return invalidField('from must be a day or a UTC time, as 2026-11-01 or 2026-11-01T12:00:00Z', 'from');
  if (Number.isNaN(toMs))
    return invalidField('to must be a day or a UTC time, as 2026-12-01 or 2026-12-01T12:00:00Z', 'to');
  if (toMs <= fromMs)
    return invalidField('to must be later than from, and is exclusive: for one day it is the next day', 'to');
  if (toMs - fromMs > MAX_REPORT_DAYS * DAY_MS)
    return invalidField(`At most ${MAX_REPORT_DAYS} days are read at once`, 'from');
  return ok({ from, to, fromMs, toMs });
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z)?$/;

/** In ms since the epoch; NaN for text that is not an ISO 8601 time, or for a day that its month does not have. */
function parseTime(text: string): number {
  const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) || isoDay(ms) !== text.slice(0, 10) ? Number.NaN : ms;
}

/** Reads the filters of a usage report, which take one value each. */
function readFilter(params: URLSearchParams): Result<ReportFilter, ApiError> {
  const statuses = readStatuses(params);
  if (statuses.kind === 'error') return statuses;
  if (statuses.value !== null && statuses.value.length > 1)
    return invalidField('A report takes one status: group_by=status has all of them', 'status');
  const requestedFilters = FILTERS.filter((name) => !isFactGroup(name)).flatMap((name) => {
    const value = params.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  return ok(Object.fromEntries(requestedFilters));
}

/** The statuses of records, separated by commas; null for all. */
export function readStatuses(params: URLSearchParams): Result<readonly string[] | null, ApiError> {
  const statuses = params.get('status')?.split(',') ?? null;
  return statuses?.some((status) => !STATUSES.some((known) => known === status))
    ? invalidField(`status must be one of: ${STATUSES.join(', ')}`, 'status')
    : ok(statuses);
}
