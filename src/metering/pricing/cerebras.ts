/** Cerebras' prices: https://www.cerebras.ai/pricing. Not verified on the page. */
import type { ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'cerebras',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source: 'https://www.cerebras.ai/pricing, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-23',
} as const;

/** All prices of Cerebras. */
export function cerebrasPrices(): readonly ShippedPrice[] {
  return [
    { ...PAGE, models: ['gemma-4-31b'], input: 0.99, output: 1.49 },
    { ...PAGE, models: ['gpt-oss-120b'], input: 0.35, output: 0.75 },
    // No longer served to new accounts (a live list of 2026-08-27 lacks it), and still priced for those that have it.
    { ...PAGE, models: ['zai-glm-4.7'], input: 2.25, output: 2.75 },
  ];
}
