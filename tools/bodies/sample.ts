/** Random requests of clients: settings, tools and conversations of Chat Completions, Messages and Responses. */
import type { Json, JsonObject } from '../simulator/json.ts';

/** From 0 up to, but not including, 1. */
type Random = () => number;

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra', 'default', 'turbo'];
const SCHEMA = {
  type: 'object',
  properties: { path: { type: 'string', minLength: 1 }, 'odd key': { type: 'number' } },
  required: ['path'],
  additionalProperties: false,
};

/** One of the values, which are some. */
export function pick<Value>(random: Random, from: readonly Value[]): Value {
  const value = from[Math.floor(random() * from.length)];
  if (value === undefined) throw new Error('Nothing to pick from');
  return value;
}

/** A few of the fields, each with one of its values. */
function some(random: Random, fields: Readonly<Record<string, readonly Json[]>>, share: number): JsonObject {
  const chosen = Object.entries(fields).filter(() => random() < share);
  return Object.fromEntries(chosen.map(([field, values]) => [field, pick(random, values)]));
}

const CHAT_FIELDS: Readonly<Record<string, readonly Json[]>> = {
  max_tokens: [0, 16, 2000, 200_000, 'many'],
  max_completion_tokens: [16, 5000, 200_000],
  max_output_tokens: [300],
  temperature: [0, 0.7, 1, 1.8, null],
  top_p: [0.5, 0.96, 1],
  top_k: [40],
  min_p: [0.1],
  seed: [7],
  n: [1, 2],
  best_of: [1, 3],
  stop: ['', 'END', ['a', 'b'], []],
  presence_penalty: [0, 0.5],
  frequency_penalty: [0, 0.5],
  repetition_penalty: [1.1],
  logit_bias: [{}, { 50: -1 }],
  logprobs: [false, true],
  top_logprobs: [0, 3],
  user: ['u1'],
  safety_identifier: ['s1'],
  metadata: [{ user_id: 'm1' }],
  store: [true, false],
  service_tier: ['auto', 'default', 'flex', 'priority'],
  verbosity: ['low', 'high'],
  prompt_cache_key: ['k'],
  prompt_cache_retention: ['24h'],
  prompt_cache_options: [{ ttl: '12h' }],
  cache_control: [{ type: 'ephemeral' }],
  parallel_tool_calls: [true, false],
  tool_choice: ['auto', 'none', 'required', 'any', { type: 'function', function: { name: 'read' } }],
  tools: [
    [],
    [{ type: 'function', function: { name: 'read', parameters: SCHEMA, strict: true } }],
    [{ type: 'function', function: { name: 'a name that is odd', parameters: { anyOf: [SCHEMA] } } }],
  ],
  functions: [[{ name: 'read', parameters: SCHEMA }]],
  function_call: ['auto', { name: 'read' }],
  response_format: [
    { type: 'text' },
    { type: 'json_object' },
    { type: 'json_schema', json_schema: { name: 'answer', schema: SCHEMA, strict: true } },
  ],
  modalities: [['text'], ['text', 'audio']],
  audio: [{ voice: 'alloy', format: 'wav' }],
  prediction: [{ type: 'content', content: 'Hi' }],
  web_search_options: [{}],
  search_parameters: [{ mode: 'off' }, { mode: 'on' }],
  reasoning_effort: EFFORTS,
  thinking: [
    { type: 'enabled' },
    { type: 'enabled', budget_tokens: 500 },
    { type: 'enabled', budget_tokens: 9000 },
    { type: 'adaptive', display: 'omitted' },
    { type: 'disabled' },
  ],
  reasoning: [
    { effort: 'xhigh' },
    { max_tokens: 3000 },
    { enabled: false },
    { enabled: true, exclude: true },
  ],
  enable_thinking: [true, false],
  include_reasoning: [true],
  reasoning_format: ['parsed'],
  output_config: [{ effort: 'max' }, {}],
  usage: [{ include: true }],
  stream_options: [{ include_usage: true }, { include_usage: false }],
  stream: [true, false],
  n_predict: [10],
  options: [{ num_predict: 10 }],
  generationConfig: [{ maxOutputTokens: 10, topK: 3 }],
  extra_field: ['x'],
};

