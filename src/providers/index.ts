/** The registry: one line for each provider that Weir knows by name. */
import { anthropic } from './anthropic.ts';
import { deepseek } from './deepseek.ts';
import { gemini } from './gemini.ts';
import { codestral, mistral } from './mistral.ts';
import { openai } from './openai.ts';
import { opentoken } from './opentoken.ts';
import type { Provider } from './provider.ts';
import { xerotier } from './xerotier.ts';

const KNOWN = [
  deepseek, //
  mistral,
  codestral,
  opentoken,
  xerotier,
  openai,
  anthropic,
  gemini,
] as const;

export const PROVIDERS: readonly Provider[] = KNOWN;

/** The names of the settings that hold their credentials and base URLs. */
export type ProviderSetting = (typeof KNOWN)[number] extends Provider<infer Setting> ? Setting : never;
