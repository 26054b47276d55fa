/**
 * Groq's habits: unknown fields are 400 `property 'x' is unsupported`, at the top and in messages. The schema is groq-python's of
 * 2026-08-18 (`S` below), beside https://console.groq.com/docs/openai (`D`, read 2026-11-21).
 */
import {
  FUNCTION_TOOLS,
  OPENAI_TOOL_NAMES,
  REFUSED,
  type RequestRules,
} from '../request-translation/rules.ts';
import { compatibleProfile, STRICT_TEMPLATES } from './compatible.ts';
import type { Profile } from './provider.ts';

const CHAT: RequestRules = {
  fields: {
    // "Not currently supported", 400: D.
    logprobs: REFUSED,
    top_logprobs: REFUSED,
    logit_bias: REFUSED,
    // Any but 1 is 400: D; 1 is taken (recorded in 2025-09).
    n: { kind: 'refused', when: (body) => body.n !== 1 },
    // 400 "`metadata` is not supported with this model": hass_local_openai_llm#59, 2026-04-18; `store` likewise: S.
    metadata: REFUSED,
    store: REFUSED,
    // In no schema: S.
    safety_identifier: REFUSED,
    prompt_cache_key: REFUSED,
    prompt_cache_retention: REFUSED,
    prompt_cache_options: REFUSED,
    verbosity: REFUSED,
    modalities: REFUSED,
  },
  effort: {
    takes: ['reasoning_effort'],
    // "must be one of `none` or `default`" for qwen3: free-claude-code#1348, 2026-08-06; gpt-oss has low, medium, high: D.
    values: [
      {
        models: ['qwen/*'],
        values: { minimal: 'default', low: 'default', medium: 'default', high: 'default', xhigh: 'default' },
      },
      { values: { minimal: 'low', xhigh: 'high', max: 'high' } },
    ],
  },
  legacyFunctions: 'converted',
  messages: {
    // S: "with a maximum length of 64"; the letters, refused: langgenius/dify#22867, 2025-07-23.
    toolNames: OPENAI_TOOL_NAMES,
    system: STRICT_TEMPLATES,
    // `reasoning_content` is 400 (freellmapi#1070, 2026-08-30), and so is `reasoning` where a model has none (vercel/ai#8057).
    reasoning: [{ form: 'none' }],
    closed: {
      roles: {
        system: ['role', 'content'],
        developer: ['role', 'content'],
        // `messages[].name` is 400: D.
        user: ['role', 'content'],
        assistant: ['role', 'content', 'tool_calls'],
        tool: ['role', 'content', 'tool_call_id'],
      },
      parts: { text: ['type', 'text'], image_url: ['type', 'image_url'] },
      ...FUNCTION_TOOLS,
    },
  },
  streamUsage: 'on_request',
};

export const groq: Profile = {
  ...compatibleProfile('groq', ['api.groq.com'], CHAT),
  // Compound systems search and run code by themselves: https://console.groq.com/docs/compound (from memory, 2026-11-22).
  searchingModels: ['groq/compound*', 'compound-*'],
  // badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22.
  refusals: { context_length: /\breduce the length of the messages\b/i },
};
