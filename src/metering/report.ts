/** Groups and sums usage for `GET /v1/usage`, from single records or from partial sums. */
import { MAX_REPORT_ROWS } from '../shared/limits.ts';
import type { RecordSummary } from './record.ts';
import { type Medians, mediansOf, SPEED_BUCKETS, type SpeedCount, speedsOf } from './speeds.ts';

export const GROUPS = ['day', 'hour', 'provider', 'model', 'route', 'status', 'key'] as const;
export type Group = (typeof GROUPS)[number];

/** The groups by which a report can be filtered, with one value each. */
export const FILTERS = ['provider', 'model', 'route', 'status'] as const satisfies readonly Group[];
export type ReportFilter = { readonly [F in (typeof FILTERS)[number]]?: string };

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
type Counts = Record<(typeof COUNTS)[number], number>;

/** Sums over some requests whose costs have one currency. */
export interface Amounts extends Readonly<Counts> {
  /** Null if none of the requests has a known cost. */
  readonly currency: string | null;
  /** In 10^-9 of the currency. */
  readonly cost: bigint;
  /** The part of the cost that is computed from estimated tokens or is an upper bound. */
  readonly estimatedCost: bigint;
  readonly speeds: readonly SpeedCount[];
}

/** The figures of a row in the response. */
export interface Sums extends Readonly<Counts>, Medians {
  readonly cost: Readonly<Record<string, number>>;
  readonly estimated_cost: Readonly<Record<string, number>>;
}
export type Row = Partial<Record<Group, string>> & Sums;

const READ_GROUP: { readonly [G in Group]: (record: RecordSummary) => string } = {
  day: (record) => record.time.slice(0, 10),
  hour: (record) => `${record.time.slice(0, 13)}:00Z`,
  provider: (record) => record.provider,
  // The address, because two providers may have models of the same name.
  model: (record) => `${record.provider}/${record.model}`,
  route: (record) => record.route,
  status: (record) => record.status,
  key: (record) => record.key_id,
};

export class Report {
  readonly #groups: readonly Group[];
  readonly #rows = new Map<string, { readonly values: readonly string[]; readonly sum: Sum }>();
  readonly #total = new Sum();
  #isTooLarge = false;

  constructor(groups: readonly Group[]) {
    this.#groups = groups;
  }

  addRecord(record: RecordSummary): void {
    this.add(groupValues(record, this.#groups), amountsOf(record));
  }

  /** @param values the values of the groups, in the order of the groups */
  add(values: readonly string[], amounts: Amounts): void {
    const id = JSON.stringify(values);
    let row = this.#rows.get(id);
    if (row === undefined) {
      if (this.#rows.size >= MAX_REPORT_ROWS) {
        this.#isTooLarge = true;
        return;
      }
      row = { values, sum: new Sum() };
      this.#rows.set(id, row);
    }
    row.sum.add(amounts);
    this.#total.add(amounts);
  }

  /** The report has more rows than allowed, and is incomplete. */
  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  /** Sorted by the values of the groups. */
  get rows(): Row[] {
    const sorted = [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([, { values, sum }]) => ({ ...this.#groupFields(values), ...sum.sums }));
  }

  get total(): Sums {
    return this.#total.sums;
  }

  #groupFields(values: readonly string[]): Partial<Record<Group, string>> {
    return Object.fromEntries(this.#groups.map((group, i) => [group, values[i]]));
  }
}

class Sum {
  readonly #counts: Counts = emptyCounts();
  readonly #cost = new MoneySums();
  readonly #estimatedCost = new MoneySums();
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
    if (amounts.currency === null) return;
    this.#cost.add(amounts.currency, amounts.cost);
    if (amounts.estimatedCost > 0n) this.#estimatedCost.add(amounts.currency, amounts.estimatedCost);
  }

  get sums(): Sums {
    return {
      ...this.#counts,
      ...mediansOf(this.#speeds ?? []),
      cost: this.#cost.amounts,
      estimated_cost: this.#estimatedCost.amounts,
    };
  }
}

const NANOS_PER_UNIT = 1_000_000_000n;
const NANO_DIGITS = 9;

/** Sums of money by currency. They are `bigint`, because a sum may exceed the integers that a double holds exactly. */
class MoneySums {
  readonly #nanos = new Map<string, bigint>();

  add(currency: string, nanos: bigint): void {
    this.#nanos.set(currency, (this.#nanos.get(currency) ?? 0n) + nanos);
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

function emptyCounts(): Counts {
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
export function groupValues(record: RecordSummary, groups: readonly Group[]): string[] {
  return groups.map((group) => READ_GROUP[group](record));
}

/** Whether a record passes a report's filter. */
export function matchesFilter(record: RecordSummary, only: ReportFilter): boolean {
  return FILTERS.every((name) => only[name] === undefined || only[name] === READ_GROUP[name](record));
}

/** The amounts of one request. */
export function amountsOf(record: RecordSummary): Amounts {
  const cost = BigInt(record.cost_nanos ?? 0);
  const isFailed = record.status === 'failed' || record.status === 'timed_out';
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
    failed_requests: isFailed ? 1 : 0,
    unpriced_requests: isUnpriced ? 1 : 0,
    cancelled_requests: record.status === 'cancelled' ? 1 : 0,
    // The output began, and then failed.
    cut_requests: isFailed && record.first_token_ms !== null ? 1 : 0,
    currency: record.cost_nanos === null ? null : record.currency,
    cost,
    estimatedCost: record.cost_estimated ? cost : 0n,
    speeds: speedsOf(record),
  };
}
