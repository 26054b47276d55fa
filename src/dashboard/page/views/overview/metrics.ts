/** The metrics of the overview, and the order and colours of its groups. */
import type { GroupName, Row, Sums } from '../../api/types.ts';
import { compact, moneyFormat } from '../../format/numbers.ts';

export interface Metric {
  readonly name: 'spend' | 'requests' | 'tokens' | 'failures';
  readonly label: string;
  readonly valueOf: (sums: Sums, currency: string) => number;
  readonly format: (currency: string, largest: number) => (value: number) => string;
}

const counts: Metric['format'] = () => compact;

export const METRICS = [
  {
    name: 'spend',
    label: 'Spend',
    valueOf: (sums, currency) => sums.cost[currency] ?? 0,
    format: moneyFormat,
  },
  { name: 'requests', label: 'Requests', valueOf: (sums) => sums.requests, format: counts },
  { name: 'tokens', label: 'Tokens', valueOf: (sums) => sums.total_tokens, format: counts },
  { name: 'failures', label: 'Failures', valueOf: (sums) => sums.failed_requests, format: counts },
] as const satisfies readonly Metric[];

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

/** Sorts groups by cost, highest first. The colour of a status is fixed. */
export function rank(rows: readonly Row[], by: GroupName, currency: string): Ranked[] {
  const cost = (row: Row) => row.cost[currency] ?? 0;
  return [...rows]
    .sort((a, b) => cost(b) - cost(a) || b.requests - a.requests)
    .map((row, position) => {
      const id = row[by] ?? '';
      const own = position < MAX_COLOURS ? `c${position}` : OTHER_COLOUR;
      return { id, row, colour: by === 'status' ? `status-${id}` : own };
    });
}
