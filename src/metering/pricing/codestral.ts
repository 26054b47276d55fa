/** Codestral's price, which is the same where Mistral serves it. */
import type { ShippedPrice } from './price.ts';

export const CODESTRAL: readonly ShippedPrice[] = [
  {
    provider: 'codestral',
    models: ['codestral-latest', 'codestral-2508', 'codestral'],
    since: '2026-07-01T00:00:00Z',
    currency: 'USD',
    input: 0.3,
    cached_input: 0.03,
    output: 0.9,
    source: 'https://docs.mistral.ai/inference/pricing, as models.dev cites it (2026-09-29)',
    checked: '2026-11-21',
  },
];
