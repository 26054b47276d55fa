/** Z.ai's prices: https://docs.z.ai/guides/overview/pricing. Not verified on the page. Names in upper case are accepted, too. */
import type { ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'zai',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source: 'https://docs.z.ai/guides/overview/pricing, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-23',
} as const;

const MODELS_DEV = {
  ...PAGE,
  source:
    'https://docs.z.ai/guides/overview/pricing, cited by https://github.com/anomalyco/models.dev at f3fc69229 (2026-07-02)',
} as const;

/** All prices of Z.ai. */
export function zaiPrices(): readonly ShippedPrice[] {
  return [
    {
      ...PAGE,
      models: ['GLM-5.2', 'glm-5.2'],
      since: '2026-06-01T00:00:00Z',
      input: 1.4,
      cached_input: 0.26,
      output: 4.4,
    },
    {
      ...PAGE,
      models: ['GLM-5.3', 'glm-5.3'],
      since: '2026-08-14T00:00:00Z',
      input: 1.4,
      cached_input: 0.26,
      output: 4.4,
    },
    {
      ...PAGE,
      models: ['GLM-5.3-Flash', 'glm-5.3-flash'],
      since: '2026-08-14T00:00:00Z',
      input: 0.075,
      cached_input: 0.015,
      output: 0.25,
    },
    { ...MODELS_DEV, models: ['glm-5.1', 'glm-5.1-20*'], input: 1.4, cached_input: 0.26, output: 4.4 },
    { ...MODELS_DEV, models: ['glm-5-turbo'], input: 1.2, cached_input: 0.24, output: 4 },
    { ...MODELS_DEV, models: ['glm-5'], input: 1, cached_input: 0.2, output: 3.2 },
    { ...MODELS_DEV, models: ['glm-4.7', 'glm-4.6', 'glm-4.5'], input: 0.6, cached_input: 0.11, output: 2.2 },
    { ...MODELS_DEV, models: ['glm-4.7-flashx'], input: 0.07, cached_input: 0.01, output: 0.4 },
    { ...MODELS_DEV, models: ['glm-4.5-air'], input: 0.2, cached_input: 0.03, output: 1.1 },
    { ...MODELS_DEV, models: ['glm-4.6v'], input: 0.3, output: 0.9 },
    { ...MODELS_DEV, models: ['glm-4.5v'], input: 0.6, output: 1.8 },
  ];
}
