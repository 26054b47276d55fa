/** The dialog of one request's record: how it ended, its timing, usage, cost and attempts. */
import type { UsageRecord } from '../../api/types.ts';
import { cacheAdvice, cacheTitle } from '../../format/caches.ts';
import { endingOf } from '../../format/endings.ts';
import { bytes, count, milliseconds, money, rate } from '../../format/numbers.ts';
import { date, exactTime } from '../../format/times.ts';
import { CopyButton } from '../../parts/controls.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Name } from '../../parts/name.tsx';
import { ProblemBox } from '../../parts/problem.tsx';
import { Facts } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { linkTo, type Params, pick } from '../../state/route.ts';
import { type KeyNames, useSession } from '../../state/session.ts';

const TIME = ['range', 'from', 'to', 'hour'];

interface RecordDialogProps {
  readonly id: string;
  readonly names: KeyNames;
  /** Those of the view: links keep its time. */
  readonly params: Params;
  readonly onClose: () => void;
}

export function RecordDialog({ id, names, params, onClose }: RecordDialogProps) {
  const { api } = useSession();
  const { value, problem, reload } = useLoad<UsageRecord>(
    (signal) => api.get(`/v1/usage/records/${encodeURIComponent(id)}`, {}, signal),
    [api, id],
  );
  const isUnknown = problem?.kind === 'refused' && problem.status === 404;
  return (
    <Dialog title="Request" onClose={onClose} isTall>
      <p class="code id">
        <bdi>{id}</bdi> <CopyButton text={id} what="the request id" />
      </p>
      {isUnknown ? (
        <div class="empty">
          <strong>There is no record of this request</strong>
          <p>Records show up within a minute. A refused request has none.</p>
          <button type="button" onClick={reload}>
            Refresh
          </button>
        </div>
      ) : problem !== null ? (
        <ProblemBox problem={problem} onRetry={reload} />
      ) : value === null ? (
        <p class="hint">Loading …</p>
      ) : (
        <Record record={value} names={names} params={params} />
      )}
    </Dialog>
  );
}

interface RecordProps extends Pick<RecordDialogProps, 'names' | 'params'> {
  readonly record: UsageRecord;
}

