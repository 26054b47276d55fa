/** `GET /v1/usage` and `GET /v1/usage/refusals`: reports of metered usage and of refused requests, as JSON or CSV. */

import { invalidField } from '../auth/body-fields.ts';
import type { TokenFilter } from '../auth/key-views.ts';
import { listTeams, TEAM_ID } from '../auth/teams.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import type { RequestContext } from '../http/context.ts';
import { type Params, type ParamValues, readParams, unknownParam } from '../http/query.ts';
import { identifyAdmin, identifyReader } from '../http/request.ts';
import { type Answer, jsonResponse } from '../http/respond.ts';
import { COST_PARTS } from '../metering/record.ts';
import { RefusalReport } from '../metering/refusals.ts';
import {
  CACHE_CAUSE,
  COUNTS,
  FACTS,
  type FactGroup,
  FILTERS,
  type Group,
  isFactGroup,
  OTHER,
  Report,
  type ReportFilter,
  type Row,
  TEAM,
} from '../metering/report.ts';
import { DAY_MS, HOUR_MS } from '../metering/time.ts';
import { MAX_REPORT_ROWS, MAX_TAGS } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { csvResponse, decimalText } from './csv.ts';
import { type FACT_FILTERS, KEY_FILTER, REFUSAL_PARAMS, tagName, USAGE_PARAMS } from './parameters.ts';
import type { NamedRow, RefusalsView, ReportView } from './usage-views.ts';

/** Days in one usage report. Each day takes at least one KV listing. */
const MAX_REPORT_DAYS = 366;

/** The usage of the calling key, or of all keys for the admin. */
export async function handleUsage(request: Request, context: RequestContext): Promise<Answer> {
  const read = await readUsageQuery(request, USAGE_PARAMS, context);
  if (read.kind === 'error') return read.error;
  const { scope, values } = read.value;
  const { keyId, hasRecords } = scope;
  const span = reportSpan(values, scope);
  if (span.kind === 'error') return span.error;
  const { from, to, fromMs, toMs, days } = span.value;
  const { group_by: groups, format } = values;
  const facts = await readFactFilter(values, context);
  if (facts.kind === 'error') return facts.error;
  const isPossible = hasRecords && facts.value !== null;
  const report = isPossible
    ? await context.ledger.report({
        fromMs,
        toMs,
        keyId,
        groups,
        only: { ...filterOf(values), ...facts.value },
      })
    : ok(new Report(groups));
  if (report.kind === 'error') return report.error;
  const { total, isTooLarge, distribution, named } = report.value;
  if (isTooLarge) return TOO_LARGE;
  const byDefault = groups.some(isFactGroup) ? DEFAULT_FACT_ROWS : MAX_REPORT_ROWS;
  const rows = await withTeamNames(report.value.largest(values.limit ?? byDefault), groups, context);
  if (format === 'csv') return csvResponse(csvLines(rows, groups), `usage-${days}`);
  const view: ReportView = {
    ...{ object: 'list', from, to, group_by: groups, data: rows, total, distribution, named },
  };
  return jsonResponse(view);
}

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

/** The counts of requests that were refused before they were sent to an upstream. */
export async function handleRefusals(request: Request, context: RequestContext): Promise<Answer> {
  const read = await readUsageQuery(request, REFUSAL_PARAMS, context);
  if (read.kind === 'error') return read.error;
  const { scope, values } = read.value;
  const { filter, keyId, hasRecords } = scope;
  const [unknown] = Object.keys(filter ?? {}).filter((name) => name !== 'key');
  if (unknown !== undefined)
    return invalidField(
      `Refused requests are counted by key and code, and this token is bound to ${unknown}`,
      unknown,
    ).error;
  const span = reportSpan(values, scope);
  if (span.kind === 'error') return span.error;
  const { from, to, fromMs, toMs, days } = span.value;
  const { group_by: groups, format } = values;
  // Refusals are counted by the hour, so an hour that is partly in the time span counts in full.
  const hours = { fromHour: Math.floor(fromMs / HOUR_MS), toHour: Math.ceil(toMs / HOUR_MS) };
  const found = hasRecords ? await context.ledger.refusals({ ...hours, keyId, groups }) : ok([]);
  if (found.kind === 'error') return found.error;
  const report = new RefusalReport(groups);
  for (const row of found.value) report.add(row);
  if (report.isTooLarge) return TOO_LARGE;
  const { rows, total } = report;
  if (format !== 'csv') {
    const sums = { data: rows, total: { refused_requests: total } };
    const view: RefusalsView = { object: 'list', from, to, group_by: groups, ...sums };
    return jsonResponse(view);
  }
  const columns = [...groups, 'refused_requests'] as const;
  const lines = rows.map((row) => columns.map((column) => String(row[column])));
  return csvResponse([columns, ...lines], `refusals-${days}`);
}

