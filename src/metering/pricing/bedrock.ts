/**
 * AWS Bedrock's prices of the models that makers without a list here sell there, or that cost other than at their makers: on demand, of
 * us-east-1. Other regions may cost more, so the costs are marked. Claude, GPT and newer models have their makers' prices. Not verified
 * on https://aws.amazon.com/bedrock/pricing/.
 */
import { type PriceRow, pricesOfRows, type Rates, type ShippedPrice, timesRates } from './price.ts';

const PAGE = {
  provider: 'bedrock',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source:
    'https://aws.amazon.com/bedrock/pricing/, cited by @pydantic/genai-prices 0.1.8 and anomalyco/models.dev at f3fc69229 (2026-07-02); the dearer where they differ',
  checked: '2026-11-28',
  upper_bound: true,
} as const;

/** The names have no inference profile and no version. */
const ROWS: readonly PriceRow[] = [
  [['amazon.nova-micro'], 0.035, 0.14, 0.00875],
  [['amazon.nova-lite'], 0.06, 0.24, 0.015],
  [['amazon.nova-pro'], 0.8, 3.2, 0.2],
  [['amazon.nova-premier'], 2.5, 12.5, 0.625],
  [['amazon.nova-2-lite'], 0.33, 2.75, 0.0825],
  [['global.amazon.nova-2-lite-v1:0'], 0.3, 2.5, 0.075],
  [['amazon.titan-text-express'], 0.2, 0.6],
  [['amazon.titan-text-lite'], 0.15, 0.2],
  [['amazon.titan-embed-text'], 0.1, 0],
  [['deepseek.r1'], 1.35, 5.4],
  [['deepseek.v3', 'deepseek.v3.1'], 0.58, 1.68],
  [['deepseek.v3.2'], 0.62, 1.85],
  [['google.gemma-3-4b-it'], 0.04, 0.08],
  [['google.gemma-3-12b-it'], 0.09, 0.29],
  [['google.gemma-3-27b-it'], 0.23, 0.38],
  [['meta.llama3-8b-instruct'], 0.3, 0.6],
  [['meta.llama3-70b-instruct'], 2.65, 3.5],
  [['meta.llama3-1-8b-instruct'], 0.22, 0.22],
  [['meta.llama3-1-70b-instruct', 'meta.llama3-2-90b-instruct', 'meta.llama3-3-70b-instruct'], 0.72, 0.72],
  [['meta.llama3-2-1b-instruct'], 0.1, 0.1],
  [['meta.llama3-2-3b-instruct'], 0.15, 0.15],
  [['meta.llama3-2-11b-instruct'], 0.16, 0.16],
  [['meta.llama4-scout-17b-instruct'], 0.17, 0.66],
  [['meta.llama4-maverick-17b-instruct'], 0.24, 0.97],
  [['minimax.minimax-m2', 'minimax.minimax-m2.1', 'minimax.minimax-m2.5'], 0.3, 1.2],
  [['mistral.mistral-7b-instruct'], 0.15, 0.2],
  [['mistral.mixtral-8x7b-instruct'], 0.45, 0.7],
  [['mistral.mistral-small-2402'], 1, 3],
  [['mistral.mistral-large-2402'], 4, 12],
  [['mistral.mistral-large-3-675b-instruct', 'mistral.magistral-small-2509'], 0.5, 1.5],
  [['mistral.devstral-2-123b'], 0.4, 2],
  [['mistral.ministral-3-3b-instruct'], 0.1, 0.1],
  [['mistral.ministral-3-8b-instruct'], 0.15, 0.15],
  [['mistral.ministral-3-14b-instruct'], 0.2, 0.2],
  [['mistral.pixtral-large-2502'], 2, 6],
  [['mistral.voxtral-mini-3b-2507'], 0.04, 0.04],
  [['mistral.voxtral-small-24b-2507'], 0.15, 0.35],
  [['moonshot.kimi-k2-thinking', 'moonshotai.kimi-k2-thinking'], 0.6, 2.5],
  [['moonshotai.kimi-k2.5'], 0.6, 3],
  [['nvidia.nemotron-nano-9b-v2', 'nvidia.nemotron-nano-9b'], 0.06, 0.23],
  [['nvidia.nemotron-nano-12b-v2', 'nvidia.nemotron-nano-12b'], 0.2, 0.6],
  [['nvidia.nemotron-nano-3-30b'], 0.06, 0.24],
  [['nvidia.nemotron-super-3-120b'], 0.15, 0.65],
  // The dearer of these and https://docs.litellm.ai/docs/providers/bedrock_mantle (2026-10-09).
  [['openai.gpt-oss-20b', 'openai.gpt-oss-20b-1', 'openai.gpt-oss-safeguard-20b'], 0.075, 0.3],
  [['openai.gpt-oss-120b', 'openai.gpt-oss-120b-1', 'openai.gpt-oss-safeguard-120b'], 0.15, 0.6],
  [['qwen.qwen3-32b', 'qwen.qwen3-coder-30b-a3b', 'qwen.qwen3-coder-30b-a3b-instruct'], 0.15, 0.6],
  [['qwen.qwen3-235b-a22b-2507'], 0.22, 0.88],
  [['qwen.qwen3-coder-next'], 0.22, 1.8],
  [['qwen.qwen3-coder-480b-a35b', 'qwen.qwen3-coder-480b-a35b-instruct'], 0.45, 1.8],
  [['qwen.qwen3-next-80b-a3b', 'qwen.qwen3-next-80b-a3b-instruct'], 0.14, 1.4],
  [['qwen.qwen3-vl-235b-a22b', 'qwen.qwen3-vl-235b-a22b-instruct'], 0.53, 2.66],
  [['writer.palmyra-x4'], 2.5, 10],
  [['writer.palmyra-x5'], 0.6, 6],
  [['xai.grok-4.3'], 1.25, 2.5, 0.2],
  [['zai.glm-4.7-flash'], 0.07, 0.4],
  [['zai.glm-4.7'], 0.6, 2.2],
  [['zai.glm-5'], 1, 3.2],
];

/**
 * Tiers as responses name them, as multiples of the standard rates. https://aws.amazon.com/bedrock/service-tiers says only that one costs
 * more and the other less (2026-11-28); the multiples are `BEDROCK_SERVICE_TIER_PRICING` of packages/types/src/providers/bedrock.ts in
 * Zoo-Code-Org/Zoo-Code at 080406157 (read on 2026-11-28). So costs are marked as estimates, as all of Bedrock's.
 */
const TIERS: Readonly<Record<string, number>> = { priority: 1.75, flex: 0.5 };

/** Rates have at most six decimals. These are upper bounds. */
const RATE_STEPS = 1e6;

function roundedUp(rates: Rates): Rates {
  const steps = (rate: number) => Math.ceil(Number((rate * RATE_STEPS).toFixed(3)));
  return Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, steps(rate) / RATE_STEPS]));
}

/** All prices of Bedrock. */
export function bedrockPrices(): readonly ShippedPrice[] {
  const standard = pricesOfRows(PAGE, ROWS);
  const tiers = Object.entries(TIERS).flatMap(([tier, factor]) =>
    standard.map((price) => ({ ...price, ...roundedUp(timesRates(price, factor)), service_tiers: [tier] })),
  );
  return [...standard, ...tiers];
}
