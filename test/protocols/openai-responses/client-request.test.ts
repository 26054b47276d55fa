/** Tests the translation of Responses requests into chat requests, and the errors of those that can't be translated. */
import { describe, expect, test } from 'vitest';
import { chatBody } from '../../../src/protocols/openai-chat/conversation-writer.ts';
import { readResponsesRequest } from '../../../src/protocols/openai-responses/client-request.ts';
import { withDetailsOfProvider } from '../../../src/request-translation/messages.ts';
import { encodeBase64Url } from '../../../src/shared/encoding.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import { objectsOf } from '../../../tools/simulator/json.ts';
import { sessionOf } from './run.ts';

const USER = { role: 'user', content: 'Hi' };
const TIDE = {
  type: 'function',
  name: 'tide',
  description: 'Tides',
  parameters: { type: 'object' },
  strict: true,
};

function read(body: JsonObject) {
  const result = readResponsesRequest({ model: 'p/m', input: 'Hi', ...body });
  if (result.kind === 'error') throw new Error(result.error.message);
  const { translationError } = result.value;
  if (translationError !== null) throw new Error(translationError.message);
  return { ...result.value, body: chatBody(result.value) };
}

function messages(input: unknown): unknown {
  return read({ input }).body.messages;
}

function errorOf(body: JsonObject) {
  const result = readResponsesRequest({ model: 'p/m', input: 'Hi', ...body });
  return result.kind === 'error' ? result.error : result.value.translationError;
}

describe('B3 the fields that a response repeats', () => {
  const echoOf = (body: JsonObject): JsonObject => {
    const session = sessionOf({ model: 'p/m', input: 'Hi', ...body });
    return { chars: session.echo.length, tier: session.serviceTier, ...JSON.parse(`{${session.echo}}`) };
  };
  const LONG = 'x'.repeat(2_000_000);
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));

  test.each<[what: string, body: JsonObject]>([
    ['metadata', { metadata: { a: LONG } }],
    ['a user', { user: LONG }],
    ['a safety identifier', { safety_identifier: LONG }],
    ['a cache key', { prompt_cache_key: LONG }],
    ['a tier', { service_tier: LONG }],
    ['an effort', { reasoning: { effort: LONG } }],
    ['a verbosity', { text: { verbosity: LONG } }],
    ['a schema', { text: { format: { type: 'json_schema', name: 's', schema: { description: LONG } } } }],
    ['a tool choice', { tools: [TIDE], tool_choice: { type: 'function', name: LONG } }],
    ['instructions', { instructions: LONG }],
    ['a tool', { tools: [{ ...TIDE, description: LONG }] }],
  ])('%s of 2 MB is not repeated, but the other fields are', (_, body) => {
    const { chars, tier, ...echo } = echoOf({ temperature: 0.5, ...body });
    expect(chars).toBeLessThan(64 * 1024);
    expect(tier).toBe('default');
    expect(echo).toMatchObject({ temperature: 0.5, metadata: {}, user: null });
  });

  test.each<[what: string, metadata: JsonObject, isRepeated: boolean]>([
    ['16 pairs', pairs(16), true],
    ['17 pairs', pairs(17), false],
    ['a key of 64 characters', { ['k'.repeat(64)]: 'v' }, true],
    ['a key of 65 characters', { ['k'.repeat(65)]: 'v' }, false],
    ['a value of 512 characters', { k: 'v'.repeat(512) }, true],
    ['a value of 513 characters', { k: 'v'.repeat(513) }, false],
    ['a value that is not a text', { k: [1] }, false],
  ])("OpenAI's bounds on metadata: %s", (_, metadata, isRepeated) => {
    expect(echoOf({ metadata }).metadata).toEqual(isRepeated ? metadata : {});
  });

  test('custom tools whose names exceed the bound together: an error', () => {
    const tools = Array.from({ length: 3000 }, (_, i) => ({ type: 'custom', name: `t${i}` }));
    expect(errorOf({ tools })).toMatchObject({ status: 400, code: 'invalid_request', param: 'tools' });
    expect(errorOf({ tools: tools.slice(0, 500) })).toBeNull();
    expect(errorOf({ tools: tools.map((tool) => ({ ...tool, type: 'function' })) })).toBeNull();
  });

  test('a function after a custom tool with the same name: the function counts', () => {
    const custom = { type: 'custom', name: 'tide' };
    const { session } = read({ tools: [custom, TIDE] });
    expect(session.tools.get('tide')).toBeUndefined();
  });
});

