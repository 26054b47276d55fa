/** The rows of the matrix: the models of the agent tests, and those of providers whose servers accept every request. */
import { MODELS, SIGNING } from '../../test/e2e/loop-models.ts';

export interface Row {
  /** `<provider>/<model>`. */
  readonly model: string;
  /** A model for legacy completions, if the provider has them. */
  readonly legacy: string | null;
}

const LENIENT = [
  'codestral/codestral-latest',
  'opentoken/google/gemini-3-pro',
  'xerotier/llama-3.1-8b',
  'cloudflare/@cf/openai/gpt-oss-20b',
  'together/meta-llama/Llama-3.3-70B-Instruct-Turbo',
  'fireworks/accounts/fireworks/models/gpt-oss-120b',
];

const LEGACY: Readonly<Record<string, string>> = {
  'deepseek/deepseek-flash': 'deepseek/deepseek-flash',
  'openai/gpt-4o-mini': 'openai/gpt-3.5-turbo-instruct',
  // An entry of PROVIDERS with a lenient server that has legacy completions.
  'compatible/openai/gpt-oss-20b': 'legacy/gpt-3.5-turbo-instruct',
};

export const ROWS: readonly Row[] = [...MODELS, ...SIGNING, ...LENIENT]
  .toSorted((a, b) => a.localeCompare(b, 'en'))
  .map((model) => ({ model, legacy: LEGACY[model] ?? null }));
