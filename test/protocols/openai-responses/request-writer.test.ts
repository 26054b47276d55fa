/** Tests the Responses request that a chat request becomes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withWrittenLimit } from '../../../src/fitting/output-limit.ts';
import { responsesForm } from '../../../src/protocols/openai-responses/request-writer.ts';
import type { WriteOptions } from '../../../src/request-translation/translate.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import { decodeObject, objectsOf } from '../../../tools/simulator/json.ts';
import { writeRequest } from '../../request-translation/write-request.ts';

const EFFORTS = ['none', 'low', 'medium', 'high', 'xhigh', 'max'];
const FORM = responsesForm({
  absent: ['n', 'stop', 'seed'],
  request: {
    fields: {},
    effort: {
      takes: ['reasoning_effort'],
      families: [
        { models: ['gpt-6-quiet'], efforts: EFFORTS, reasons: 'on_request' },
        { models: ['gpt-6-mute'], efforts: EFFORTS, refusesSummary: true },
        { models: ['gpt-6*'], efforts: EFFORTS },
      ],
    },
    messages: { reasoning: [] },
    streamUsage: 'always',
  },
});

const HI = [{ role: 'user', content: 'Hi' }];

function write(body: JsonObject, options: Partial<WriteOptions> = {}) {
  const { model = 'gpt-6.1-terra' } = options;
  return writeRequest(
    FORM,
    { fields: { model, messages: HI, ...body }, turns: null },
    { model, provider: 'OpenAI', providerId: 'openai', unsupported: 'auto', promptCache: 'auto', ...options },
  );
}

function written(body: JsonObject, model?: string, hidesReasoning?: boolean): JsonObject {
  const result = write(body, {
    ...(model === undefined ? {} : { model }),
    ...(hidesReasoning === undefined ? {} : { hidesReasoning }),
  });
  if (result.kind === 'error') throw new Error(result.error.message);
  return result.value.body;
}

function inputOf(...messages: JsonObject[]): readonly JsonObject[] {
  return objectsOf(written({ messages }).input);
}

function call(id: string, name = 'look', args = '{}'): JsonObject {
  return { id, type: 'function', function: { name, arguments: args } };
}

function reasoning(index: number, data: string, provider = 'openai'): JsonObject {
  const format = 'openai-responses-v1';
  return { type: 'reasoning.encrypted', data, id: `weir1:${provider}:rs_1`, format, index };
}

describe('O4 what a request becomes', () => {
  test('a plain chat: its message, nothing stored, encrypted reasoning and a summary where the model reasons', () => {
    expect(written({ stream: true, stream_options: { include_usage: true } })).toEqual({
      model: 'gpt-6.1-terra',
      stream: true,
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
      store: false,
      include: ['reasoning.encrypted_content'],
      reasoning: { summary: 'auto' },
    });
  });

  test('a model that does not reason gets neither include nor reasoning', () => {
    const body = written({}, 'gpt-4.1');
    expect(body).not.toHaveProperty('include');
    expect(body).not.toHaveProperty('reasoning');
  });

  test.each<[field: string, given: JsonObject, becomes: JsonObject]>([
    ['max_tokens', { max_tokens: 100 }, { max_output_tokens: 100 }],
    ['max_completion_tokens', { max_completion_tokens: 100 }, { max_output_tokens: 100 }],
    ['a limit below 16', { max_tokens: 5 }, { max_output_tokens: 16 }],
    ['reasoning_effort', { reasoning_effort: 'minimal' }, { reasoning: { effort: 'low', summary: 'auto' } }],
    ['no reasoning', { reasoning_effort: 'none' }, { reasoning: { effort: 'none' } }],
    ['verbosity', { verbosity: 'low' }, { text: { verbosity: 'low' } }],
    ['text as the format', { response_format: { type: 'text' } }, { text: undefined }],
    [
      'json_object',
      { response_format: { type: 'json_object' } },
      { text: { format: { type: 'json_object' } } },
    ],
    [
      'json_schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {}, strict: true } } },
      { text: { format: { type: 'json_schema', name: 'a', schema: {}, strict: true } } },
    ],
    [
      'logprobs',
      { logprobs: true, top_logprobs: 3 },
      { top_logprobs: 3, include: ['reasoning.encrypted_content', 'message.output_text.logprobs'] },
    ],
    [
      'web_search_options',
      {
        web_search_options: { search_context_size: 'low', user_location: { approximate: { city: 'Kiel' } } },
      },
      {
        tools: [
          {
            type: 'web_search',
            search_context_size: 'low',
            user_location: { type: 'approximate', city: 'Kiel' },
          },
        ],
      },
    ],
    ['fields of the same name', { user: 'u', metadata: { a: 'b' } }, { user: 'u', metadata: { a: 'b' } }],
  ])('%s', (_, given, becomes) => {
    const body = written(given);
    expect(body).toMatchObject(
      Object.fromEntries(Object.entries(becomes).filter(([, value]) => value !== undefined)),
    );
    for (const [name, value] of Object.entries(becomes))
      if (value === undefined) expect(body).not.toHaveProperty(name);
  });

  test('a raised limit and a store that is not kept are reported', () => {
    expect(write({ max_tokens: 5, store: true })).toMatchObject({
      value: { changed: ['max_tokens'], dropped: ['store'] },
    });
  });

  test('a field that Responses lacks is refused, unless it is a default or the caller wants it dropped', () => {
    const { n, stop, seed } = written({ n: 1, stop: [], seed: undefined });
    expect([n, stop, seed]).toEqual([undefined, undefined, undefined]);
    expect(write({ n: 2 })).toMatchObject({ error: { code: 'unsupported_parameter', param: 'n' } });
    expect(write({ n: 2 }, { unsupported: 'drop' })).toMatchObject({ value: { dropped: ['n'] } });
  });

  test('hidden reasoning and a model without summaries: no summary is requested', () => {
    expect(written({ reasoning_effort: 'low' }, 'gpt-6.1-terra', true)).toMatchObject({
      reasoning: { effort: 'low' },
    });
    expect(written({}, 'gpt-6-mute')).not.toHaveProperty('reasoning');
  });

  test('functions become flat, and `strict` is always written', () => {
    const lookup = { name: 'look', description: 'd', parameters: { type: 'object' } };
    const { tools, tool_choice } = written({
      tools: [
        { type: 'function', function: lookup },
        { type: 'function', function: { name: 'bare', description: null, strict: true } },
        {
          type: 'custom',
          custom: { name: 'c', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } },
        },
      ],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'look' } }] },
      },
    });
    expect(tools).toEqual([
      { type: 'function', ...lookup, strict: false },
      { type: 'function', name: 'bare', parameters: { type: 'object', properties: {} }, strict: true },
      { type: 'custom', name: 'c', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
    ]);
    expect(tool_choice).toEqual({
      type: 'allowed_tools',
      mode: 'auto',
      tools: [{ type: 'function', name: 'look' }],
    });
  });

  test('legacy functions become tools', () => {
    expect(
      written({ functions: [{ name: 'look', parameters: {} }], function_call: { name: 'look' } }),
    ).toMatchObject({
      tools: [{ type: 'function', name: 'look', parameters: {}, strict: false }],
      tool_choice: { type: 'function', name: 'look' },
    });
  });

  test('G2 a key’s limit is written last, under the one name', () => {
    const { body } = withWrittenLimit(FORM, { ...written({ max_tokens: 500 }), n_predict: 9 }, 200);
    expect(body).toMatchObject({ max_output_tokens: 200 });
    expect(body).not.toHaveProperty('n_predict');
  });
});

describe('O4 what a conversation becomes', () => {
  test('system and developer messages become developer messages at their places', () => {
    const items = inputOf(
      { role: 'system', content: 'a' },
      { role: 'user', content: 'b' },
      { role: 'developer', content: [{ type: 'text', text: 'c' }] },
    );
    expect(items.map(({ role, content }) => [role, content])).toEqual([
      ['developer', [{ type: 'input_text', text: 'a' }]],
      ['user', [{ type: 'input_text', text: 'b' }]],
      ['developer', [{ type: 'input_text', text: 'c' }]],
    ]);
  });

  test('images and files have the forms of Responses', () => {
    const [item] = inputOf({
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: 'https://a/b.png', detail: 'low' } },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
        { type: 'file', file: { file_data: 'data:x', filename: 'a.pdf' } },
        { type: 'file', file: { file_url: 'https://a/c.pdf' } },
        { type: 'document_url', document_url: 'https://a/d.pdf', document_name: 'd' },
        { type: 'file', file: { file_id: 'file-1' } },
      ],
    });
    expect(item?.content).toEqual([
      { type: 'input_image', image_url: 'https://a/b.png', detail: 'low' },
      { type: 'input_image', image_url: 'data:image/png;base64,AA', detail: 'auto' },
      { type: 'input_file', file_data: 'data:x', filename: 'a.pdf' },
      { type: 'input_file', file_url: 'https://a/c.pdf' },
      { type: 'input_file', file_url: 'https://a/d.pdf', filename: 'd' },
      { type: 'input_file', file_id: 'file-1' },
    ]);
  });

  test('audio has no form: the request is refused and the message names the part', () => {
    const content = [{ type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } }];
    expect(write({ messages: [{ role: 'user', content }] })).toMatchObject({
      kind: 'error',
      error: { code: 'unsupported_parameter', param: 'messages.content.input_audio' },
    });
  });

  test('calls and results, of functions and of custom tools, in their order and without item ids', () => {
    const items = inputOf(
      ...HI,
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [
          call('call_1', 'look', '{"at":1}'),
          { id: 'call_2', type: 'custom', custom: { name: 'run', input: 'ls' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'found' },
      {
        role: 'tool',
        tool_call_id: 'call_2',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    );
    expect(items.slice(1)).toEqual([
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Looking.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":1}' },
      { type: 'custom_tool_call', call_id: 'call_2', name: 'run', input: 'ls' },
      { type: 'function_call_output', call_id: 'call_1', output: 'found' },
      {
        type: 'custom_tool_call_output',
        call_id: 'call_2',
        output: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
    ]);
  });

  test('an id of more than 64 characters: the call and its result have the same short one', () => {
    const id = 'x'.repeat(65);
    const [, made, result] = inputOf(
      ...HI,
      { role: 'assistant', tool_calls: [call(id)] },
      { role: 'tool', tool_call_id: id, content: '' },
    );
    expect(made?.call_id).toBe(result?.call_id);
    expect(String(made?.call_id).length).toBeLessThanOrEqual(64);
    const [, kept] = inputOf(...HI, { role: 'assistant', tool_calls: [call('y'.repeat(64))] });
    expect(kept?.call_id).toBe('y'.repeat(64));
  });

  test('a refusal is the assistant’s refusal', () => {
    const [, item] = inputOf(...HI, { role: 'assistant', content: null, refusal: 'No.' });
    expect(item?.content).toEqual([{ type: 'refusal', refusal: 'No.' }]);
  });
});

describe('O5 reasoning goes back', () => {
  const step = { role: 'assistant', content: 'Text', tool_calls: [call('c1'), call('c2')] };

  test('each item stands directly before the one that it came before', () => {
    const details = [reasoning(0, 'A'), reasoning(1, 'B'), reasoning(2, 'C'), reasoning(2, 'D')];
    const items = inputOf(...HI, { ...step, reasoning_details: details }).slice(1);
    expect(items.map(({ type, encrypted_content }) => encrypted_content ?? type)).toEqual([
      'A',
      'message',
      'B',
      'function_call',
      'C',
      'D',
      'function_call',
    ]);
    expect(items[0]).toEqual({ type: 'reasoning', summary: [], encrypted_content: 'A' });
  });

  test.each<[what: string, details: unknown]>([
    ['of another provider', [reasoning(0, 'A', 'xai')]],
    ['without a tag', [{ ...reasoning(0, 'A'), id: 'rs_1' }]],
    ['in another form', [{ ...reasoning(0, 'A'), format: 'anthropic-claude-v1' }]],
    ['at a place that no item has', [reasoning(9, 'A')]],
    ['that is a text', 'thoughts'],
  ])('%s: it stays out, and the step goes up without it', (_, reasoning_details) => {
    const items = inputOf(...HI, { ...step, reasoning_details });
    expect(items.map(({ type }) => type)).toEqual(['message', 'message', 'function_call', 'function_call']);
  });
});

describe('O5 a step without its reasoning is reported', () => {
  const own = { reasoning_details: [reasoning(1, 'A')] };
  const loop = (details: JsonObject, ...after: JsonObject[]) => [
    ...HI,
    { role: 'assistant', tool_calls: [call('c1')], ...details },
    { role: 'tool', tool_call_id: 'c1', content: '312 cm' },
    ...after,
  ];
  test.each<[what: string, changed: readonly string[], body: JsonObject, model?: string]>([
    ['calls without reasoning', ['reasoning'], { messages: loop({}) }],
    [
      'reasoning of another provider',
      ['reasoning'],
      { messages: loop({ reasoning_details: [reasoning(1, 'A', 'xai')] }) },
    ],
    ['a text in place of details', ['reasoning'], { messages: loop({ reasoning_details: 'Hm' }) }],
    ['its own reasoning', [], { messages: loop(own) }],
    ['a step of an earlier turn', [], { messages: loop({}, { role: 'assistant', content: 'a' }, ...HI) }],
    ['no reasoning requested', [], { messages: loop({}), reasoning_effort: 'none' }],
    ['a model that does not reason', [], { messages: loop({}) }, 'gpt-4.1'],
    ['a model that reasons on request only', [], { messages: loop({}) }, 'gpt-6-quiet'],
    [
      'the same with an effort',
      ['reasoning'],
      { messages: loop({}), reasoning_effort: 'low' },
      'gpt-6-quiet',
    ],
  ])('%s: %j', (_, changed, body, model = 'gpt-6.1-terra') => {
    expect(write(body, { model })).toMatchObject({ value: { changed } });
  });
});

test.each<[role: JsonObject]>([
  [{ role: 'user' }],
  [{ role: 'system' }],
  [{ role: 'assistant' }],
  [{ role: 'tool', tool_call_id: 'c1' }],
])('O6 a text as a string and as a list of one part are the same input: %j', (message) => {
  expect(inputOf({ ...message, content: [{ type: 'text', text: 'a' }] })).toEqual(
    inputOf({ ...message, content: 'a' }),
  );
});

test('O6 the input of a conversation begins with the input of each of its beginnings', () => {
  const text = fc.string({ maxLength: 8 });
  const message = fc.oneof(
    fc.record({ role: fc.constantFrom('user', 'system', 'developer'), content: text }),
    fc.record({
      role: fc.constant('assistant'),
      content: fc.option(text),
      tool_calls: fc.array(
        text.map((id) => call(id)),
        { maxLength: 3 },
      ),
      reasoning_details: fc.array(fc.tuple(fc.nat(3), text).map(([at, data]) => reasoning(at, data))),
    }),
    fc.record({ role: fc.constant('tool'), tool_call_id: text, content: text }),
  );
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), fc.nat(12), (messages, at) => {
      const whole = JSON.stringify(inputOf(...messages));
      const beginning = JSON.stringify(inputOf(...messages.slice(0, at)));
      expect(whole.startsWith(beginning.slice(0, -1))).toBe(true);
    }),
  );
});

describe('O6 the key of the prompt cache', () => {
  const keyOf = (body: JsonObject, options: Partial<WriteOptions> = {}) => {
    const result = write(body, { promptCacheKey: 'of the session', ...options });
    if (result.kind === 'error') throw new Error(result.error.message);
    return result.value.body.prompt_cache_key;
  };

  test('is the session’s where the client sends none, unless PROMPT_CACHE is off', () => {
    expect(keyOf({})).toBe('of the session');
    expect(keyOf({ prompt_cache_key: null })).toBe('of the session');
    expect(keyOf({ prompt_cache_key: 'own' })).toBe('own');
    expect(keyOf({}, { promptCache: 'off' })).toBeUndefined();
  });
});

test('a body that is no conversation: nothing is thrown', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (messages, tools) => {
      const body = decodeObject(JSON.stringify({ messages, tools })) ?? {};
      expect(['ok', 'error']).toContain(write(body).kind);
    }),
  );
});
