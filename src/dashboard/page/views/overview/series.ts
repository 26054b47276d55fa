/** The series of the overview's charts, from rows of reports. */
import type { GroupName, NamedGroups, Refusals, Report, Row, Spread } from '../../api/types.ts';
import type { Series } from '../../charts/stack.tsx';
import { OTHER, valueLabel } from '../../state/groups.ts';
import { lineRange, type Range, reportStep, stepOfRow, stepsOf, utcStepsOf } from '../../state/range.ts';
import { type Counted, type Metric, OTHER_COLOUR, type Ranked } from './metrics.ts';

type RowValue = (row: Row) => number;
/** Those of a row that its report is grouped by. */
type Steps = Partial<Record<Range['step'], string>>;

/** The step of a range that a row of its report belongs to. */
function stepOf(range: Range, row: Steps): string {
  return stepOfRow(range, row[reportStep(range)] ?? '');
}

/** The sum of each step of a range. */
export function sumsOf<Item extends Steps>(
  rows: readonly Item[],
  range: Range,
  amountOf: (row: Item) => number,
): number[] {
  const sums = new Map<string, number>();
  for (const row of rows) {
    const step = stepOf(range, row);
    sums.set(step, (sums.get(step) ?? 0) + amountOf(row));
  }
  return stepsOf(range).map((name) => sums.get(name) ?? 0);
}

/** The measured value of each step of a range, as its report has it: percentiles have no sum. */
export function measuresOf(
  rows: readonly Row[],
  range: Range,
  measure: (row: Row) => number | null,
): (number | null)[] {
  const drawn = lineRange(range);
  const byStep = new Map(rows.map((row) => [row[drawn.step] ?? '', row]));
  return stepsOf(drawn).map((name) => {
    const row = byStep.get(name);
    return row === undefined ? null : measure(row);
  });
}

/** How many different users or sessions each step has. */
export function countsOf(rows: readonly Row[], range: Range, fact: Counted): number[] {
  const named = rows.filter((row) => row[fact] !== '' && row[fact] !== OTHER);
  const names = Map.groupBy(named, (row) => stepOf(range, row));
  return stepsOf(range).map((name) => new Set(names.get(name)?.map((row) => row[fact])).size);
}

/** What small lines are drawn from. */
export interface SparkData {
  readonly steps: Report | null;
  readonly countedSteps: Readonly<Record<Counted, NamedGroups | null>>;
  readonly refusedSteps: Refusals | null;
}

/** The values of a tile's small line; empty where they are not loaded. */
export function sparkOf(
  { lines, counts, name, valueOf: sumOf }: Metric,
  { steps, countedSteps, refusedSteps }: SparkData,
  range: Range,
  currency: string,
): readonly (number | null)[] {
  if (counts !== undefined) {
    const byStep = countedSteps[counts]?.steps;
    return byStep === undefined ? [] : utcStepsOf(range).map((step) => byStep[step] ?? 0);
  }
  if (name === 'refused') return sumsOf(refusedSteps?.data ?? [], range, (row) => row.refused_requests);
  const rows = steps?.data ?? [];
  const [line] = lines ?? [];
  if (line !== undefined) return measuresOf(rows, range, line.valueOf);
  return sumsOf(rows, range, (row) => sumOf(row, currency));
}

const PARTS = [
  { part: 'input', name: 'Input', colour: 'c0' },
  { part: 'cached', name: 'Cached input', colour: 'c1' },
  { part: 'output', name: 'Output', colour: 'c2' },
] as const;

/** What a row cost by kinds of tokens. `rest` is the cost of searches, and of requests whose provider reported one sum. */
export function costParts({ cost, cost_parts }: Pick<Row, 'cost' | 'cost_parts'>, currency: string) {
  const of = (part: 'input' | 'cached' | 'output') => cost_parts?.[part][currency] ?? 0;
  const parts = { input: of('input'), cached: of('cached'), output: of('output') };
  const all = cost[currency] ?? 0;
  return { ...parts, rest: Math.max(0, all - parts.input - parts.cached - parts.output) };
}

/** A smaller rest is from rounding. */
const LEAST_REST = 1e-8;

/** The spend by kinds of tokens; empty where no cost is divided. */
export function partSeries(rows: readonly Row[], range: Range, currency: string): Series[] {
  if (rows.every(({ cost_parts }) => cost_parts === undefined)) return [];
  const series: Series[] = PARTS.map(({ part, name, colour }) => ({
    name,
    colour,
    values: sumsOf(rows, range, (row) => costParts(row, currency)[part]),
  }));
  const values = sumsOf(rows, range, (row) => costParts(row, currency).rest);
  const hasRest = values.some((rest) => rest > LEAST_REST);
  return hasRest ? [...series, { name: 'Not divided', colour: OTHER_COLOUR, values }] : series;
}

/** The bars of a distribution: their names, and the requests in each. */
export function spreadOf(spread: readonly Spread[], format: (value: number) => string) {
  return {
    steps: spread.map(({ from }) => format(from)),
    titles: spread.map(({ from, to }) =>
      to === null ? `${format(from)} and more` : `${format(from)} to ${format(to)}`,
    ),
    values: spread.map(({ requests }) => requests),
  };
}

interface Divided {
  readonly data: readonly Row[];
  /** The sums of each step, where a report has too many groups to name each. */
  readonly totals: readonly Row[] | null;
  readonly range: Range;
  readonly by: GroupName;
  readonly groups: readonly Ranked[];
  readonly amountOf: RowValue;
  readonly nameOf: (key: string) => string;
}

/** One series for each group with its own colour, and one for all others. */
export function divide({ data: rows, totals, range, by, groups, amountOf, nameOf }: Divided): Series[] {
  const namedGroups = groups.filter(({ colour }) => colour !== OTHER_COLOUR);
  const byGroup = Map.groupBy(rows, (row) => row[by] ?? '');
  const series: Series[] = namedGroups.map(({ id, colour }) => ({
    name: valueLabel(by, id, nameOf),
    group: id,
    colour,
    values: sumsOf(byGroup.get(id) ?? [], range, amountOf),
  }));
  const namedIds = new Set(namedGroups.map(({ id }) => id));
  const rest = rows.filter((row) => !namedIds.has(row[by] ?? ''));
  const values =
    totals === null
      ? sumsOf(rest, range, amountOf)
      : sumsOf(totals, range, amountOf).map((all, i) =>
          Math.max(
            0,
            series.reduce((left, { values: ofGroup }) => left - (ofGroup[i] ?? 0), all),
          ),
        );
  if (rest.length > 0 || totals !== null) series.push({ name: 'Others', colour: OTHER_COLOUR, values });
  // Of failures, the requests without an error are none.
  return by === 'error' ? series.filter(({ values: ofGroup }) => ofGroup.some(Boolean)) : series;
}
