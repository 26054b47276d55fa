/**
 * Mistral's prices: https://docs.mistral.ai/inference/pricing and https://mistral.ai/pricing/api, as others read them; its own
 * page was in no store. A `-latest` name is priced as what it means since then.
 */
import { CODESTRAL } from './codestral.ts';
import type { ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'mistral',
  currency: 'USD',
  since: '2026-07-01T00:00:00Z',
  source:
    'https://mistral.ai/pricing/api, as @pydantic/genai-prices 0.1.8 and promptfoo/promptfoo#9929 read it',
  checked: '2026-11-21',
} as const;

export const MISTRAL: readonly ShippedPrice[] = [
  {
    ...PAGE,
    // The promotion of its preview ended: BlockRunAI/Franklin v3.49.15. Sources disagree on 2026-11-22: Vercel has this price, half of it
    // (0.70 and 2.10, cached 0.07) @earendil-works/pi-ai 1.5.2 and Bifrost's library. The higher one stays; a cached rate of its own was not found.
    models: ['mistral-large-4', 'mistral-large-4-0', 'mistral-large-4-0-8'],
    since: '2026-10-20T00:00:00Z',
    input: 1.36,
    output: 4.18,
    source:
      'https://docs.mistral.ai/inference/pricing, as https://vercel.com/ai-gateway/models/mistral-large-4 has it',
  },
  {
    ...PAGE,
    // The alias means Large 3 since 2025-12-02; the cached rate is that of mistral-large-2512 in genai-prices.
    models: ['mistral-large-latest', 'mistral-large-2512'],
    input: 0.5,
    cached_input: 0.05,
    output: 1.5,
    source: 'https://mistral.ai/pricing/#api, as simonw/llm-prices#63 read it by hand (2026-06-17)',
  },
  {
    ...PAGE,
    // 3.5 since 2026-06-16: BerriAI/litellm#30979.
    models: ['mistral-medium-latest', 'mistral-medium', 'mistral-medium-2604', 'mistral-medium-3-5'],
    input: 1.5,
    cached_input: 0.15,
    output: 7.5,
    source: 'https://mistral.ai/pricing/api, as promptfoo/promptfoo#9929 read it (2026-07-01)',
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
    // The aliases mean Small 4, as /v1/models said on 2026-07-01; nesquikm/mcp-rubber-duck#126 read the same price on 2026-07-14.
    models: ['mistral-small-latest', 'mistral-small-2603', 'magistral-small-latest'],
    input: 0.15,
    cached_input: 0.015,
    output: 0.6,
    source: 'https://mistral.ai/pricing, as promptfoo/promptfoo#9929 read it (2026-07-01)',
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
  ...CODESTRAL.map((price) => ({ ...price, provider: 'mistral' })),
];