function Record({ record, names, params }: RecordProps) {
  const { title, words, code } = endingOf(record);
  const { asked, provider, model, key_id, attempts = [], dropped = [], changed = [] } = record;
  const { user, session, app, tags = {}, cache } = record;
  const link = (name: string, value: string, text = value) => (
    <a href={linkTo('requests', pick(params, TIME), { [name]: value })}>
      <Name text={text} />
    </a>
  );
  const served = `${provider}/${model}`;
  // What was said last is why the request failed.
  const sentence = attempts.findLast(({ message }) => message !== undefined)?.message;
  const streamedMs = record.first_token_ms === null ? 0 : record.total_ms - record.first_token_ms;
  const perSecond = streamedMs > 0 ? (record.completion_tokens * 1000) / streamedMs : null;
  return (
    <>
      <div class={`ending ${record.status}`}>
        <strong>{title}</strong>
        <p>
          <bdi>{words}</bdi>
        </p>
        {code !== null && sentence !== undefined && (
          <p class="sentence">
            <bdi>{sentence}</bdi>
          </p>
        )}
        <p class="code">
          <bdi>{[code, record.fault && `fault of the ${record.fault}`].filter(Boolean).join(', ')}</bdi>
        </p>
      </div>
      <TimeLine record={record} />
      <Facts
        facts={[
          ['Arrived', exactTime(record.time)],
          ['First token', milliseconds(record.first_token_ms)],
          [
            'End',
            milliseconds(record.total_ms) +
              (perSecond !== null && streamedMs >= 20 ? `, ${rate(perSecond)} tokens a second` : ''),
          ],
          ['Requested', <bdi>{asked}</bdi>],
          served !== asked && ['Served by', <bdi>{served}</bdi>],
          ['Key', link('key', key_id, names.nameOf(key_id))],
          user && ['User', link('user', user)],
          session && ['Session', link('session', session)],
          app && ['App', link('app', app)],
          Object.keys(tags).length > 0 && [
            'Tags',
            Object.entries(tags).map(([name, value]) => (
              <p key={name}>{link('tag', `${name}:${value}`, `${name}: ${value}`)}</p>
            )),
          ],
          ['Route', record.route],
          ['Client', record.client],
          [
            'Prompt',
            tokensOf(
              record.prompt_tokens,
              [record.cached_tokens, 'cached'],
              [record.cache_write_tokens, 'written to the cache'],
            ),
          ],
          cache !== undefined && ['Prompt cache', cacheFact(cache, record.currency)],
          [
            'Completion',
            tokensOf(record.completion_tokens, [record.reasoning_tokens, 'reasoning']) +
              (record.estimated ? ' (estimated: the provider reported none)' : ''),
          ],
          record.vendor_events > 0 && [
            'Vendor events',
            `${count(record.vendor_events)}, ${count(record.vendor_tokens, 'token')}`,
          ],
          ['Sent', bytes(record.bytes_out)],
          ['Cost', costOf(record)],
          dropped.length > 0 && ['Dropped', dropped.join(', ')],
          changed.length > 0 && ['Changed', changed.join(', ')],
        ]}
      />
      {attempts.length > 0 && (
        <>
          <h3>Attempts</h3>
          <ol class="attempts">
            {attempts.map((attempt, i) => (
              <li key={i}>
                <bdi>
                  {attempt.provider}/{attempt.model}
                </bdi>
                <span class="num">{milliseconds(attempt.ms)}</span>
                <span class={attempt.error_code === null ? '' : 'failed'}>
                  {attempt.ms === null ? 'not called' : (attempt.status ?? 'no response')}{' '}
                  <bdi>{attempt.error_code}</bdi>
                </span>
                {attempt.message !== undefined && (
                  <span class="said">
                    <bdi>{attempt.message}</bdi>
                  </span>
                )}
                {attempt.cause !== undefined && (
                  <span class="said hint">
                    <bdi>{attempt.cause}</bdi>
                  </span>
                )}
              </li>
            ))}
          </ol>
        </>
      )}
      <details>
        <summary>The record as JSON</summary>
        <pre tabIndex={0}>{JSON.stringify(record, null, 2)}</pre>
      </details>
    </>
  );
}

/** The wait for the first token, and the output until the end. */
function TimeLine({ record: { total_ms, first_token_ms, status } }: { record: UsageRecord }) {
  const first = `${Math.min(1, (first_token_ms ?? total_ms) / (total_ms || 1)) * 100}%`;
  return (
    <figure>
      <svg width="100%" height="10" aria-hidden="true">
        <rect class={status} width="100%" height="10" />
        <rect class="waiting" width={first} height="10" />
      </svg>
      <figcaption>
        <span>
          {first_token_ms === null ? 'no output' : `first token after ${milliseconds(first_token_ms)}`}
        </span>
        <span>end after {milliseconds(total_ms)}</span>
      </figcaption>
    </figure>
  );
}

function tokensOf(
  all: number,
  ...parts: readonly (readonly [tokens: number | null, what: string])[]
): string {
  const some = parts.flatMap(([tokens, what]) => (tokens ? [`${count(tokens)} ${what}`] : []));
  return `${count(all, 'token')}${some.length > 0 ? `, of them ${some.join(', ')}` : ''}`;
}

function costOf({ cost, currency, cost_source, price_since, cost_estimated }: UsageRecord): string {
  if (cost === null || currency === null) return 'No price is known for this model. PRICES can add one.';
  const source =
    cost_source === 'upstream'
      ? 'reported by the provider'
      : `by the price table${price_since === null ? '' : `, price since ${date(price_since)}`}`;
  return `${money(cost, currency)}, ${source}${cost_estimated ? ' (estimated)' : ''}`;
}

function cacheFact(cache: NonNullable<UsageRecord['cache']>, currency: string | null): string {
  const { lost_tokens, lost_cost } = cache;
  const cost = lost_cost === null || currency === null ? '' : ` (${money(lost_cost, currency)})`;
  const lost = lost_tokens === 0 ? '' : `, ${count(lost_tokens, 'token')} lost${cost}`;
  return `${cacheTitle(cache)}${lost}. ${cacheAdvice(cache)}`.trimEnd();
}
