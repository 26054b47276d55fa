/** The providers of the matrix, and at which model each is asked: those of the agents' loops, and those whose servers take anything. */
import { MODELS, SIGNING } from '../../test/e2e/loop-models.ts';

export interface Row {
  /** `<provider>/<model>`. */
  readonly model: string;
  /** A model of its legacy completions, where the provider has them. */
  readonly legacy: string | null;
}

const LENIENT = ['codestral/codestral-latest', 'opentoken/google/gemini-3-pro', 'xerotier/llama-3.1-8b'];

const LEGACY: Readonly<Record<string, string>> = {
  'deepseek/deepseek-flash': 'deepseek/deepseek-flash',
  'openai/gpt-4o-mini': 'openai/gpt-3.5-turbo-instruct',
  // An entry of PROVIDERS, tolerant as this one, at a server that has them.
  'compatible/openai/gpt-oss-20b': 'legacy/gpt-3.5-turbo-instruct',
};

export const ROWS: readonly Row[] = [...MODELS, ...SIGNING, ...LENIENT]
  .toSorted((a, b) => a.localeCompare(b, 'en'))
  .map((model) => ({ model, legacy: LEGACY[model] ?? null }));
