/** OpenAI, and every provider that the `PROVIDERS` setting names as compatible with it. */
import { openaiChat } from '../dialects/openai-chat.ts';
import { openaiCompletions } from '../dialects/openai-completions.ts';
import type { Endpoint, Provider } from './provider.ts';
import { askForUsage } from './request.ts';

const chat: Endpoint = { path: () => '/chat/completions', body: askForUsage, dialect: openaiChat };

/** Its legacy completions take a `suffix`, which makes them fill-in-the-middle. */
const completions: Endpoint = { path: () => '/completions', body: askForUsage, dialect: openaiCompletions };

export const openai: Provider = {
  id: 'openai',
  name: 'OpenAI',
  apiKeySetting: 'OPENAI_API_KEY',
  baseUrlSetting: 'OPENAI_BASE_URL',
  defaultBaseUrl: 'https://api.openai.com/v1',
  endpoints: { chat, completions, fim: completions },
  quirks: {},
  vendorTokens: () => null,
};

/** A provider of the `PROVIDERS` setting: its id is also its name. */
export function openaiCompatible(id: string, apiKeySetting: string): Provider {
  return { ...openai, id, name: id, apiKeySetting, baseUrlSetting: 'PROVIDERS', defaultBaseUrl: null };
}