describe('B3 names of dropped fields', () => {
  const items = Array.from({ length: 500 }, (_, i) => ({ type: `odd_${i}` }));

  test('500 types of items: the first 100 are named', () => {
    const { dropped } = read({ input: [USER, ...items] });
    expect(dropped).toEqual(items.slice(0, 100).map(({ type }) => `input.${type}`));
  });
});

describe('I2 values of the wrong type', () => {
  const call = { type: 'function_call', call_id: 'c', name: 'f' };
  const custom = { type: 'custom_tool_call', call_id: 'c', name: 'f' };
  const output = (value: unknown) => [call, { type: 'function_call_output', call_id: 'c', output: value }];

  test.each<[what: string, param: string, body: JsonObject]>([
    ['instructions in a list', 'instructions', { instructions: [{ role: 'developer', content: 'A' }] }],
    ['tools in an object', 'tools', { tools: { tide: TIDE } }],
    ['a function in the form of chat', 'tools', { tools: [{ type: 'function', function: TIDE }] }],
    ['text as a word', 'text', { text: 'json' }],
    ['reasoning as a word', 'reasoning', { reasoning: 'high' }],
    ['no message at all', 'input', { input: [] }],
    [
      'a content that is a single part',
      'input',
      { input: [{ role: 'user', content: { type: 'input_text' } }] },
    ],
    ['a content with texts in a list', 'input', { input: [{ role: 'user', content: ['Hi'] }] }],
    ['an output that is an object', 'input', { input: output({ a: 1 }) }],
    ['an output that is a number', 'input', { input: output(5) }],
    ['arguments that are an object', 'input', { input: [{ ...call, arguments: { a: 1 } }] }],
    ['a custom input that is an object', 'input', { input: [{ ...custom, input: { a: 1 } }] }],
  ])('%s: an error that names the field', (_, param, body) => {
    expect(errorOf(body)).toMatchObject({ status: 400, code: 'invalid_request', param });
  });

  test('absent and null fields are valid', () => {
    const nothing = { instructions: null, tools: null, text: null, reasoning: null };
    expect(
      errorOf({ ...nothing, input: [{ role: 'user' }, { ...call, arguments: null }, ...output(null)] }),
    ).toBeNull();
  });
});

