/** Tests the translation of Messages requests into chat requests, and what is dropped. */
import { describe, expect, test } from 'vitest';
import { messages } from '../../../src/protocols/anthropic-messages/client.ts';
import { chatBody } from '../../../src/protocols/openai-chat/conversation-writer.ts';
import { encodeReasoningState } from '../../../src/protocols/shared/reasoning-state.ts';
import type { JsonObject } from '../../../src/shared/json.ts';

const USER = { role: 'user', content: 'Hi' };

function read(body: JsonObject): { readonly body: JsonObject; readonly dropped: readonly string[] } {
  const result = messages.readRequest({ model: 'm', max_tokens: 9, messages: [USER], ...body });
  if (result.kind === 'error') throw new Error(result.error.message);
  return { body: chatBody(result.value), dropped: result.value.dropped };
}

function messagesOf(...messages: readonly JsonObject[]): unknown {
  return read({ messages }).body.messages;
}

function refused(body: JsonObject) {
  const result = messages.readRequest({ model: 'm', messages: [USER], ...body });
  if (result.kind !== 'error') throw new Error('The request was accepted');
  return result.error;
}

/** Why only providers that speak Messages can serve the request. */
function translationError(body: JsonObject) {
  const result = messages.readRequest({ model: 'm', messages: [USER], ...body });
  return result.kind === 'error' ? result.error : result.value.translationError;
}

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } };
const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } };
const text = (value: string) => ({ type: 'text', text: value });
const cache_control = { type: 'ephemeral' };

describe('I2 readRequest, fields', () => {
  test('keeps fields of the same meaning, and requests usage for a stream', () => {
    const { body, dropped } = read({
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 4,
      stop_sequences: ['a', ''],
    });
    expect(body).toEqual({
      model: 'm',
      max_tokens: 9,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 4,
      stop: ['a'],
      stream: true,
      stream_options: { include_usage: true },
      messages: [USER],
    });
    expect(dropped).toEqual([]);
  });

  test('drops and reports fields without an equivalent', () => {
    const { body, dropped } = read({
      context_management: {},
      mcp_servers: [],
      container: 'c',
      service_tier: 'auto',
      cache_control,
      betas: null,
    });
    expect(dropped).toEqual([
      'context_management',
      'mcp_servers',
      'container',
      'service_tier',
      'cache_control',
    ]);
    expect(Object.keys(body)).toEqual(['model', 'max_tokens', 'messages']);
  });

  test.each<[JsonObject, JsonObject]>([
    [
      { thinking: { type: 'enabled', budget_tokens: 31_999 } },
      { thinking: { type: 'enabled', budget_tokens: 31_999 } },
    ],
    [{ thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
    [{ thinking: { type: 'adaptive' } }, {}],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } }, { reasoning_effort: 'xhigh' }],
    [{ metadata: { user_id: '{"device":"d"}' } }, { user: expect.stringMatching(/^user_\w{9}$/) }],
    [
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'output', schema: { type: 'object' }, strict: true },
        },
      },
    ],
  ])('%j becomes %j', (fields, expected) => {
    const { model, max_tokens, messages, ...rest } = read(fields).body;
    expect(rest).toEqual(expected);
  });

  test('a thread can’t be translated: the error has the code that the SDK handles', () => {
    expect(translationError({ thread: { type: 'create' } })).toMatchObject({
      status: 400,
      code: 'thread_unsupported_request',
      param: 'thread',
    });
  });

  test.each([[{ messages: [] }], [{ messages: ['x'] }], [{ messages: null }], [{ stream: 'yes' }]])(
    '%j is refused',
    (body) => {
      expect(refused(body)).toMatchObject({ status: 400, code: 'invalid_request' });
    },
  );

  const messagesWith = (role: string, content: unknown) => ({ messages: [USER, { role, content }] });
  const tool = { type: 'tool_use', id: 'toolu_1', name: 'f' };

  test.each<[path: string, body: JsonObject]>([
    ['system', { system: { type: 'text', text: 'A' } }],
    ['tools', { tools: { name: 'f' } }],
    ['tools', { tools: ['f'] }],
    ['tool_choice', { tools: [{ name: 'f' }], tool_choice: 'any' }],
    ['stop_sequences', { stop_sequences: 'stop' }],
    ['thinking', { thinking: 'adaptive' }],
    ['output_config', { output_config: 'high' }],
    ['messages.1.content', messagesWith('user', { type: 'text', text: 'A' })],
    ['messages.1.content', messagesWith('user', ['A'])],
    ['messages.1.content', messagesWith('assistant', 5)],
    ['messages.1.content.0.text', messagesWith('user', [{ type: 'text', text: ['A'] }])],
    ['messages.1.content.0.thinking', messagesWith('assistant', [{ type: 'thinking', thinking: {} }])],
    [
      'messages.1.content.0.content',
      messagesWith('user', [{ type: 'tool_result', tool_use_id: 't', content: { a: 1 } }]),
    ],
  ])('%s of a wrong type can’t be translated: the error names its path', (path, body) => {
    expect(translationError(body)).toMatchObject({ status: 400, code: 'invalid_request', param: path });
    expect(translationError(body)?.message).toContain(`${path} must be `);
  });

  test('absent and null values are valid', () => {
    const content = [{ ...tool, input: null }];
    const nothing = { system: null, tools: null, tool_choice: null, stop_sequences: null, thinking: null };
    const messages = [
      USER,
      { role: 'assistant', content },
      { role: 'user' },
      { role: 'user', content: null },
    ];
    expect(translationError({ ...nothing, messages })).toBeNull();
  });
});

