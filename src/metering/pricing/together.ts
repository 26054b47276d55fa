/** Together's prices, serverless: https://www.together.ai/pricing. Not verified on the page; genai-prices 0.1.8 has older models. */
import type { ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'together',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source:
    'https://www.together.ai/pricing, cited by https://github.com/anomalyco/models.dev at f3fc69229 (2026-07-02)',
  checked: '2026-11-23',
} as const;

/** All prices of Together AI. */
export function togetherPrices(): readonly ShippedPrice[] {
  return [
    {
      ...PAGE,
      models: ['MiniMaxAI/MiniMax-M3', 'MiniMaxAI/MiniMax-M2.7'],
      input: 0.3,
      cached_input: 0.06,
      output: 1.2,
    },
    { ...PAGE, models: ['Qwen/Qwen3-235B-A22B-Instruct-2507-tput'], input: 0.2, output: 0.6 },
    { ...PAGE, models: ['Qwen/Qwen3.5-397B-A17B'], input: 0.6, cached_input: 0.35, output: 3.6 },
    { ...PAGE, models: ['Qwen/Qwen3.5-9B'], input: 0.17, output: 0.25 },
    { ...PAGE, models: ['Qwen/Qwen3.6-Plus'], input: 0.5, output: 3 },
    { ...PAGE, models: ['Qwen/Qwen3.7-Max'], input: 1.25, cached_input: 0.13, output: 3.75 },
    { ...PAGE, models: ['deepseek-ai/DeepSeek-V4-Pro'], input: 1.74, cached_input: 0.2, output: 3.48 },
    { ...PAGE, models: ['google/gemma-4-31B-it'], input: 0.39, output: 0.97 },
    { ...PAGE, models: ['meta-llama/Llama-3.3-70B-Instruct-Turbo'], input: 0.88, output: 0.88 },
    { ...PAGE, models: ['moonshotai/Kimi-K2.6'], input: 1.2, cached_input: 0.2, output: 4.5 },
    { ...PAGE, models: ['moonshotai/Kimi-K2.7-Code'], input: 0.95, cached_input: 0.19, output: 4 },
    { ...PAGE, models: ['nvidia/nemotron-3-ultra-550b-a55b'], input: 0.6, cached_input: 0.2, output: 3.6 },
    { ...PAGE, models: ['openai/gpt-oss-120b'], input: 0.15, output: 0.6 },
    { ...PAGE, models: ['openai/gpt-oss-20b'], input: 0.05, output: 0.2 },
    { ...PAGE, models: ['zai-org/GLM-5.2'], input: 1.4, cached_input: 0.26, output: 4.4 },
    { ...PAGE, models: ['zai-org/GLM-5.1'], input: 1.4, output: 4.4 },
    { ...PAGE, models: ['zai-org/GLM-5'], input: 1, output: 3.2 },
  ];
}