describe('I2 input', () => {
  test('a text becomes the user’s message, after the instructions', () => {
    expect(read({ instructions: 'Be brief' }).body.messages).toEqual([
      { role: 'system', content: 'Be brief' },
      USER,
    ]);
  });

  test('messages without a type; roles and parts become those of chat', () => {
    expect(
      messages([
        { role: 'developer', content: [{ type: 'input_text', text: 'Rules' }] },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA', detail: 'low' },
            { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' },
          ],
        },
      ]),
    ).toEqual([
      { role: 'developer', content: 'Rules' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA', detail: 'low' } },
          { type: 'file', file: { file_data: 'data:application/pdf;base64,AA', filename: 'a.pdf' } },
        ],
      },
    ]);
  });

  test('B4 a message of 300,000 parts has all of them', () => {
    const content = Array.from({ length: 300_000 }, () => ({ type: 'input_text', text: 'a' }));
    expect(messages([{ role: 'user', content }])).toMatchObject([{ content: { length: content.length } }]);
  });

  test('text, reasoning and calls of one step become one assistant message, followed by the results', () => {
    expect(
      messages([
        { role: 'user', content: 'Hi' },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Looking.' }] },
        { type: 'function_call', call_id: 'a', name: 'tide', arguments: '{"x":1}' },
        { type: 'function_call', call_id: 'b', name: 'tide', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: 'high' },
        { type: 'function_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'low' }] },
      ]),
    ).toEqual([
      USER,
      {
        role: 'assistant',
        content: 'Looking.',
        reasoning_content: 'Hm.',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'tide', arguments: '{"x":1}' } },
          { id: 'b', type: 'function', function: { name: 'tide', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'high' },
      { role: 'tool', tool_call_id: 'b', content: 'low' },
    ]);
  });

  test('a message between a call and its result moves after the result, as providers require (codex#7051)', () => {
    expect(
      messages([
        { type: 'function_call', call_id: 'a', name: 'tide', arguments: '{}' },
        { role: 'user', content: 'Hurry' },
        { type: 'function_call_output', call_id: 'a', output: 'high' },
      ]),
    ).toMatchObject([{ role: 'assistant' }, { role: 'tool' }, { role: 'user', content: 'Hurry' }]);
  });

  test('calls of two steps with the same id keep their own results', () => {
    expect(
      messages([
        { type: 'function_call', call_id: 'call_0', name: 'tide', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_0', output: 'first' },
        { type: 'function_call', call_id: 'call_0', name: 'tide', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_0', output: 'second' },
      ]),
    ).toMatchObject([{}, { content: 'first' }, {}, { content: 'second' }]);
  });

  test('Q16 a result whose call the client has cut off stays in its place when the conversation goes on', () => {
    const cut = [
      { type: 'function_call_output', call_id: 'a', output: 'high' },
      { role: 'user', content: 'Hi' },
    ];
    const next = [
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: 'Bye' },
    ];
    const before = [{ role: 'tool', tool_call_id: 'a', content: 'high' }, USER];
    expect(messages(cut)).toEqual(before);
    expect(messages([...cut, ...next])).toEqual([...before, ...next]);
  });

  test('the images of a result are parts of it, in their order', () => {
    const image = { type: 'input_image', image_url: 'https://a.test/b.png' };
    const IMAGE = { type: 'image_url', image_url: { url: 'https://a.test/b.png' } };
    const text = (value: string) => ({ type: 'input_text', text: value });
    expect(
      messages([
        { type: 'function_call', call_id: 'a', name: 'see', arguments: '{}' },
        { type: 'function_call', call_id: 'b', name: 'see', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: [image] },
        { type: 'function_call_output', call_id: 'b', output: [text('x'), text('y'), image, text('z')] },
      ]),
    ).toEqual([
      expect.objectContaining({ role: 'assistant' }),
      { role: 'tool', tool_call_id: 'a', content: [IMAGE] },
      {
        role: 'tool',
        tool_call_id: 'b',
        content: [{ type: 'text', text: 'x\n\ny' }, IMAGE, { type: 'text', text: 'z' }],
      },
    ]);
  });

  test('a custom tool’s call has its input as arguments, and a namespace becomes a prefix of the name', () => {
    expect(
      messages([
        { type: 'custom_tool_call', call_id: 'a', name: 'exec', namespace: 'functions', input: 'ls "x"' },
        { type: 'custom_tool_call_output', call_id: 'a', output: 'ok' },
      ]),
    ).toMatchObject([
      { tool_calls: [{ function: { name: 'functions__exec', arguments: '{"input":"ls \\"x\\""}' } }] },
      { role: 'tool', content: 'ok' },
    ]);
  });

  test('items and parts of other types are dropped and named', () => {
    const { body, dropped } = read({
      input: [
        { type: 'web_search_call', id: 'ws_1' },
        { type: 'a strange\n one' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Hi' },
            { type: 'input_video', video_url: 'x' },
          ],
        },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA-of-another-provider' },
      ],
    });
    expect(body.messages).toEqual([USER]);
    expect(dropped).toEqual(['input.web_search_call', 'input.unknown', 'input.content.input_video']);
  });

  test.each([
    ['no input', undefined, 'input must be a text or a list of items'],
    ['a call without its id', [{ type: 'function_call', name: 'tide' }], 'needs its call_id'],
    [
      'an image by its file_id',
      [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }],
      'send image_url',
    ],
    [
      'a file by its URL',
      [{ role: 'user', content: [{ type: 'input_file', file_url: 'u' }] }],
      'send file_data',
    ],
    ['an unknown role', [{ role: 'critic', content: 'x' }], 'role must be one of'],
  ])('%s: 400 with what to send', (_, input, message) => {
    expect(errorOf({ input })).toMatchObject({
      status: 400,
      param: 'input',
      message: expect.stringContaining(message),
    });
  });
});

