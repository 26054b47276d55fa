/** Request fragments for refused.test.ts, and the rows of the strict compatible providers. */

import type { Json, JsonObject } from './json.ts';
import { type paths, QUESTION, WEATHER } from './test-requests.ts';

export type At = keyof typeof paths;
/** `fragment`: a part of the response's text, as it is on the wire. */
export type Row = readonly [at: At, model: string, more: JsonObject, status: number, fragment: string];

/** A user message, an assistant message with these keys, and another user message. */
export function after(answer: JsonObject): { messages: Json[] } {
  return { messages: [...QUESTION, { role: 'assistant', content: 'x', ...answer }, ...QUESTION] };
}

export const CALL = {
  id: 'abcDEF123',
  type: 'function',
  function: { name: 'weather', arguments: '{"city":"Ulm"}' },
};
/** One step of a tool loop: an assistant message with these keys and a call, and the result. */
export function step(answer: JsonObject, call: JsonObject = CALL): { messages: Json[]; tools: Json[] } {
  const result = { role: 'tool', content: '9 C', tool_call_id: call.id };
  return {
    messages: [...QUESTION, { role: 'assistant', content: '', tool_calls: [call], ...answer }, result],
    tools: [WEATHER],
  };
}

export function saying(role: string, content: Json): { messages: Json[] } {
  return { messages: [{ role, content }, ...QUESTION] };
}

export const NAMED = { tool_choice: { type: 'function', function: { name: 'weather' } }, tools: [WEATHER] };
export const FORCED = { tool_choice: 'required', tools: [WEATHER] };
export const SCHEMA = { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } } };
export const OFF = { thinking: { type: 'disabled' } };
export const USAGE = { stream: true, stream_options: { include_usage: true } };
export const LIST = [{ type: 'text', text: 'x' }];
export const IMAGE = [{ type: 'image_url', image_url: { url: 'data:,' } }];
export const THOUGHT = [{ type: 'thinking', thinking: LIST }];
export const MUST_RETURN = 'The `reasoning_content` in the thinking mode must be passed back to the API.';
export const NO_FORCE = 'Thinking mode does not support this tool_choice';

export const LLAMA = 'llama-3.3-70b-versatile';
export const GROQ: readonly Row[] = [
  [
    'groq',
    LLAMA,
    after({ reasoning_content: 'x' }),
    400,
    "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]",
  ],
  ['groq', LLAMA, after({ reasoning_details: [] }), 400, "property 'reasoning_details' is unsupported"],
  ['groq', LLAMA, { messages: [{ ...QUESTION[0], name: 'a' }] }, 400, "property 'name' is unsupported"],
  ['groq', LLAMA, step({}, { ...CALL, extra_content: {} }), 400, "property 'extra_content' is unsupported"],
  ['groq', LLAMA, after({ reasoning: '' }), 400, 'reasoning is not supported with this model'],
  ['groq', LLAMA, { thinking: {} }, 400, '"message":"property \'thinking\' is unsupported"'],
  ['groq', LLAMA, { metadata: {} }, 400, '`metadata` is not supported with this model'],
  ['groq', LLAMA, { logprobs: true }, 400, '`logprobs` is not supported'],
  ['groq', LLAMA, { logit_bias: { 1: 1 } }, 400, '`logit_bias` is not supported'],
  ['groq', LLAMA, { n: 2 }, 400, "'n' : number must be at most 1"],
  ['groq', LLAMA, { service_tier: 'default' }, 400, '`service_tier`'],
  ['groq', LLAMA, { stop: ['a', 'b', 'c', 'd', 'e'] }, 400, "'stop'"],
  ['groq', LLAMA, { reasoning_effort: 'low' }, 400, '`reasoning_effort` is not supported'],
  ['groq', 'qwen/qwen3-32b', { reasoning_effort: 'low' }, 400, 'must be one of `none` or `default`'],
  ['groq', 'openai/gpt-oss-120b', { reasoning_effort: 'none' }, 400, '`low`, `medium` or `high`'],
  ['groq', LLAMA, { reasoning_format: 'raw', include_reasoning: true }, 400, 'only one of'],
  ['groq', LLAMA, { messages: [] }, 400, 'minimum number of items is 1'],
  ['groq', 'llama-1', {}, 404, 'does not exist'],
];

