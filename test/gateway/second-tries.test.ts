/** Tests the second try: a refusal that names a change, such as the other API, is followed by one more request to the same target. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
import {
  type Behavior,
  DONE,
  event,
  json,
  ROLE,
  RoutedGateway,
  read,
  refuse,
  settle,
  sse,
  type UpstreamRequest,
} from './upstreams.ts';

const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
const HOUR_MS = 3_600_000;

/** Both texts are recorded: joplin#16451 (2026-09-08), openai/codex#1306 (2025-06-11). */
const TOOLS_REFUSED = refuse(400, {
  message:
    "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
  param: 'reasoning_effort',
});
const CHAT_REFUSED = refuse(404, {
  message: 'This model is only supported in v1/responses and not in v1/chat/completions.',
  param: 'model',
});
/** Completions-only models get this, too: LangBot#400 (2023). */
const NO_CHAT_MODEL = refuse(404, {
  message:
    'This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?',
  param: 'model',
});
const RESPONSES_REFUSED = refuse(400, {
  message: "The requested model 'm' is not supported with the Responses API.",
  code: 'model_not_found',
});
const FOREIGN_REASONING = refuse(400, {
  message: 'The encrypted content gAAA...c90= could not be verified.',
  code: 'invalid_encrypted_content',
});
const SUMMARY_REFUSED = refuse(400, {
  message: 'Your organization must be verified to generate reasoning summaries.',
  param: 'reasoning.summary',
  code: 'unsupported_value',
});

const USAGE = { input_tokens: 7, output_tokens: 3, total_tokens: 10 };

/** A response of Responses, streamed or not as requested. */
function responds(text: string) {
  const item = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] };
  const response = { id: 'resp_1', model: 'm', status: 'completed', output: [item], usage: USAGE };
  return (isStreamed: boolean): Behavior => {
    if (!isStreamed) return json(response);
    const { output: _, ...state } = response;
    return sse(
      frame({ type: 'response.created', response: { id: 'resp_1', model: 'm', status: 'in_progress' } }),
      frame({ type: 'response.output_item.added', output_index: 0, item: { type: 'message' } }),
      frame({ type: 'response.output_text.delta', output_index: 0, delta: text }),
      frame({ type: 'response.completed', response: state }),
    );
  };
}