describe('I7 reasoning states', () => {
  test('an encrypted_content of Weir is decoded into its detail and its call’s signature', () => {
    const detail = { type: 'reasoning.text', text: 'Hm.', signature: 'sig', index: 0 };
    const payload = [{ detail }, { call: 'a', extra_content: { google: { thought_signature: 'ts' } } }];
    expect(
      messages([
        {
          type: 'reasoning',
          summary: [],
          encrypted_content: `weir1:anthropic:${encodeBase64Url(JSON.stringify(payload))}`,
        },
        { type: 'function_call', call_id: 'a', name: 'tide', arguments: '{}' },
      ]),
    ).toMatchObject([
      {
        reasoning_details: [{ ...detail, id: 'weir1:anthropic:' }],
        tool_calls: [
          {
            id: 'a',
            extra_content: { google: { thought_signature: 'ts' }, weir: { provider: 'anthropic' } },
          },
        ],
      },
    ]);
  });

  test('a detail with an id from its provider goes back only to that provider, with the same id', () => {
    const detail = { type: 'reasoning.encrypted', data: 'd', id: 'rs_up', index: 0 };
    const [message] = objectsOf(
      messages([
        {
          type: 'reasoning',
          summary: [],
          encrypted_content: `weir1:openrouter:${encodeBase64Url(JSON.stringify([{ detail }]))}`,
        },
        { type: 'message', role: 'assistant', content: 'High.' },
      ]),
    );
    expect(withDetailsOfProvider(message ?? {}, 'openrouter').reasoning_details).toEqual([detail]);
    expect(withDetailsOfProvider(message ?? {}, 'groq')).not.toHaveProperty('reasoning_details');
  });

  test.each(['weir1:anthropic:%%%', 'weir1:anthropic', 'weir1:anthropic:bnVsbA', 'gAAAA'])(
    'a damaged one, or one of another origin (%s), is dropped',
    (encrypted_content) => {
      expect(
        messages([
          { type: 'reasoning', summary: [], encrypted_content },
          { type: 'function_call', call_id: 'a', name: 'tide', arguments: '{}' },
        ]),
      ).toEqual([
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'tide', arguments: '{}' } }],
        },
      ]);
    },
  );
});

describe('I2 tools', () => {
  test('functions become chat’s; a custom tool becomes a function of one text, with its grammar', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' };
    const { body, session } = read({
      tools: [TIDE, { type: 'custom', name: 'apply_patch', description: 'Edits', format }],
    });
    expect(body.tools).toMatchObject([
      { type: 'function', function: { name: 'tide', description: 'Tides', strict: true } },
      {
        type: 'function',
        function: {
          name: 'apply_patch',
          description: 'Edits\n\nThe input must follow this lark grammar:\nstart: "x"',
          parameters: { properties: { input: { type: 'string' } }, required: ['input'] },
        },
      },
    ]);
    expect(session.tools.get('apply_patch')).toEqual({
      kind: 'custom',
      name: 'apply_patch',
      namespace: undefined,
    });
  });

  test('namespaces are flattened, also those in an additional_tools item, with names of at most 64 characters', () => {
    const long = 'n'.repeat(60);
    const { body, session } = read({
      tools: [
        { type: 'namespace', name: 'mcp__', description: 'Files', tools: [{ type: 'function', name: 'ls' }] },
      ],
      input: [
        {
          type: 'additional_tools',
          role: 'developer',
          tools: [
            {
              type: 'namespace',
              name: 'functions',
              tools: [
                { type: 'custom', name: 'exec' },
                { type: 'function', name: long },
              ],
            },
          ],
        },
        { role: 'user', content: 'Hi' },
      ],
    });
    const names = [...session.tools.keys()];
    expect(names.slice(0, 2)).toEqual(['mcp__ls', 'functions__exec']);
    expect(names[2]).toMatch(/^functions__n{43}_[0-9A-Za-z]{9}$/);
    expect(session.tools.get(names[2] ?? '')).toEqual({
      kind: 'function',
      name: long,
      namespace: 'functions',
    });
    expect(body.tools).toMatchObject([{ function: { description: 'Files' } }, {}, {}]);
  });

  test('hosted tools are dropped and named', () => {
    const { body, dropped } = read({
      tools: [{ type: 'web_search' }, { type: 'mcp', server_label: 'x' }, TIDE],
    });
    expect(body.tools).toHaveLength(1);
    expect(dropped).toEqual(['tools.web_search', 'tools.mcp']);
  });

  test.each([
    ['a function', { type: 'function', name: 'tide' }, { type: 'function', function: { name: 'tide' } }],
    ['required', 'required', 'required'],
    ['none', 'none', 'none'],
    [
      'allowed tools',
      { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'tide' }] },
      'required',
    ],
  ])('tool_choice %s: in chat’s form', (_, tool_choice, expected) => {
    const { body } = read({
      tools: [TIDE, { ...TIDE, name: 'other' }],
      tool_choice,
      parallel_tool_calls: false,
    });
    expect(body.tool_choice).toEqual(expected);
    expect(body.parallel_tool_calls).toBe(false);
    expect(body.tools).toHaveLength(typeof tool_choice === 'object' && 'tools' in tool_choice ? 1 : 2);
  });

  test.each([
    ['a hosted tool', [{ type: 'web_search' }], { type: 'web_search' }],
    ['required, with only hosted tools', [{ type: 'web_search' }], 'required'],
    ['an unknown function', [TIDE], { type: 'function', name: 'other' }],
    [
      'only hosted allowed tools',
      [TIDE],
      { type: 'allowed_tools', mode: 'required', tools: [{ type: 'mcp' }] },
    ],
  ])('tool_choice requires %s: 400', (_, tools, tool_choice) => {
    expect(errorOf({ tools, tool_choice })).toMatchObject({ status: 400, param: 'tool_choice' });
  });

  test('without tools there is no tool_choice', () => {
    const { body } = read({
      tools: [{ type: 'web_search' }],
      tool_choice: 'auto',
      parallel_tool_calls: true,
    });
    expect(body).not.toHaveProperty('tools');
    expect(body).not.toHaveProperty('tool_choice');
    expect(body).not.toHaveProperty('parallel_tool_calls');
  });
});

