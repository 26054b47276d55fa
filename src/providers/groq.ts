/**
 * Groq: refuses unknown fields, at the top and in messages (400 `property 'x' is unsupported`). The schema is that of groq-python of
 * 2026-08-18 (`S` below); the document is https://console.groq.com/docs/openai (`D`, read 2026-11-21).
 */
import { OPENAI_TOOL_NAMES, REFUSED, type RequestRules } from '../request-translation/rules.ts';
import { closedMessages, compatibleProfile, GROQ_USAGE, STRICT_TEMPLATES } from './compatible.ts';
import type { Provider } from './provider.ts';

const CLOSED = closedMessages({});

const CHAT: RequestRules = {
  checked: '2026-11-23',
  fields: {
    // "Not currently supported", 400: D.
    logprobs: REFUSED,
    top_logprobs: REFUSED,
    logit_bias: REFUSED,
    // Other values than 1 are 400: D; 1 is accepted (recorded in 2025-09).
    n: { kind: 'refused', when: (body) => body.n !== 1 },
    // 400 "`metadata` is not supported with this model": hass_local_openai_llm#59, 2026-04-18; `store` likewise: S.
    metadata: REFUSED,
    store: REFUSED,
    // Not in the schema: S.
    safety_identifier: REFUSED,
    prompt_cache_key: REFUSED,
    prompt_cache_retention: REFUSED,
    prompt_cache_options: REFUSED,
    verbosity: REFUSED,
    modalities: REFUSED,
    top_k: REFUSED,
  },
  refusesEmpty: true,
  // "`service_tier` must be one of `auto`, `on_demand`, `flex`, `performance`": on demand is OpenAI's `default` (S).
  words: { service_tier: { default: 'on_demand' } },
  effort: {
    checked: '2026-11-23',
    takes: ['reasoning_effort'],
    // "must be one of `none` or `default`" for qwen3: free-claude-code#1348, 2026-08-06; gpt-oss has low, medium, high: D.
    families: [
      { models: ['qwen/*'], efforts: ['none', 'default'] },
      // `none` is refused.
      { models: ['openai/gpt-oss*'], efforts: ['low', 'medium', 'high'] },
      // 400 "`reasoning_effort` is not supported with this model": vercel/ai#8057, 2025.
      {
        models: ['llama*', 'meta-llama/*', 'moonshotai/kimi-k2-instruct*', 'gemma*', 'groq/compound*'],
        efforts: [],
        reasons: 'never',
      },
    ],
  },
  legacyFunctions: 'converted',
  messages: {
    // S: "with a maximum length of 64". Other characters are refused: langgenius/dify#22867, 2025-07-23.
    toolNames: OPENAI_TOOL_NAMES,
    system: STRICT_TEMPLATES,
    // `reasoning_content` is 400 (freellmapi#1070, 2026-08-30), and so is `reasoning` if the model does not reason (vercel/ai#8057).
    reasoning: [{ form: 'none' }],
    // `messages[].name` is 400: D.
    closed: { ...CLOSED, roles: { ...CLOSED.roles, developer: ['role', 'content'] } },
  },
  streamUsage: 'on_request',
};

/**
 * @ai-sdk/groq 4, and groq-sdk, which @langchain/groq 1.3 uses (run on 2026-11-23). Not every request of the AI SDK names its package
 * for the provider.
 */
const READERS = ['ai-sdk/', 'Groq/'];

export const groq: Provider<'GROQ_API_KEY' | 'GROQ_BASE_URL'> = {
  ...compatibleProfile('groq', ['api.groq.com'], CHAT),
  name: 'Groq',
  apiKeySettings: ['GROQ_API_KEY'],
  baseUrlSettings: ['GROQ_BASE_URL'],
  defaultBaseUrl: 'https://api.groq.com/openai/v1',
  // https://console.groq.com/docs/quickstart (from memory, 2026-11-23).
  keyPrefixes: ['gsk_'],
  quirks: { usageField: GROQ_USAGE },
  ownNames: [
    { name: 'x_groq.usage', readers: READERS },
    { name: 'delta.reasoning', readers: READERS },
  ],
  // Compound systems search and run code themselves: https://console.groq.com/docs/compound (from memory, 2026-11-22).
  searchingModels: ['groq/compound*', 'compound-*'],
  // badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22.
  refusals: { context_length: /\breduce the length of the messages\b/i },
};
