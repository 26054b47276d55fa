/** Builders of prices and usage, shared by the tests of this folder. */
import type { BilledUsage } from '../../../src/canonical/usage.ts';
import type { Price } from '../../../src/metering/pricing/price.ts';

export const SINCE = '2026-01-01T00:00:00Z';
export const NOON = Date.parse('2026-11-20T12:00:00Z');

export function price(fields: Partial<Price> = {}): Price {
  return { provider: 'p', models: ['m'], since: SINCE, currency: 'USD', ...fields };
}

interface Counts {
  readonly prompt?: number;
  readonly completion?: number;
  readonly total?: number;
  readonly cached?: number;
  readonly written?: number;
  /** Of those, what is kept for an hour. */
  readonly hourly?: number;
  readonly searches?: number;
  readonly reasoning?: number;
  readonly audioIn?: number;
  readonly audioOut?: number;
}

export function usage(counts: Counts): BilledUsage {
  const { prompt = 0, completion = 0, total = prompt + completion } = counts;
  const { cached, written, hourly, reasoning, audioIn, audioOut, searches } = counts;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    ...(hourly === undefined ? {} : { cache_write_long_tokens: hourly }),
    ...(searches === undefined ? {} : { searches }),
    prompt_tokens_details: {
      ...(cached === undefined ? {} : { cached_tokens: cached }),
      ...(written === undefined ? {} : { cache_write_tokens: written }),
      ...(audioIn === undefined ? {} : { audio_tokens: audioIn }),
    },
    completion_tokens_details: {
      ...(reasoning === undefined ? {} : { reasoning_tokens: reasoning }),
      ...(audioOut === undefined ? {} : { audio_tokens: audioOut }),
    },
  };
}
