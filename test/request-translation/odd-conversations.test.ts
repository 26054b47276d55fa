/**
 * Tests unusual conversations that OpenAI accepts, as other clients and gateways produce them, at Anthropic and Gemini
 * (A2, Q1, Q3, Q6).
 */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/shared/json.ts';
import { send } from './send.ts';

const MODELS = { anthropic: 'claude-opus-5', gemini: 'gemini-3.5-flash' } as const;
const sent = (provider: keyof typeof MODELS, messages: readonly JsonObject[], more: JsonObject = {}) =>
  send(provider, { model: MODELS[provider], messages, ...more });

const USER = { role: 'user', content: 'Hi' };
const calling = (...tool_calls: JsonObject[]) => ({ role: 'assistant', content: null, tool_calls });
const call = (id: string | undefined, name: string, args = '{}') => ({
  ...(id === undefined ? {} : { id }),
  type: 'function',
  function: { name, arguments: args },
});
const result = (tool_call_id: string | undefined, content: string) => ({
  role: 'tool',
  content,
  ...(tool_call_id === undefined ? {} : { tool_call_id }),
});

describe('only system messages, which OpenAI accepts', () => {
  const messages = [
    { role: 'system', content: 'Be brief' },
    { role: 'developer', content: 'Say hello' },
    { role: 'system', content: '' },
  ];

  test('A2 at Anthropic, which requires a message (langchain#30764): the last becomes the user’s', () => {
    expect(sent('anthropic', messages)).toMatchObject({
      system: [{ type: 'text', text: 'Be brief' }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Say hello' }] }],
    });
    expect(sent('anthropic', messages.slice(0, 1))).not.toHaveProperty('system');
  });

  test('A2 at Gemini, which requires contents (chatgpt-plugin#733): the last becomes the user’s', () => {
    expect(sent('gemini', messages)).toMatchObject({
      systemInstruction: { parts: [{ text: 'Be brief' }] },
      contents: [{ role: 'user', parts: [{ text: 'Say hello' }] }],
    });
    expect(sent('gemini', messages.slice(0, 1))).not.toHaveProperty('systemInstruction');
  });
});

describe('tool results', () => {
  const between = [
    USER,
    calling(call('a', 'f'), call('b', 'g')),
    { role: 'developer', content: 'Hurry' },
    result('b', 'B'),
    { role: 'user', content: 'And?' },
    result('a', 'A'),
  ];

  test('A2 with other messages between them, at Gemini: first in the turn, in the order of the calls', () => {
    const { contents } = sent('gemini', between);
    expect(contents).toMatchObject([
      {},
      {},
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'a', name: 'f', response: { output: 'A' } } },
          { functionResponse: { id: 'b', name: 'g', response: { output: 'B' } } },
          { text: 'Hurry' },
          { text: 'And?' },
        ],
      },
    ]);
  });

  test('A2 of calls in two messages, at Gemini: in the order of all calls', () => {
    const messages = [
      USER,
      calling(call('a', 'f')),
      calling(call('b', 'g')),
      result('a', 'A'),
      result('b', 'B'),
    ];
    expect(sent('gemini', messages).contents).toMatchObject([
      {},
      {},
      { parts: [{ functionResponse: { name: 'f' } }, { functionResponse: { name: 'g' } }] },
    ]);
  });

  test.each([
    ['the same id', 'call_0'],
    ['an empty id', ''],
    ['no id', undefined],
  ])('Q3 of parallel calls with %s: each belongs to its own call', (_, id) => {
    const messages = [USER, calling(call(id, 'f'), call(id, 'g')), result(id, 'F'), result(id, 'G')];
    const claude = JSON.stringify(sent('anthropic', messages).messages);
    const ids = [...claude.matchAll(/"(?:tool_use_id|id)":"([^"]*)"/g)].map(([, found]) => found);
    expect(ids).toEqual([ids[0], ids[1], ids[0], ids[1]]);
    expect(ids[0]).not.toBe(ids[1]);
    expect(claude.indexOf('"F"')).toBeLessThan(claude.indexOf('"G"'));
    expect(sent('gemini', messages).contents).toMatchObject([
      {},
      {},
      {
        parts: [
          { functionResponse: { name: 'f', response: { output: 'F' } } },
          { functionResponse: { name: 'g', response: { output: 'G' } } },
        ],
      },
    ]);
  });

  test('Q3 of a later step with an id of an earlier call without a result: belongs to the later call', () => {
    const messages = [USER, calling(call('a', 'f')), USER, calling(call('a', 'g')), result('a', 'G')];
    const claude = JSON.stringify(sent('anthropic', messages).messages);
    const ids = [...claude.matchAll(/"(?:tool_use_id|id)":"([^"]*)"/g)].map(([, found]) => found);
    expect(ids[2]).toBe(ids[1]);
    expect(JSON.stringify(sent('gemini', messages).contents)).toMatch(
      /"functionCall":\{"id":"(\w+)","name":"g".*"functionResponse":\{"id":"\1","name":"g"/,
    );
  });
});

