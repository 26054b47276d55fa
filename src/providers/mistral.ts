/** Mistral and its Codestral host: chat, fill-in-the-middle, agents. https://docs.mistral.ai/api */
import type { JsonObject } from '../canonical/json.ts';
import { openaiChat } from '../dialects/openai-chat.ts';
import type { Endpoint, Provider } from './provider.ts';
import { askForUsage, omit, omitFromMessages, rename } from './request.ts';

/** Mistral's words for OpenAI's fields; it answers 422 to those that it does not know. */
function inMistralWords(body: JsonObject): JsonObject {
  const renamed = rename(rename(body, 'max_completion_tokens', 'max_tokens'), 'seed', 'random_seed');
  const messages = omitFromMessages(renamed, 'reasoning_content', 'refusal');
  return messages.tool_choice === 'required' ? { ...messages, tool_choice: 'any' } : messages;
}

const chat: Endpoint = {
  path: () => '/chat/completions',
  body: (body) => askForUsage(inMistralWords(body)),
  dialect: openaiChat,
};

// Only chat takes `stream_options`; the other two report their usage without being asked.
const fim: Endpoint = {
  path: () => '/fim/completions',
  body: (body) => omit(inMistralWords(body), 'stream_options'),
  dialect: openaiChat,
};

const agents: Endpoint = {
  path: () => '/agents/completions',
  body: (body) => omit(inMistralWords(body), 'stream_options', 'model'),
  dialect: openaiChat,
};

/** A tool call without an id has the word for it instead. */
const quirks = { absentToolCallId: 'null' };

export const mistral: Provider = {
  id: 'mistral',
  name: 'Mistral',
  apiKeySetting: 'MISTRAL_API_KEY',
  baseUrlSetting: 'MISTRAL_BASE_URL',
  defaultBaseUrl: 'https://api.mistral.ai/v1',
  // It has no legacy completions: fill-in-the-middle with an empty suffix is the same.
  endpoints: { chat, completions: fim, fim, agents },
  quirks,
  vendorTokens: () => null,
};

export const codestral: Provider = {
  ...mistral,
  id: 'codestral',
  name: 'Codestral',
  apiKeySetting: 'CODESTRAL_API_KEY',
  baseUrlSetting: 'CODESTRAL_BASE_URL',
  defaultBaseUrl: 'https://codestral.mistral.ai/v1',
  endpoints: { chat, completions: fim, fim },
};
