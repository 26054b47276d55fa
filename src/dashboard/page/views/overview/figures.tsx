/** The headline figures, compared with the previous range. Four of them select the chart's metric. */
import type { Sums } from '../../api/types.ts';
import { compact, count, milliseconds, money, NONE, rate, share } from '../../format/numbers.ts';
import { linkTo, type Params } from '../../state/route.ts';
import { METRICS, type Metric } from './metrics.ts';

interface FiguresProps {
  readonly now: Sums | null;
  readonly previous: Sums | null;
  /** Null: unknown. */
  readonly refused: number | null;
  readonly currency: string;
  readonly metric: Metric;
  readonly params: Params;
}

interface Figure {
  readonly label: string;
  /** The metric that the figure selects. */
  readonly metric?: Metric['name'];
  readonly text: (sums: Sums) => string;
  readonly value: (sums: Sums) => number | null;
  readonly note?: (sums: Sums) => string | null;
}

function figuresIn(currency: string): readonly Figure[] {
  const [spend, requests, tokens, failures] = METRICS;
  return [
    {
      label: spend.label,
      metric: spend.name,
      text: (sums) => money(spend.valueOf(sums, currency), currency),
      value: (sums) => spend.valueOf(sums, currency),
      note: (sums) => spendNote(sums, currency),
    },
    {
      label: requests.label,
      metric: requests.name,
      text: (sums) => compact(sums.requests),
      value: requests.valueOf,
    },
    {
      label: tokens.label,
      metric: tokens.name,
      text: (sums) => compact(sums.total_tokens),
      value: tokens.valueOf,
      note: cacheNote,
    },
    {
      label: failures.label,
      metric: failures.name,
      text: (sums) => compact(sums.failed_requests),
      value: failures.valueOf,
      note: (sums) =>
        sums.failed_requests > 0
          ? `${share(sums.failed_requests / Math.max(1, sums.requests))} of the requests`
          : null,
    },
    { label: 'Cut', text: (sums) => count(sums.cut_requests), value: (sums) => sums.cut_requests },
    {
      label: 'Cancelled',
      text: (sums) => count(sums.cancelled_requests),
      value: (sums) => sums.cancelled_requests,
    },
    {
      label: 'First token',
      text: (sums) => milliseconds(sums.median_first_token_ms),
      value: (sums) => sums.median_first_token_ms,
      note: () => 'median',
    },
    {
      label: 'Tokens a second',
      text: (sums) => rate(sums.median_tokens_per_second),
      value: (sums) => sums.median_tokens_per_second,
      note: () => 'median',
    },
  ];
}

function cacheNote({ prompt_tokens, cached_tokens, cache_write_tokens }: Sums): string | null {
  const partOf = (tokens: number) => share(tokens / Math.max(1, prompt_tokens));
  const notes = cached_tokens > 0 ? [`${partOf(cached_tokens)} of the prompts cached`] : [];
  if (cache_write_tokens > 0) notes.push(`${partOf(cache_write_tokens)} written to the cache`);
  return notes.length === 0 ? null : notes.join(', ');
}

function spendNote(sums: Sums, currency: string): string | null {
  const others = Object.entries(sums.cost).filter(([code]) => code !== currency);
  const notes = others.map(([code, cost]) => `and ${money(cost, code)}`);
  const estimated = sums.estimated_cost[currency];
  if (estimated !== undefined && estimated > 0) notes.push(`${money(estimated, currency)} of it estimated`);
  if (sums.unpriced_requests > 0) notes.push(`${count(sums.unpriced_requests)} requests without a price`);
  return notes.length === 0 ? null : notes.join(', ');
}

export function Figures({ now, previous, refused, currency, metric, params }: FiguresProps) {
  return (
    <dl class="figures">
      {figuresIn(currency).map(({ label, metric: own, text, value, note }) => {
        const isChosen = own === metric.name;
        return (
          <div key={label} class={isChosen ? 'chosen' : ''}>
            <dt>
              {own === undefined ? (
                label
              ) : (
                <a
                  href={linkTo('overview', params, { metric: own })}
                  aria-current={isChosen ? 'true' : undefined}
                >
                  {label}
                </a>
              )}
            </dt>
            <dd>
              <span class="value">{now === null ? NONE : text(now)}</span>
              <Trend now={now && value(now)} previous={previous && value(previous)} />
              {now !== null && note?.(now) && <span class="hint">{note(now)}</span>}
            </dd>
          </div>
        );
      })}
      <div>
        <dt>Refused</dt>
        <dd>
          <span class="value">{refused === null ? NONE : compact(refused)}</span>
          <span class="hint">before any provider was called</span>
        </dd>
      </div>
    </dl>
  );
}

function Trend({ now, previous }: { now: number | null; previous: number | null }) {
  if (!now || !previous || now === previous) return null;
  const change = now / previous - 1;
  return (
    <span class="hint trend">
      <span aria-hidden="true">{change > 0 ? '▲' : '▼'} </span>
      {share(Math.abs(change))}
      <span class="sr">{change > 0 ? ' more than' : ' less than'} the time before</span>
    </span>
  );
}