test('A2 a history that begins with a tool call, which Gemini refuses (gemini-cli#11814): an empty turn is added before it', () => {
  const messages = [calling(call('a', 'f')), result('a', 'A')];
  expect(sent('gemini', messages).contents).toMatchObject([
    { role: 'user', parts: [{ text: ' ' }] },
    { role: 'model', parts: [{ functionCall: { name: 'f' } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'f' } }] },
  ]);
  // A greeting is accepted.
  const greeted = [{ role: 'assistant', content: 'Hello!' }, USER];
  expect(sent('gemini', greeted).contents).toMatchObject([{ role: 'model' }, { role: 'user' }]);
});

describe('what clients send in another form than OpenAI takes reaches native providers', () => {
  const messages = [
    { content: ['Hi', { type: 'text', text: 'there' }] },
    calling({ id: 'a', type: 'function', function: { name: 'f', arguments: { n: 1 } } }),
    { role: 'tool', tool_call_id: 'a', content: { ok: true } },
  ];

  test('A2 at Anthropic: texts in a list, a missing role, arguments and a result that are values', () => {
    expect(sent('anthropic', messages).messages).toMatchObject([
      { role: 'user', content: [{ text: 'Hi' }, { text: 'there' }] },
      { role: 'assistant', content: [{ type: 'tool_use', input: { n: 1 } }] },
      { role: 'user', content: [{ type: 'tool_result', content: '{"ok":true}' }] },
    ]);
  });

  test('A2 at Gemini: the same', () => {
    expect(sent('gemini', messages).contents).toMatchObject([
      { role: 'user', parts: [{ text: 'Hi' }, { text: 'there' }] },
      { role: 'model', parts: [{ functionCall: { args: { n: 1 } } }] },
      { role: 'user', parts: [{ functionResponse: { response: { ok: true } } }] },
    ]);
  });
});

test('A2 arguments that are null: an empty object', () => {
  const messages = [USER, calling(call('a', 'f', 'null')), result('a', 'A')];
  expect(JSON.stringify(sent('anthropic', messages))).toContain('"name":"f","input":{}');
  expect(JSON.stringify(sent('gemini', messages))).toContain('"name":"f","args":{}');
});

test('A2 a result with a $ref at Gemini, which reads it as a file name (vercel/ai#14369): sent as text', () => {
  const schema = '{"a":{"$ref":"#/$defs/b"}}';
  const messages = [USER, calling(call('a', 'f')), result('a', schema)];
  expect(sent('gemini', messages).contents).toMatchObject([
    {},
    {},
    { parts: [{ functionResponse: { response: { output: schema } } }] },
  ]);
});

test('Q1 a tool name that begins with a digit or a dash, at Gemini (magic-mcp#34): it begins with a letter everywhere', () => {
  const name = '21st_search';
  const tool = { type: 'function', function: { name } };
  const body = sent('gemini', [USER, calling(call('a', name)), result('a', 'A')], {
    tools: [
      tool,
      { type: 'function', function: { name: '-f' } },
      { type: 'function', function: { name: 'f1' } },
    ],
    tool_choice: tool,
  });
  const names = [...JSON.stringify(body).matchAll(/"name":"([^"]*)"/g)].map(([, found]) => found);
  const [short] = names;
  expect(short).toMatch(/^tool_21st_search_\w{9}$/);
  expect(names).toEqual([short, short, short, expect.stringMatching(/^tool_-f_\w{9}$/), 'f1']);
  expect(body.toolConfig).toEqual({
    functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [short] },
  });
});

test('A2 a call of a custom tool: Gemini gets its name and its input', () => {
  const custom = { id: 'a', type: 'custom', custom: { name: 'patch', input: '*** Begin' } };
  expect(JSON.stringify(sent('gemini', [USER, calling(custom), result('a', 'A')]))).toContain(
    '"name":"patch","args":{"arguments":"*** Begin"}',
  );
});

test('A2 data that is not base64, and image/jpg, at Gemini: encoded as base64, with the known type', () => {
  const content = [
    { type: 'file', file: { file_data: 'data:text/plain,A%20w%C3%A9ir', filename: 'a.txt' } },
    { type: 'image_url', image_url: { url: 'data:image/jpg;base64,iVBO' } },
    { type: 'file', file: { file_data: 'data:application/pdf;name=a.pdf;base64,JVBE' } },
  ];
  expect(sent('gemini', [{ role: 'user', content }]).contents).toEqual([
    {
      role: 'user',
      parts: [
        { inlineData: { mimeType: 'text/plain', data: 'QSB3w6lpcg==' } },
        { inlineData: { mimeType: 'image/jpeg', data: 'iVBO' } },
        { inlineData: { mimeType: 'application/pdf', data: 'JVBE' } },
      ],
    },
  ]);
});

test.each([0, -1, 1.5, '100'])('Q6 an invalid limit, %j: sent, so that the provider refuses it', (limit) => {
  expect(sent('anthropic', [USER], { max_completion_tokens: limit }).max_tokens).toBe(limit);
  expect(sent('gemini', [USER], { max_completion_tokens: limit }).generationConfig).toMatchObject({
    maxOutputTokens: limit,
  });
});