export const OSS = 'gpt-oss-120b';
export const CEREBRAS: readonly Row[] = [
  ['cerebras', OSS, saying('tool', IMAGE), 400, 'messages.0.tool.content: only text is supported'],
  [
    'cerebras',
    OSS,
    after({ reasoning_content: 'x' }),
    400,
    `{"message":"messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}`,
  ],
  ['cerebras', OSS, { store: false }, 400, "property 'store' is unsupported"],
  ['cerebras', OSS, { reasoning: { effort: 'low' } }, 400, "property 'reasoning' is unsupported"],
  ['cerebras', OSS, { metadata: {}, verbosity: 'low' }, 400, "'verbosity' is unsupported"],
  ['cerebras', OSS, saying('developer', 'x'), 400, "value 'developer' is unsupported"],
  ['cerebras', OSS, step({}, { ...CALL, index: 0 }), 400, "tool_calls.0.index' is unsupported"],
  ['cerebras', OSS, { max_tokens: 5, max_completion_tokens: 5 }, 400, 'cannot both be set'],
  ['cerebras', OSS, { reasoning_effort: 'max' }, 400, 'reasoning_effort'],
  ['cerebras', OSS, { service_tier: 'scale' }, 400, 'service_tier'],
  ['cerebras', OSS, { disable_reasoning: true }, 400, 'disable_reasoning'],
  ['cerebras', OSS, { messages: [] }, 400, 'at least one message'],
  ['cerebras', 'llama-1', {}, 404, 'model_not_found'],
];

export const OWN = { ...CALL, id: 'tool_sim_00000000000000000000' };
export const CLAUDE = 'anthropic/claude-haiku-4.5';
export const GOOGLE = 'google/gemini-3-flash-preview';
export const OPENROUTER: readonly Row[] = [
  ['openrouter', GOOGLE, step({}, OWN), 400, '"provider_name":"Google AI Studio"'],
  [
    'openrouter',
    GOOGLE,
    step({ reasoning_details: [] }, OWN),
    400,
    'Function call is missing a thought_signature',
  ],
  [
    'openrouter',
    CLAUDE,
    { ...step({ reasoning: 'x' }, OWN), reasoning_effort: 'high' },
    400,
    '{"error":{"message":"Provider returned error","code":400',
  ],
  [
    'openrouter',
    CLAUDE,
    { ...step({}, OWN), reasoning: { enabled: true } },
    400,
    'messages.1.content.0.type: Expected `thinking`',
  ],
  ['openrouter', GOOGLE, { presence_penalty: 1 }, 400, 'Penalty is not enabled for this model'],
  ['openrouter', CLAUDE, { reasoning: { effort: 'low' }, reasoning_effort: 'high' }, 400, 'Only one of'],
  ['openrouter', CLAUDE, { messages: [] }, 400, 'Input required'],
  ['openrouter', 'a/b', {}, 400, '{"error":{"message":"a/b is not a valid model ID","code":400}}'],
];

