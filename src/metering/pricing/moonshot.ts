/** Moonshot's prices (Kimi): https://platform.kimi.ai/docs/pricing/chat. Not verified on the page. */
import type { ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'moonshot',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source: 'https://platform.kimi.ai/docs/pricing/chat, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-23',
} as const;

/** All prices of Moonshot AI. */
export function moonshotPrices(): readonly ShippedPrice[] {
  return [
    { ...PAGE, models: ['kimi-k2.5'], input: 0.6, cached_input: 0.1, output: 3 },
    { ...PAGE, models: ['kimi-k2.6'], input: 0.95, cached_input: 0.16, output: 4 },
    { ...PAGE, models: ['kimi-k2.7-code'], input: 0.95, cached_input: 0.19, output: 4 },
    { ...PAGE, models: ['kimi-k2.7-code-highspeed'], input: 1.9, cached_input: 0.38, output: 8 },
    { ...PAGE, models: ['kimi-k3'], since: '2026-07-16T00:00:00Z', input: 3, cached_input: 0.3, output: 15 },
    { ...PAGE, models: ['moonshot-v1-128k', 'moonshot-v1-128k-vision-preview'], input: 2, output: 5 },
    { ...PAGE, models: ['moonshot-v1-32k', 'moonshot-v1-32k-vision-preview'], input: 1, output: 3 },
    { ...PAGE, models: ['moonshot-v1-8k', 'moonshot-v1-8k-vision-preview'], input: 0.2, output: 2 },
  ];
}
