/**
 * Azure's prices of models that are not OpenAI's or Anthropic's, by their names in lower case: of global deployments. Those in one zone or
 * region may cost more, so the costs are marked. OpenAI's and Claude have their makers' prices. Not verified on Microsoft's page.
 */
import { type PriceRow, pricesOfRows, type ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'azure',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source:
    'https://azure.microsoft.com/pricing/details/ai-foundry-models/, cited by anomalyco/models.dev at f3fc69229 (2026-07-02) and, of phi-4, @pydantic/genai-prices 0.1.8; the dearer where they differ',
  checked: '2026-11-28',
  upper_bound: true,
} as const;

const ROWS: readonly PriceRow[] = [
  [['codestral-2501'], 0.3, 0.9],
  [['cohere-command-a', 'cohere-command-r-plus-08-2024'], 2.5, 10],
  [['cohere-command-r-08-2024'], 0.15, 0.6],
  [['deepseek-r1', 'deepseek-r1-0528'], 1.35, 5.4],
  [['deepseek-v3-0324'], 1.14, 4.56],
  [['deepseek-v3.1'], 0.56, 1.68],
  [['deepseek-v3.2', 'deepseek-v3.2-speciale'], 0.58, 1.68],
  [['deepseek-v4-flash'], 0.19, 0.51],
  [['deepseek-v4-pro'], 1.74, 3.48],
  [
    ['grok-4-fast-reasoning', 'grok-4-1-fast-reasoning', 'grok-4-1-fast-non-reasoning'],
    ...([0.2, 0.5, 0.05] as const),
  ],
  [['grok-4-20-reasoning', 'grok-4-20-non-reasoning'], 2, 6],
  [['kimi-k2-thinking'], 0.6, 2.5, 0.15],
  [['kimi-k2.5'], 0.6, 3],
  [['kimi-k2.6'], 0.95, 4],
  [['llama-3.2-11b-vision-instruct'], 0.37, 0.37],
  [['llama-3.2-90b-vision-instruct'], 2.04, 2.04],
  [['llama-3.3-70b-instruct'], 0.71, 0.71],
  [['llama-4-maverick-17b-128e-instruct-fp8'], 0.25, 1],
  [['llama-4-scout-17b-16e-instruct'], 0.2, 0.78],
  [['meta-llama-3-8b-instruct', 'meta-llama-3.1-8b-instruct'], 0.3, 0.61],
  [['meta-llama-3-70b-instruct', 'meta-llama-3.1-70b-instruct'], 2.68, 3.54],
  [['meta-llama-3.1-405b-instruct'], 5.33, 16],
  [['ministral-3b'], 0.04, 0.04],
  [['mistral-large-2411'], 2, 6],
  [['mistral-medium-2505'], 0.4, 2],
  [['mistral-nemo'], 0.15, 0.15],
  [['mistral-small-2503'], 0.1, 0.3],
  [['phi-4', 'phi-4-reasoning', 'phi-4-reasoning-plus'], 0.125, 0.5],
  [['phi-4-mini', 'phi-4-mini-instruct', 'phi-4-mini-reasoning'], 0.08, 0.35],
  [['phi-4-multimodal', 'phi-4-multimodal-instruct'], 0.08, 0.32],
];

/** All prices of Azure. */
export function azurePrices(): readonly ShippedPrice[] {
  return pricesOfRows(PAGE, ROWS);
}
