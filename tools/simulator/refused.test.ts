/** Tests what each simulated provider rejects, and what it accepts although others reject it: one request per row. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from './json.ts';
import {
  type At,
  after,
  CALL,
  CEREBRAS,
  CLAUDE,
  FLASH,
  FORCED,
  GEMINI,
  GOOGLE,
  GROQ,
  IMAGE,
  LIST,
  LLAMA,
  MOONSHOT_AND_ZAI,
  MUST_RETURN,
  NAMED,
  NO_FORCE,
  OFF,
  OPENROUTER,
  OSS,
  OWN,
  type Row,
  SCHEMA,
  saying,
  step,
  THOUGHT,
  USAGE,
  XAI,
} from './refused-rows.ts';
import { createSimulator, type Simulator } from './server.ts';
import { chatBody, paths, QUESTION, sendRequest, WEATHER } from './test-requests.ts';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

/** Sends a basic body with the fields of the row. Rows with `agent_id`, `prompt` or `input` have all required fields. */
async function answerTo(at: At, model: string, more: JsonObject): Promise<{ status: number; text: string }> {
  const requested: JsonObject =
    'prompt' in more || 'input' in more ? { model } : 'agent_id' in more ? {} : chatBody(model);
  const response = await sendRequest(simulator, { path: paths[at], body: { ...requested, ...more } });
  return { status: response.status, text: await response.text() };
}

const DEEPSEEK: readonly Row[] = [
  ['deepseek', 'deepseek-flash', step({}), 400, MUST_RETURN],
  ['deepseek', 'deepseek-v4-pro', step({ reasoning_content: null }), 400, MUST_RETURN],
  ['deepseek', 'deepseek-v4-flash', step({ reasoning: 'x' }), 400, MUST_RETURN],
  ['deepseek', 'deepseek-flash', FORCED, 400, NO_FORCE],
  ['deepseek', 'deepseek-flash', NAMED, 400, NO_FORCE],
  [
    'deepseek',
    'deepseek-flash',
    saying('developer', 'x'),
    400,
    'unknown variant `developer`, expected one of',
  ],
  ['deepseek', 'deepseek-chat', saying('developer', 'x'), 400, 'messages[0].role: unknown variant'],
  ['deepseek', 'deepseek-flash', { messages: [{ role: 'assistant' }] }, 400, 'missing field `content`'],
  ['deepseek', 'deepseek-flash', after({ content: null }), 400, 'content or tool_calls must be set'],
  ['deepseek', 'deepseek-flash', SCHEMA, 400, 'This response_format type is unavailable now'],
  ['deepseek', 'deepseek-flash', { response_format: { type: 'json_object' } }, 400, "the word 'json'"],
  ['deepseek', 'deepseek-flash', after({ content: LIST }), 400, 'invalid type: sequence'],
  ['deepseek', 'deepseek-flash', saying('system', LIST), 400, 'invalid type: sequence'],
  ['deepseek', 'deepseek-flash', saying('tool', LIST), 400, 'invalid type: sequence'],
  ['deepseek', 'deepseek-flash', after({ reasoning_details: [] }), 400, 'reasoning_details'],
  ['deepseek', 'deepseek-v4-pro', saying('user', IMAGE), 400, 'unknown variant `image_url`, expected `text`'],
  ['deepseek', 'deepseek-flash', saying('user', [{ type: 'file' }]), 400, '`text` or `image_url`'],
  ['deepseek', 'deepseek-flash', { tools: [{ type: 'web_search' }] }, 400, 'expected `function`'],
  ['deepseek', 'deepseek-v9', {}, 400, 'The supported API model names are'],
  ['deepseek', 'deepseek-flash', { stream_options: {} }, 400, 'stream = true'],
  ['deepseek', 'deepseek-chat', { messages: [] }, 400, 'Empty input messages'],
  ['deepseek', 'deepseek-chat', after({ prefix: true }), 400, 'The prefix feature'],
  ['deepseekFim', 'deepseek-chat', {}, 400, 'missing field `prompt`'],
];

/** The recorded body of a 422. */
function forbidden(...loc: readonly (string | number)[]): string {
  const place = JSON.stringify(['body', ...loc]);
  return `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":${place},"msg":"Extra inputs are not permitted"`;
}
const FIM = { prompt: 'def f():' };
const AGENT = { agent_id: 'ag_sim', messages: QUESTION };
const UNNAMED = { type: 'function', function: { name: 'weather' } };
const toolNamed = (name: string) => ({ type: 'function', function: { name, parameters: {} } });
const ANSWER = { role: 'assistant', content: 'x' };
const SMALL = 'mistral-small-latest';

