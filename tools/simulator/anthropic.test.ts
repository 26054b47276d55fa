/** Tests what Anthropic's scene rejects, with Anthropic's error texts, and what it streams. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { createSimulator, type Simulator } from './server.ts';
import { paths, QUESTION, sendRequest } from './test-requests.ts';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

const HEADERS = { 'x-api-key': 'sim-test', 'anthropic-version': '2023-06-01' };
const messagesBody = (model: string, more: JsonObject = {}): JsonObject => ({
  model,
  max_tokens: 4096,
  messages: QUESTION,
  ...more,
});
const post = (body: JsonObject, headers: Readonly<Record<string, string>> = HEADERS) =>
  sendRequest(simulator, { path: paths.anthropic, body, headers });

const WEATHER = {
  name: 'weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
};
const ENABLED = { thinking: { type: 'enabled', budget_tokens: 1024 } };
const call = (id: string): JsonObject => ({ type: 'tool_use', id, name: 'weather', input: {} });
const result = (id: string): JsonObject => ({ type: 'tool_result', tool_use_id: id, content: '9 C' });
const turns = (...contents: Json[]): JsonObject => ({
  messages: contents.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content })),
});
const text = (said: string): JsonObject => ({ type: 'text', text: said });

describe('the version 2026-10-21', () => {
  const NEWEST = { 'x-api-key': 'sim-test', 'anthropic-version': '2026-10-21' };
  const cited = (role: string) => ({
    messages: [
      ...QUESTION,
      { role, content: [{ ...text('a'), citations: [{ type: 'char_location' }] }] },
      ...QUESTION,
    ],
  });

  test.each<[what: string, more: JsonObject, message: string]>([
    ['a temperature, even the default', { temperature: 1 }, 'temperature: Extra inputs are not permitted'],
    ['top_p', { top_p: 0.9 }, 'top_p: Extra inputs are not permitted'],
    ['top_k', { top_k: 5 }, 'top_k: Extra inputs are not permitted'],
    [
      'a document of the assistant',
      turns('a', [{ type: 'document' }], 'b'),
      'messages.1.content.0: document',
    ],
    ['citations of the user', cited('user'), 'messages.1.content.0.citations'],
  ])('rejects %s, which the previous version accepts', async (_, more, message) => {
    const refused = await post(messagesBody('claude-haiku-4-5', more), NEWEST);
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining(message)]);
    const before = await post(messagesBody('claude-haiku-4-5', more));
    expect(await before.text()).not.toContain(message);
  });

  test('accepts citations of the assistant, and a credential of either form', async () => {
    expect((await post(messagesBody('claude-haiku-4-5', cited('assistant')), NEWEST)).status).toBe(200);
    const { 'anthropic-version': version } = NEWEST;
    const bearer = { authorization: 'Bearer sim-test', 'anthropic-version': version };
    expect((await post(messagesBody('claude-haiku-4-5'), bearer)).status).toBe(200);
    expect(
      (await post(messagesBody('claude-haiku-4-5'), { ...bearer, authorization: 'Bearer no' })).status,
    ).toBe(401);
  });
});

describe('refused', () => {
  const [OLD, NEW, NEWEST] = ['claude-haiku-4-5', 'claude-sonnet-5', 'claude-opus-5-5'];
  test.each<[model: string, more: JsonObject, message: string]>([
    [OLD, { max_tokens: undefined }, 'max_tokens: Field required'],
    [OLD, { messages: [] }, 'messages: at least one message is required'],
    [OLD, { frequency_penalty: 1 }, 'frequency_penalty: Extra inputs are not permitted'],
    [OLD, { stop_sequences: ['\n'] }, 'each stop sequence must contain non-whitespace'],
    [OLD, { metadata: { user_id: 'u'.repeat(257) } }, 'should have at most 256 characters'],
    [OLD, { metadata: { user_id: 'a@b.c' } }, 'user_id appears to contain an email address'],
    [OLD, turns([text('')]), 'messages: text content blocks must be non-empty'],
    [OLD, turns([text(' ')]), 'messages: text content blocks must contain non-whitespace text'],
    [OLD, { thinking: { type: 'enabled', budget_tokens: 1023 } }, 'greater than or equal to 1024'],
    [OLD, { ...ENABLED, max_tokens: 1024 }, '`max_tokens` must be greater than `thinking.budget_tokens`'],
    [OLD, { thinking: { type: 'adaptive' } }, 'adaptive thinking is not supported on this model'],
    [OLD, { output_config: { effort: 'low' } }, 'does not support the effort parameter'],
    [OLD, { ...ENABLED, temperature: 0.5 }, '`temperature` may only be set to 1 when thinking is enabled'],
    [OLD, { temperature: 0.5, top_p: 0.5 }, '`temperature` and `top_p` cannot both be specified'],
    [OLD, { temperature: 1.5 }, 'temperature: range: 0..1'],
    [OLD, { tool_choice: { type: 'auto' } }, 'may only be specified while providing tools'],
    [OLD, { ...ENABLED, tools: [WEATHER], tool_choice: { type: 'any' } }, 'Thinking may not be enabled'],
    [OLD, { output_config: { format: { schema: { type: 'object' } } } }, "'additionalProperties' must be"],
    [
      OLD,
      { output_config: { format: { schema: { anyOf: [{ type: ['object', 'null'] }] } } } },
      "'additionalProperties' must be",
    ],
    [OLD, { output_config: { format: { schema: { oneOf: [] } } } }, "Schema type 'oneOf' is not supported"],
    [
      OLD,
      { tools: [{ ...WEATHER, strict: true, input_schema: { type: 'object' } }] },
      "tools.0.custom: For 'object' type",
    ],
    [
      OLD,
      {
        tools: Array.from({ length: 21 }, (_, at) => ({
          name: `t${at}`,
          strict: true,
          input_schema: { type: 'object', additionalProperties: false },
        })),
      },
      'Too many strict tools (21)',
    ],
    [OLD, turns('a', [call('x:0')], [result('x:0')]), "String should match pattern '^[a-zA-Z0-9_-]+$'"],
    [
      OLD,
      turns('a', [call('x')], [result('x')], [call('x')], [result('x')]),
      '`tool_use` ids must be unique',
    ],
    [OLD, turns('a', [call('x')], 'b'), '`tool_use` ids were found without `tool_result` blocks'],
    [OLD, turns('a', [call('x')], [text('b'), result('x')]), '`tool_use` ids were found without'],
    [OLD, turns('a', 'b', [result('x')]), 'unexpected `tool_use_id` found in `tool_result` blocks'],
    [
      OLD,
      { ...turns('a', [call('x')], [result('x')]), ...ENABLED },
      'Expected `thinking` or `redacted_thinking`',
    ],
    [
      OLD,
      { ...turns('a', [{ type: 'thinking', thinking: 'b', signature: 'c' }, text('d')], 'e'), ...ENABLED },
      'messages.1.content.0: Invalid `signature` in `thinking` block',
    ],
    [NEW, { temperature: 0.5 }, '`temperature` is deprecated for this model.'],
    [NEW, ENABLED, '"thinking.type.enabled" is not supported for this model.'],
    [NEW, turns('a', 'b'), 'does not support assistant message prefill'],
    [NEWEST, { thinking: { type: 'disabled' } }, '"thinking.type.disabled" is not supported for this model.'],
    [NEWEST, { tools: [WEATHER], tool_choice: { type: 'any' } }, 'type "tool" and "any" are not supported'],
  ])('%s %j', async (model, more, message) => {
    const response = await post(messagesBody(model, more));
    const body = decodeObject(await response.text());
    expect(response.status).toBe(400);
    expect(body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    expect(textOf(objectOf(body?.error).message)).toContain(message);
  });

  test('a wrong key, a missing version and an unknown model', async () => {
    expect((await post(messagesBody(OLD), { ...HEADERS, 'x-api-key': 'other' })).status).toBe(401);
    expect((await post(messagesBody(OLD), { 'x-api-key': 'sim-test' })).status).toBe(401);
    expect((await post(messagesBody('claude-1'))).status).toBe(404);
  });
});

describe('played', () => {
  async function events(body: JsonObject): Promise<JsonObject[]> {
    const received = await (await post({ ...body, stream: true })).text();
    return [...received.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].map(([, name, data = '']) => {
      const event = decodeObject(data) ?? {};
      expect(event.type).toBe(name);
      return event;
    });
  }

  test('sends events in order, a ping, blanks before braces, and totals at the end', async () => {
    const played = await events(messagesBody('claude-haiku-4-5'));
    const types = played.map(({ type }) => type);
    expect([types[0], types[2], types.at(-2), types.at(-1)]).toEqual([
      'message_start',
      'ping',
      'message_delta',
      'message_stop',
    ]);
    expect(await (await post(messagesBody('claude-haiku-4-5', { stream: true }))).text()).toMatch(
      / {3,}\}\n\n/,
    );
    expect(played.at(-2)).toMatchObject({ usage: { input_tokens: 5, output_tokens: 9 } });
  });

  test.each([
    ['claude-haiku-4-5', {}, ['text']],
    ['claude-haiku-4-5', ENABLED, ['thinking', 'text']],
    ['claude-sonnet-5', {}, ['thinking', 'text']],
    ['claude-sonnet-5', { thinking: { type: 'disabled' } }, ['text']],
    ['claude-opus-5-5', {}, ['thinking', 'redacted_thinking', 'text']],
  ])('%s %j: blocks %j', async (model, more, blocks) => {
    const whole = decodeObject(await (await post(messagesBody(model, more))).text());
    expect(objectsOf(whole?.content).map(({ type }) => type)).toEqual(blocks);
    const started = (await events(messagesBody(model, more))).filter(
      ({ type }) => type === 'content_block_start',
    );
    expect(started.map((event) => objectOf(event.content_block).type)).toEqual(blocks);
  });

  test('hidden thinking is a signature without text; its text is sent if display requests it', async () => {
    const hidden = decodeObject(await (await post(messagesBody('claude-sonnet-5'))).text());
    expect(objectsOf(hidden?.content)[0]).toMatchObject({
      thinking: '',
      signature: expect.stringMatching(/./),
    });
    const thinking = { type: 'adaptive', display: 'summarized' };
    const shown = decodeObject(await (await post(messagesBody('claude-sonnet-5', { thinking }))).text());
    expect(objectsOf(shown?.content)[0]).toMatchObject({ thinking: 'Gates first, then the gauge.' });
  });
});

test('claude-opus-5-5 takes its thinking back after a turn that is sent as a text first and as a block later', async () => {
  const model = 'claude-opus-5-5';
  const response = await post(messagesBody(model, { messages: [{ role: 'user', content: [text('Hi')] }] }));
  const { content = [] } = decodeObject(await response.text()) ?? {};
  expect(objectsOf(content)[0]?.type).toBe('thinking');
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content },
    { role: 'user', content: 'Go on' },
  ];
  expect((await post(messagesBody(model, { messages }))).status).toBe(200);
});