describe('I2 readRequest, system', () => {
  test('keeps blocks apart with their cache marks, and drops Claude Code’s billing header', () => {
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.181' },
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B', cache_control },
    ];
    expect(read({ system }).body.messages).toEqual([
      {
        role: 'system',
        content: [
          { type: 'text', text: 'A' },
          { type: 'text', text: 'B', cache_control },
        ],
      },
      USER,
    ]);
  });

  test('a string stays a string', () => {
    expect(read({ system: 'A' }).body.messages).toEqual([{ role: 'system', content: 'A' }, USER]);
  });
});

describe('I2 readRequest, user messages', () => {
  test('tool results come first, each as a message, then text and images', () => {
    const content = [
      { type: 'text', text: 'and?' },
      { type: 'tool_result', tool_use_id: 'toolu_weir_call_1', content: 'one' },
      {
        type: 'tool_result',
        tool_use_id: 'toolu_2',
        is_error: true,
        content: [{ type: 'text', text: 'two' }, image],
      },
    ];
    expect(messagesOf({ role: 'user', content })).toEqual([
      { role: 'tool', tool_call_id: 'call_1', content: 'one' },
      { role: 'tool', tool_call_id: 'toolu_2', content: [{ type: 'text', text: 'Error: two' }, IMAGE] },
      { role: 'user', content: 'and?' },
    ]);
  });

  const cache_control = { type: 'ephemeral' };

  test.each<[what: string, block: JsonObject, content: unknown]>([
    ['an image alone', { content: [image] }, [IMAGE]],
    [
      'an image between texts, in their order',
      { content: [text('a'), text('b'), image, text(''), text('c')] },
      [text('a\nb'), IMAGE, text('c')],
    ],
    ['an error without a text', { content: [image], is_error: true }, [text('Error:'), IMAGE]],
    [
      'the mark of the result',
      { content: [text('a'), image], cache_control },
      [text('a'), { ...IMAGE, cache_control }],
    ],
    [
      'a mark of its own',
      { content: [{ ...text('a'), cache_control }, text('b'), image], cache_control: { type: 'x' } },
      [{ ...text('a\nb'), cache_control }, IMAGE],
    ],
  ])('the media of a tool result are parts of it: %s', (_, block, content) => {
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', ...block };
    expect(messagesOf({ role: 'user', content: [result] })).toEqual([
      { role: 'tool', tool_call_id: 'toolu_1', content },
    ]);
  });

  test('results in a later message of the same turn directly follow their calls', () => {
    const result = (id: string, content: unknown) => ({ type: 'tool_result', tool_use_id: id, content });
    expect(
      messagesOf(
        { role: 'user', content: [result('toolu_1', [image])] },
        { role: 'user', content: [result('toolu_2', 'two'), { type: 'text', text: 'and?' }] },
        USER,
      ),
    ).toEqual([
      { role: 'tool', tool_call_id: 'toolu_1', content: [IMAGE] },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'two' },
      { role: 'user', content: 'and?' },
      USER,
    ]);
  });

  test('a tool reference, as in Claude Code’s tool search, becomes text', () => {
    const content = [{ type: 'tool_reference', tool_name: 'mcp__tide' }];
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content };
    expect(messagesOf({ role: 'user', content: [result] })).toEqual([
      { role: 'tool', tool_call_id: 'toolu_1', content: 'Found the tool mcp__tide: it can be called now.' },
    ]);
  });

  test('reads the images of a document', () => {
    const source = { type: 'content', content: [{ type: 'text', text: 'T' }, image] };
    expect(messagesOf({ role: 'user', content: [{ type: 'document', source }] })).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'T' }, IMAGE] },
    ]);
  });

  test('reads documents and search results', () => {
    const content = [
      {
        type: 'document',
        title: 'a.pdf',
        source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
      },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'T' }, title: 'N' },
      { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
      { type: 'search_result', title: 'S', source: 'https://s', content: [{ type: 'text', text: 'found' }] },
    ];
    expect(messagesOf({ role: 'user', content })).toEqual([
      {
        role: 'user',
        content: [
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' } },
          { type: 'text', text: 'N\nT' },
          { type: 'image_url', image_url: { url: 'https://x/y.png' } },
          { type: 'text', text: 'S\nhttps://s\nfound' },
        ],
      },
    ]);
  });

  test('drops and reports unknown blocks and files stored at Anthropic', () => {
    const content = [
      { type: 'text', text: 'Hi' },
      { type: 'tool_addition', tool: {} },
      { type: 'image', source: { type: 'file', file_id: 'f' } },
    ];
    const { body, dropped } = read({ messages: [{ role: 'user', content }] });
    expect(body.messages).toEqual([USER]);
    expect(dropped).toEqual(['messages.content.tool_addition', 'messages.content.image']);
  });
});

