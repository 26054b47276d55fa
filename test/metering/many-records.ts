/** Generates many different records from a seed: every status, price and currency, over hours and days. */
import { boundRecord, type UsageRecord } from '../../src/metering/record.ts';
import { requestId } from '../../src/metering/time.ts';
import { seeded } from '../random.ts';
import { record } from './records.ts';

const STATUSES = ['finished', 'finished', 'finished', 'failed', 'timed_out', 'cancelled'] as const;
const PROVIDERS = ['deepseek', 'mistral', 'openrouter'];
const CURRENCIES = ['USD', 'USD', 'CNY', null];

export interface Span {
  /** ms since the epoch; `toMs` is not within. */
  readonly fromMs: number;
  readonly toMs: number;
}

export function manyRecords(
  count: number,
  keyIds: readonly string[],
  span: Span,
  seed: number,
): UsageRecord[] {
  const random = seeded(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(values: readonly T[]): T => values[below(values.length)] as T;
  return Array.from({ length: count }, () => {
    const ms = span.fromMs + below(span.toMs - span.fromMs);
    const hex = (digits: number) => Array.from({ length: digits }, () => below(16).toString(16)).join('');
    const uuid = `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
    const currency = pick(CURRENCIES);
    const cost_nanos = currency === null ? null : below(9_000_000_000);
    const total_ms = below(60_000);
    const prompt_tokens = below(100_000);
    const completion_tokens = below(10_000);
    return boundRecord({
      ...record({ time: new Date(ms).toISOString() }),
      request_id: requestId(ms, uuid),
      ended: new Date(ms + total_ms).toISOString(),
      total_ms,
      key_id: pick(keyIds),
      provider: pick(PROVIDERS),
      model: `model-${below(4)}`,
      route: pick(['chat', 'chat', 'fim']),
      status: pick(STATUSES),
      prompt_tokens,
      completion_tokens,
      total_tokens: prompt_tokens + completion_tokens,
      cached_tokens: pick([null, below(50_000)]),
      cache_write_tokens: pick([null, below(50_000)]),
      reasoning_tokens: pick([null, below(5_000)]),
      estimated: below(5) === 0,
      cost_nanos,
      // Most of them by kinds of tokens, some with a rest, as of searches.
      ...(cost_nanos !== null && total_ms % 3 > 0 && { cost_parts_nanos: partsOf(cost_nanos) }),
      currency,
      cost_source: currency === null ? 'none' : 'table',
      price_since: currency === null ? null : '2026-09-10T00:00:00.000Z',
      cost_estimated: below(7) === 0,
      first_token_ms: pick([null, below(20_000), total_ms >> 1]),
    });
  });
}

function partsOf(nanos: number) {
  const [cached, output] = [Math.floor(nanos / 7), Math.floor(nanos / 2)];
  return { input: Math.floor(nanos / 3), cached, output };
}
