/** Tests chat conversations in Anthropic's form: nothing that it refuses is sent, and signed thinking goes back (A2, A7). */
import { describe, expect, test } from 'vitest';
import { toolCallId } from '../../../../src/canonical/tool-call-id.ts';
import type { JsonObject } from '../../../../src/shared/json.ts';
import { call, rewrite, send, TOOL } from '../../../request-translation/send.ts';

const MODEL = 'claude-sonnet-4-5';
const USER = { role: 'user', content: 'Hello' };
const textBlock = (text: string) => ({ type: 'text', text });
const turns = (messages: readonly JsonObject[], more: JsonObject = {}) => {
  const { system, messages: sent } = send('anthropic', { model: MODEL, messages, ...more });
  return { system, messages: sent };
};
const sentMessages = (messages: readonly JsonObject[], more: JsonObject = {}) =>
  turns(messages, more).messages;
const reported = (messages: readonly JsonObject[], unsupported: 'auto' | 'drop' | 'refuse' = 'auto') =>
  rewrite('anthropic', { model: MODEL, messages }, unsupported);

describe('system', () => {
  test('A2 leading system and developer messages become separate blocks with their cache marks', () => {
    const cache_control = { type: 'ephemeral' };
    const messages = [
      { role: 'system', content: 'one' },
      { role: 'developer', content: [textBlock('two'), { ...textBlock('three'), cache_control }] },
      USER,
    ];
    expect(turns(messages)).toEqual({
      system: [textBlock('one'), textBlock('two'), { ...textBlock('three'), cache_control }],
      messages: [{ role: 'user', content: [textBlock('Hello')] }],
    });
  });

  test('A2 a later one is a system turn if the family supports it, otherwise user text', () => {
    const messages = [USER, { role: 'system', content: 'Be brief' }];
    const own = [
      { role: 'user', content: [textBlock('Hello')] },
      { role: 'system', content: [textBlock('Be brief')] },
    ];
    const joined = [{ role: 'user', content: [textBlock('Hello'), textBlock('Be brief')] }];
    expect(sentMessages(messages, { model: 'claude-opus-4-8' })).toEqual(own);
    expect(sentMessages(messages, { model: 'claude-opus-4-7' })).toEqual(joined);
    // Anthropic refuses it before another user turn and after an assistant turn.
    expect(sentMessages([...messages, USER], { model: 'claude-opus-5' })).toHaveLength(1);
  });

  test('A2 two in a row are one turn; one before an empty assistant turn is user text', () => {
    const model = 'claude-opus-5';
    const [first, second] = ['Be brief', 'Be kind'].map((content) => ({ role: 'developer', content }));
    const assistant = { role: 'assistant', content: 'Hi' };
    expect(sentMessages([USER, first ?? {}, second ?? {}, assistant, USER], { model })).toMatchObject([
      { role: 'user', content: [textBlock('Hello')] },
      { role: 'system', content: [textBlock('Be brief'), textBlock('Be kind')] },
      { role: 'assistant' },
      { role: 'user' },
    ]);
    const emptyAnswer = { role: 'assistant', content: '' };
    expect(sentMessages([USER, first ?? {}, emptyAnswer, USER], { model })).toEqual([
      { role: 'user', content: [textBlock('Hello'), textBlock('Be brief'), textBlock('Hello')] },
    ]);
  });

  test('A2 one between tool results becomes text after all of them', () => {
    const messages = [
      USER,
      { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
      { role: 'system', content: 'Be brief' },
      { role: 'tool', tool_call_id: 'b', content: 'B' },
    ];
    expect(sentMessages(messages, { model: 'claude-opus-5' })).toMatchObject([
      {},
      {},
      { role: 'user', content: [{ tool_use_id: 'a' }, { tool_use_id: 'b' }, textBlock('Be brief')] },
    ]);
  });
});

describe('content', () => {
  test('A2 data URLs of images and documents become sources, other URLs stay URLs', () => {
    const png = 'iVBORw0KGgo=';
    const content = [
      { type: 'image_url', image_url: { url: `data:image/jpg;base64,${png}`, detail: 'high' } },
      { type: 'image_url', image_url: 'https://example.com/a.png' },
      { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${png}` } },
      { type: 'file', file: { file_data: `data:text/plain;charset=utf-8;base64,${btoa('h\u00c3\u00a9')}` } },
      { type: 'file', file: { file_data: `data:image/png;base64,${png}` } },
      { type: 'document_url', document_url: 'https://example.com/a.pdf', document_name: 'A' },
      textBlock('What is this?'),
    ];
    const url = (type: string, at: string) => ({ type, source: { type: 'url', url: at } });
    const base64 = (type: string, media_type: string) => ({
      type,
      source: { type: 'base64', media_type, data: png },
    });
    expect(sentMessages([{ role: 'user', content }])).toEqual([
      {
        role: 'user',
        content: [
          base64('image', 'image/jpeg'),
          url('image', 'https://example.com/a.png'),
          { ...base64('document', 'application/pdf'), title: 'a.pdf' },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hé' } },
          base64('image', 'image/png'),
          { ...url('document', 'https://example.com/a.pdf'), title: 'A' },
          textBlock('What is this?'),
        ],
      },
    ]);
  });

  test.each([
    [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }, 'messages.content.input_audio'],
    [{ type: 'file', file: { file_id: 'file-1' } }, 'messages.content.file.file_id'],
  ])('Q6 Q8 the unsupported part %j is a 400, or dropped if the caller allows it', (part, param) => {
    const messages = [{ role: 'user', content: [part, textBlock('Hello')] }];
    expect(reported(messages)).toMatchObject({
      kind: 'error',
      error: { status: 400, code: 'unsupported_parameter', param },
    });
    expect(reported(messages, 'drop')).toMatchObject({ kind: 'body', dropped: [param] });
  });

  test('Q7 Anthropic’s own blocks are sent unchanged', () => {
    const block = {
      type: 'search_result',
      source: 'https://example.com',
      title: 't',
      content: [textBlock('x')],
    };
    expect(sentMessages([{ role: 'user', content: [block] }])).toEqual([{ role: 'user', content: [block] }]);
  });

  test('A2 drops blank texts, and messages that have only those (claude-code#59812, #23369)', () => {
    const messages = [
      { role: 'system', content: '' },
      { role: 'user', content: [textBlock(''), textBlock('Hello')] },
      { role: 'assistant', content: ' \n' },
      { role: 'assistant', content: '', tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: '' },
    ];
    expect(turns(messages)).toEqual({
      system: undefined,
      messages: [
        { role: 'user', content: [textBlock('Hello')] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] },
      ],
    });
  });

  test('Q5 drops and reports a name, and drops keys of responses without a report', () => {
    const messages = [
      { ...USER, name: 'Ann' },
      {
        role: 'assistant',
        content: 'Hi ',
        refusal: null,
        annotations: [],
        reasoning_content: 'why',
        audio: null,
      },
    ];
    expect(reported(messages)).toMatchObject({
      dropped: ['messages.name'],
      // 400 "final assistant content cannot end with trailing whitespace".
      body: { messages: [{ role: 'user' }, { role: 'assistant', content: [textBlock('Hi')] }] },
    });
  });

  test('Q5 drops and reports OpenAI’s cache mark', () => {
    const content = [{ ...textBlock('Hello'), prompt_cache_breakpoint: { mode: 'explicit' } }];
    expect(reported([{ role: 'user', content }])).toMatchObject({
      dropped: ['messages.content.prompt_cache_breakpoint'],
      body: { messages: [{ role: 'user', content: [textBlock('Hello')] }] },
    });
  });

  test('A2 a refusal is sent as text', () => {
    const messages = [USER, { role: 'assistant', content: null, refusal: 'No.' }, USER];
    expect(sentMessages(messages)).toMatchObject([
      {},
      { role: 'assistant', content: [textBlock('No.')] },
      {},
    ]);
  });
});

describe('tool calls and their results', () => {
  const result = (tool_use_id: string, content: unknown) => ({ type: 'tool_result', tool_use_id, content });

  test('A2 consecutive results are one turn, before any text after or between them (codex#7051)', () => {
    const messages = [
      USER,
      { role: 'assistant', content: 'Calling', tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
      { role: 'user', content: 'Also' },
      {
        role: 'tool',
        tool_call_id: 'b',
        content: [textBlock('B'), { type: 'image_url', image_url: { url: 'https://x/y.png' } }],
      },
      { role: 'user', content: 'this' },
    ];
    expect(sentMessages(messages)).toEqual([
      { role: 'user', content: [textBlock('Hello')] },
      {
        role: 'assistant',
        content: [
          textBlock('Calling'),
          { type: 'tool_use', id: 'a', name: 'f', input: {} },
          { type: 'tool_use', id: 'b', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          result('a', 'A'),
          result('b', [textBlock('B'), { type: 'image', source: { type: 'url', url: 'https://x/y.png' } }]),
          textBlock('Also'),
          textBlock('this'),
        ],
      },
    ]);
  });

  test('Q3 invalid and duplicate ids are replaced, equally in the call and its result (bifrost#5097)', () => {
    const id = 'functions.Bash:0';
    const step = [
      { role: 'assistant', content: null, tool_calls: [call(id)] },
      { role: 'tool', tool_call_id: id, content: 'x' },
    ];
    const sent = JSON.stringify(sentMessages([USER, ...step, ...step]));
    const ids = [...sent.matchAll(/"(?:tool_use_id|id)":"([^"]*)"/g)].map(([, found]) => found);
    expect(ids[0]).toBe(toolCallId(id));
    expect(ids).toEqual([ids[0], ids[0], ids[2], ids[2]]);
    expect(ids[2]).not.toBe(ids[0]);
    expect(ids.every((one) => /^[a-zA-Z0-9_-]+$/.test(one ?? ''))).toBe(true);
  });

  test.each([
    ['{"a":1}', { a: 1 }],
    ['', {}],
    ['{"a":12345678901234567890}', '{"a":12345678901234567890}'],
    ['{"path": "/tm', { arguments: '{"path": "/tm' }],
    ['[1]', { arguments: '[1]' }],
  ])('A2 Q11 arguments %s become an object', (args, input) => {
    const calling = call('a', { function: { name: 'f', arguments: args } });
    const [, turn] = JSON.parse(
      JSON.stringify(sentMessages([USER, { role: 'assistant', tool_calls: [calling] }])),
    );
    if (typeof input !== 'string') expect(turn.content[0].input).toEqual(input);
    else
      expect(JSON.stringify(sentMessages([USER, { role: 'assistant', tool_calls: [calling] }]))).toContain(
        input,
      );
  });

  test('Q1 legacy functions become tools, calls and results', () => {
    const sent = send('anthropic', {
      model: MODEL,
      functions: [{ name: 'f', parameters: { type: 'object' } }],
      function_call: { name: 'f' },
      messages: [
        USER,
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'x' },
      ],
    });
    expect(sent).toMatchObject({
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'tool', name: 'f' },
      messages: [
        {},
        { content: [{ type: 'tool_use', name: 'f' }] },
        { content: [{ type: 'tool_result', content: 'x' }] },
      ],
    });
  });
});

describe('thinking of earlier turns', () => {
  const tag = (index: number) => ({ id: `weir1:anthropic:${index}`, format: 'anthropic-claude-v1', index });
  const calling = { role: 'assistant', content: 'Hm', tool_calls: [call('a')] };
  const rest = [textBlock('Hm'), { type: 'tool_use', id: 'a', name: 'f', input: {} }];
  const blocksOf = (message: JsonObject) => {
    const [, turn] = JSON.parse(JSON.stringify(sentMessages([USER, { ...calling, ...message }])));
    return turn.content;
  };

  test('A7 joined or in fragments, with and without text, or redacted: the blocks come first and in order', () => {
    const thinking = { type: 'thinking', thinking: 'one two', signature: 's0' };
    const blocks = [
      thinking,
      { type: 'redacted_thinking', data: 'd1' },
      { type: 'thinking', thinking: '', signature: 's2' },
    ];
    const complete = [
      { type: 'reasoning.text', text: 'one two', signature: 's0', ...tag(0) },
      { type: 'reasoning.encrypted', data: 'd1', ...tag(1) },
      { type: 'reasoning.text', signature: 's2', ...tag(2) },
    ];
    const pieces = [
      { type: 'reasoning.text', text: 'one', index: 0 },
      { type: 'reasoning.text', text: ' two', index: 0 },
      { type: 'reasoning.text', signature: 's0', ...tag(0) },
      ...complete.slice(1),
    ];
    for (const reasoning_details of [complete, pieces]) {
      expect(blocksOf({ reasoning_details, reasoning_content: 'one two' })).toEqual([...blocks, ...rest]);
    }
    expect(blocksOf({ thinking_blocks: blocks })).toEqual([...blocks, ...rest]);
    expect(blocksOf({ content: [...blocks, textBlock('Hm')] })).toEqual([...blocks, ...rest]);
  });

  test.each<[string, JsonObject[]]>([
    [
      'another provider',
      [{ type: 'reasoning.text', text: 'x', signature: 's', id: 'weir1:other:0', index: 0 }],
    ],
    ['another form', [{ type: 'reasoning.encrypted', data: 'x', format: 'google-gemini-v1', index: 0 }]],
    ['an unsigned thought', [{ type: 'reasoning.text', text: 'x', format: 'anthropic-claude-v1', index: 0 }]],
    ['OpenAI', [{ type: 'reasoning.summary', summary: 'x', format: 'openai-responses-v1', index: 0 }]],
  ])('A7 does not send reasoning of %s', (_, reasoning_details) => {
    expect(blocksOf({ reasoning_details, reasoning_content: 'x' })).toEqual(rest);
  });

  test('A7 sends no thinking if a client lost the text of a signature (openai-node’s stream helper)', () => {
    const lost = { type: 'reasoning.text', signature: 's0', ...tag(0), id: 'weir1:anthropic:0-text' };
    expect(blocksOf({ reasoning_details: [lost], reasoning_content: ' two' })).toEqual(rest);
    expect(blocksOf({ reasoning_details: [lost] })).toEqual(rest);
    const redacted = { type: 'reasoning.encrypted', data: 'd1', ...tag(1) };
    expect(blocksOf({ reasoning_details: [lost, redacted] })).toEqual(rest);
    const complete = { ...lost, text: 'one two' };
    const block = { type: 'thinking', thinking: 'one two', signature: 's0' };
    expect(blocksOf({ reasoning_details: [complete] })).toEqual([block, ...rest]);
  });

  test('A7 a signature with an id of the earlier form counts as lost only if its message has other reasoning', () => {
    const bare = { type: 'reasoning.text', signature: 's0', ...tag(0) };
    const block = { type: 'thinking', thinking: '', signature: 's0' };
    expect(blocksOf({ reasoning_details: [bare] })).toEqual([block, ...rest]);
    expect(blocksOf({ reasoning_details: [bare], reasoning_content: ' two' })).toEqual(rest);
  });

  const step = [USER, calling, { role: 'tool', tool_call_id: 'a', content: 'x' }];
  const signed = { ...calling, thinking_blocks: [{ type: 'thinking', thinking: 'x', signature: 's' }] };

  test('A7 turns thinking with a budget off, and reports it, in a tool loop whose last step has none', () => {
    const runner = { model: MODEL, reasoning_effort: 'low' };
    const lost = rewrite('anthropic', { ...runner, messages: step });
    expect(lost).toMatchObject({ kind: 'body', changed: ['thinking'] });
    expect(lost.kind === 'body' && lost.body).not.toHaveProperty('thinking');
    // Not for a step with thinking, an earlier step, or adaptive thinking.
    for (const messages of [
      step.map((message) => (message === calling ? signed : message)),
      [...step, { role: 'assistant', content: 'Done' }, USER],
    ]) {
      expect(rewrite('anthropic', { ...runner, messages })).toMatchObject({
        body: { thinking: {} },
        changed: [],
      });
    }
    expect(rewrite('anthropic', { ...runner, model: 'claude-opus-5', messages: step })).toMatchObject({
      body: { thinking: { type: 'adaptive' } },
      changed: [],
    });
  });
});

describe('tools', () => {
  const withTools = (more: JsonObject) =>
    send('anthropic', { model: MODEL, messages: [USER], tools: [TOOL], ...more });

  test('A2 a function always has an object schema; cache marks and descriptions are kept', () => {
    const cache_control = { type: 'ephemeral' };
    const tools = [
      { type: 'function', function: { name: 'f' } },
      {
        type: 'function',
        function: { name: 'g', description: 'G', parameters: { properties: { a: {} } } },
        cache_control,
      },
      { type: 'web_search_20250305', name: 'web_search' },
    ];
    expect(withTools({ tools }).tools).toEqual([
      { name: 'f', input_schema: { type: 'object', properties: {} } },
      { name: 'g', description: 'G', input_schema: { type: 'object', properties: { a: {} } }, cache_control },
      { type: 'web_search_20250305', name: 'web_search' },
    ]);
  });

  test('A2 a strict function is closed and strict if the family supports it, otherwise strict is dropped and reported', () => {
    const parameters = {
      type: 'object',
      properties: { a: { type: 'integer', minimum: 1 } },
      required: ['a'],
    };
    const tools = [{ type: 'function', function: { name: 'f', strict: true, parameters } }];
    expect(rewrite('anthropic', { model: MODEL, messages: [USER], tools })).toMatchObject({
      body: {
        tools: [
          {
            strict: true,
            input_schema: {
              additionalProperties: false,
              properties: { a: { type: 'integer', description: '{minimum: 1}' } },
            },
          },
        ],
      },
      changed: ['tools.function.parameters'],
    });
    const old = rewrite('anthropic', { model: 'claude-3-7-sonnet-20250219', messages: [USER], tools });
    expect(old).toMatchObject({ dropped: ['tools.function.strict'] });
    expect(JSON.stringify(old)).not.toContain('"strict":true');
  });

  const f = { type: 'function', function: { name: 'f' } };
  test.each<[JsonObject, unknown]>([
    [{}, undefined],
    [{ tool_choice: 'auto' }, { type: 'auto' }],
    [{ tool_choice: 'none' }, { type: 'none' }],
    [{ tool_choice: 'required' }, { type: 'any' }],
    [{ tool_choice: f }, { type: 'tool', name: 'f' }],
    [{ tool_choice: { type: 'any' } }, { type: 'any' }],
    [{ parallel_tool_calls: true }, undefined],
    [{ parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [
      { parallel_tool_calls: false, tool_choice: f },
      { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    ],
    [{ parallel_tool_calls: false, tool_choice: 'none' }, { type: 'none' }],
    [
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [f] } } },
      { type: 'any' },
    ],
    [{ tools: [], tool_choice: 'auto', parallel_tool_calls: false }, undefined],
  ])('A2 %j', (more, choice) => {
    const body = withTools(more);
    expect(body.tool_choice).toEqual(choice);
    expect(body).not.toHaveProperty('parallel_tool_calls');
  });
});
