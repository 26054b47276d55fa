/** The chart of the overview: one metric over time, stacked by group. */
import type { GroupName, Report, Row } from '../../api/types.ts';
import { type Series, Stack } from '../../charts/stack.tsx';
import { ProblemBox } from '../../parts/problem.tsx';
import { useLoad, within } from '../../state/load.ts';
import { type Range, spanOf, stepsOf } from '../../state/range.ts';
import type { Params } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { type Metric, OTHER_COLOUR, type Ranked } from './metrics.ts';

interface OverTimeProps {
  readonly range: Range;
  readonly filters: Params;
  readonly by: GroupName;
  readonly metric: Metric;
  readonly currency: string;
  /** Sorted by cost, highest first. */
  readonly groups: readonly Ranked[];
  readonly nameOf: (key: string) => string;
}

export function OverTime({ range, filters, by, metric, currency, groups, nameOf }: OverTimeProps) {
  const { api } = useSession();
  const steps = stepsOf(range);
  const report = useLoad<Report & { readonly isDivided: boolean }>(
    within(range, async (signal) => {
      const fetchReport = (group_by: string) =>
        api.get<Report>('/v1/usage', { ...spanOf(range), ...filters, group_by }, signal);
      const divided = await fetchReport(`${range.step},${by}`);
      // The API refuses a report with too many rows: the bars are then drawn without groups.
      const isTooLarge =
        divided.kind === 'problem' &&
        divided.problem.kind === 'refused' &&
        divided.problem.param === 'group_by';
      const answer = isTooLarge ? await fetchReport(range.step) : divided;
      return answer.kind === 'answer'
        ? { ...answer, value: { ...answer.value, isDivided: !isTooLarge } }
        : answer;
    }),
    [api, JSON.stringify([spanOf(range), filters]), by],
  );
  if (report.problem !== null) return <ProblemBox problem={report.problem} onRetry={report.reload} />;
  if (report.value === null) return <div class="chart waiting" />;
  const { data, isDivided } = report.value;
  const amountOf = (row: Row) => metric.valueOf(row, currency);
  const series = isDivided
    ? divide(data, steps, range.step, by, groups, amountOf, nameOf)
    : [{ name: 'All', colour: 'c0', values: valuesOf(data, steps, range.step, amountOf) }];
  const largest = Math.max(
    0,
    ...steps.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)),
  );
  return (
    <section class={report.isLoading ? 'loading' : ''}>
      <Stack
        label={`${metric.label} by ${range.step}${isDivided ? ` and ${by}` : ''}`}
        steps={steps}
        series={series}
        format={metric.format(currency, largest)}
      />
      {!isDivided && (
        <p class="hint">There are too many groups to divide the bars by: narrow the view to see them.</p>
      )}
    </section>
  );
}

type RowValue = (row: Row) => number;

function valuesOf(
  rows: readonly Row[],
  steps: readonly string[],
  step: Range['step'],
  amountOf: RowValue,
): number[] {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(row[step] ?? '', (sums.get(row[step] ?? '') ?? 0) + amountOf(row));
  return steps.map((name) => sums.get(name) ?? 0);
}

/** One series for each group with its own colour, and one for all others. */
function divide(
  rows: readonly Row[],
  steps: readonly string[],
  step: Range['step'],
  by: GroupName,
  groups: readonly Ranked[],
  amountOf: RowValue,
  nameOf: (key: string) => string,
): Series[] {
  const own = groups.filter(({ colour }) => colour !== OTHER_COLOUR);
  const byGroup = Map.groupBy(rows, (row) => row[by] ?? '');
  const series = own.map(({ id, colour }) => ({
    name: by === 'key' ? nameOf(id) : id,
    colour,
    values: valuesOf(byGroup.get(id) ?? [], steps, step, amountOf),
  }));
  const known = new Set(own.map(({ id }) => id));
  const rest = rows.filter((row) => !known.has(row[by] ?? ''));
  if (rest.length > 0)
    series.push({ name: 'Others', colour: OTHER_COLOUR, values: valuesOf(rest, steps, step, amountOf) });
  return series;
}
