/** The chart of the overview: one metric over time, stacked by group. */
import type { Answer } from '../../api/fetch-api.ts';
import type { GroupName, RefusalRow, Refusals, Report, Row } from '../../api/types.ts';
import { type Series, Stack } from '../../charts/stack.tsx';
import { ProblemBox } from '../../parts/problem.tsx';
import { groupLabel, isFactGroup, OTHER, valueLabel } from '../../state/groups.ts';
import { useLoad, within } from '../../state/load.ts';
import { lineRange, type Range, reportStep, spanOf, stepOfRow, stepsOf } from '../../state/range.ts';
import { goTo, type Params } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { type Metric, OTHER_COLOUR, type Ranked } from './metrics.ts';

interface OverTimeProps {
  readonly range: Range;
  readonly params: Params;
  readonly filters: Params;
  readonly by: GroupName;
  readonly metric: Metric;
  readonly currency: string;
  /** Sorted by the metric, largest first. */
  readonly groups: readonly Ranked[];
  /** Incremented to load again. */
  readonly refreshes: number;
  readonly nameOf: (key: string) => string;
}

/** The most rows that the API returns. */
const MAX_ROWS = '10000';

/** A chart's data: each row has its step and, where it is divided, its group. */
interface Data {
  readonly data: readonly Row[];
  /** Only for the metric of refused requests, which have no sums. */
  readonly refusals: readonly RefusalRow[];
  /** The sums of each step, where a report has too many groups to name each. */
  readonly totals: readonly Row[] | null;
  readonly isDivided: boolean;
  readonly of: string;
}

export function OverTime({
  range,
  params,
  filters,
  by,
  metric,
  currency,
  groups,
  nameOf,
  refreshes,
}: OverTimeProps) {
  const { api } = useSession();
  const { lines } = metric;
  const isLines = lines !== undefined;
  // Percentiles of hours do not sum to one of a day.
  const drawn = isLines ? lineRange(range) : range;
  const steps = stepsOf(drawn);
  const step = reportStep(drawn);
  const isRefused = metric.name === 'refused';
  // Identifies the chart, so that the data of another one is not drawn.
  const of = isLines ? 'lines' : isRefused ? 'refused' : `bars by ${by}`;
  const report = useLoad<Data>(
    within(range, async (signal): Promise<Answer<Data>> => {
      const fetchReport = (group_by: string, limit = {}) =>
        api.get<Report>('/v1/usage', { ...spanOf(range), ...filters, ...limit, group_by }, signal);
      if (isRefused) {
        const query = { ...spanOf(range), ...(filters.key && { key: filters.key }), group_by: step };
        const answer = await api.get<Refusals>('/v1/usage/refusals', query, signal);
        return answer.kind === 'answer'
          ? {
              ...answer,
              value: { data: [], refusals: answer.value.data, totals: null, isDivided: false, of },
            }
          : answer;
      }
      const divided = isLines
        ? null
        : await fetchReport(`${step},${by}`, isFactGroup(by) ? { limit: MAX_ROWS } : {});
      // The API refuses a report with too many rows: the bars are then drawn without groups.
      const isTooLarge =
        divided !== null &&
        divided.kind === 'problem' &&
        divided.problem.kind === 'refused' &&
        divided.problem.param === 'group_by';
      const answer = divided === null || isTooLarge ? await fetchReport(step) : divided;
      if (answer.kind !== 'answer') return answer;
      const data = answer.value.data.filter((row) => row[step] !== OTHER);
      const hasRest = data.length < answer.value.data.length;
      const totals = hasRest ? await fetchReport(step) : null;
      if (totals?.kind === 'problem') return totals;
      const isDivided = !isTooLarge && !isLines;
      return {
        kind: 'answer',
        value: { data, refusals: [], totals: totals?.value.data ?? null, isDivided, of },
      };
    }),
    [api, JSON.stringify([spanOf(range), filters]), by, of, step],
    refreshes,
  );
  // The strip above the figures tells of a refresh that failed.
  if (report.problem !== null && report.value === null)
    return <ProblemBox problem={report.problem} onRetry={report.reload} />;
  if (report.value?.of !== of) return <div class="chart waiting" />;
  const { data, refusals, totals, isDivided } = report.value;
  const stepOf = (row: Steps) => stepOfRow(drawn, row[step] ?? '');
  const amountOf = (row: Row) => metric.valueOf(row, currency);
  const byStep = new Map(data.map((row) => [row[step] ?? '', row]));
  const series: readonly Series[] =
    lines?.map(({ name, valueOf: measure }, i) => ({
      name,
      colour: `c${i}`,
      values: steps.map((name) => {
        const row = byStep.get(name);
        return row === undefined ? null : measure(row);
      }),
    })) ??
    (isDivided
      ? divide({ data, totals }, steps, stepOf, by, groups, amountOf, nameOf)
      : [
          {
            name: 'All',
            colour: metric.isBad ? 'status-failed' : 'c0',
            values: isRefused
              ? valuesOf(refusals, steps, stepOf, (row) => row.refused_requests)
              : valuesOf(data, steps, stepOf, amountOf),
          },
        ]);
  const openStep = (step: string) => {
    const { from, to, range: _, hour, by: __, metric: ___, currency: ____, ...kept } = params;
    const chosen = step.length === 10 ? { from: step, to: step } : { hour: step };
    goTo('requests', { ...kept, ...chosen, ...metric.filter });
  };
  return (
    <section class={report.isLoading ? 'loading' : ''}>
      <Stack
        label={`${metric.label} by ${drawn.step}${isDivided ? ` and ${groupLabel(by).toLowerCase()}` : ''}`}
        steps={steps}
        series={series}
        format={metric.format(currency)}
        isLines={isLines}
        onOpen={openStep}
      />
      {!isDivided && !isLines && !isRefused && (
        <p class="hint">There are too many groups to divide the bars by: narrow the view to see them.</p>
      )}
    </section>
  );
}

