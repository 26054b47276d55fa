/** Reads `@pydantic/genai-prices`, a devDependency that is never bundled, as the source to compare with. */
import { calcPrice, findProvider, type ModelPrice } from '@pydantic/genai-prices';
import type { ComparedRates, Reference } from './compare.ts';

/** The package's ids of the providers whose prices are shipped. */
export const GENAI_IDS: Readonly<Record<string, string>> = {
  deepseek: 'deepseek',
  mistral: 'mistral',
  codestral: 'mistral',
  openai: 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
  groq: 'groq',
  xai: 'x-ai',
  moonshot: 'moonshotai',
  zai: 'zai',
  together: 'together',
  fireworks: 'fireworks',
  cerebras: 'cerebras',
  bedrock: 'aws',
  azure: 'azure',
  cloudflare: 'cloudflare',
};

const NAMES: Readonly<Record<keyof ComparedRates, string>> = {
  input: 'input_mtok',
  cached_input: 'cache_read_mtok',
  cache_write: 'cache_write_mtok',
  output: 'output_mtok',
};

export const genai: Reference = (provider, model, { ms, promptTokens }) => {
  const providerId = GENAI_IDS[provider];
  if (providerId === undefined) return null;
  // Gemini's names may have a prefix that the package doesn't use.
  const found = calcPrice({ input_tokens: 1 }, model.replace(/^models\//, ''), {
    providerId,
    timestamp: new Date(ms),
  });
  // For a cloud the package may answer with a maker's price.
  const isOwn = found !== null && findProvider({ providerId })?.models.includes(found.model);
  return isOwn ? ratesOf(found.model_price, promptTokens) : null;
};

/** The package's chat models of a provider: those with a price for input and output. */
export function genaiModels(provider: string): string[] {
  const found = findProvider({ providerId: GENAI_IDS[provider] ?? provider });
  return (
    (found?.models ?? [])
      .filter(({ prices, deprecated }) => {
        const [first] = Array.isArray(prices) ? prices.map((conditional) => conditional.prices) : [prices];
        return deprecated !== true && first?.input_mtok !== undefined && first.output_mtok !== undefined;
      })
      .map(({ id, match }) =>
        match !== undefined && 'equals' in match && typeof match.equals === 'string' ? match.equals : id,
      )
      // The package's word for profiles of one place.
      .map((name) => name.replace(/^regional\./, 'us.'))
  );
}

function ratesOf(price: ModelPrice, promptTokens: number): ComparedRates {
  const rates: { -readonly [R in keyof ComparedRates]: ComparedRates[R] } = {};
  for (const rate of ['input', 'cached_input', 'cache_write', 'output'] as const) {
    const stated = price[NAMES[rate]];
    if (typeof stated === 'number') rates[rate] = stated;
    else if (stated !== undefined) {
      const tier = stated.tiers.findLast(({ start }) => promptTokens > start);
      rates[rate] = tier?.price ?? stated.base;
    }
  }
  return rates;
}