const MISTRAL: readonly Row[] = [
  ['mistral', SMALL, { seed: 7 }, 422, forbidden('seed')],
  ['mistral', SMALL, { max_completion_tokens: 5 }, 422, forbidden('max_completion_tokens')],
  ['mistral', SMALL, { user: 'u', store: false }, 422, '"loc":["body","store"]'],
  ['mistral', SMALL, USAGE, 422, forbidden('stream_options', 'include_usage')],
  ['codestral', 'codestral-latest', { ...FIM, ...USAGE }, 422, forbidden('stream_options', 'include_usage')],
  ['agents', '', { ...AGENT, ...USAGE }, 422, forbidden('stream_options', 'include_usage')],
  ['agents', '', { ...AGENT, temperature: 1 }, 422, forbidden('temperature')],
  ['codestral', 'codestral-latest', { ...FIM, n: 1 }, 422, forbidden('n')],
  ['codestral', 'codestral-latest', { prompt: ['a'] }, 422, '"type":"string_type","loc":["body","prompt"]'],
  [
    'mistral',
    SMALL,
    after({ reasoning_content: 'x' }),
    422,
    forbidden('messages', 1, 'assistant', 'reasoning_content'),
  ],
  ['mistral', SMALL, after({ refusal: null }), 422, forbidden('messages', 1, 'assistant', 'refusal')],
  [
    'mistral',
    SMALL,
    { messages: [{ ...QUESTION[0], name: 'a' }] },
    422,
    forbidden('messages', 0, 'user', 'name'),
  ],
  ['mistral', SMALL, saying('developer', 'x'), 422, '"type":"union_tag_invalid","loc":["body","messages",0]'],
  [
    'mistral',
    SMALL,
    saying('user', [{ type: 'text', text: 'x', cache_control: {} }]),
    422,
    '"text","cache_control"]',
  ],
  ['mistral', SMALL, saying('user', [{ type: 'file', file: {} }]), 422, '"file","file"]'],
  ['mistral', SMALL, step({}, { ...CALL, extra_content: {} }), 422, '"extra_content"]'],
  ['mistral', SMALL, { tools: [{ ...WEATHER, strict: true }] }, 422, forbidden('tools', 0, 'strict')],
  [
    'mistral',
    SMALL,
    { tools: [UNNAMED] },
    422,
    '"type":"missing","loc":["body","tools",0,"function","parameters"]',
  ],
  ['mistral', SMALL, { tool_choice: 'all' }, 422, '"type":"enum"'],
  ['mistral', SMALL, { reasoning_effort: 'medium' }, 422, "Input should be 'high', 'none'"],
  ['mistral', SMALL, step({}, { ...CALL, id: 'call_1' }), 400, '"code":"3280"'],
  ['mistral', SMALL, { messages: [{ role: 'tool', content: 'x', tool_call_id: 'a' }] }, 400, '"code":"3280"'],
  [
    'mistral',
    SMALL,
    { messages: [...QUESTION, { role: 'system', content: 'x' }] },
    400,
    'for serving but got system',
  ],
  [
    'mistral',
    SMALL,
    { messages: [...QUESTION, ANSWER, { role: 'system', content: 'x' }, ...QUESTION] },
    400,
    "Unexpected role 'system' after role 'assistant'",
  ],
  [
    'compatible',
    'Qwen/Qwen3.8-27B',
    { messages: [...QUESTION, { role: 'system', content: 'x' }, ...QUESTION] },
    400,
    'System message must be at the beginning.',
  ],
  ...(
    [
      ['mistral', SMALL, 'Function name was'],
      ['openai', 'gpt-4o-mini', "Invalid 'tools[0].function.name': string too long."],
      ['deepseek', 'deepseek-flash', 'but got a string with length 65 instead.'],
      ['gemini-compatible', 'gemini-3-flash', 'Invalid function name.'],
    ] as const
  ).map(([at, model, words]): Row => [at, model, { tools: [toolNamed('x'.repeat(65))] }, 400, words]),
  [
    'openai',
    'gpt-4o-mini',
    { tools: [toolNamed('a.b')] },
    400,
    "that matches the pattern '^[a-zA-Z0-9_-]+$'.",
  ],
  ['mistral', SMALL, { ...FORCED, ...SCHEMA }, 400, 'only compatible with tool_choice: auto'],
  ['mistral', SMALL, { ...NAMED, response_format: { type: 'json_object' } }, 400, 'tool_choice: auto'],
  ['mistral', SMALL, { logprobs: true }, 400, '"message":"Logprobs are not enabled for this model"'],
  ['mistral', 'open-mistral-7b', { reasoning_effort: 'high' }, 400, '"code":"3051"'],
  [
    'mistral',
    'open-mistral-7b',
    after({ content: THOUGHT }),
    400,
    'Reasoning input is not enabled for this model',
  ],
  ['mistral', SMALL, { messages: [{ role: 'assistant', content: 'x' }] }, 400, 'Expected last role'],
  ['mistral', SMALL, after({ content: '' }), 400, 'must have either content or tool_calls'],
  ['mistral', 'mistral-gone', {}, 400, '"type":"invalid_model","param":null,"code":"1500"'],
  ['codestral', SMALL, FIM, 400, 'Invalid model'],
];

