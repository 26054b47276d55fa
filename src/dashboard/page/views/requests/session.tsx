/** The charts of one session: the cost of each request in their order, by target, and the cached share of its prompt. */
import type { UsageRecord } from '../../api/types.ts';
import { coloursOf } from '../../charts/colours.ts';
import { type Series, Stack } from '../../charts/stack.tsx';
import { cacheAdvice, cacheTitle, isBreak } from '../../format/caches.ts';
import { statusWords } from '../../format/endings.ts';
import { compact, count, milliseconds, money, NONE, share } from '../../format/numbers.ts';
import { moment } from '../../format/times.ts';
import { zoneName } from '../../format/zone.ts';
import { OTHER_COLOUR } from '../overview/metrics.ts';

interface SessionProps {
  /** The earliest first. */
  readonly records: readonly UsageRecord[];
  readonly onOpen: (id: string) => void;
}

export function servedBy({ provider, model }: UsageRecord): string {
  return `${provider}/${model}`;
}

/** Null without a prompt. */
export function cachedOf({ cached_tokens, prompt_tokens }: UsageRecord): number | null {
  return prompt_tokens > 0 ? (cached_tokens ?? 0) / prompt_tokens : null;
}

/** Further targets of a session share a colour. */
const MAX_TARGETS = 18;

/** The colour of each target, in the order in which they served. */
export function targetColours(records: readonly UsageRecord[]): ReadonlyMap<string, string> {
  const targets = [...new Set(records.map(servedBy))];
  const colours = coloursOf(targets.slice(0, MAX_TARGETS));
  return new Map(targets.map((target) => [target, colours.get(target) ?? OTHER_COLOUR]));
}

export function SessionCharts({ records, onOpen }: SessionProps) {
  const steps = records.map(({ request_id }) => request_id);
  const at = (id: string) => steps.indexOf(id);
  const sum = (of: (record: UsageRecord) => number | null) =>
    records.reduce((total, record) => total + (of(record) ?? 0), 0);
  const currency = records.find((record) => record.currency !== null)?.currency ?? null;
  const amountOf = (record: UsageRecord) => {
    if (currency === null) return record.total_tokens;
    return record.currency === currency ? (record.cost ?? 0) : 0;
  };
  const largest = Math.max(...records.map(amountOf));
  const format = currency === null ? compact : (amount: number) => money(amount, currency);
  const colours = targetColours(records);
  const targets: readonly Series[] = [...colours].map(([name, colour]) => ({
    name,
    colour,
    values: records.map((record) => (servedBy(record) === name ? amountOf(record) : 0)),
  }));
  const [first] = records;
  const last = records.at(-1);
  const ms = Date.parse(last?.ended ?? '') - Date.parse(first?.time ?? '');
  const prompt = sum(({ prompt_tokens }) => prompt_tokens);
  const axis = {
    steps,
    onOpen,
    labelOf: (id: string) => String(at(id) + 1),
    titleOf: (id: string) => {
      const { time = '', status = '' } = records[at(id)] ?? {};
      return `${at(id) + 1}. ${moment(time)} ${zoneName(Date.parse(time))}${status === 'finished' ? '' : `, ${statusWords(status)}`}`;
    },
    axisChars: format(largest).length,
  };
  return (
    <>
      <dl class="figures small six">
        {[
          ['Requests', count(records.length)],
          ['Cost', currency === null ? NONE : money(sum(amountOf), currency)],
          ['Tokens', compact(sum(({ total_tokens }) => total_tokens))],
          ['Cached', prompt > 0 ? share(sum(({ cached_tokens }) => cached_tokens) / prompt) : NONE],
          ['Targets', count(colours.size)],
          ['Time', milliseconds(ms)],
        ].map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="value">{value}</dd>
          </div>
        ))}
      </dl>
      <Stack
        {...axis}
        label={currency === null ? 'Tokens by request' : 'Cost by request'}
        series={targets}
        format={format}
        isLines={false}
      />
      <Stack
        {...axis}
        label="Cached share of the prompt by request"
        series={[{ name: 'cached', colour: 'c0', values: records.map(cachedOf) }]}
        format={share}
        isLines
        height={120}
      />
      <Breaks records={records} onOpen={onOpen} />
    </>
  );
}

/** Where the prompt cache broke, why, and what to do about it. */
function Breaks({ records, onOpen }: SessionProps) {
  const breaks = records.flatMap((record, at) =>
    record.cache !== undefined && isBreak(record.cache.cause) ? [{ ...record, cache: record.cache, at }] : [],
  );
  if (breaks.length === 0) return null;
  return (
    <>
      <h2>Breaks of the prompt cache</h2>
      <ul>
        {breaks.map(({ request_id, at, cache, currency }) => (
          <li key={request_id}>
            <button type="button" class="link" onClick={() => onOpen(request_id)}>
              Request {at + 1}
            </button>
            : {cacheTitle(cache)}. {count(cache.lost_tokens, 'token')} lost
            {cache.lost_cost === null || currency === null ? '' : ` (${money(cache.lost_cost, currency)})`}.
            <span class="hint"> {cacheAdvice(cache)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
