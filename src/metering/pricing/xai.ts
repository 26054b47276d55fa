/** xAI's prices, for responses that ended before xAI reported their cost: https://docs.x.ai/developers/pricing. */
import type { Rates, ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'xai',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source: 'https://docs.x.ai/developers/pricing, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-21',
} as const;

/** If the prompt has 200,000 tokens or more, the whole request costs twice the rates: the page has "< 200k" at the lower ones. */
function longContext({
  input,
  cached_input,
  output,
}: Required<Pick<Rates, 'input' | 'cached_input' | 'output'>>) {
  const above = {
    prompt_tokens: 199_999,
    input: input * 2,
    cached_input: cached_input * 2,
    output: output * 2,
  };
  return { input, cached_input, output, above };
}

/** Without searches. */
function tokenPrices(): readonly ShippedPrice[] {
  return [
    {
      ...PAGE,
      models: ['grok-4.7', 'grok-4.7-latest'],
      since: '2026-09-21T00:00:00Z',
      ...longContext({ input: 2, cached_input: 0.5, output: 6 }),
      source:
        'https://docs.x.ai/developers/pricing, cited by https://apidog.com/blog/how-to-use-grok-4-7-api (2026-09-29) and @earendil-works/pi-ai 1.5.2',
      checked: '2026-11-22',
    },
    {
      ...PAGE,
      models: ['grok-4.6', 'grok-4.6-latest'],
      since: '2026-08-07T00:00:00Z',
      ...longContext({ input: 2, cached_input: 0.5, output: 6 }),
    },
    {
      ...PAGE,
      // Sources disagree on the cached rate (2026-11-23): 0.5 on xAI's model page (anomalyco/models.dev#3110,
      // 2026-07-08), 0.3 in genai-prices
      // 0.1.8, pi-ai 1.5.2 and llmabacus (2026-09). This is the higher one. It counts only where xAI reported no cost.
      upper_bound: true,
      models: ['grok-4.5', 'grok-4.5-latest'],
      since: '2026-07-08T00:00:00Z',
      ...longContext({ input: 2, cached_input: 0.5, output: 6 }),
      source: 'https://docs.x.ai/developers/pricing, cited by Zoo-Code-Org/Zoo-Code#866 (2026-07)',
    },
    {
      ...PAGE,
      models: ['grok-4.3', 'grok-4.3-latest', 'grok-4.20', 'grok-4.20-0309-*'],
      since: '2026-05-01T00:00:00Z',
      ...longContext({ input: 1.25, cached_input: 0.2, output: 2.5 }),
    },
    {
      ...PAGE,
      models: ['grok-4-latest'],
      since: '2026-08-01T00:00:00Z',
      ...longContext({ input: 1.25, cached_input: 0.2, output: 2.5 }),
      source: 'the ticks of responses in BerriAI/litellm#36281 (2026-08): a newer model serves this name',
    },
    {
      ...PAGE,
      models: ['grok-build-0.1'],
      since: '2026-05-01T00:00:00Z',
      ...longContext({ input: 1, cached_input: 0.2, output: 2 }),
    },
    { ...PAGE, models: ['grok-code-fast-1'], input: 0.2, cached_input: 0.02, output: 1.5 },
    {
      ...PAGE,
      models: ['grok-4-1-fast*', 'grok-4-fast*'],
      input: 0.2,
      cached_input: 0.05,
      output: 0.5,
    },
    { ...PAGE, models: ['grok-3-mini'], input: 0.3, cached_input: 0.075, output: 0.5 },
  ];
}

/** $5 per 1,000 searches of the web: https://docs.x.ai/developers/pricing (read 2026-11-22). */
export function xaiPrices(): readonly ShippedPrice[] {
  return tokenPrices().map((price) => ({ ...price, web_search: 5 }));
}