const RESULT = { role: 'tool', tool_call_id: CALL.id, content: '9 C' };
const CALL_ITEM = { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{}' };
const OUTPUT_ITEM = { type: 'function_call_output', call_id: 'call_1', output: '9 C' };
const MANY = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v']));
const OPENAI: readonly Row[] = [
  ['openai', 'o4-mini', { max_tokens: 5 }, 400, "Use 'max_completion_tokens' instead."],
  ['openai', 'o4-mini', { temperature: 0.2 }, 400, "Unsupported parameter: 'temperature'"],
  ['openai', 'o4-mini', { logprobs: true }, 400, "Unsupported parameter: 'logprobs'"],
  ['openai', 'gpt-4o-mini', { reasoning_effort: 'low' }, 400, 'supplied: reasoning_effort'],
  ['openai', 'gpt-4o-mini', { thinking: {} }, 400, "Unknown parameter: 'thinking'."],
  ['openai', 'gpt-4o-mini', after({ x: 1 }), 400, "Unknown parameter: 'messages[1].x'."],
  ['openai', 'gpt-4o-mini', after({ reasoning_content: '' }), 400, "'messages[1].reasoning_content'"],
  [
    'openai',
    'gpt-4o-mini',
    saying('user', [{ type: 'text', text: 'x', cache_control: {} }]),
    400,
    "'messages[0].content[0].cache_control'",
  ],
  ['openai', 'gpt-4o-mini', step({}, { ...CALL, index: 0 }), 400, "'messages[1].tool_calls[0].index'"],
  ['openai', 'gpt-4o-mini', saying('latest', 'x'), 400, "Invalid value: 'latest'"],
  [
    'openai',
    'gpt-4o-mini',
    saying('tool', IMAGE),
    400,
    "only allowed for messages with role 'user', but this message with role 'tool'",
  ],
  ['openai', 'gpt-4o-mini', { parallel_tool_calls: true }, 400, "'tools' are specified"],
  ['openai', 'gpt-4o-mini', { web_search_options: {} }, 400, 'Web search options not supported'],
  ['openai', 'gpt-4o-mini', { messages: [] }, 400, '"code":"empty_array"'],
  ['openai', 'gpt-4o-mini', { temperature: 99 }, 400, '"code":"decimal_above_max_value"'],
  ['openai', 'gpt-4o-mini', { stop: ['a', 'b', 'c', 'd', 'e'] }, 400, '"code":"array_above_max_length"'],
  ['openai', 'o4-mini', { stop: ['a'] }, 400, "Unsupported parameter: 'stop'"],
  ['openai', 'gpt-4o-mini', { metadata: { a: 'b' } }, 400, "only allowed when 'store' is enabled"],
  ['openai', 'gpt-4o-mini', { metadata: MANY, store: true }, 400, '"code":"object_above_max_properties"'],
  ['openai', 'gpt-4o-mini', { prompt_cache_key: 'k'.repeat(65) }, 400, 'maximum length 64'],
  ['openai', 'gpt-4o-mini', step({}, { ...CALL, id: 'i'.repeat(41) }), 400, 'maximum length 40'],
  [
    'openai',
    'gpt-4o-mini',
    {
      messages: [...QUESTION, { role: 'assistant', content: null, tool_calls: [CALL, CALL] }, RESULT, RESULT],
    },
    400,
    `Duplicate value for 'tool_call_id' of '${CALL.id}', in messages[2] and messages[3].`,
  ],
  [
    'responses',
    'gpt-4o-mini',
    { input: [CALL_ITEM, OUTPUT_ITEM, CALL_ITEM, OUTPUT_ITEM] },
    400,
    'Duplicate function_call_output for call_id call_1.',
  ],
  ['openai', 'gpt-1', {}, 404, '"code":"model_not_found"'],
  ['legacy', 'gpt-3.5-turbo-instruct', { prompt: 'x', messages: [] }, 400, "Unknown parameter: 'messages'."],
];

describe.each([
  ['DeepSeek', DEEPSEEK],
  ['Mistral', MISTRAL],
  ['OpenAI', OPENAI],
  ['Groq', GROQ],
  ['Cerebras', CEREBRAS],
  ['OpenRouter', OPENROUTER],
  ['Gemini', GEMINI],
  ['xAI', XAI],
  ['Moonshot and Z.ai', MOONSHOT_AND_ZAI],
])('%s rejects', (_, rows) => {
  test.each(rows)('%s %s with %j: %d %s', async (at, model, more, status, fragment) => {
    const { status: given, text } = await answerTo(at, model, more);
    expect([given, text]).toEqual([status, expect.stringContaining(fragment)]);
  });
});

const SENTINEL = { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } };
const TAKEN: readonly (readonly [at: At, model: string, more: JsonObject])[] = [
  ['deepseek', 'deepseek-flash', step({ reasoning_content: '' })],
  ['deepseek', 'deepseek-flash', { ...step({}), ...OFF }],
  ['deepseek', 'deepseek-flash', { ...FORCED, ...OFF }],
  ['deepseek', 'deepseek-flash', { ...step({}), tools: [] }],
  ['deepseek', 'deepseek-flash', after({ reasoning_content: 'x', reasoning: 'y', refusal: null })],
  ['deepseek', 'deepseek-flash', { user: 'u', n: 1, store: true, tool_choice: null, tools: [WEATHER] }],
  ['deepseek', 'deepseek-flash', saying('user', IMAGE)],
  ['deepseek', 'deepseek-reasoner', { ...step({}), ...FORCED }],
  ['beta', 'deepseek-chat', after({ prefix: true })],
  ['mistral', SMALL, FORCED],
  ['mistral', SMALL, NAMED],
  ['mistral', SMALL, step({})],
  ['mistral', SMALL, after({ content: THOUGHT })],
  ['mistral', SMALL, { ...SCHEMA, tools: [WEATHER], tool_choice: 'auto' }],
  ['openai', 'o4-mini', { max_completion_tokens: 5, temperature: 1, reasoning_effort: 'low' }],
  ['openai', 'gpt-4o-mini', { ...FORCED, parallel_tool_calls: false, user: 'u' }],
  ['openai', 'gpt-4o-mini', saying('user', IMAGE)],
  ['openai', 'gpt-4o-mini', { metadata: { a: 'b' }, store: true, stop: ['a', 'b', 'c', 'd'] }],
  ['groq', 'openai/gpt-oss-120b', after({ reasoning: 'x' })],
  ['groq', LLAMA, { ...saying('developer', 'x'), ...USAGE, user: 'u', n: 1 }],
  ['cerebras', OSS, after({ reasoning: 'x', name: 'a' })],
  ['cerebras', OSS, { presence_penalty: 1, parallel_tool_calls: false, service_tier: 'flex' }],
  ['openrouter', 'moonshotai/kimi-k2.5', step({ reasoning_content: 'x', x: 1 })],
  ['openrouter', CLAUDE, { ...step({}, OWN), reasoning: { effort: 'none' } }],
  ['openrouter', GOOGLE, step({})],
  ['gemini-compatible', FLASH, step({}, { ...CALL, ...SENTINEL })],
  ['gemini-compatible', FLASH, { messages: [...step({}).messages, ...QUESTION] }],
  ['gemini-compatible', 'gemini-2.5-flash-lite', step({})],
  ['xai', 'grok-4.3', { ...after({ reasoning_content: 'x' }), bogus: 1, stop: ['x'] }],
];

test.each(TAKEN)('%s %s accepts %j', async (at, model, more) => {
  const { status, text } = await answerTo(at, model, more);
  expect([status, text]).toEqual([200, expect.any(String)]);
});

test('DeepSeek ignores max_completion_tokens: the output has no limit', async () => {
  const { text } = await answerTo('deepseek', 'deepseek-flash', { max_completion_tokens: 2 });
  expect(text).toContain('"completion_tokens": 19');
});
