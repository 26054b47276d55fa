/** Groups and sums usage for `GET /v1/usage`, from single records or from partial sums. */
import { MAX_REPORT_ROWS } from '../shared/limits.ts';
import type { CostParts } from './pricing/cost.ts';
import { type CacheReport, COST_PARTS, type RecordSummary, type Tags, withinPrompt } from './record.ts';
import {
  type Distribution,
  distributionOf,
  type Percentiles,
  percentilesOf,
  SPEED_BUCKETS,
  type SpeedCount,
  speedsOf,
} from './speeds.ts';

/** Who made a request and for what. A request without the fact has the value `''`. */
export const FACTS = ['user', 'session', 'app'] as const;
/** Why a prompt was not read from the cache. Summed as a fact, and only where requests are compared when they are stored. */
export const CACHE_CAUSE = 'cache_cause';
/** The team of the key when the request was admitted. */
export const TEAM = 'team';
const TAG_PREFIX = 'tag:';
export type TagGroup = `tag:${string}`;
/** A group whose values callers choose freely. */
export type FactGroup = (typeof FACTS)[number] | typeof CACHE_CAUSE | typeof TEAM | TagGroup;

/** The groups with a fixed name. */
export const GROUPS = [
  'day',
  'hour',
  'provider',
  'model',
  'route',
  'status',
  'fault',
  'error',
  'key',
  ...FACTS,
  CACHE_CAUSE,
  TEAM,
] as const;
export type Group = (typeof GROUPS)[number] | TagGroup;

/** Whether a report's group is a tag, such as `tag:team`. */
export function isTagGroup(group: string): group is TagGroup {
  return group.startsWith(TAG_PREFIX);
}

/** Whether a report's group is a fact of records whose values are not bounded, such as a user or a tag. */
export function isFactGroup(group: string): group is FactGroup {
  return isTagGroup(group) || group === CACHE_CAUSE || group === TEAM || FACTS.some((fact) => fact === group);
}

/** The name of the tag of such a group. */
export function tagOf(group: TagGroup): string {
  return group.slice(TAG_PREFIX.length);
}

/** The value of each group of a row that sums the rows beyond a limit. */
export const OTHER = '(other)';

/** The groups by which a report can be filtered, with one value each. */
export const FILTERS = [
  'provider',
  'model',
  'route',
  'status',
  'fault',
  'error',
  ...FACTS,
  CACHE_CAUSE,
  TEAM,
] as const satisfies readonly Group[];
export type ReportFilter = { readonly [F in (typeof FILTERS)[number] | TagGroup]?: string };