describe('I2 fields', () => {
  test('fields of Responses get chat’s names; sampling and unknown fields are copied', () => {
    const { body } = read({
      stream: true,
      text: {
        format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true },
        verbosity: 'low',
      },
      reasoning: { effort: 'high', summary: 'auto' },
      max_output_tokens: 99,
      temperature: 0.2,
      top_p: 0.9,
      top_logprobs: 2,
      prompt_cache_key: 'k',
      safety_identifier: 's',
      metadata: { a: 'b' },
      a_vendor_field: 7,
    });
    expect(body).toEqual({
      model: 'p/m',
      messages: [USER],
      stream: true,
      stream_options: { include_usage: true },
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'n', schema: { type: 'object' }, strict: true },
      },
      verbosity: 'low',
      reasoning_effort: 'high',
      max_completion_tokens: 99,
      temperature: 0.2,
      top_p: 0.9,
      logprobs: true,
      top_logprobs: 2,
      prompt_cache_key: 'k',
      safety_identifier: 's',
      metadata: { a: 'b' },
      a_vendor_field: 7,
    });
  });

  test('fields that only concern the form of the response are not sent', () => {
    const { body } = read({
      store: true,
      include: ['reasoning.encrypted_content'],
      truncation: 'auto',
      client_metadata: { a: 1 },
      stream_options: { include_obfuscation: false },
      max_tool_calls: 3,
      // openai-node 7.55 has them, but closed schemas of chat do not.
      access_programs: { cyber: 'standard' },
      image: { context_compression: 'enabled' },
      previous_response_id: null,
      background: false,
      text: { format: { type: 'text' } },
    });
    expect(body).toEqual({ model: 'p/m', messages: [USER] });
  });
});

describe('I5 fields that refer to a stored response', () => {
  test.each([
    ['previous_response_id', { previous_response_id: 'resp_1' }],
    ['conversation', { conversation: 'conv_1' }],
    ['prompt', { prompt: { id: 'pmpt_1' } }],
    ['background', { background: true }],
  ])('%s: 400 that names the field and the alternative', (name, body) => {
    expect(errorOf(body)).toMatchObject({ status: 400, code: 'unsupported_parameter', param: name });
    expect(errorOf(body)?.message).toContain('keeps no responses');
  });

  test.each([[{ type: 'item_reference', id: 'msg_1' }], [{ id: 'msg_1' }]])(
    'the item_reference %j: 400 that suggests store: false',
    (item) => {
      expect(errorOf({ input: [item] })).toMatchObject({ code: 'unsupported_parameter', param: 'input' });
      expect(errorOf({ input: [item] })?.message).toContain('store: false');
    },
  );
});
