/**
 * DeepSeek: chat, and fill-in-the-middle on its beta API. https://api-docs.deepseek.com, read on 2026-11-21 (`D` below). `R` are
 * the recorded requests (CONTRIBUTING.md has their place).
 */

import { openaiChat, openaiCompletions } from '../protocols/openai-chat/upstream-reader.ts';
import { OPENAI_TOOL_NAMES, type RequestRules, renamed } from '../request-translation/rules.ts';
import { isForcedTool } from '../request-translation/tools.ts';
import { hasItems, isObject, type JsonObject, readArray } from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';
import { RESPONSES_PASSTHROUGH } from './compatible.ts';
import type { Endpoint, ModelTraitsRow, Provider } from './provider.ts';

/** Retired on 2026-07-24. A deployment may still serve them at another base URL, with the rules of that time. */
const RETIRED = ['deepseek-chat', 'deepseek-reasoner'];

/** Thinking is on by default. The retired chat model had none (D guides/thinking_mode). */
function isThinking({ thinking, model }: JsonObject): boolean {
  return (
    !matchesModel(['deepseek-chat'], String(model)) && !(isObject(thinking) && thinking.type === 'disabled')
  );
}

function setsThinking({ thinking, reasoning_effort }: JsonObject): boolean {
  return thinking !== undefined || reasoning_effort !== undefined;
}

const CHAT: RequestRules = {
  checked: '2026-11-22',
  fields: {
    // Ignored without an error, so the output would have no limit: earendil-works/pi#7811, 2026-08-08.
    max_completion_tokens: renamed('max_tokens'),
    // Accepted while it thinks, "but have no effect": D guides/thinking_mode.
    presence_penalty: { kind: 'ignored', when: isThinking },
    frequency_penalty: { kind: 'ignored', when: isThinking },
  },
  // 400 "Thinking mode does not support this tool_choice": R refused-required-tool-thinking, 2026-08; accepted
  // with thinking disabled: R named-tool-thinking-off.
  adjustments: [
    {
      when: (body) => isForcedTool(body.tool_choice) && isThinking(body) && !setsThinking(body),
      set: () => ({ thinking: { type: 'disabled' } }),
      reports: 'thinking',
    },
  ],
  refusesEmpty: true,
  effort: {
    checked: '2026-11-23',
    takes: ['reasoning_effort', 'thinking'],
    // DeepSeek chooses the same levels itself: D guides/thinking_mode.
    families: [{ efforts: ['none', 'low', 'high', 'max'], nearest: { medium: 'high', xhigh: 'high' } }],
    // "none" is documented only for Responses; `thinking` was recorded 85 times: R.
    none: 'thinking_disabled',
  },
  // Not in its API reference: ignored, so no function would be called (D).
  legacyFunctions: 'converted',
  messages: {
    // 400 "Invalid 'tools[43].function.name': string too long. Expected a string with maximum length 64":
    // mrexodia/ida-pro-mcp#129, 2025-09-06.
    toolNames: OPENAI_TOOL_NAMES,
    // 400 "unknown variant `developer`": theopenco/llmgateway#3462, 2026-08-07.
    roles: { developer: 'system' },
    // Accepted anywhere, but moved to the front, so the prompt cache no longer matches and the whole prompt costs the full price
    // (routatic/proxy#76, 2026-06-17).
    system: [{ place: 'leading' }],
    reasoning: [
      // 400 for reasoning of an earlier turn, by the documents of 2025. Those models had no tools.
      { models: RETIRED, when: (body) => !hasItems(body.tools), form: 'none' },
      // 400 "The reasoning_content in the thinking mode must be passed back": the field is required on every assistant
      // message, and `""` is enough: R strict-tools-empty-reasoning; experientiallabs/experiential#887 and #890, 2026-09-10.
      {
        form: 'reasoning_content',
        required: { text: '', when: (body) => hasItems(body.tools) && isThinking(body) },
      },
    ],
    // "invalid type: sequence, expected a string": QwenLM/qwen-code#2320, Gitlawb/openclaude#806, 2026.
    joinsText: ['system', 'assistant', 'tool'],
    // Images in tool messages are 400, those of a user are accepted: NousResearch/hermes-agent#109707, 2026-09-13.
    mediaInResults: [],
    // 400 "missing field `content`": routatic/proxy#45, 2026; null is accepted beside tool calls: R.
    needsContent: true,
  },
  // On request, usage is on the finish chunk: R.
  streamUsage: 'on_request',
};

const chat: Endpoint = {
  // Continuing a message (`prefix: true`) is a beta feature with its own path.
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
 * Its usage has no number of searches. Searches and opened pages are billed alike. Each query of a search is counted, which is an
 * upper bound: no document says how they are billed (looked up on 2026-11-22, with the prices).
 */
function searchesOf({ type, queries }: JsonObject): number {
  if (type === 'open_page') return 1;
  return type === 'search' ? Math.max(1, readArray(queries).length) : 0;
}

/** The source has 1M and 384K, and no JSON schemas. Exact numbers: https://docs.apiyi.com/models/deepseek-v4-flash.md (2026-11-22). */
const FACTS = {
  contextTokens: 1_048_576,
  maxOutputTokens: 393_216,
  source: 'https://api-docs.deepseek.com/zh-cn/quick_start/pricing',
  checked: '2026-11-22',
} as const;

const MODEL_TRAITS: readonly ModelTraitsRow[] = [
  {
    ...FACTS,
    models: ['deepseek-flash', 'deepseek-v4-flash', 'deepseek-v4-flash-vision-exp'],
    supports: { tools: true, reasoning: true, images: true, structured_output: false },
  },
  {
    ...FACTS,
    models: ['deepseek-v4-pro'],
    supports: { tools: true, reasoning: true, images: false, structured_output: false },
  },
];

export const deepseek: Provider<'DEEPSEEK_API_KEY' | 'DEEPSEEK_BASE_URL'> = {
  id: 'deepseek',
  name: 'DeepSeek',
  hosts: ['api.deepseek.com'],
  apiKeySettings: ['DEEPSEEK_API_KEY'],
  baseUrlSettings: ['DEEPSEEK_BASE_URL'],
  defaultBaseUrl: 'https://api.deepseek.com',
  endpoints: { chat, completions: fim, fim },
  modelTraits: MODEL_TRAITS,
  ownModels: ['deepseek-*'],
  // Recorded: deepseek--responses-*, 2026-08.
  passthrough: RESPONSES_PASSTHROUGH,
  // @ai-sdk/deepseek 2 (run on 2026-11-23). Not every request of the AI SDK names its package for the provider.
  ownNames: [{ name: 'usage.prompt_cache_hit_tokens', readers: ['ai-sdk/'] }],
  quirks: { searchesOf },
  // `reasoning_content` is the complete chain of thought: D guides/thinking_mode.
  visibleOutputModels: ['*'],
  refusals: {
    // 400 for both. esengine/DeepSeek-Reasonix#6321, 2026-07-11; R refused-unknown-model, 2026-08, and the earlier text.
    content_filter: /\bContent Exists Risk\b/i,
    missing_model: /\bThe supported API model names are\b|\bModel Not Exist\b/i,
  },
};
