/**
 * Workers AI's prices in tokens, as Cloudflare publishes them beside neurons ($0.011 per 1,000). Ten thousand neurons a day are free for an
 * account, which is not known here: the prices are those beyond them. Models of the catalogue have their makers' prices. Not verified on
 * the page.
 */
import { type PriceRow, pricesOfRows, type ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'cloudflare',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source:
    'https://developers.cloudflare.com/workers-ai/platform/pricing/, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-28',
} as const;

/** The names have no `@cf/`. */
const ROWS: readonly PriceRow[] = [
  [['aisingapore/gemma-sea-lion-v4-27b-it', 'mistralai/mistral-small-3.1-24b-instruct'], 0.351, 0.555],
  [['deepseek-ai/deepseek-r1-distill-qwen-32b'], 0.497, 4.881],
  [['deepseek-ai/deepseek-v4-flash-0731'], 0.44, 1.32, 0.014],
  [['deepseek-ai/deepseek-v4-pro-0813'], 1.32, 3.96, 0.044],
  [['google/gemma-3-12b-it'], 0.345, 0.556],
  [['google/gemma-4-26b-a4b-it'], 0.1, 0.3],
  [['ibm-granite/granite-4.0-h-micro'], 0.017, 0.112],
  [['meta/llama-2-7b-chat-fp16'], 0.556, 6.667],
  [['meta/llama-3-8b-instruct', 'meta/llama-3.1-8b-instruct'], 0.282, 0.827],
  [['meta/llama-3-8b-instruct-awq', 'meta/llama-3.1-8b-instruct-awq'], 0.123, 0.266],
  [['meta/llama-3.1-8b-instruct-fp8'], 0.152, 0.287],
  [['meta/llama-3.1-8b-instruct-fp8-fast', 'meta/llama-3.1-8b-instruct-fast'], 0.045, 0.384],
  [['meta/llama-3.1-70b-instruct-fp8-fast', 'meta/llama-3.3-70b-instruct-fp8-fast'], 0.293, 2.253],
  [['meta/llama-3.2-1b-instruct'], 0.027, 0.201],
  [['meta/llama-3.2-3b-instruct', 'qwen/qwen3-30b-a3b-fp8'], 0.051, 0.335],
  [['meta/llama-3.2-11b-vision-instruct'], 0.049, 0.676],
  [['meta/llama-4-scout-17b-16e-instruct'], 0.27, 0.85],
  [['mistral/mistral-7b-instruct-v0.1'], 0.11, 0.19],
  [['moonshotai/kimi-k2.5'], 0.6, 3, 0.1],
  [['moonshotai/kimi-k2.6'], 0.95, 4, 0.16],
  [['moonshotai/kimi-k2.7-code'], 0.95, 4, 0.19],
  [['nvidia/nemotron-3-120b-a12b'], 0.5, 1.5],
  [['openai/gpt-oss-20b'], 0.2, 0.3],
  [['openai/gpt-oss-120b'], 0.35, 0.75],
  [['qwen/qwen2.5-coder-32b-instruct', 'qwen/qwq-32b'], 0.66, 1],
  [['qwen/qwen3.8-27b'], 0.45, 3.2],
  [['zai-org/glm-4.7-flash'], 0.06, 0.4],
  [['zai-org/glm-5.2'], 1.4, 4.4, 0.26],
  [['zai-org/glm-5.3-flash'], 0.15, 0.5, 0.03],
  [['baai/bge-small-en-v1.5'], 0.02, 0],
  [['baai/bge-base-en-v1.5'], 0.067, 0],
  [['baai/bge-large-en-v1.5'], 0.204, 0],
  [['baai/bge-m3', 'qwen/qwen3-embedding-0.6b'], 0.012, 0],
  [['pfnet/plamo-embedding-1b'], 0.019, 0],
];

/** All prices of Workers AI. */
export function cloudflarePrices(): readonly ShippedPrice[] {
  return pricesOfRows(PAGE, ROWS).map((price) => ({
    ...price,
    models: price.models.map((name) => `@cf/${name}`),
  }));
}
