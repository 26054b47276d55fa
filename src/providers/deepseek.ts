/** DeepSeek: chat, and fill-in-the-middle on its beta API. https://api-docs.deepseek.com */
import { isObject, type JsonObject, readArray } from '../canonical/json.ts';
import { openaiChat } from '../dialects/openai-chat.ts';
import { openaiCompletions } from '../dialects/openai-completions.ts';
import type { Endpoint, Provider } from './provider.ts';
import { askForUsage, omitFromMessages, rename } from './request.ts';

/** DeepSeek knows `max_tokens` alone. */
function renameLimit(body: JsonObject): JsonObject {
  return rename(body, 'max_completion_tokens', 'max_tokens');
}

const chat: Endpoint = {
  // A message that the model is to go on with (`prefix: true`) is a beta feature, with a path of its own.
  path: (body) => (hasPrefix(body) ? '/beta/chat/completions' : '/chat/completions'),
  // It answers 400 where a message holds the reasoning of an earlier answer.
  body: (body) => askForUsage(renameLimit(omitFromMessages(body, 'reasoning_content'))),
  dialect: openaiChat,
};

const fim: Endpoint = {
  path: () => '/beta/completions',
  body: (body) => askForUsage(renameLimit(body)),
  dialect: openaiCompletions,
};

function hasPrefix(body: JsonObject): boolean {
  return readArray(body.messages).some((message) => isObject(message) && message.prefix === true);
}

export const deepseek: Provider = {
  id: 'deepseek',
  name: 'DeepSeek',
  apiKeySetting: 'DEEPSEEK_API_KEY',
  baseUrlSetting: 'DEEPSEEK_BASE_URL',
  defaultBaseUrl: 'https://api.deepseek.com',
  endpoints: { chat, completions: fim, fim },
  quirks: {},
  vendorTokens: () => null,
};