function frame(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function chats(text: string) {
  return (isStreamed: boolean): Behavior =>
    isStreamed
      ? sse(ROLE, event({ content: text }), event({}, 'stop'), DONE)
      : json({
          choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
        });
}

/** The API of each request that was sent. */
function apisOf({ requests }: RoutedGateway): string[] {
  return requests.map(apiOf);
}

function apiOf({ body }: UpstreamRequest): 'chat' | 'responses' {
  return body.input === undefined ? 'chat' : 'responses';
}

describe.each([true, false])('streamed: %s', (stream) => {
  const ask = (gateway: RoutedGateway, fields: JsonObject = {}) =>
    gateway.ask({ model: 'openai/m', stream, ...fields });

  // No row of OpenAI's table names the model `m`, so it begins on chat.
  test('O2 chat refuses the model: the request goes through Responses at once, as one more attempt', async () => {
    const gateway = new RoutedGateway({ m: [CHAT_REFUSED, responds('Hi')] });
    const response = await read(await ask(gateway));
    expect(response).toMatchObject({ status: 200, text: 'Hi', finishes: ['stop'], error: null });
    expect(apisOf(gateway)).toEqual(['chat', 'responses']);
    expect(response.headers.get('x-weir-api')).toBe('responses');
    expect(response.headers.get('x-weir-attempts')).toBe('openai/m 404 0ms, openai/m 200 0ms');
    await settle();
    expect(gateway.records).toHaveLength(1);
    expect(gateway.records[0]).toMatchObject({
      status: 'finished',
      prompt_tokens: 7,
      completion_tokens: 3,
      attempts: [
        { provider: 'openai', status: 404 },
        { provider: 'openai', status: 200, api: 'responses' },
      ],
    });
    expect(gateway.records[0]?.attempts[0]).not.toHaveProperty('api');
  });

  test('O2 the refusal concerns tools: remembered for requests with tools alone', async () => {
    const gateway = new RoutedGateway({ m: [TOOLS_REFUSED, responds('a'), responds('b'), chats('c')] });
    for (const fields of [{ tools: TOOLS }, { tools: TOOLS }, {}]) {
      expect((await read(await ask(gateway, fields))).status).toBe(200);
    }
    expect(apisOf(gateway)).toEqual(['chat', 'responses', 'responses', 'chat']);
  });

  test('O2 the memory lasts an hour', async () => {
    const gateway = new RoutedGateway({ m: [CHAT_REFUSED, responds('a'), responds('b'), chats('c')] });
    await read(await ask(gateway));
    await gateway.clock.advance(HOUR_MS - 1);
    await read(await ask(gateway));
    await gateway.clock.advance(1);
    await read(await ask(gateway));
    expect(apisOf(gateway)).toEqual(['chat', 'responses', 'responses', 'chat']);
  });

  test('O2 a model without Responses: back to chat, and remembered', async () => {
    const gateway = new RoutedGateway({ 'gpt-5': [RESPONSES_REFUSED, chats('a'), chats('b')] });
    const first = await read(await ask(gateway, { model: 'openai/gpt-5', tools: TOOLS }));
    expect(first).toMatchObject({ status: 200, text: 'a' });
    expect(first.headers.get('x-weir-api')).toBeNull();
    await read(await ask(gateway, { model: 'openai/gpt-5', tools: TOOLS }));
    expect(apisOf(gateway)).toEqual(['responses', 'chat', 'chat']);
  });

  test('O2 both APIs refuse the model: two requests, the first refusal, and nothing is remembered', async () => {
    const gateway = new RoutedGateway({ m: [NO_CHAT_MODEL, RESPONSES_REFUSED, chats('later')] });
    const response = await read(await ask(gateway));
    expect(response.status).toBe(404);
    expect(response.error).toMatchObject({ code: 'not_found' });
    expect(String(response.error?.message)).toMatch(
      /not a chat model.*tried 2 times: openai\/m 404, openai\/m 400/,
    );
    expect(apisOf(gateway)).toEqual(['chat', 'responses']);
    expect((await read(await ask(gateway))).text).toBe('later');
    expect(apisOf(gateway)[2]).toBe('chat');
  });

  test('O2 the other API refuses for another reason: its own refusal', async () => {
    const gateway = new RoutedGateway({
      m: [CHAT_REFUSED, refuse(400, { message: 'Invalid schema', code: 'bad_schema' })],
    });
    const response = await read(await ask(gateway));
    expect(response.status).toBe(400);
    expect(response.error).toMatchObject({ code: 'bad_schema' });
    expect(gateway.requests).toHaveLength(2);
  });

  test('O2 the circuit stays closed, however often it happens', async () => {
    const env = { ALIASES: JSON.stringify({ two: [{ model: 'openai/m' }, { model: 'mistral/other' }] }) };
    const m = Array.from({ length: 8 }, () => [CHAT_REFUSED, responds('a')]).flat();
    const gateway = new RoutedGateway({ m, other: [chats('other')] }, env);
    for (let i = 0; i < 8; i++) {
      await gateway.clock.advance(HOUR_MS);
      expect((await read(await ask(gateway, { model: 'two' }))).headers.get('x-weir-provider')).toBe(
        'openai',
      );
    }
    expect(gateway.models).not.toContain('other');
  });

  test('O2 no wait before the second try, with retries as without', async () => {
    const gateway = new RoutedGateway({ m: [CHAT_REFUSED, responds('Hi')] }, { RETRIES: '3' });
    const at = gateway.clock.now();
    expect((await read(await ask(gateway))).text).toBe('Hi');
    expect(gateway.clock.now()).toBe(at);
  });

  test('O2 the second try fails otherwise: the next target follows', async () => {
    const gateway = new RoutedGateway({ m: [CHAT_REFUSED, refuse(500)], other: [chats('other')] });
    const response = await read(await ask(gateway, { models: ['mistral/other'] }));
    expect(response.text).toBe('other');
    expect(response.headers.get('x-weir-attempts')).toBe(
      'openai/m 404 0ms, openai/m 500 0ms, mistral/other 200 0ms',
    );
    expect(response.headers.get('x-weir-api')).toBeNull();
  });

  test('O5 encrypted reasoning of another organisation: once more without it, and reported', async () => {
    const gateway = new RoutedGateway({ 'gpt-6.1-terra': [FOREIGN_REASONING, responds('Hi')] });
    const response = await read(
      await ask(gateway, { model: 'openai/gpt-6.1-terra', tools: TOOLS, messages: STEP }),
    );
    expect(response).toMatchObject({ status: 200, text: 'Hi' });
    expect(response.headers.get('x-weir-changed')).toBe('reasoning');
    const [first, second] = gateway.requests.map(({ body }) => objectsOf(body.input).map(({ type }) => type));
    expect(first).toEqual(['message', 'reasoning', 'function_call', 'function_call_output']);
    expect(second).toEqual(['message', 'function_call', 'function_call_output']);
    // Reasoning of a later conversation goes up again.
    await read(await ask(gateway, { model: 'openai/gpt-6.1-terra', tools: TOOLS, messages: STEP }));
    expect(objectsOf(gateway.requests[2]?.body.input)[1]).toMatchObject({ type: 'reasoning' });
  });

  test('O5 a second refusal of the same kind ends the request', async () => {
    const gateway = new RoutedGateway({ 'gpt-6.1-terra': [FOREIGN_REASONING] });
    const response = await read(
      await ask(gateway, { model: 'openai/gpt-6.1-terra', tools: TOOLS, messages: STEP }),
    );
    expect(response.status).toBe(400);
    expect(gateway.requests).toHaveLength(2);
  });

  test('O4 summaries that the organisation may not have: once more without, and remembered', async () => {
    const gateway = new RoutedGateway({ 'gpt-6.1-terra': [SUMMARY_REFUSED, responds('a'), responds('b')] });
    for (let i = 0; i < 2; i++) {
      expect((await read(await ask(gateway, { model: 'openai/gpt-6.1-terra', tools: TOOLS }))).status).toBe(
        200,
      );
    }
    const summaries = gateway.requests.map(({ body }) => objectOf(body.reasoning).summary);
    expect(summaries).toEqual(['auto', undefined, undefined]);
  });

  test('O2 callers with credentials of their own: a refusal to one says nothing about the next', async () => {
    const behaviors = [SUMMARY_REFUSED, responds('a'), responds('b')];
    const gateway = new RoutedGateway({ 'gpt-6.1-terra': behaviors }, { AUTH: 'passthrough' });
    for (let i = 0; i < 2; i++) {
      expect((await read(await ask(gateway, { model: 'openai/gpt-6.1-terra', tools: TOOLS }))).status).toBe(
        200,
      );
    }
    const summaries = gateway.requests.map(({ body }) => objectOf(body.reasoning).summary);
    expect(summaries).toEqual(['auto', undefined, 'auto']);
  });

  test('O1 an alias target or an entry of PROVIDERS forces the API', async () => {
    const gateway = new RoutedGateway(
      { 'gpt-5.4': [chats('a')], m: [responds('b')] },
      {
        ALIASES: JSON.stringify({ plain: [{ model: 'openai/gpt-5.4', api: 'chat' }] }),
        PROVIDERS: JSON.stringify({
          own: { base_url: 'https://own/v1', api_key: 'OWN_KEY', api: 'responses' },
        }),
        OWN_KEY: 'k',
      },
    );
    await read(await ask(gateway, { model: 'plain', tools: TOOLS, reasoning_effort: 'low' }));
    expect((await read(await ask(gateway, { model: 'own/m' }))).text).toBe('b');
    expect(apisOf(gateway)).toEqual(['chat', 'responses']);
  });

  test('O1 a field that only chat has, at a family whose chat refuses tools: 400, or dropped and reported', async () => {
    const gateway = new RoutedGateway({ 'gpt-6.1-terra': [responds('Hi')] });
    const fields = { model: 'openai/gpt-6.1-terra', tools: TOOLS };
    const refused = await read(await ask(gateway, { ...fields, n: 2 }));
    expect(refused.error).toMatchObject({ code: 'unsupported_parameter', param: 'n' });
    expect(gateway.requests).toHaveLength(0);
    const dropped = await read(await ask(gateway, { ...fields, temperature: 0.2 }));
    expect(dropped.headers.get('x-weir-dropped')).toBe('temperature');
    expect(gateway.requests[0]?.body).not.toHaveProperty('temperature');
  });
});

const STEP = [
  { role: 'user', content: 'Hello' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    reasoning_details: [
      {
        type: 'reasoning.encrypted',
        data: 'gAAA',
        id: 'weir1:openai:rs_1',
        format: 'openai-responses-v1',
        index: 1,
      },
    ],
  },
  { role: 'tool', tool_call_id: 'call_1', content: '312 cm' },
];

test('O3 a Responses client at such a model keeps its passthrough, and its refusals', async () => {
  const gateway = new RoutedGateway({ 'gpt-6.1-terra': [responds('Hi')], m: [RESPONSES_REFUSED] });
  const input = [{ type: 'item_reference', id: 'msg_1' }];
  const post = (model: string) =>
    gateway.gateway.post('/v1/responses', 'x', { model, input, a_new_field: 1 });
  expect((await post('openai/gpt-6.1-terra')).headers.get('x-weir-api')).toBeNull();
  expect(gateway.requests[0]?.body).toMatchObject({ input, a_new_field: 1 });
  expect((await post('openai/m')).status).toBe(400);
  expect(gateway.requests).toHaveLength(2);
});

test('O10 the upstream answers a streamed request with a JSON object: the client gets a stream', async () => {
  const gateway = new RoutedGateway({ 'gpt-6.1-terra': [responds('Hi')(false)] });
  const response = await read(
    await gateway.ask({ model: 'openai/gpt-6.1-terra', stream: true, tools: TOOLS }),
  );
  expect(response).toMatchObject({ status: 200, text: 'Hi', finishes: ['stop'], isDone: true });
});

test('O3 a Messages client is served through Responses, too', async () => {
  const gateway = new RoutedGateway({ 'gpt-9-test': [CHAT_REFUSED, responds('Hi')] });
  const tools = [{ name: 'look', input_schema: { type: 'object' } }];
  const body = { model: 'openai/gpt-9-test', max_tokens: 100 };
  const first = await gateway.ask(body, {}, '/v1/messages');
  expect(await first.json()).toMatchObject({
    content: [{ type: 'text', text: 'Hi' }],
    usage: { input_tokens: 7 },
  });
  const second = await gateway.ask({ ...body, tools }, {}, '/v1/messages');
  expect(second.headers.get('x-weir-api')).toBe('responses');
  expect(apisOf(gateway)).toEqual(['chat', 'responses', 'responses']);
});

describe('O5 input_transformations', () => {
  const removed = (reason: string) => ({ id: 'rs_1', type: 'reasoning', action: 'removed', reason });
  const answered = (reasons: readonly string[]) =>
    json({
      ...{ id: 'resp_1', model: 'm', status: 'completed', usage: USAGE },
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }],
      input_transformations: reasons.map(removed),
    });

  test.each<[path: string, body: JsonObject]>([
    ['/v1/chat/completions', { tools: TOOLS }],
    ['/v1/responses', { input: 'Hello' }],
  ])('%s: reasoning that the provider removed is in the record and the log', async (path, body) => {
    const reasons = ['prefix_mismatch', 'turn_boundary', 'prefix_mismatch', 'a new reason: "text"'];
    const gateway = new RoutedGateway({ 'gpt-6.2-astra': [answered(reasons)] });
    expect((await gateway.ask({ model: 'openai/gpt-6.2-astra', ...body }, {}, path)).status).toBe(200);
    await settle();
    expect(gateway.records).toMatchObject([{ changed: ['reasoning'] }]);
    expect(gateway.gateway.logged.filter(({ event: name }) => name === 'reasoning_removed')).toEqual([
      {
        event: 'reasoning_removed',
        request_id: gateway.records[0]?.request_id,
        provider: 'openai',
        model: 'gpt-6.2-astra',
        reasons: ['prefix_mismatch', 'other'],
      },
    ]);
  });

  test('the end of a turn removes reasoning in any case: nothing is reported', async () => {
    const gateway = new RoutedGateway({ 'gpt-6.2-astra': [answered(['turn_boundary'])] });
    await read(await gateway.ask({ model: 'openai/gpt-6.2-astra', tools: TOOLS }));
    await settle();
    expect(gateway.records[0]).not.toHaveProperty('changed');
    expect(gateway.gateway.logged.map(({ event: name }) => name)).not.toContain('reasoning_removed');
  });
});

