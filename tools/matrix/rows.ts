/** The rows of the matrix: the models of the agent tests, and those of providers whose servers accept every request. */
import { PROVIDERS } from '../../src/providers/index.ts';
import { MODELS, SIGNING } from '../../test/e2e/loop-models.ts';
import { allScenes } from '../simulator/scenes.ts';

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

/** Gemini there has no ids of calls, and Claude no path of Messages. */
const VERTEX = ['vertex/claude-haiku-4-5@20251001', 'vertex/gemini-3-flash-preview'];

const NAMED = [...MODELS, ...SIGNING, ...LENIENT, ...VERTEX];

/** The first model of each provider that the lists do not name. */
const FURTHER = PROVIDERS.filter(({ id }) => !NAMED.some((model) => model.startsWith(`${id}/`))).flatMap(
  ({ id }) => {
    const model = allScenes.find((scene) => scene.id === id)?.models[0];
    return model === undefined ? [] : [`${id}/${model}`];
  },
);

const LEGACY: Readonly<Record<string, string>> = {
  'deepseek/deepseek-flash': 'deepseek/deepseek-flash',
  'openai/gpt-4o-mini': 'openai/gpt-3.5-turbo-instruct',
  // An entry of PROVIDERS with a lenient server that has legacy completions.
  'compatible/openai/gpt-oss-20b': 'legacy/gpt-3.5-turbo-instruct',
};

export const ROWS: readonly Row[] = [...NAMED, ...FURTHER]
  .toSorted((a, b) => a.localeCompare(b, 'en'))
  .map((model) => ({ model, legacy: LEGACY[model] ?? null }));