describe('I2 I7 readRequest, assistant messages', () => {
  test.each<[what: string, input: unknown, args: string]>([
    ['an object', { a: 1 }, '{"a":1}'],
    ['nothing', undefined, '{}'],
    ['truncated arguments as a string, as the AI SDK sends them', '{"a":', '{"a":'],
    ['a list', [1], '[1]'],
  ])('the input of a call, %s, becomes its arguments', (_, input, args) => {
    const content = [{ type: 'tool_use', id: 'toolu_1', name: 'f', input }];
    expect(messagesOf({ role: 'assistant', content })).toMatchObject([
      { tool_calls: [{ function: { name: 'f', arguments: args } }] },
    ]);
  });

  const signed = { type: 'reasoning.text', signature: 's', id: 'weir1:anthropic:0', format: 'f', index: 0 };

  test('decodes thinking that Weir encoded: its text, and the provider’s reasoning state', () => {
    const content = [
      { type: 'thinking', thinking: 'T', signature: encodeReasoningState('anthropic', { detail: signed }) },
      {
        type: 'redacted_thinking',
        data: encodeReasoningState('x', { detail: { type: 'reasoning.encrypted', data: 'd' } }),
      },
      { type: 'text', text: 'A' },
      { type: 'tool_use', id: 'toolu_weir_call_1', name: 'f', input: { a: 1 } },
    ];
    expect(messagesOf({ role: 'assistant', content })).toEqual([
      {
        role: 'assistant',
        content: 'A',
        reasoning_content: 'T',
        reasoning_details: [
          { ...signed, text: 'T' },
          { type: 'reasoning.encrypted', data: 'd', id: 'weir1:x:' },
        ],
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
      },
    ]);
  });

  test('the signature of a call goes back to its call, with its provider', () => {
    const extra_content = { google: { thought_signature: 't' } };
    const content = [
      { type: 'redacted_thinking', data: encodeReasoningState('gemini', { call: 'c', extra_content }) },
      { type: 'tool_use', id: 'toolu_weir_c', name: 'f', input: {} },
    ];
    expect(messagesOf({ role: 'assistant', content })).toMatchObject([
      {
        content: null,
        tool_calls: [{ id: 'c', extra_content: { ...extra_content, weir: { provider: 'gemini' } } }],
      },
    ]);
  });

  test('the tag decides the provider of a reasoning state, not the state’s content', () => {
    const extra_content = { google: { thought_signature: 't' }, weir: { provider: 'openai' } };
    const content = [
      { type: 'redacted_thinking', data: encodeReasoningState('gemini', { call: 'c', extra_content }) },
      { type: 'tool_use', id: 'toolu_weir_c', name: 'f', input: {} },
    ];
    expect(messagesOf({ role: 'assistant', content })).toMatchObject([
      { tool_calls: [{ id: 'c', extra_content: { weir: { provider: 'gemini' } } }] },
    ]);
  });

  test('drops signatures that Weir did not encode, and keeps the text of the thinking', () => {
    const content = [
      { type: 'thinking', thinking: 'T', signature: 'EqQB' },
      { type: 'redacted_thinking', data: 'EmwK' },
      { type: 'text', text: 'A' },
    ];
    const { body, dropped } = read({ messages: [{ role: 'assistant', content }] });
    expect(body.messages).toEqual([{ role: 'assistant', content: 'A', reasoning_content: 'T' }]);
    expect(dropped).toEqual(['messages.content.redacted_thinking']);
  });

  test('keeps the text results of Anthropic’s tools; a compaction becomes a user message', () => {
    const content = [
      { type: 'compaction', content: 'So far: nothing.' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'mcp_tool_result', tool_use_id: 's', content: [{ type: 'text', text: 'R' }] },
      { type: 'text', text: 'A' },
    ];
    const { body, dropped } = read({ messages: [{ role: 'assistant', content }] });
    expect(body.messages).toEqual([
      { role: 'user', content: 'So far: nothing.' },
      { role: 'assistant', content: 'R\nA' },
    ]);
    expect(dropped).toEqual(['messages.content.server_tool_use']);
  });
});