describe('O3 budgets and limits', () => {
  /** A gateway with keys, whose upstream behaves so for one model. */
  function gatewayWith(...behaviors: readonly Behavior[]) {
    const left = [...behaviors];
    return new LimitedGateway(
      { RETRIES: '0' },
      {
        fetch: async () => {
          const behavior = left.shift() ?? refuse(500);
          if (behavior.kind === 'refuse')
            return new Response(behavior.body ?? '', { status: behavior.status });
          return new Response(behavior.kind === 'answer' ? behavior.pieces.join('') : '', {
            headers: { 'content-type': 'application/json' },
          });
        },
      },
    );
  }
  const body = { model: 'openai/m', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] };

  test('a second try is charged once, and nothing stays reserved', async () => {
    const gateway = gatewayWith(CHAT_REFUSED, responds('Hi')(false));
    const token = await gateway.key({ budget: { tokens: 1e6 }, rpm: 1 });
    const response = await gateway.post('/v1/chat/completions', token, body);
    expect(response.status).toBe(200);
    await response.text();
    await gateway.idle();
    const { budget } = decodeObject(await (await gateway.fetch('/v1/key', token)).text()) ?? {};
    expect(budget).toMatchObject({ spent: 10, unreported: 0, reserved: 0 });
    expect(gateway.calls.filter((call) => call === 'reserve')).toHaveLength(1);
  });

  test('the key’s output limit holds for the second try, too', async () => {
    const gateway = new RoutedGateway({ m: [CHAT_REFUSED, responds('Hi')] }, { AUTH: 'keys' });
    const token = await gateway.gateway.key({ max_output_tokens: 20 });
    const response = await gateway.gateway.post('/v1/chat/completions', token, body);
    expect(response.headers.get('x-weir-changed')).toBe('max_output_tokens');
    expect(gateway.requests[1]?.body).toMatchObject({ max_output_tokens: 20 });
  });
});

describe('O3 the memory of a large request', () => {
  const LARGE = {
    model: 'openai/gpt-6.1-terra',
    tools: TOOLS,
    stream: true,
    messages: [{ role: 'user', content: 'x'.repeat(9_000_000) }],
  };

  test('is kept until the only target answers, and released once it accepts', async () => {
    const created = frame({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress' } });
    const accepted = { ...sse(created), ending: 'hang' } as Behavior;
    const env = { RETRIES: '0', IDLE_TIMEOUT_SECONDS: '0' };
    for (const [behavior, served] of [
      [accepted, 3],
      [{ kind: 'hang' } as const, 2],
    ] as const) {
      const gateway = new RoutedGateway({ 'gpt-6.1-terra': [behavior] }, env);
      // Two of them take all the memory.
      for (let i = 0; i < 3; i++) gateway.ask(LARGE).catch(() => {});
      for (let i = 0; i < 30; i++) {
        await settle();
        await gateway.clock.advance(10);
      }
      expect(gateway.requests).toHaveLength(served);
    }
  });
});