export const FLASH = 'gemini-3-flash';
const SIGNED = { extra_content: { google: { thought_signature: 'aaaa' } } };
export const GEMINI: readonly Row[] = [
  [
    'gemini-compatible',
    FLASH,
    step({}),
    400,
    '[{"error":{"code":400,"message":"Function call is missing a thought_signature',
  ],
  ['gemini-compatible', FLASH, step({}, { ...CALL, ...SIGNED }), 400, 'Thought signature is not valid'],
  ['gemini-compatible', FLASH, { store: false }, 400, 'Unknown name \\"store\\": Cannot find field.'],
  ['gemini-compatible', FLASH, { frequency_penalty: 0 }, 400, 'Unknown name \\"frequency_penalty\\"'],
  ['gemini-compatible', FLASH, { seed: 1 }, 400, 'Unknown name \\"seed\\"'],
  ['gemini-compatible', FLASH, { extra_body: { x: 1 } }, 400, 'Unknown name \\"x\\" at \'extra_body\''],
  [
    'gemini-compatible',
    FLASH,
    after({ reasoning_content: 'x' }),
    400,
    "at 'messages[1]': Cannot find field.",
  ],
  ['gemini-compatible', FLASH, saying('critic', 'x'), 400, 'Invalid value'],
  ['gemini-compatible', FLASH, { presence_penalty: 1 }, 400, 'Penalty is not enabled for this model'],
  ['gemini-compatible', FLASH, { messages: [] }, 400, 'contents is not specified'],
  ['gemini-compatible', 'gemini-1', {}, 404, '"status":"NOT_FOUND"'],
];

const ALWAYS = 'cannot be disabled; please use low, high, or max';
export const MOONSHOT_AND_ZAI: readonly Row[] = [
  ['moonshot', 'kimi-k3', OFF, 400, 'invalid thinking'],
  ['moonshot', 'kimi-k3', { reasoning_effort: 'medium' }, 400, 'invalid reasoning_effort'],
  ['moonshot', 'kimi-k3', NAMED, 400, "tool_choice 'specified' is incompatible with thinking enabled"],
  ['moonshot', 'kimi-k2.7-code', OFF, 400, 'only type=enabled is allowed for this model'],
  ['moonshot', 'kimi-k2.7-code', FORCED, 400, "tool_choice 'required' is incompatible"],
  ['moonshot', 'kimi-k2.6', { ...OFF, reasoning_effort: 'low' }, 400, "cannot specify both 'thinking'"],
  ['moonshot', 'kimi-k2.6', { temperature: 0.3 }, 400, 'invalid temperature: only 1 is allowed'],
  ['moonshot', 'kimi-k2.6', step({}), 400, 'reasoning_content is missing in assistant tool call message'],
  ['moonshot', 'kimi-1', {}, 404, 'Permission denied'],
  ['zai', 'glm-5.3', OFF, 400, ALWAYS],
  ['zai', 'glm-5.3', { reasoning_effort: 'none' }, 400, ALWAYS],
  ['zai', 'glm-5.3', { reasoning_effort: 'medium' }, 400, ALWAYS],
  ['zai', 'glm-5.2', FORCED, 400, 'Tool choice must be auto'],
  ['zai', 'glm-5.2', saying('developer', 'x'), 400, 'Incorrect role information'],
  ['zai', 'glm-1', {}, 400, 'Unknown Model'],
];

export const XAI: readonly Row[] = [
  ['xai', 'grok-4.3', { presence_penalty: 0 }, 400, 'Argument not supported: presence_penalty'],
  ['xai', 'grok-4.20', { frequency_penalty: 0 }, 400, 'Argument not supported: frequency_penalty'],
  ['xai', 'grok-4.3', { metadata: {} }, 400, 'Argument not supported: metadata'],
  ['xai', 'grok-4.6', { stop: ['x'] }, 400, 'Argument not supported: stop'],
  ['xai', 'grok-4.6', { reasoning_effort: 'none' }, 400, 'Argument not supported: reasoning_effort'],
  ['xai', 'grok-4.5', { reasoning_effort: 'xhigh' }, 400, 'Argument not supported: reasoning_effort'],
  ['xai', 'grok-4.7', { reasoning_effort: 'max' }, 400, 'Argument not supported: reasoning_effort'],
  ['xai', 'grok-4.20', { reasoning_effort: 'low' }, 400, 'Argument not supported: reasoning_effort'],
  ['xai', 'grok-4.3', { web_search_options: {} }, 410, 'Live search is deprecated'],
  ['xai', 'grok-4.3', { messages: [] }, 400, 'Empty messages'],
  ['xai', 'grok-1', {}, 404, 'does not exist'],
];
