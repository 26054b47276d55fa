/** Tests Gemini's own API behind the gateway: recorded streams, errors, the model list and usage records (A1-A5). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { startGateway } from './gateway.ts';

const gateway = await startGateway();
afterAll(() => gateway[Symbol.asyncDispose]());

const MODEL = 'gemini/gemini-3-flash-preview';
const CHAT = '/v1/chat/completions';

function body(content: string, more: Readonly<Record<string, unknown>> = {}) {
  return { model: MODEL, messages: [{ role: 'user', content }], ...more };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly reasoning: string;
  readonly finish: string;
  readonly usage: ReturnType<typeof objectOf>;
  readonly error: ReturnType<typeof objectOf>;
  readonly record: Awaited<ReturnType<typeof gateway.record>>;
}

async function complete(content: string, isStreamed: boolean, more = {}): Promise<Answer> {
  const usage = isStreamed ? { stream: true, stream_options: { include_usage: true } } : {};
  const response = await gateway.post(CHAT, body(content, { ...usage, ...more }));
  const text = await response.text();
  const frames = text.includes('data: ')
    ? text
        .split('\n\n')
        .flatMap((frame) => (/^data: \{/.test(frame) ? [objectOf(JSON.parse(frame.slice(6)))] : []))
    : [objectOf(JSON.parse(text))];
  const choices = frames.flatMap((frame) => objectsOf(frame.choices));
  const messages = choices.map((choice) => objectOf(choice.delta ?? choice.message));
  return {
    status: response.status,
    text: messages.map((message) => textOf(message.content)).join(''),
    reasoning: messages.map((message) => textOf(message.reasoning_content)).join(''),
    finish: choices.map((choice) => textOf(choice.finish_reason)).join(''),
    usage: objectOf(frames.findLast((frame) => frame.usage !== undefined)?.usage),
    error: objectOf(frames.find((frame) => frame.error !== undefined)?.error),
    record: await gateway.record(response),
  };
}

describe.each([true, false])('streamed: %s', (isStreamed) => {
  test('A1 A5 thoughts, text, finish and usage, also in the record', async () => {
    const answer = await complete('What does a weir do?', isStreamed);
    expect(answer).toMatchObject({
      status: 200,
      text: ' The gate opens; the café’s basin follows, slowly.'.trimStart(),
      reasoning: 'Water first, then gates, then words.',
      finish: 'stop',
      usage: {
        prompt_tokens: 5,
        completion_tokens: 14,
        total_tokens: 19,
        completion_tokens_details: { reasoning_tokens: 6 },
      },
      record: {
        provider: 'gemini',
        model: 'gemini-3-flash-preview',
        status: 'finished',
        finish_reason: 'STOP',
        prompt_tokens: 5,
        completion_tokens: 14,
        reasoning_tokens: 6,
        estimated: false,
      },
    });
    // The shipped table knows the model's price.
    expect(answer.record.cost_nanos).toBeGreaterThan(0);
  });

  test('A4 the output limit gives length, and the record keeps the word', async () => {
    const answer = await complete('What does a weir do?', isStreamed, { max_tokens: 9 });
    expect(answer).toMatchObject({ finish: 'length', record: { finish_reason: 'MAX_TOKENS' } });
  });
});

describe('streams like the recorded ones', () => {
  test.each([
    ['two-finishes', { text: 'First. Then more.', finish: 'stop' }, { status: 'finished' }],
    [
      'usage-shrinks',
      { text: 'Less it is.', finish: 'stop', usage: { prompt_tokens: 1 } },
      { prompt_tokens: 1 },
    ],
    ['content-without-parts', { text: 'Nothing lost.', finish: 'stop' }, { status: 'finished' }],
    [
      'prompt-blocked',
      { text: '', finish: 'content_filter', usage: { prompt_tokens: 1, completion_tokens: 0 } },
      { finish_reason: 'PROHIBITED_CONTENT', estimated: false },
    ],
    ['safety', { text: 'No', finish: 'content_filter' }, { finish_reason: 'SAFETY' }],
    [
      'bare-error',
      {
        text: 'Half an',
        finish: '',
        error: { message: 'Gemini: The model is overloaded. Please try again later.' },
      },
      { status: 'failed' },
    ],
    [
      'malformed',
      { text: '', finish: '', error: { code: 'MALFORMED_FUNCTION_CALL' } },
      { status: 'failed', prompt_tokens: 1, completion_tokens: 14, total_tokens: 15, estimated: false },
    ],
    [
      'other',
      { text: '', finish: '', error: { code: 'OTHER' } },
      { status: 'failed', prompt_tokens: 1, completion_tokens: 0, estimated: false },
    ],
  ])('A3 A4 A5 %s', async (behavior, answer, record) => {
    const { record: written, ...given } = await complete(`plays:${behavior}`, true);
    expect(given).toMatchObject(answer);
    expect(written).toMatchObject(record);
  });

  test('A4 a response that fails before its first text has an error status', async () => {
    expect(await complete('plays:malformed', true)).toMatchObject({ status: 502 });
  });
});

describe('A1 the API', () => {
  test('sends the key in its own header and the model in the path, and not the caller’s key', async () => {
    const at = gateway.simulator.requests.length;
    const headers = { authorization: 'Bearer the-callers-own' };
    await (await gateway.post(CHAT, body('Hi', { stream: true }), { headers })).text();
    const request = await gateway.simulator.request(at);
    expect(request.path).toBe('/gemini/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse');
    expect(request.headers['x-goog-api-key']).toBe('sim-gemini-41d0e8');
    expect(request.headers.authorization).toBeUndefined();
    expect(request.body).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      generationConfig: { thinkingConfig: { includeThoughts: true } },
    });
  });

  test('J1 lists its models by their addresses, with embedding models', async () => {
    const list = objectOf(await (await gateway.fetch('/v1/models')).json());
    const ids = objectsOf(list.data).map(({ id }) => id);
    expect(ids).toContain(MODEL);
    expect(ids.filter((id) => textOf(id).startsWith('gemini/'))).toHaveLength(4);
    expect(ids).toContain('gemini/gemini-embedding-001');
  });

  test.each([
    [
      'an unknown model',
      { model: 'gemini/gemini-1' },
      404,
      'model_not_found',
      /is not found for API version v1beta/,
    ],
    ['an unknown field', { from_tomorrow: 1 }, 400, 'invalid_request', /Unknown name "from_tomorrow"/],
    ['two candidates', { n: 2 }, 400, 'invalid_request', /Multiple candidates is not enabled/],
    [
      'an empty message',
      { messages: [{ role: 'user', content: '' }] },
      400,
      'invalid_request',
      /contents is not specified/,
    ],
    [
      'a call without its result',
      {
        messages: [
          { role: 'user', content: 'a' },
          {
            role: 'assistant',
            tool_calls: [{ id: 'x', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          { role: 'user', content: 'b' },
        ],
      },
      400,
      'invalid_request',
      /number of function response parts is equal/,
    ],
  ])('E1 Q6 %s: returns Google’s error message', async (_, more, status, code, message) => {
    const response = await gateway.post(CHAT, body('Hi', more));
    const { error } = objectOf(await response.json());
    expect([response.status, objectOf(error).code]).toEqual([status, code]);
    expect(textOf(objectOf(error).message)).toMatch(message);
  });
});

test.each<[name: string, more: Readonly<Record<string, unknown>>]>([
  ['a system message alone', { messages: [{ role: 'system', content: 'Say hello' }] }],
  [
    'a tool whose name begins with a digit',
    { tools: [{ type: 'function', function: { name: '21st' } }], tool_choice: 'none' },
  ],
  [
    'a history that begins with a call, and a result with a $ref',
    {
      messages: [
        {
          role: 'assistant',
          tool_calls: [{ id: 'x', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'x', content: '{"$ref":"#/$defs/a"}' },
      ],
    },
  ],
])('A2 Q1 accepts %s, as OpenAI does', async (_, more) => {
  const response = await gateway.post(CHAT, body('Hi', more));
  expect([response.status, await response.json()]).toMatchObject([200, { object: 'chat.completion' }]);
});

test.each([true, false])('E1 H2 streamed %s: the delay in the error becomes retry-after', async (stream) => {
  const response = await gateway.post(CHAT, body('Hi', { stream, model: `${MODEL}:status-429` }));
  expect([response.status, response.headers.get('retry-after')]).toEqual([429, '17']);
});

test('A7 a call that comes back with another argument, as Claude Code adds replace_all, keeps its signature', async () => {
  const EDIT = { type: 'function', function: { name: 'Edit', parameters: { type: 'object' } } };
  const prompt = { role: 'user', content: 'calls:[{"name":"Edit","arguments":{"file":"a"}}]' };
  const first = await gateway.post(CHAT, { model: MODEL, messages: [prompt], tools: [EDIT] });
  const [choice] = objectsOf(objectOf(await first.json()).choices);
  const message = objectOf(choice?.message);
  const [call] = objectsOf(message.tool_calls);
  const changed = { ...objectOf(call?.function), arguments: '{"file":"a","replace_all":false}' };
  const history = [
    prompt,
    { ...message, tool_calls: [{ ...call, function: changed }] },
    { role: 'tool', tool_call_id: call?.id, content: 'done' },
  ];
  const at = gateway.simulator.requests.length;
  const second = await gateway.post(CHAT, { model: MODEL, messages: history, tools: [EDIT] });
  expect([second.status, await second.json()]).toMatchObject([200, { object: 'chat.completion' }]);
  const [, turn] = objectsOf((await gateway.simulator.request(at)).body?.contents);
  const [part] = objectsOf(turn?.parts);
  expect(part?.functionCall).toMatchObject({ args: { file: 'a', replace_all: false } });
  const { google } = objectOf(call?.extra_content);
  expect(part?.thoughtSignature).toBe(objectOf(google).thought_signature);
});

describe('Q10 a key that Google refuses', () => {
  beforeAll(() => gateway.set({ GEMINI_API_KEY: 'no-simulator-key' }));
  afterAll(() => gateway.set({}));

  test.each([true, false])('streamed %s: 502', async (stream) => {
    const response = await gateway.post(CHAT, body('Hi', { stream }));
    const { error } = objectOf(await response.json());
    expect([response.status, objectOf(error).code]).toEqual([502, 'upstream_credential']);
  });
});

describe.each([
  ['cut', 'upstream_truncated'],
  ['reset', 'upstream_truncated'],
  ['error-data', 'upstream_error'],
])('E2 the fault %s', (fault, code) => {
  test('ends in an error frame', async () => {
    const answer = await complete('What does a weir do?', true, { model: `${MODEL}:${fault}` });
    expect(answer.error.code).toBe(code);
    expect(answer.finish).toBe('');
  });
});
