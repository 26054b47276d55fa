/** What OpenAI's own fields mean: the values that equal their absence (Q4), and the fields that are about the request alone (Q5). */
import { isObject, type JsonObject } from '../shared/json.ts';
import { ownValue } from '../shared/objects.ts';

/** A field's value that is the same as leaving the field out. https://platform.openai.com/docs/api-reference/chat (2026-11-21) */
const DEFAULTS: Readonly<Record<string, (value: unknown, body: JsonObject) => boolean>> = {
  n: (value) => value === 1,
  best_of: (value) => value === 1,
  temperature: (value) => value === 1,
  top_p: (value) => value === 1,
  echo: (value) => value === false,
  presence_penalty: (value) => value === 0,
  frequency_penalty: (value) => value === 0,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  logit_bias: (value) => isObject(value) && Object.keys(value).length === 0,
  store: (value) => value === false,
  // Without tools there is nothing to choose from.
  tool_choice: (value, body) => value === 'auto' || (value === 'none' && !hasItems(body.tools)),
  parallel_tool_calls: (value, body) => value === true || !hasItems(body.tools),
  response_format: (value) => isObject(value) && value.type === 'text',
  modalities: (value) => Array.isArray(value) && value.length === 1 && value[0] === 'text',
  service_tier: (value) => value === 'auto',
  stop: (value) => Array.isArray(value) && value.length === 0,
  functions: (value) => Array.isArray(value) && value.length === 0,
  function_call: (value) => value === 'auto',
};

const ABOUT_REQUEST: ReadonlySet<string> = new Set([
  'user',
  'metadata',
  'store',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'service_tier',
  'verbosity',
  'cache_control',
]);

/** Clients send these without being asked: where a model refuses them, they are left out and told, as at Claude. */
const SAMPLING: ReadonlySet<string> = new Set(['temperature', 'top_p', 'top_k']);

/** What an answer carried and a client sends back with it: leaving it out of a message loses nothing. */
const FROM_ANSWERS: ReadonlySet<string> = new Set([
  'refusal',
  'annotations',
  'parsed',
  'parsed_arguments',
  'audio',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking_blocks',
  'extra_content',
  'provider_specific_fields',
  'function_call',
  'tool_calls',
  'index',
]);

/** Names of OpenAI's tools, and of those of APIs that took them over. */
export const OPENAI_TOOL_NAMES = /^[a-zA-Z0-9_-]{1,64}$/;

/** The keys of OpenAI's function tools and of their calls, for closed schemas that have the same. */
export const FUNCTION_TOOLS = {
  toolCall: ['id', 'type', 'function'],
  tool: ['type', 'function'],
  function: ['name', 'description', 'parameters', 'strict'],
} as const;

export function isDefault(field: string, value: unknown, body: JsonObject): boolean {
  return ownValue(DEFAULTS, field)?.(value, body) ?? false;
}

export function isAboutRequest(field: string): boolean {
  return ABOUT_REQUEST.has(field);
}

export function isSampling(field: string): boolean {
  return SAMPLING.has(field);
}

/** Whether a key of a message may be left out without a report. */
export function isFromAnswer(key: string): boolean {
  return FROM_ANSWERS.has(key);
}

export function hasItems(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

/** The caller demands a tool call, of any tool or of a named one. */
export function isForcedTool(toolChoice: unknown): boolean {
  return toolChoice === 'required' || toolChoice === 'any' || isObject(toolChoice);
}
