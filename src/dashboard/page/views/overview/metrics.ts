/** The metrics of the overview, and the order and colours of its groups. */
import type { Distribution, GroupName, Row, Sums } from '../../api/types.ts';
import { coloursOf } from '../../charts/colours.ts';
import { compact, milliseconds, money, rate, share } from '../../format/numbers.ts';
import { OTHER } from '../../state/groups.ts';

/** Facts of which the overview counts the different values. */
export type Counted = 'user' | 'session';

/** A line of a metric whose values are not sums. Null: nothing was measured. */
interface Line {
  readonly name: string;
  readonly valueOf: (sums: Sums) => number | null;
}

export interface Metric {
  readonly name: string;
  readonly label: string;
  /** The sum that the height of a bar shows; 0 where the metric has lines. */
  readonly valueOf: (sums: Sums, currency: string) => number;
  readonly format: (currency: string) => (value: number) => string;
  /** The column of the table that the metric sorts by. */
  readonly column: string;
  /** Drawn instead of bars: averages and percentiles can't be stacked. */
  readonly lines?: readonly Line[];
  /** Each bar is the number of different values of this fact. */
  readonly counts?: Counted;
  /** The speeds whose distribution is drawn beside the lines. */
  readonly spread?: keyof Distribution;
  /** The filter that selects the counted requests in the list of requests. */
  readonly filter?: Readonly<Record<string, string>>;
  /** More is worse: values are drawn in the colour of failures. */
  readonly isBad?: boolean;
}

const counts: Metric['format'] = () => compact;
export const FAILED = 'failed,timed_out';
/** The metric of failed requests. */
export const FAILURES = 'failures';

/** The part of the prompts that was read from the provider's cache; null without prompts. */
export function cachedShare({ cached_tokens, prompt_tokens }: Sums): number | null {
  return prompt_tokens > 0 ? cached_tokens / prompt_tokens : null;
}

/** The cost of one of so many requests, users or sessions; null without a price. */
export function meanCost(cost: number | undefined, of: number): number | null {
  return cost === undefined || of === 0 ? null : cost / of;
}

const NO_SUM = () => 0;

export const METRICS: readonly [Metric, ...Metric[]] = [
  {
    name: 'spend',
    label: 'Spend',
    valueOf: (sums, currency) => sums.cost[currency] ?? 0,
    format: (currency) => (value) => money(value, currency),
    column: 'Cost',
  },
  {
    name: 'requests',
    label: 'Requests',
    valueOf: ({ requests }) => requests,
    format: counts,
    column: 'Requests',
  },
  {
    name: 'users',
    label: 'Active users',
    valueOf: NO_SUM,
    format: counts,
    column: 'Cost',
    counts: 'user',
  },
  {
    name: 'sessions',
    label: 'Sessions',
    valueOf: NO_SUM,
    format: counts,
    column: 'Cost',
    counts: 'session',
  },
  {
    name: 'tokens',
    label: 'Tokens',
    valueOf: ({ total_tokens }) => total_tokens,
    format: counts,
    column: 'Tokens',
  },
  {
    name: 'cached',
    label: 'Cached',
    valueOf: NO_SUM,
    format: () => share,
    column: 'Cached',
    lines: [{ name: 'cached share of prompt tokens', valueOf: cachedShare }],
  },
  {
    name: 'lost',
    label: 'Lost to cache breaks',
    valueOf: ({ lost_cost = {} }, currency) => lost_cost[currency] ?? 0,
    format: (currency) => (value) => money(value, currency),
    column: 'Cost',
    isBad: true,
  },
  {
    name: FAILURES,
    label: 'Failures',
    valueOf: ({ failed_requests }) => failed_requests,
    format: counts,
    column: 'Failed',
    filter: { status: FAILED },
    isBad: true,
  },
  {
    name: 'truncated',
    label: 'Truncated',
    valueOf: ({ cut_requests }) => cut_requests,
    format: counts,
    column: 'Truncated',
    filter: { truncated: 'true' },
    isBad: true,
  },
  {
    name: 'cancelled',
    label: 'Cancelled',
    valueOf: ({ cancelled_requests }) => cancelled_requests,
    format: counts,
    column: 'Cancelled',
    filter: { status: 'cancelled' },
  },
  {
    name: 'first-token',
    label: 'First token',
    valueOf: NO_SUM,
    format: () => milliseconds,
    column: 'First token',
    lines: [
      { name: 'median (p50)', valueOf: ({ median_first_token_ms }) => median_first_token_ms },
      { name: 'slowest 5% (p95)', valueOf: ({ p95_first_token_ms }) => p95_first_token_ms },
      { name: 'slowest 1% (p99)', valueOf: ({ p99_first_token_ms }) => p99_first_token_ms },
    ],
    spread: 'first_token_ms',
  },
  {
    name: 'speed',
    label: 'Tokens a second',
    valueOf: NO_SUM,
    format: () => rate,
    column: 'Tokens a second',
    lines: [
      { name: 'median (p50)', valueOf: ({ median_tokens_per_second }) => median_tokens_per_second },
      { name: 'slowest 5% (p95)', valueOf: ({ p5_tokens_per_second }) => p5_tokens_per_second },
      { name: 'slowest 1% (p99)', valueOf: ({ p1_tokens_per_second }) => p1_tokens_per_second },
    ],
    spread: 'tokens_per_second',
  },
  {
    name: 'refused',
    label: 'Refused',
    valueOf: NO_SUM,
    format: counts,
    column: 'Cost',
    filter: { status: 'refused' },
    isBad: true,
  },
];

/** The currencies of a report, the one with the largest sum first. */
export function currenciesOf(total: Sums | undefined): string[] {
  return Object.entries(total?.cost ?? {})
    .sort(([, a], [, b]) => b - a)
    .map(([currency]) => currency);
}

/** A group in the table and the chart. */
export interface Ranked {
  readonly id: string;
  readonly colour: string;
  readonly row: Row;
}

/** The number of groups with their own colour. All others share one. */
const MAX_COLOURS = 6;
export const OTHER_COLOUR = 'other';

/** Sorts groups by the metric, largest first: the first ones have colours of their own. The colour of a status is fixed. */
export function rank(rows: readonly Row[], by: GroupName, metric: Metric, currency: string): Ranked[] {
  const cost = (row: Row) => row.cost[currency] ?? 0;
  const value = (row: Row) => metric.valueOf(row, currency);
  const sorted = [...rows]
    .sort((a, b) => value(b) - value(a) || cost(b) - cost(a) || b.requests - a.requests)
    .map((row) => ({ id: row[by] ?? '', row }));
  const named = sorted.slice(0, MAX_COLOURS).flatMap(({ id }) => (id === OTHER ? [] : [id]));
  const colours = coloursOf(by === 'status' ? [] : named);
  return sorted.map(({ id, row }) => ({
    id,
    row,
    colour: by === 'status' ? `status-${id}` : (colours.get(id) ?? OTHER_COLOUR),
  }));
}