describe('I2 readRequest, tools', () => {
  const tool = { name: 'f', description: 'F', input_schema: { type: 'object' }, cache_control };
  const hosted = { type: 'web_search_20250305', name: 'web_search' };

  test('the client’s tools become functions; hosted tools are dropped', () => {
    const { body, dropped } = read({
      tools: [tool, hosted],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    });
    expect(body.tools).toEqual([
      {
        type: 'function',
        function: { name: 'f', description: 'F', parameters: { type: 'object' } },
        cache_control,
      },
    ]);
    expect(body).toMatchObject({ tool_choice: 'required', parallel_tool_calls: false });
    expect(dropped).toEqual(['tools.web_search_20250305']);
  });

  test('a tool_choice that names a hosted tool can’t be translated', () => {
    const error = translationError({ tools: [hosted], tool_choice: { type: 'tool', name: 'web_search' } });
    expect(error).toMatchObject({ status: 400, code: 'unsupported_parameter', param: 'tool_choice' });
  });

  test.each<[what: string, body: JsonObject]>([
    ['of any tool, with hosted tools only', { tools: [hosted], tool_choice: { type: 'any' } }],
    ['of any tool, without tools', { tool_choice: { type: 'any' } }],
    ['of a missing tool', { tools: [hosted], tool_choice: { type: 'tool', name: 'f' } }],
  ])('Q6 a forced choice %s can’t be translated', (_, body) => {
    const error = translationError(body);
    expect(error).toMatchObject({ status: 400, code: 'unsupported_parameter', param: 'tool_choice' });
  });

  test('drops tool_choice if no tool is left', () => {
    expect(read({ tools: [hosted], tool_choice: { type: 'auto' } }).body).not.toHaveProperty('tool_choice');
  });

  test('translates a named tool', () => {
    expect(read({ tools: [tool], tool_choice: { type: 'tool', name: 'f' } }).body.tool_choice).toEqual({
      type: 'function',
      function: { name: 'f' },
    });
  });
});

test('I2 does not change the given body', () => {
  const body = { model: 'm', messages: [{ role: 'user', content: [image, { type: 'text', text: 'a' }] }] };
  const before = JSON.stringify(body);
  messages.readRequest(body);
  expect(JSON.stringify(body)).toBe(before);
});