/** The groups whose values a filter compares, with the values. */
export function filterEntries(only: ReportFilter): readonly (readonly [Group, string])[] {
  const names = [...FILTERS, ...Object.keys(only).filter(isTagGroup)];
  return names.flatMap((name) => {
    const value = only[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** Whether a report groups by facts or is narrowed by them. */
export function factsOf(groups: readonly Group[], only: ReportFilter): readonly FactGroup[] {
  return [...new Set([...groups, ...filterEntries(only).map(([name]) => name)])].filter(isFactGroup);
}

/** Counted fields, in the order of the response. */
export const COUNTS = [
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'estimated_requests',
  'failed_requests',
  'unpriced_requests',
  'cancelled_requests',
  'cut_requests',
] as const;
type RequestCounts = Record<(typeof COUNTS)[number], number>;

/** Sums over some requests whose costs have one currency. */
export interface Amounts extends Readonly<RequestCounts> {
  /** Null if none of the requests has a known cost. */
  readonly currency: string | null;
  /** In 10^-9 of the currency. */
  readonly cost: bigint;
  /** The part of the cost that is computed from estimated tokens or is an upper bound. */
  readonly estimatedCost: bigint;
  /** Of the prompts, what could have been read from caches that broke, and what it cost more. */
  readonly lostTokens: number;
  readonly lostCost: bigint;
  /** Parts of the cost, in 10^-9 of the currency. */
  readonly costParts: { readonly [Part in keyof CostParts]: bigint };
  readonly speeds: readonly SpeedCount[];
}

/** The figures of a row in the response. */
export interface Sums extends Readonly<RequestCounts>, Percentiles {
  /** The part of the prompt tokens that providers read from their caches, from 0 to 1 with 4 decimals; null without prompt tokens. */
  readonly cached_share: number | null;
  readonly cost: Readonly<Record<string, number>>;
  readonly estimated_cost: Readonly<Record<string, number>>;
  /** Parts of `cost` by kinds of tokens. The rest is for searches, or is one sum that the provider reported. Absent: nothing is divided. */
  readonly cost_parts?: { readonly [Part in keyof CostParts]: Readonly<Record<string, number>> };
  /** Absent: nothing was lost, or it is not summed. */
  readonly lost_tokens?: number;
  readonly lost_cost?: Readonly<Record<string, number>>;
}
/** How many groups a report has, and what they cost. */
export interface NamedGroups {
  readonly count: number;
  /** False: further groups are summed in one row, so there are more. */
  readonly is_exact: boolean;
  readonly cost: Readonly<Record<string, number>>;
  /** How many of them each day or hour has. Absent: the report is not grouped by one. */
  readonly steps?: Readonly<Record<string, number>>;
}

export type Row = Partial<Record<Group, string>> & Sums;

const READ_GROUP: { readonly [G in (typeof GROUPS)[number]]: (record: ReportedRecord) => string } = {
  day: (record) => record.time.slice(0, 10),
  hour: (record) => `${record.time.slice(0, 13)}:00Z`,
  provider: (record) => record.provider,
  // The address, because two providers may have models of the same name.
  model: (record) => `${record.provider}/${record.model}`,
  route: (record) => record.route,
  status: (record) => record.status,
  // A request without an error has the value `''`.
  fault: (record) => record.fault ?? '',
  error: (record) => record.error ?? '',
  key: (record) => record.key_id,
  user: (record) => record.user ?? '',
  session: (record) => record.session ?? '',
  app: (record) => record.app ?? '',
  cache_cause: (record) => record.cache?.cause ?? '',
  team: (record) => record.team ?? '',
};

/** A summary has no tags, so only complete records can be grouped by them. */
type ReportedRecord = RecordSummary & { readonly tags?: Tags; readonly cache?: CacheReport };

function groupValue(record: ReportedRecord, group: Group): string {
  if (!isTagGroup(group)) return READ_GROUP[group](record);
  const name = tagOf(group);
  return record.tags !== undefined && Object.hasOwn(record.tags, name) ? (record.tags[name] ?? '') : '';
}

/** Sums records by their groups, up to a bound of rows. Add all records, then read the rows. */
export class Report {
  readonly #groups: readonly Group[];
  readonly #rows = new Map<string, { readonly values: readonly string[]; readonly sum: Sum }>();
  readonly #total = new Sum();
  /** In a report by facts: the rows beyond {@link MAX_REPORT_ROWS}, and those that a store has summed itself. */
  readonly #rest = new Sum();
  readonly #sumsRest: boolean;
  #isTooLarge = false;

  constructor(groups: readonly Group[]) {
    this.#groups = groups;
    this.#sumsRest = groups.some(isFactGroup);
  }

  addRecord(record: ReportedRecord): void {
    this.add(groupValues(record, this.#groups), amountsOf(record));
  }

  /** @param values the values of the groups, in the order of the groups */
  add(values: readonly string[], amounts: Amounts): void {
    const sum = this.#sumOf(values);
    if (sum === null) {
      this.#isTooLarge = true;
      return;
    }
    sum.add(amounts);
    this.#total.add(amounts);
  }

  /** Null: the report has no room for a row with these values. */
  #sumOf(values: readonly string[]): Sum | null {
    // A store that sums further names has such a row itself.
    if (this.#sumsRest && values.every((value) => value === OTHER)) return this.#rest;
    const id = JSON.stringify(values);
    const row = this.#rows.get(id);
    if (row !== undefined) return row.sum;
    if (this.#rows.size >= MAX_REPORT_ROWS) return this.#sumsRest ? this.#rest : null;
    const sum = new Sum();
    this.#rows.set(id, { values, sum });
    return sum;
  }

  /** The report has more rows than allowed, and is incomplete. */
  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  /** All rows, sorted by the values of the groups. */
  get rows(): Row[] {
    return this.largest(Number.POSITIVE_INFINITY);
  }

  /**
   * The rows with the largest costs, sorted by the values of the groups. The last row sums the others, if there are any: each of its
   * groups is {@link OTHER}.
   */
  largest(limit: number): Row[] {
    const all = [...this.#rows];
    const bySize = all.length <= limit ? all : all.sort(([, a], [, b]) => b.sum.compare(a.sum));
    const kept = bySize.slice(0, limit).sort(([a], [b]) => (a < b ? -1 : 1));
    const rest = new Sum();
    rest.addSum(this.#rest);
    for (const [, { sum }] of bySize.slice(limit)) rest.addSum(sum);
    const rows = kept.map(([, { values, sum }]) => ({ ...this.#groupFields(values), ...sum.sums }));
    if (rest.isEmpty) return rows;
    return [...rows, { ...this.#groupFields(this.#groups.map(() => OTHER)), ...rest.sums }];
  }

  get total(): Sums {
    return this.#total.sums;
  }

  /** How the requests are spread over times to the first token and over rates. */
  get distribution(): Distribution {
    return this.#total.distribution;
  }

  /** The groups, whatever the limit of rows is, without those of requests that lack a fact of the groups. */
  get named(): NamedGroups {
    const facts = this.#groups.flatMap((group, at) => (isFactGroup(group) ? [at] : []));
    const named = [...this.#rows.values()].filter(({ values }) => facts.every((at) => values[at] !== ''));
    const sum = new Sum();
    for (const { sum: own } of named) sum.addSum(own);
    sum.addSum(this.#rest);
    const step = this.#groups.findIndex((group) => group === 'day' || group === 'hour');
    const steps: Record<string, number> = {};
    if (step >= 0)
      for (const { values } of named) {
        const { [step]: name = '' } = values;
        steps[name] = (steps[name] ?? 0) + 1;
      }
    return {
      ...{ count: named.length, is_exact: this.#rest.isEmpty, cost: sum.cost },
      ...(step >= 0 && { steps }),
    };
  }

  #groupFields(values: readonly string[]): Partial<Record<Group, string>> {
    return Object.fromEntries(this.#groups.map((group, i) => [group, values[i]]));
  }
}

class Sum {
  readonly #counts: RequestCounts = emptyCounts();
  readonly #cost = new MoneySums();
  readonly #estimatedCost = new MoneySums();
  #lostTokens = 0;
  readonly #lostCost = new MoneySums();
  readonly #parts = { input: new MoneySums(), cached: new MoneySums(), output: new MoneySums() };
  #speeds: number[] | null = null;

  add(amounts: Amounts): void {
    for (const name of COUNTS) {
      // Larger numbers are not exact. Clamping makes the sum independent of the order.
      this.#counts[name] = Math.min(this.#counts[name] + amounts[name], Number.MAX_SAFE_INTEGER);
    }
    for (const [bucket, count] of amounts.speeds) {
      this.#speeds ??= Array.from({ length: SPEED_BUCKETS }, () => 0);
      this.#speeds[bucket] = (this.#speeds[bucket] ?? 0) + count;
    }
    this.#lostTokens = Math.min(this.#lostTokens + amounts.lostTokens, Number.MAX_SAFE_INTEGER);
    if (amounts.currency === null) return;
    if (amounts.lostCost > 0n) this.#lostCost.add(amounts.currency, amounts.lostCost);
    this.#cost.add(amounts.currency, amounts.cost);
    if (amounts.estimatedCost > 0n) this.#estimatedCost.add(amounts.currency, amounts.estimatedCost);
    for (const part of COST_PARTS)
      if (amounts.costParts[part] > 0n) this.#parts[part].add(amounts.currency, amounts.costParts[part]);
  }

  get isEmpty(): boolean {
    return this.#counts.requests === 0;
  }

  addSum(other: Sum): void {
    for (const name of COUNTS)
      this.#counts[name] = Math.min(this.#counts[name] + other.#counts[name], Number.MAX_SAFE_INTEGER);
    for (const [bucket, count] of (other.#speeds ?? []).entries()) {
      this.#speeds ??= Array.from({ length: SPEED_BUCKETS }, () => 0);
      this.#speeds[bucket] = (this.#speeds[bucket] ?? 0) + count;
    }
    this.#cost.addAll(other.#cost);
    this.#estimatedCost.addAll(other.#estimatedCost);
    this.#lostTokens = Math.min(this.#lostTokens + other.#lostTokens, Number.MAX_SAFE_INTEGER);
    this.#lostCost.addAll(other.#lostCost);
    for (const part of COST_PARTS) this.#parts[part].addAll(other.#parts[part]);
  }

  get cost(): Readonly<Record<string, number>> {
    return this.#cost.amounts;
  }

  get distribution(): Distribution {
    return distributionOf(this.#speeds ?? []);
  }

  /** Below 0 if this sum is smaller: by cost, without regard to currencies, then by tokens and requests. */
  compare(other: Sum): number {
    const cost = this.#cost.nanos - other.#cost.nanos;
    if (cost !== 0n) return cost < 0n ? -1 : 1;
    const tokens = this.#counts.total_tokens - other.#counts.total_tokens;
    return tokens === 0 ? this.#counts.requests - other.#counts.requests : tokens;
  }

  get sums(): Sums {
    return {
      ...withinPrompt(this.#counts),
      cached_share: shareOf(this.#counts.cached_tokens, this.#counts.prompt_tokens),
      ...percentilesOf(this.#speeds ?? []),
      cost: this.#cost.amounts,
      estimated_cost: this.#estimatedCost.amounts,
      ...(COST_PARTS.some((part) => this.#parts[part].nanos > 0n) && {
        cost_parts: {
          input: this.#parts.input.amounts,
          cached: this.#parts.cached.amounts,
          output: this.#parts.output.amounts,
        },
      }),
      ...(this.#lostTokens > 0 && { lost_tokens: this.#lostTokens, lost_cost: this.#lostCost.amounts }),
    };
  }
}

function shareOf(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.round((Math.min(part, whole) / whole) * 1e4) / 1e4;
}

const NANOS_PER_UNIT = 1_000_000_000n;
const NANO_DIGITS = 9;

/** Sums of money by currency. They are `bigint`, because a sum may exceed the integers that a double holds exactly. */
class MoneySums {
  readonly #nanos = new Map<string, bigint>();

  add(currency: string, nanos: bigint): void {
    this.#nanos.set(currency, (this.#nanos.get(currency) ?? 0n) + nanos);
  }

  addAll(other: MoneySums): void {
    for (const [currency, nanos] of other.#nanos) this.add(currency, nanos);
  }

  /** The sum over all currencies, to compare sizes. */
  get nanos(): bigint {
    return [...this.#nanos.values()].reduce((sum, nanos) => sum + nanos, 0n);
  }

  /** The sums in whole units, such as `{"USD": 0.000128}`, sorted by currency; `{}` if nothing was added. */
  get amounts(): Readonly<Record<string, number>> {
    const sorted = [...this.#nanos].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(sorted.map(([currency, nanos]) => [currency, toUnits(nanos)]));
  }
}

/** The amount in whole units, as the nearest number. */
function toUnits(nanos: bigint): number {
  const fraction = (nanos % NANOS_PER_UNIT).toString().padStart(NANO_DIGITS, '0');
  return Number(`${nanos / NANOS_PER_UNIT}.${fraction}`);
}

function emptyCounts(): RequestCounts {
  return {
    requests: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
    cached_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    estimated_requests: 0,
    failed_requests: 0,
    unpriced_requests: 0,
    cancelled_requests: 0,
    cut_requests: 0,
  };
}

/** The values of the groups for one record. */
export function groupValues(record: ReportedRecord, groups: readonly Group[]): string[] {
  return groups.map((group) => groupValue(record, group));
}

/** Whether a record passes a report's filter. */
export function matchesFilter(record: ReportedRecord, only: ReportFilter): boolean {
  return filterEntries(only).every(([name, value]) => value === groupValue(record, name));
}

function isFailure({ status }: RecordSummary): boolean {
  return status === 'failed' || status === 'timed_out';
}

/** Whether the output began, and then failed. */
export function isTruncated(record: RecordSummary): boolean {
  return isFailure(record) && record.first_token_ms !== null;
}

/** The amounts of one request. */
export function amountsOf(record: ReportedRecord): Amounts {
  const cost = BigInt(record.cost_nanos ?? 0);
  // A request without tokens has no cost, so it needs no price.
  const isUnpriced = record.cost_nanos === null && record.total_tokens > 0;
  return {
    requests: 1,
    prompt_tokens: record.prompt_tokens,
    completion_tokens: record.completion_tokens,
    total_tokens: record.total_tokens,
    cached_tokens: record.cached_tokens ?? 0,
    cache_write_tokens: record.cache_write_tokens ?? 0,
    reasoning_tokens: record.reasoning_tokens ?? 0,
    estimated_requests: record.estimated ? 1 : 0,
    // A disconnected client is not a failure.
    failed_requests: isFailure(record) ? 1 : 0,
    unpriced_requests: isUnpriced ? 1 : 0,
    cancelled_requests: record.status === 'cancelled' ? 1 : 0,
    cut_requests: isTruncated(record) ? 1 : 0,
    currency: record.cost_nanos === null ? null : record.currency,
    cost,
    estimatedCost: record.cost_estimated ? cost : 0n,
    lostTokens: record.cache?.lost_tokens ?? 0,
    lostCost: BigInt(record.cache?.lost_nanos ?? 0),
    costParts: {
      input: BigInt(record.cost_parts_nanos?.input ?? 0),
      cached: BigInt(record.cost_parts_nanos?.cached ?? 0),
      output: BigInt(record.cost_parts_nanos?.output ?? 0),
    },
    speeds: speedsOf(record),
  };
}
