/** The headline figures, compared with the previous range. Each selects the chart's metric. */
import type { NamedGroups, Sums } from '../../api/types.ts';
import { Spark } from '../../charts/spark.tsx';
import { change, count, milliseconds, money, NONE, rate, share, WAITING } from '../../format/numbers.ts';
import type { Range } from '../../state/range.ts';
import { linkTo, type Params } from '../../state/route.ts';
import { type Counted, cachedShare, FAILURES, METRICS, type Metric, meanCost } from './metrics.ts';
import { costParts, type SparkData, sparkOf } from './series.ts';

interface FiguresProps extends SparkData {
  readonly now: Sums | null;
  readonly previous: Sums | null;
  readonly counted: Readonly<Record<Counted, NamedGroups | null>>;
  readonly range: Range;
  /** Null: unknown. */
  readonly refused: number | null;
  /** A failure is not the fault of its caller. */
  readonly hasOutage: boolean;
  readonly currency: string;
  readonly metric: Metric;
  readonly params: Params;
}

type Note = (sums: Sums, currency: string) => string | null;

const NOTES: Readonly<Record<string, Note>> = {
  spend: spendNote,
  requests: ({ requests, cost }, currency) => eachNote(cost[currency], requests, currency),
  cached: ({ cache_write_tokens, prompt_tokens }) =>
    cache_write_tokens > 0
      ? `of the prompts, ${share(cache_write_tokens / Math.max(1, prompt_tokens))} written to the cache`
      : 'of the prompts',
  lost: ({ lost_tokens = 0 }) => (lost_tokens > 0 ? count(lost_tokens, 'token') : null),
  failures: ({ failed_requests, requests }) =>
    failed_requests > 0 ? `${share(failed_requests / Math.max(1, requests))} of the requests` : null,
  'first-token': ({ p95_first_token_ms }) => `median, slowest 5% ${milliseconds(p95_first_token_ms)}`,
  speed: ({ p5_tokens_per_second }) => `median, slowest 5% ${rate(p5_tokens_per_second)}`,
};

function eachNote(cost: number | undefined, of: number, currency: string): string | null {
  const each = meanCost(cost, of);
  return each === null ? null : `${money(each, currency)} each`;
}

function spendNote(sums: Sums, currency: string): string | null {
  const others = Object.entries(sums.cost).filter(([code]) => code !== currency);
  const notes = others.map(([code, cost]) => `and ${money(cost, code)}`);
  if (sums.cost_parts !== undefined) {
    const { input, cached, output } = costParts(sums, currency);
    const text = (part: number) => money(part, currency);
    notes.push(`input ${text(input)}, cached input ${text(cached)}, output ${text(output)}`);
  }
  const estimated = sums.estimated_cost[currency];
  if (estimated !== undefined && estimated > 0) notes.push(`${money(estimated, currency)} estimated`);
  if (sums.unpriced_requests > 0) notes.push(`${count(sums.unpriced_requests, 'request')} without a price`);
  return notes.length === 0 ? null : notes.join(' · ');
}

function headlineOf({ name, lines, valueOf: sumOf }: Metric, sums: Sums, currency: string): number | null {
  if (name === 'cached') return cachedShare(sums);
  // Sums have nothing of it where no request was compared.
  if (name === 'lost' && sums.lost_cost === undefined) return null;
  return lines?.[0] === undefined ? sumOf(sums, currency) : lines[0].valueOf(sums);
}

function textOf({ format }: Metric, value: number | null, currency: string): string {
  if (value === null) return NONE;
  return format(currency)(value);
}

interface Shown {
  /** Null: unknown. */
  readonly value: number | null;
  readonly note?: string | null;
  /** False: it is at least the value. */
  readonly isExact?: boolean;
}

/** What the tile of a metric shows. */
function shownOf(metric: Metric, { now, counted, refused, currency }: FiguresProps): Shown {
  const { name, counts } = metric;
  if (counts !== undefined) {
    const { [counts]: named } = counted;
    if (named === null) return { value: null };
    const { count: value, cost, is_exact: isExact } = named;
    return { value, note: eachNote(cost[currency], value, currency), isExact };
  }
  if (name === 'refused') return { value: refused, note: 'before any provider was called' };
  if (now === null) return { value: null };
  return { value: headlineOf(metric, now, currency), note: NOTES[name]?.(now, currency) ?? null };
}

export function Figures(props: FiguresProps) {
  const { now, previous, range, hasOutage, currency, metric, params } = props;
  return (
    <dl class="figures">
      {METRICS.map((own) => {
        const isChosen = own.name === metric.name;
        const isRefused = own.name === 'refused';
        const { value, note = null, isExact = true } = shownOf(own, props);
        return (
          <div
            key={own.name}
            class={`${isChosen ? 'chosen ' : ''}${own.isBad && value && (own.name !== FAILURES || hasOutage) ? 'bad' : ''}`}
          >
            <dt>
              <a
                href={linkTo('overview', params, { metric: own.name })}
                aria-current={isChosen ? 'true' : undefined}
              >
                {own.label}
              </a>
            </dt>
            <dd>
              <span class="value">
                {now === null && value === null ? WAITING : textOf(own, value, currency)}
                {!isExact && ' or more'}
              </span>
              {!isRefused && !own.counts && (
                <Trend
                  now={value}
                  previous={previous && headlineOf(own, previous, currency)}
                  isShare={own.name === 'cached'}
                />
              )}
              {note && <span class="hint">{note}</span>}
            </dd>
            <Spark values={sparkOf(own, props, range, currency)} />
          </div>
        );
      })}
    </dl>
  );
}

interface TrendProps {
  readonly now: number | null;
  readonly previous: number | null;
  readonly isShare: boolean;
}

function Trend({ now, previous, isShare }: TrendProps) {
  if (now === null || previous === null) return null;
  const text = change(now, previous, isShare);
  if (text === null) return null;
  return (
    <span class="hint trend">
      <span aria-hidden="true">{now > previous ? '▲' : '▼'} </span>
      {text}
      <span class="sr">{now > previous ? ' more than' : ' less than'} in the range before</span>
    </span>
  );
}
