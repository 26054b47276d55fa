/** The charts of the overview: one metric over time, stacked by group, and beside it what it is made of or how it is spread. */
import type { Answer } from '../../api/problem.ts';
import type { Distribution, GroupName, Refusals, Report, Row } from '../../api/types.ts';
import { type Series, Stack } from '../../charts/stack.tsx';
import { compact } from '../../format/numbers.ts';
import { ProblemBox } from '../../parts/problem.tsx';
import { filterOf, groupLabel, isFactGroup, OTHER } from '../../state/groups.ts';
import { type Loaded, useLoad, within } from '../../state/load.ts';
import { lineRange, type Range, reportStep, spanOf, stepsOf } from '../../state/range.ts';
import { goTo, linkTo, type Params } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import type { Metric, Ranked } from './metrics.ts';
import { countsOf, divide, measuresOf, partSeries, spreadOf, sumsOf } from './series.ts';

interface OverTimeProps {
  readonly range: Range;
  readonly params: Params;
  readonly filters: Params;
  readonly by: GroupName;
  readonly metric: Metric;
  readonly currency: string;
  /** Sorted by the metric, largest first. */
  readonly groups: readonly Ranked[];
  /** The sums of each step. */
  readonly totals: Loaded<Report>;
  readonly refusals: Loaded<Refusals>;
  readonly distribution: Distribution;
  /** Incremented to load again. */
  readonly refreshes: number;
  readonly nameOf: (key: string) => string;
}

/** The most rows that the API returns. */
const MAX_ROWS = '10000';

/** A chart's data: each row has its step and, where it is divided, its group. */
interface Data {
  readonly data: readonly Row[];
  /** The report has too many groups to name each. */
  readonly hasRest: boolean;
  /** False: the chart needs none, or the report has too many. */
  readonly hasGroups: boolean;
  readonly of: string;
}

export function OverTime(props: OverTimeProps) {
  const { range, params, filters, by, metric, currency, groups, totals, refusals, nameOf, refreshes } = props;
  const { api } = useSession();
  const { lines, counts } = metric;
  // Percentiles of hours do not sum to one of a day.
  const drawn = lines === undefined ? range : lineRange(range);
  const step = reportStep(range);
  const isRefused = metric.name === 'refused';
  const group = counts ?? by;
  // Identifies the chart, so that the data of another one is not drawn.
  const needsGroups = lines === undefined && !isRefused;
  const of = needsGroups ? `bars by ${group}` : 'sums';
  const report = useLoad<Data>(
    within(range, async (signal): Promise<Answer<Data>> => {
      const none = { data: [], hasRest: false, hasGroups: false, of };
      if (!needsGroups) return { kind: 'answer', value: none };
      const limit = isFactGroup(group) ? { limit: MAX_ROWS } : {};
      const query = { ...spanOf(range), ...filters, ...limit, group_by: `${step},${group}` };
      const answer = await api.get<Report>('/v1/usage', query, signal);
      if (answer.kind === 'answer') {
        const data = answer.value.data.filter((row) => row[step] !== OTHER);
        const hasRest = data.length < answer.value.data.length;
        return { kind: 'answer', value: { ...none, data, hasRest, hasGroups: true } };
      }
      // The API refuses a report with too many rows: the bars are then drawn without groups.
      const isTooLarge = answer.problem.kind === 'refused' && answer.problem.param === 'group_by';
      return isTooLarge ? { kind: 'answer', value: none } : answer;
    }),
    [api, JSON.stringify([spanOf(range), filters]), group, of, step],
    refreshes,
  );
  // The strip above the figures tells of a refresh that failed.
  const sums = isRefused ? refusals : totals;
  const failed = [report, sums].find(({ problem, value }) => problem !== null && value === null);
  if (failed?.problem) return <ProblemBox problem={failed.problem} onRetry={failed.reload} />;
  if (report.value?.of !== of || sums.value === null) return <div class="chart waiting" />;
  const { data, hasRest, hasGroups } = report.value;
  const isDivided = hasGroups && counts === undefined;
  const lacksGroups = needsGroups && (!hasGroups || (counts !== undefined && hasRest));
  const rows = totals.value?.data ?? [];
  const amountOf = (row: Row) => metric.valueOf(row, currency);
  const seriesOfAll = (values: readonly number[]): readonly Series[] => [
    { name: 'All', colour: metric.isBad ? 'status-failed' : 'c0', values },
  ];
  const readSeries = (): readonly Series[] => {
    if (lines !== undefined)
      return lines.map(({ name, valueOf: measure }, i) => ({
        name,
        colour: `c${i}`,
        values: measuresOf(rows, range, measure),
      }));
    if (isRefused)
      return seriesOfAll(sumsOf(refusals.value?.data ?? [], range, (row) => row.refused_requests));
    if (counts !== undefined) return seriesOfAll(countsOf(data, range, counts));
    if (!isDivided) return seriesOfAll(sumsOf(rows, range, amountOf));
    return divide({ data, totals: hasRest ? rows : null, range, by, groups, amountOf, nameOf });
  };
  const { by: _, metric: __, currency: ___, ...kept } = params;
  const ofGroup = (group?: string) => ({
    ...metric.filter,
    ...(group !== undefined && filterOf(by, group)),
  });
  const openStep = (opened: string, group?: string) => {
    const { from, to, range: ____, hour, ...filtered } = kept;
    const chosen = opened.length === 10 ? { from: opened, to: opened } : { hour: opened };
    goTo('requests', { ...filtered, ...chosen, ...ofGroup(group) });
  };
  const chart = {
    steps: stepsOf(drawn),
    format: metric.format(currency),
    isLines: lines !== undefined,
    onOpen: openStep,
    hrefOf: (group: string) => linkTo('requests', kept, ofGroup(group)),
  };
  const parts = metric.name === 'spend' ? partSeries(rows, range, currency) : [];
  return (
    <section class={report.isLoading ? 'charts loading' : 'charts'}>
      <Stack
        {...chart}
        label={`${metric.label} by ${drawn.step}${isDivided ? ` and ${groupLabel(by).toLowerCase()}` : ''}`}
        series={readSeries()}
        note={lacksGroups && 'There are too many groups to divide the bars by: narrow the view to see them.'}
      />
      {parts.length > 0 && (
        <Stack {...chart} label="Spend by input, cached input and output" series={parts} />
      )}
      {metric.spread && <Spread {...props} of={metric.spread} />}
    </section>
  );
}

/** How many requests of the range were how fast. */
function Spread({ of, metric, currency, distribution }: OverTimeProps & { of: keyof Distribution }) {
  const { steps, titles, values } = spreadOf(distribution[of], metric.format(currency));
  if (steps.length === 0) return null;
  return (
    <Stack
      label={`Requests by ${metric.label.toLowerCase()}`}
      steps={steps}
      series={[{ name: 'Requests', colour: 'c0', values }]}
      format={compact}
      isLines={false}
      labelOf={(step) => step}
      isRange
      titleOf={(step) => titles[steps.indexOf(step)] ?? step}
    />
  );
}
