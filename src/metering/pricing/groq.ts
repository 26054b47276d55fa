/** Groq's prices, on demand: https://console.groq.com/docs/models. Since 2026-08-16 Llama models are for enterprises only. */
import type { ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'groq',
  currency: 'USD',
  since: '2026-05-01T00:00:00Z',
  source: 'https://console.groq.com/docs/models, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-21',
} as const;

/** All prices of Groq. */
export function groqPrices(): readonly ShippedPrice[] {
  return [
    { ...PAGE, models: ['openai/gpt-oss-120b'], input: 0.15, cached_input: 0.075, output: 0.6 },
    { ...PAGE, models: ['openai/gpt-oss-20b'], input: 0.075, cached_input: 0.0375, output: 0.3 },
    {
      ...PAGE,
      models: ['qwen/qwen3.6-27b'],
      since: '2026-07-27T00:00:00Z',
      input: 0.6,
      cached_input: 0.3,
      output: 3,
      source: 'https://api.groq.com/openai/v1/models, cited by anomalyco/models.dev#3761',
    },
    {
      ...PAGE,
      // No cached rate was found. The copy of the model's page that was read has no price:
      // https://console.groq.com/docs/model/qwen/qwen3.8-27b.
      models: ['qwen/qwen3.8-27b'],
      since: '2026-08-17T00:00:00Z',
      input: 0.8,
      output: 4,
      source: 'https://console.groq.com/docs/models, cited by @earendil-works/pi-ai 1.5.2 (2026-11-10)',
      checked: '2026-11-22',
    },
    { ...PAGE, models: ['qwen/qwen3-32b'], input: 0.29, output: 0.59 },
    { ...PAGE, models: ['moonshotai/kimi-k2-instruct-0905'], input: 1, cached_input: 0.5, output: 3 },
    { ...PAGE, models: ['llama-3.3-70b-versatile'], input: 0.59, output: 0.79 },
    { ...PAGE, models: ['llama-3.1-8b-instant'], input: 0.05, output: 0.08 },
    { ...PAGE, models: ['meta-llama/llama-4-scout-17b-16e-instruct'], input: 0.11, output: 0.34 },
  ];
}
