/** The charts of one session: the cost of each request in their order, by target, and the cached share of its prompt. */
import type { UsageRecord } from '../../api/types.ts';
import { type Series, Stack } from '../../charts/stack.tsx';
import { statusWords } from '../../format/endings.ts';
import { compact, count, milliseconds, money, moneyFormat, NONE, share } from '../../format/numbers.ts';
import { moment, ZONE } from '../../format/times.ts';
import { colourAt } from '../overview/metrics.ts';

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

/** The colour of each target, in the order in which they served. */
export function targetColours(records: readonly UsageRecord[]): ReadonlyMap<string, string> {
  return new Map([...new Set(records.map(servedBy))].map((target, i) => [target, colourAt(i)]));
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
  const format = currency === null ? compact : moneyFormat(currency, largest);
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
      return `${at(id) + 1}. ${moment(time)} ${ZONE}${status === 'finished' ? '' : `, ${statusWords(status)}`}`;
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
    </>
  );
}
