/**
 * Mistral's and Codestral's prices. Not verified on the provider's pages, https://docs.mistral.ai/inference/pricing and
 * https://mistral.ai/pricing/api; each price names the source that cites them. A `-latest` name has the price of its current model.
 */
import type { ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'mistral',
  currency: 'USD',
  since: '2026-07-01T00:00:00Z',
  source:
    'https://mistral.ai/pricing/api, cited by @pydantic/genai-prices 0.1.8 and promptfoo/promptfoo#9929',
  checked: '2026-11-21',
} as const;

/** Mistral serves Codestral at the same price. */
export function codestralPrices(): readonly ShippedPrice[] {
  return [
    {
      provider: 'codestral',
      models: ['codestral-latest', 'codestral-2508', 'codestral'],
      since: '2026-07-01T00:00:00Z',
      currency: 'USD',
      input: 0.3,
      cached_input: 0.03,
      output: 0.9,
      source: 'https://docs.mistral.ai/inference/pricing, cited by models.dev (2026-09-29)',
      checked: '2026-11-21',
    },
  ];
}

/** All prices of Mistral. */
export function mistralPrices(): readonly ShippedPrice[] {
  return [
    {
      ...PAGE,
      // Sources disagree on whether the promotion of the preview has ended (2026-11-23): this list price at Vercel and BlockRunAI/Franklin
      // v3.49.15 (it has), half of it in @earendil-works/pi-ai 1.5.2 and Bifrost's library. The cached rate: dev.to/aihubmix (2026-10).
      upper_bound: true,
      models: ['mistral-large-4', 'mistral-large-4-0', 'mistral-large-4-0-8'],
      since: '2026-10-20T00:00:00Z',
      input: 1.36,
      cached_input: 0.14,
      output: 4.18,
      source:
        'https://docs.mistral.ai/inference/pricing, cited by https://vercel.com/ai-gateway/models/mistral-large-4',
    },
    {
      ...PAGE,
      // The alias is Large 3 since 2025-12-02. The cached rate is that of mistral-large-2512 in genai-prices.
      models: ['mistral-large-latest', 'mistral-large-2512'],
      input: 0.5,
      cached_input: 0.05,
      output: 1.5,
      source: 'https://mistral.ai/pricing/#api, cited by simonw/llm-prices#63 (read by hand, 2026-06-17)',
    },
    {
      ...PAGE,
      // The alias is Medium 3.5 since 2026-06-16: BerriAI/litellm#30979.
      models: ['mistral-medium-latest', 'mistral-medium', 'mistral-medium-2604', 'mistral-medium-3-5'],
      input: 1.5,
      cached_input: 0.15,
      output: 7.5,
      source: 'https://mistral.ai/pricing/api, cited by promptfoo/promptfoo#9929 (2026-07-01)',
    },
    {
      ...PAGE,
      models: ['mistral-medium-2505', 'mistral-medium-2508'],
      input: 0.4,
      cached_input: 0.04,
      output: 2,
    },
    {
      ...PAGE,
      // The aliases are Small 4, by /v1/models on 2026-07-01. nesquikm/mcp-rubber-duck#126 has the same price on 2026-07-14.
      models: ['mistral-small-latest', 'mistral-small-2603', 'magistral-small-latest'],
      input: 0.15,
      cached_input: 0.015,
      output: 0.6,
      source: 'https://mistral.ai/pricing, cited by promptfoo/promptfoo#9929 (2026-07-01)',
    },
    { ...PAGE, models: ['magistral-medium-latest', 'magistral-medium-2509'], input: 2, output: 5 },
    { ...PAGE, models: ['devstral-latest', 'devstral-2512'], input: 0.4, cached_input: 0.04, output: 2 },
    {
      ...PAGE,
      models: ['ministral-3b-latest', 'ministral-3b-2512'],
      input: 0.1,
      cached_input: 0.01,
      output: 0.1,
    },
    {
      ...PAGE,
      models: ['ministral-8b-latest', 'ministral-8b-2512'],
      input: 0.15,
      cached_input: 0.015,
      output: 0.15,
    },
    {
      ...PAGE,
      models: ['ministral-14b-latest', 'ministral-14b-2512'],
      input: 0.2,
      cached_input: 0.02,
      output: 0.2,
    },
    { ...PAGE, models: ['open-mistral-nemo', 'mistral-nemo'], input: 0.15, output: 0.15 },
    // Embeddings have no output; the tables also list their price as that of the output.
    { ...PAGE, models: ['mistral-embed'], input: 0.1, output: 0 },
    {
      ...PAGE,
      models: ['codestral-embed', 'codestral-embed-2505'],
      input: 0.15,
      output: 0,
      // Its list price at Mistral itself, without a markup.
      source: 'https://vercel.com/ai-gateway/models/codestral-embed',
      checked: '2026-11-22',
    },
    ...codestralPrices().map((price) => ({ ...price, provider: 'mistral' })),
  ];
}
