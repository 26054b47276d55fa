/**
 * DeepSeek: chat, and fill-in-the-middle on its beta API. https://api-docs.deepseek.com, read on 2026-11-21 (`D` below); the
 * recorded requests are those of `shared/requests` (`R`).
 */

import { openaiChat, openaiCompletions } from '../protocols/openai-chat/upstream-reader.ts';
import {
  hasItems,
  isForcedTool,
  OPENAI_TOOL_NAMES,
  type RequestRules,
  renamed,
} from '../request-translation/rules.ts';
import { isObject, type JsonObject, readArray } from '../shared/json.ts';
import { RESPONSES_PASSTHROUGH } from './compatible.ts';
import type { Endpoint, Provider } from './provider.ts';

/** Retired on 2026-07-24: deployments that still have them behind a base URL of their own keep the rules of their day. */
const RETIRED = ['deepseek-chat', 'deepseek-reasoner'];

/** Thinking is on by default; the retired chat model never thought (D guides/thinking_mode). */
function isThinking({ thinking, model }: JsonObject): boolean {
  return model !== 'deepseek-chat' && !(isObject(thinking) && thinking.type === 'disabled');
}

function namesThinking({ thinking, reasoning_effort }: JsonObject): boolean {
  return thinking !== undefined || reasoning_effort !== undefined;
}

const CHAT: RequestRules = {
  fields: {
    // Ignored in silence, so that an answer would have no limit: earendil-works/pi#7811, 2026-08-08.
    max_completion_tokens: renamed('max_tokens'),
    // Taken while it thinks, "but have no effect": D guides/thinking_mode.
    presence_penalty: { kind: 'ignored', when: isThinking },
    frequency_penalty: { kind: 'ignored', when: isThinking },
  },
  // 400 "Thinking mode does not support this tool_choice": R refused-required-tool-thinking, 2026-08; with thinking
  // disabled it is taken: R named-tool-thinking-off.
  adjustments: [
    {
      field: 'thinking',
      value: { type: 'disabled' },
      when: (body) => isForcedTool(body.tool_choice) && isThinking(body) && !namesThinking(body),
    },
  ],
  effort: {
    takes: ['reasoning_effort', 'thinking'],
    // What DeepSeek itself makes of these words: D guides/thinking_mode.
    values: [{ values: { minimal: 'low', medium: 'high', xhigh: 'high', ultra: 'max' } }],
    // "none" is documented for Responses alone; `thinking` was recorded 85 times: R.
    none: 'thinking_disabled',
  },
  // Not in its API reference: ignored, so that no function would be called (D).
  legacyFunctions: 'converted',
  messages: {
    // 400 "Invalid 'tools[43].function.name': string too long. Expected a string with maximum length 64":
    // mrexodia/ida-pro-mcp#129, 2025-09-06.
    toolNames: OPENAI_TOOL_NAMES,
    // 400 "unknown variant `developer`": theopenco/llmgateway#3462, 2026-08-07.
    roles: { developer: 'system' },
    // Taken anywhere, and moved to the front: all that follows is then read again at the full price of a prompt without a cache
    // (routatic/proxy#76, 2026-06-17).
    system: [{ place: 'leading' }],
    reasoning: [
      // 400 for any reasoning of an earlier answer, by the documents of 2025; those models had no tools.
      { models: RETIRED, when: (body) => !hasItems(body.tools), form: 'none' },
      // 400 "The reasoning_content in the thinking mode must be passed back": demanded is the field, on every assistant
      // message, and `""` will do: R strict-tools-empty-reasoning; experientiallabs/experiential#887 and #890, 2026-09-10.
      {
        form: 'reasoning_content',
        required: { text: '', when: (body) => hasItems(body.tools) && isThinking(body) },
      },
    ],
    // "invalid type: sequence, expected a string": QwenLM/qwen-code#2320, Gitlawb/openclaude#806, 2026.
    joinsText: ['system', 'assistant', 'tool'],
    // 400 "missing field `content`": routatic/proxy#45, 2026; null is taken beside tool calls: R.
    needsContent: true,
  },
  // Usage is on the finish chunk when it is asked for: R.
  streamUsage: 'on_request',
};

const chat: Endpoint = {
  // A message that the model is to go on with (`prefix: true`) is a beta feature, with a path of its own.
  path: (body) => (hasPrefix(body) ? '/beta/chat/completions' : '/chat/completions'),
  request: { kind: 'chat', rules: CHAT },
  protocol: openaiChat,
};

const fim: Endpoint = {
  path: () => '/beta/completions',
  request: {
    kind: 'chat',
    rules: {
      fields: { max_completion_tokens: renamed('max_tokens') },
      messages: { reasoning: [] },
      streamUsage: 'on_request',
    },
  },
  protocol: openaiCompletions,
};

function hasPrefix(body: JsonObject): boolean {
  return readArray(body.messages).some((message) => isObject(message) && message.prefix === true);
}

/**
 * Its usage names no number. Searches and opened pages are billed alike; that each of a search's queries is one is an upper bound:
 * no document tells (looked up on 2026-11-22, with the prices).
 */
function searchesOf({ type, queries }: JsonObject): number {
  if (type === 'open_page') return 1;
  return type === 'search' ? Math.max(1, readArray(queries).length) : 0;
}

export const deepseek: Provider<'DEEPSEEK_API_KEY' | 'DEEPSEEK_BASE_URL'> = {
  id: 'deepseek',
  name: 'DeepSeek',
  hosts: ['api.deepseek.com'],
  apiKeySettings: ['DEEPSEEK_API_KEY'],
  baseUrlSettings: ['DEEPSEEK_BASE_URL'],
  defaultBaseUrl: 'https://api.deepseek.com',
  endpoints: { chat, completions: fim, fim },
  // Recorded: shared/streams/deepseek--responses-*, 2026-08.
  passthrough: RESPONSES_PASSTHROUGH,
  quirks: { searchesOf },
  // `reasoning_content` is the whole chain of thought: D guides/thinking_mode.
  visibleOutputModels: ['*'],
  refusals: {
    // 400 for both. esengine/DeepSeek-Reasonix#6321, 2026-07-11; R refused-unknown-model, 2026-08, and the words of before.
    content_filter: /\bContent Exists Risk\b/i,
    missing_model: /\bThe supported API model names are\b|\bModel Not Exist\b/i,
  },
  vendorTokens: () => null,
};