/** Rows of a report by user, session, app or tag, unless `limit` sets another number. The rows beyond it are summed. */
const DEFAULT_FACT_ROWS = 1000;

/**
 * The filter by facts. An empty value selects the requests without the fact.
 * @returns null if no record can match
 */
export async function readFactFilter(
  values: ParamValues<typeof FACT_FILTERS>,
  { users: { names: factNames } }: Pick<RequestContext, 'users'>,
): Promise<Result<ReportFilter | null, ApiError>> {
  const requestedFacts: (readonly [FactGroup, string])[] = NAMED_FACTS.flatMap((fact) => {
    const value = values[fact];
    return value === null ? [] : [[fact, value] as const];
  });
  for (const [name, value] of values.tag) requestedFacts.push([`tag:${name}`, value]);
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

const NAMED_FACTS = [...FACTS, CACHE_CAUSE, TEAM] as const;
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

/** The parameters of a request, and whose usage it reads. An unknown parameter is refused. */
export async function readUsageQuery<P extends Params>(
  request: Request,
  known: P,
  context: RequestContext,
): Promise<Result<{ readonly scope: UsageScope; readonly values: ParamValues<P> }, ApiError>> {
  const query = new URL(request.url).searchParams;
  const scope = await readScope(request, query, known, context);
  if (scope.kind === 'error') return scope;
  const values = readParams(query, known, context.arrivedAt);
  return values.kind === 'error' ? values : ok({ scope: scope.value, values: values.value });
}

/**
 * The admin, and a token that reads usage, may select a key with `key`. Every other caller reads the usage of its own key.
 * @param query what the token is bound to is added
 */
async function readScope(
  request: Request,
  query: URLSearchParams,
  known: Params,
  context: RequestContext,
): Promise<Result<UsageScope, ApiError>> {
  const reader = await identifyReader(request, context, await identifyAdmin(request, context));
  if (reader.kind === 'error') return reader;
  const unknown = unknownParam(query, known);
  if (unknown !== null) return failure(unknown);
  if (reader.value.kind === 'caller') {
    if (query.has('key'))
      return invalidField('key is for the admin token: you see the usage of your own key', 'key');
    const { keyId, credential } = reader.value.caller;
    const hasRecords = credential === null || (await context.callers.accepted.has(keyId));
    return ok({ isAdmin: false, hasAllKeys: false, filter: null, keyId, hasRecords });
  }
  const filter = reader.value.kind === 'token' ? reader.value.token.filter : null;
  const bound = bindParams(query, filter ?? {});
  const selected = bound.kind === 'error' ? bound : readParams(query, KEY_FILTER, context.arrivedAt);
  if (selected.kind === 'error') return selected;
  const isAdmin = reader.value.kind === 'admin';
  return ok({ isAdmin, hasAllKeys: true, filter, keyId: selected.value.key, hasRecords: true });
}

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

/** `toMs` is exclusive. */
export interface TimeSpan {
  /** As the client wrote them. */
  readonly from: string;
  readonly to: string;
  /** In ms since the epoch. */
  readonly fromMs: number;
  readonly toMs: number;
}

type SpanValues = Pick<ParamValues<typeof USAGE_PARAMS>, 'from' | 'to'>;

/** The time span of a report or a list. */
export function spanOf({ from, to }: SpanValues): Result<TimeSpan, ApiError> {
  if (to.ms <= from.ms)
    return invalidField('to must be later than from, and is exclusive: for one day it is the next day', 'to');
  if (to.ms - from.ms > MAX_REPORT_DAYS * DAY_MS)
    return invalidField(`At most ${MAX_REPORT_DAYS} days are read at once`, 'from');
  return ok({ from: from.text, to: to.text, fromMs: from.ms, toMs: to.ms });
}

/** The time span of a report, with its days for the name of a CSV file. */
function reportSpan(
  { group_by, ...values }: SpanValues & { readonly group_by: readonly string[] },
  { hasAllKeys }: UsageScope,
): Result<TimeSpan & { readonly days: string }, ApiError> {
  if (group_by.includes('key') && !hasAllKeys)
    return invalidField('group_by=key is for the admin token', 'group_by');
  const span = spanOf(values);
  if (span.kind === 'error') return span;
  const { from, to } = span.value;
  return ok({ ...span.value, days: `${from.slice(0, 10)}-${to.slice(0, 10)}` });
}

/** The filters of a report besides facts. */
function filterOf(values: ParamValues<typeof USAGE_PARAMS>): ReportFilter {
  const filters = FILTERS.flatMap((name) => {
    const value = isFactGroup(name) ? null : values[name];
    return value === null ? [] : [[name, value] as const];
  });
  return Object.fromEntries(filters);
}