type RowValue = (row: Row) => number;
/** Those of a row that its report is grouped by. */
type Steps = Partial<Record<Range['step'], string>>;

function valuesOf<Item extends Steps>(
  rows: readonly Item[],
  steps: readonly string[],
  stepOf: (row: Steps) => string,
  amountOf: (row: Item) => number,
): number[] {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(stepOf(row), (sums.get(stepOf(row)) ?? 0) + amountOf(row));
  return steps.map((name) => sums.get(name) ?? 0);
}

/** One series for each group with its own colour, and one for all others. */
function divide(
  { data: rows, totals }: Pick<Data, 'data' | 'totals'>,
  steps: readonly string[],
  stepOf: (row: Steps) => string,
  by: GroupName,
  groups: readonly Ranked[],
  amountOf: RowValue,
  nameOf: (key: string) => string,
): Series[] {
  const namedGroups = groups.filter(({ colour }) => colour !== OTHER_COLOUR);
  const byGroup = Map.groupBy(rows, (row) => row[by] ?? '');
  const series = namedGroups.map(({ id, colour }) => ({
    name: valueLabel(by, id, nameOf),
    colour,
    values: valuesOf(byGroup.get(id) ?? [], steps, stepOf, amountOf),
  }));
  const namedIds = new Set(namedGroups.map(({ id }) => id));
  const rest = rows.filter((row) => !namedIds.has(row[by] ?? ''));
  const values =
    totals === null
      ? valuesOf(rest, steps, stepOf, amountOf)
      : valuesOf(totals, steps, stepOf, amountOf).map((all, i) =>
          Math.max(
            0,
            series.reduce((left, { values: ofGroup }) => left - (ofGroup[i] ?? 0), all),
          ),
        );
  if (rest.length > 0 || totals !== null) series.push({ name: 'Others', colour: OTHER_COLOUR, values });
  // Of failures, the requests without an error are none.
  return by === 'error' ? series.filter(({ values: ofGroup }) => ofGroup.some(Boolean)) : series;
}
