/** Habits of Gemini's OpenAI-compatible endpoint: 400 `Unknown name "x": Cannot find field.` https://ai.google.dev/gemini-api/docs/openai */
import { FUNCTION_TOOLS } from '../request-translation/openai-fields.ts';
import { REFUSED, type RequestRules } from '../request-translation/rules.ts';
import { compatibleProfile } from './compatible.ts';
import { GOOGLE_REFUSALS, GOOGLE_TOOL_NAMES } from './google-refusals.ts';
import type { Profile } from './provider.ts';

const CHAT: RequestRules = {
  fields: {
    store: REFUSED, // openhanako#394, 2026-04-12
    metadata: REFUSED, // agents#45, 2025-05
    prompt_cache_key: REFUSED, // cursor-byok#112, 2026-06-02
    frequency_penalty: REFUSED, // RPGBox#2, 2026-08-29
    // By the same parser; no report of each was found (2026-11-21).
    presence_penalty: REFUSED,
    logprobs: REFUSED,
    top_logprobs: REFUSED,
    logit_bias: REFUSED,
    safety_identifier: REFUSED,
    prompt_cache_retention: REFUSED,
    prompt_cache_options: REFUSED,
    verbosity: REFUSED,
  },
  effort: {
    // A `reasoning` object is 400: 2026-01-10.
    takes: ['reasoning_effort'],
    values: [{ values: { minimal: 'low', xhigh: 'high', max: 'high' } }],
  },
  legacyFunctions: 'converted',
  messages: {
    toolNames: GOOGLE_TOOL_NAMES,
    roles: { developer: 'system' },
    reasoning: [{ form: 'none' }],
    closed: {
      roles: {
        system: ['role', 'content'],
        user: ['role', 'content'],
        assistant: ['role', 'content', 'tool_calls', 'extra_content'],
        tool: ['role', 'content', 'tool_call_id', 'name'],
      },
      parts: {
        text: ['type', 'text'],
        image_url: ['type', 'image_url'],
        input_audio: ['type', 'input_audio'],
      },
      ...FUNCTION_TOOLS,
      toolCall: [...FUNCTION_TOOLS.toolCall, 'extra_content'],
    },
    takesExtraContent: true,
    // 400 "Function call is missing a thought_signature": securo#884, 2026-09-10. The stand-in for calls of other models is
    // documented at https://ai.google.dev/gemini-api/docs/thought-signatures (read 2026-11-21).
    missingSignature: {
      models: ['gemini-3*', 'models/gemini-3*'],
      at: 'extra_content',
    },
  },
  // Its words of its own (docs openai#extra-body, read 2026-11-21) are `cached_content` and `thinking_config`: these would be limits.
  rivalLimits: ['generation_config', 'generationConfig', 'candidate_count', 'candidateCount'].flatMap(
    (name) => [name, `extra_body.google.${name}`],
  ),
  streamUsage: 'asked',
};

export const geminiCompatible: Profile = {
  ...compatibleProfile('gemini', ['generativelanguage.googleapis.com'], CHAT),
  refusals: GOOGLE_REFUSALS,
};