const CALL = { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } };
const CHATS: readonly JsonObject[][] = [
  [{ role: 'user', content: 'Hello' }],
  [
    { role: 'system', content: 'Be brief' },
    {
      role: 'user',
      content: [{ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    },
  ],
  [
    { role: 'developer', content: 'Be brief' },
    { role: 'user', content: 'Read a' },
    { role: 'assistant', content: null, reasoning_content: 'I read it', tool_calls: [CALL] },
    { role: 'tool', tool_call_id: 'call_1', content: 'done' },
  ],
  [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi', refusal: null, annotations: [], odd: 1 },
    { role: 'system', content: 'Now in French' },
    { role: 'user', content: 'Again' },
  ],
];

/** A body of Chat Completions, without its model. */
export function chatRequest(random: Random): JsonObject {
  return { messages: pick(random, CHATS), ...some(random, CHAT_FIELDS, 0.18) };
}

const MESSAGES_FIELDS: Readonly<Record<string, readonly Json[]>> = {
  system: ['Be brief', [{ type: 'text', text: 'Be brief', cache_control: { type: 'ephemeral' } }]],
  temperature: [0, 0.7, 1],
  top_p: [0.5, 0.96, 1],
  top_k: [40],
  stop_sequences: [['END']],
  metadata: [{ user_id: 'm1' }],
  service_tier: ['auto', 'standard_only'],
  thinking: [
    { type: 'enabled', budget_tokens: 2000 },
    { type: 'enabled', budget_tokens: 500_000 },
    { type: 'adaptive' },
    { type: 'adaptive', display: 'omitted' },
    { type: 'disabled' },
  ],
  output_config: [
    { effort: 'low' },
    { effort: 'xhigh' },
    { effort: 'max', format: { type: 'json_schema', schema: SCHEMA } },
    {},
  ],
  tools: [
    [{ name: 'read', input_schema: SCHEMA }],
    [{ name: 'read', description: 'd', input_schema: { type: 'object', anyOf: [SCHEMA] }, strict: true }],
    [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }],
  ],
  tool_choice: [{ type: 'auto' }, { type: 'any' }, { type: 'tool', name: 'read' }, { type: 'none' }],
  context_management: [{ edits: [{ type: 'clear_tool_uses_20250919' }] }],
  speed: ['fast'],
  stream: [true, false],
};

const TURNS: readonly JsonObject[][] = [
  [{ role: 'user', content: 'Hello' }],
  [
    {
      role: 'user',
      content: [{ type: 'text', text: 'Read a', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'I read it', signature: 'c2ln' },
        { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'done' }] },
  ],
];

/** A body of Messages, without its model. */
export function messagesRequest(random: Random): JsonObject {
  const max_tokens = pick(random, [64, 3000, 100_000]);
  return { max_tokens, messages: pick(random, TURNS), ...some(random, MESSAGES_FIELDS, 0.3) };
}

const RESPONSES_FIELDS: Readonly<Record<string, readonly Json[]>> = {
  instructions: ['Be brief'],
  max_output_tokens: [16, 3000, 200_000],
  temperature: [0, 0.7, 1],
  top_p: [0.5, 1],
  user: ['u1'],
  safety_identifier: ['s1'],
  metadata: [{ a: 'b' }],
  store: [true, false],
  service_tier: ['auto', 'flex'],
  prompt_cache_key: ['k'],
  parallel_tool_calls: [true, false],
  tool_choice: ['auto', 'none', 'required', { type: 'function', name: 'read' }],
  tools: [
    [],
    [{ type: 'function', name: 'read', parameters: SCHEMA, strict: true }],
    [{ type: 'web_search' }],
  ],
  reasoning: [
    ...EFFORTS.map((effort) => ({ effort })),
    { effort: 'high', summary: 'auto' },
    { summary: 'detailed' },
    {},
  ],
  include: [['reasoning.encrypted_content'], ['message.output_text.logprobs']],
  text: [{ verbosity: 'low' }, { format: { type: 'json_schema', name: 'answer', schema: SCHEMA } }],
  top_logprobs: [0, 2],
  truncation: ['auto', 'disabled'],
  max_tool_calls: [2],
  stream: [true, false],
  stream_options: [{ include_obfuscation: false }],
};

const INPUTS: readonly Json[] = [
  'Hello',
  [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }],
  [
    { role: 'developer', content: 'Be brief' },
    { type: 'message', role: 'user', content: 'Read a' },
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'ZW5j' },
    { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{"path":"a"}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  ],
];

/** A body of Responses, without its model. */
export function responsesRequest(random: Random): JsonObject {
  return { input: pick(random, INPUTS), ...some(random, RESPONSES_FIELDS, 0.25) };
}
