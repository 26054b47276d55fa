/**
 * Fireworks: refuses unknown fields, also in messages (400 "Extra inputs are not permitted"). The schema is that of its
 * Python SDK of 2026-07-21.
 */
import { OPENAI_TOOL_NAMES, REFUSED, type RequestRules, renamed } from '../request-translation/rules.ts';
import { closedMessages, compatibleProfile, STRICT_TEMPLATES } from './compatible.ts';
import type { Provider } from './provider.ts';

export const CHAT: RequestRules = {
  checked: '2026-11-22',
  fields: {
    // Either is accepted; both together are an error.
    max_completion_tokens: renamed('max_tokens'),
    store: REFUSED,
    safety_identifier: REFUSED,
    prompt_cache_retention: REFUSED,
    prompt_cache_options: REFUSED,
    verbosity: REFUSED,
    modalities: REFUSED,
  },
  effort: {
    checked: '2026-11-23',
    // `thinking` beside it is a validation error, and a `reasoning` object is not in the schema.
    takes: ['reasoning_effort'],
    // Probed: anomalyco/models.dev#2080 (2026-06-09), #3777 (kimi-k3, 2026-07-27), #6237 (glm-5p3, 2026-09-04). gpt-oss cannot be off, by
    // its chat template; whether glm-5p3 can be off here was not found, and its provider's API refuses it (zai.ts).
    families: [
      { models: ['*gpt-oss*'], efforts: ['low', 'medium', 'high'] },
      { models: ['*glm-5p3*'], efforts: ['low', 'high', 'max'] },
      // On and off.
      { models: ['*glm-*', '*minimax*', '*kimi-k2*'], efforts: ['none', 'low', 'medium', 'high'] },
      { efforts: ['none', 'low', 'medium', 'high', 'max'] },
    ],
  },
  legacyFunctions: 'converted',
  messages: {
    // No own limit was found (2026-11-22): OpenAI's.
    toolNames: OPENAI_TOOL_NAMES,
    roles: { developer: 'system' },
    // "jinja template rendering failed. System message must be at the beginning.": BerriAI/litellm#39852, 2026.
    system: STRICT_TEMPLATES,
    // Accepted (BerriAI/litellm#40682, 2026); `reasoning` is 400 (earendil-works/pi#4514, 2026-05).
    reasoning: [{ form: 'reasoning_content' }],
    closed: closedMessages({ assistant: ['reasoning_content'] }),
  },
  streamUsage: 'on_request',
};

export const fireworks: Provider<'FIREWORKS_API_KEY' | 'FIREWORKS_BASE_URL'> = {
  ...compatibleProfile('fireworks', ['api.fireworks.ai'], CHAT),
  name: 'Fireworks',
  apiKeySettings: ['FIREWORKS_API_KEY'],
  baseUrlSettings: ['FIREWORKS_BASE_URL'],
  defaultBaseUrl: 'https://api.fireworks.ai/inference/v1',
};
