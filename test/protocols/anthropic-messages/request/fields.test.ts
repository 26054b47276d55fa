/** Tests the other fields of chat requests for Anthropic (A2, A9, Q4-Q8). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../src/shared/json.ts';
import { rewrite, send, TOOL } from '../../../request-translation/send.ts';

const MODEL = 'claude-sonnet-4-5';
const HELLO = [{ role: 'user', content: 'Hello' }];
const runner = (more: JsonObject) => send('anthropic', { model: MODEL, messages: HELLO, ...more });
const reported = (more: JsonObject, unsupported: 'auto' | 'drop' | 'refuse' = 'auto') =>
  rewrite('anthropic', { model: MODEL, messages: HELLO, ...more }, unsupported);
const PLAIN = runner({});

test('A2 the minimal request has a model, a limit and messages', () => {
  expect(PLAIN).toEqual({
    model: MODEL,
    max_tokens: 64_000,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  });
});

test.each<JsonObject>([
  { n: 1, presence_penalty: 0, frequency_penalty: 0, logprobs: false, logit_bias: {}, modalities: ['text'] },
  {
    temperature: 1,
    top_p: 1,
    store: false,
    service_tier: 'auto',
    response_format: { type: 'text' },
    stop: [],
  },
  {
    tool_choice: 'none',
    parallel_tool_calls: true,
    stream_options: { include_usage: true },
    user: null,
    stop: '',
  },
])('Q4 default values are dropped without a report: %j', (more) => {
  expect(reported(more)).toMatchObject({ body: PLAIN, dropped: [], changed: [] });
});

test.each<[JsonObject, string]>([
  [{ metadata: { a: 'b' } }, 'metadata'],
  [{ store: true }, 'store'],
  [{ seed: 1 }, 'seed'],
  [{ prompt_cache_key: 'k' }, 'prompt_cache_key'],
  [{ verbosity: 'low' }, 'verbosity'],
  [{ service_tier: 'flex' }, 'service_tier'],
  [{ service_tier: 'constructor' }, 'service_tier'],
  [{ stop: ['\n', ''] }, 'stop'],
])('Q5 Q8 %j is dropped and reported, or refused if the caller asks for that', (more, name) => {
  expect(reported(more)).toMatchObject({ body: PLAIN, dropped: [name] });
  expect(reported(more, 'refuse')).toMatchObject({ kind: 'error', error: { param: name } });
});

test.each<[JsonObject, string]>([
  [{ n: 2 }, 'n'],
  [{ logprobs: true }, 'logprobs'],
  [{ presence_penalty: 0.5 }, 'presence_penalty'],
  [{ logit_bias: { 1: 2 } }, 'logit_bias'],
  [{ modalities: ['text', 'audio'] }, 'modalities'],
  [{ prediction: { type: 'content', content: 'x' } }, 'prediction'],
])(
  'Q6 Q8 %j changes the output: sent for Anthropic to refuse, or dropped if the caller allows it',
  (more, name) => {
    expect(reported(more)).toMatchObject({ body: { ...PLAIN, ...more } });
    expect(reported(more, 'drop')).toMatchObject({ body: PLAIN, dropped: [name] });
  },
);

test('Q7 unknown fields are sent unchanged', () => {
  const more = { context_management: { edits: [] }, container: 'c', inference_geo: 'eu', stream: true };
  expect(runner(more)).toEqual({ ...PLAIN, ...more });
});

test.each<[JsonObject, unknown]>([
  [{ user: 'u_17' }, 'u_17'],
  [{ user: 'u', safety_identifier: 's' }, 's'],
  [{ metadata: { user_id: '{"device":1}' } }, '{"device":1}'],
  [{ user: 'ann@example.com' }, expect.stringMatching(/^[0-9A-Za-z]{9}$/)],
  [{ user: '+4930123456' }, expect.stringMatching(/^[0-9A-Za-z]{9}$/)],
])('A2 %j becomes metadata.user_id, without personal data (LiteLLM#10106)', (more, user_id) => {
  expect(runner(more)).toMatchObject({ metadata: { user_id } });
});

test('A2 renames stop and service_tier', () => {
  expect(runner({ stop: 'END', service_tier: 'default' })).toMatchObject({
    stop_sequences: ['END'],
    service_tier: 'standard_only',
  });
  expect(runner({ stop: ['\nbravo', 'x'] })).toMatchObject({ stop_sequences: ['\nbravo', 'x'] });
});

describe('response_format', () => {
  const schema = {
    type: 'object',
    properties: {
      a: { type: 'string', maxLength: 3, description: 'A' },
      b: { type: 'array', items: { type: 'object' } },
    },
    $defs: { c: { anyOf: [{ type: 'object' }, { type: 'null' }] } },
  };

  test('A2 a schema becomes output_config.format, with closed objects; bounds move to the description and are reported', () => {
    const response_format = { type: 'json_schema', json_schema: { name: 's', strict: true, schema } };
    expect(reported({ response_format, reasoning_effort: 'none' })).toMatchObject({
      body: {
        output_config: {
          format: {
            type: 'json_schema',
            schema: {
              type: 'object',
              additionalProperties: false,
              properties: {
                a: { type: 'string', description: 'A\n\n{maxLength: 3}' },
                b: { type: 'array', items: { type: 'object', additionalProperties: false } },
              },
              $defs: { c: { anyOf: [{ type: 'object', additionalProperties: false }, { type: 'null' }] } },
            },
          },
        },
      },
      changed: ['response_format'],
    });
  });

  test('A2 effort and schema are both in output_config', () => {
    const response_format = { type: 'json_schema', json_schema: { schema: { type: 'string' } } };
    expect(
      send('anthropic', {
        model: 'claude-opus-5',
        messages: HELLO,
        response_format,
        reasoning_effort: 'low',
      }),
    ).toMatchObject({
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'string' } } },
    });
  });

  test('Q6 Q8 json_object is unsupported: a 400, or dropped if the caller allows it', () => {
    const more = { response_format: { type: 'json_object' } };
    expect(reported(more)).toMatchObject({
      kind: 'error',
      error: { status: 400, code: 'unsupported_parameter', param: 'response_format' },
    });
    expect(reported(more, 'drop')).toMatchObject({ body: PLAIN, dropped: ['response_format'] });
  });
});

describe('PROMPT_CACHE', () => {
  const cached = (more: JsonObject, setting: 'auto' | 'off' = 'auto') => {
    const body = { model: MODEL, messages: HELLO, ...more };
    const rewritten = rewrite('anthropic', body, 'auto', 'chat', setting);
    return rewritten.kind === 'body' && rewritten.body.cache_control !== undefined;
  };
  const history = [...HELLO, { role: 'assistant', content: 'Hi' }, ...HELLO];
  const marked = [
    { role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] },
  ];

  test('A9 marks the longest prefix if the request has tools or a history', () => {
    expect(cached({ tools: [TOOL] })).toBe(true);
    expect(cached({ messages: history })).toBe(true);
    expect(cached({})).toBe(false);
  });

  test('A9 adds nothing if it is off, the client set marks, or the server is not Anthropic', () => {
    expect(cached({ tools: [TOOL] }, 'off')).toBe(false);
    expect(cached({ messages: [...marked, ...history.slice(1)] })).toBe(false);
    expect(cached({ messages: [{ ...marked[0], role: 'system' }, ...history] })).toBe(false);
    expect(cached({ tools: [{ ...TOOL, cache_control: { type: 'ephemeral' } }] })).toBe(false);
    expect(cached({ tools: [TOOL], model: 'kimi-k2.5' })).toBe(false);
    const own = { type: 'ephemeral', ttl: '1h' };
    expect(
      rewrite('anthropic', { model: MODEL, messages: history, cache_control: own }, 'auto', 'chat', 'auto'),
    ).toMatchObject({
      body: { cache_control: own },
    });
  });
});
