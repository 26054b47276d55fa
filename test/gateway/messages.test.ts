/** Messages through the gateway in memory: fallback, heartbeats, failures before and after the head, disconnects (I1, I3, R5). */
import { describe, expect, test } from 'vitest';
import { checkMessages } from '../../tools/conformance/contract/check-messages.ts';
import { decodeObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { readMessage } from '../contract/reference-message.ts';
import {
  answerWith,
  type Behavior,
  DONE,
  event,
  ROLE,
  RoutedGateway,
  refuse,
  settle,
  sse,
  USAGE,
} from './upstreams.ts';

const PATH = '/v1/messages';
const ALIASES = { ALIASES: JSON.stringify({ both: ['openai/a', 'mistral/b'] }) };

function cut(...pieces: string[]): Behavior {
  return { kind: 'answer', type: 'text/event-stream', pieces, ending: 'cut' };
}

function ask(gateway: RoutedGateway, fields: object = {}, init: RequestInit = {}): Promise<Response> {
  return gateway.ask({ model: 'openai/a', max_tokens: 9, stream: true, ...fields }, init, PATH);
}

/** The complete stream, after checking its event order. */
async function streamOf(response: Response): Promise<string> {
  const text = await response.text();
  expect(checkMessages(text)).toEqual([]);
  return text;
}

async function errorOf(response: Response): Promise<[number, string]> {
  const body = decodeObject(await response.text()) ?? {};
  expect(body).toMatchObject({ type: 'error', request_id: response.headers.get('request-id') });
  return [response.status, textOf(objectOf(body.error).type)];
}

describe('I1 errors before the head', () => {
  test.each<[what: string, behavior: Behavior, status: number, type: string]>([
    ['an overloaded upstream', refuse(503), 529, 'overloaded_error'],
    ['an overloaded Anthropic', refuse(529), 529, 'overloaded_error'],
    ['a limit', refuse(429, {}, { 'retry-after': '7' }), 429, 'rate_limit_error'],
    ['the deployment’s credential', refuse(401), 502, 'api_error'],
    ['the deployment’s balance', refuse(402), 502, 'api_error'],
    ['a bad request', refuse(400), 400, 'invalid_request_error'],
    ['an upstream that fails', refuse(500), 502, 'api_error'],
    ['nobody there', { kind: 'unreachable' }, 502, 'api_error'],
    [
      'an error as the first event of a 200',
      sse('event: error\ndata: {"error":{"type":"overloaded_error","message":"O"}}\n\n'),
      529,
      'overloaded_error',
    ],
  ])('%s, streamed and not', async (_, behavior, status, type) => {
    const gateway = new RoutedGateway({ a: [behavior] });
    expect(await errorOf(await ask(gateway))).toEqual([status, type]);
    if (behavior.kind !== 'answer')
      expect(await errorOf(await ask(gateway, { stream: false }))).toEqual([status, type]);
  });

  test('a context that is too long: the message on which Claude Code compacts its context', async () => {
    const message = "This model's maximum context length is 8192 tokens";
    const gateway = new RoutedGateway({ a: [refuse(400, { message, code: 'context_length_exceeded' })] });
    const body = await (await ask(gateway)).text();
    expect(body).toContain('prompt is too long: ');
  });
});

describe('I3 failures after the head', () => {
  test('a truncated stream: the output so far, and an error event', async () => {
    const gateway = new RoutedGateway({ a: [cut(ROLE, event({ content: 'Hal' }))] });
    const text = await streamOf(await ask(gateway));
    expect(readMessage(text)).toMatchObject({ text: 'Hal', stop: null, error: { type: 'api_error' } });
  });

  test('a stream without a finish: an error event', async () => {
    const gateway = new RoutedGateway({ a: [sse(ROLE, event({ content: 'Hal' }))] });
    const text = await streamOf(await ask(gateway));
    expect(readMessage(text).error).toMatchObject({ details: { error_code: 'upstream_truncated' } });
  });

  test('an upstream that is overloaded in the middle of its output: the error type on which clients retry', async () => {
    const failed = 'data: {"error":{"type":"overloaded_error","message":"Overloaded"}}\n\n';
    const gateway = new RoutedGateway({ a: [sse(ROLE, event({ content: 'Hal' }), failed)] });
    expect(readMessage(await streamOf(await ask(gateway))).error?.type).toBe('overloaded_error');
  });

  test('T2 no events: timeout_error', async () => {
    const silent: Behavior = {
      kind: 'answer',
      type: 'text/event-stream',
      pieces: [event({ content: 'Hal' })],
      ending: 'hang',
    };
    const gateway = new RoutedGateway({ a: [silent] }, { IDLE_TIMEOUT_SECONDS: '5' });
    const response = await ask(gateway);
    const text = streamOf(response);
    await settle();
    gateway.clock.advance(5001);
    expect(readMessage(await text).error?.type).toBe('timeout_error');
  });
});

describe('R5 I3 fallback', () => {
  test('the first target fails after its role: one message, from the second target', async () => {
    const gateway = new RoutedGateway({ a: [cut(ROLE)], b: [answerWith('Hello')] }, ALIASES);
    const text = await streamOf(await ask(gateway, { model: 'both' }));
    expect(gateway.models).toEqual(['a', 'b']);
    expect(readMessage(text)).toMatchObject({ text: 'Hello', stop: 'end_turn', error: null });
    expect(text).toContain('"model":"both"');
  });

  test('T1 a heartbeat while the first target’s output is buffered: a comment, because no message has begun', async () => {
    const held: Behavior = { kind: 'answer', type: 'text/event-stream', pieces: [ROLE], ending: 'hang' };
    const gateway = new RoutedGateway(
      { a: [held], b: [answerWith('Hello')] },
      {
        ALIASES: JSON.stringify({ both: [{ model: 'openai/a', timeout_seconds: 20 }, 'mistral/b'] }),
        HEARTBEAT_SECONDS: '15',
      },
    );
    const answer = ask(gateway, { model: 'both' });
    await settle();
    gateway.clock.advance(15_001);
    const text = streamOf(await answer);
    await settle();
    gateway.clock.advance(5001);
    expect(await text).toMatch(/^: heartbeat\n\nevent: message_start\n/);
    expect(gateway.models).toEqual(['a', 'b']);
  });

  test('T1 a heartbeat after the message’s start: a ping', async () => {
    const silent: Behavior = {
      kind: 'answer',
      type: 'text/event-stream',
      pieces: [event({ content: 'Hal' })],
      ending: 'hang',
    };
    const gateway = new RoutedGateway(
      { a: [silent] },
      { HEARTBEAT_SECONDS: '15', IDLE_TIMEOUT_SECONDS: '20' },
    );
    const text = streamOf(await ask(gateway));
    await settle();
    gateway.clock.advance(15_001);
    await settle();
    gateway.clock.advance(5001);
    expect(await text).toContain('event: ping\ndata: {"type":"ping"}\n\n');
  });
});

describe('M1 records', () => {
  test('T4 a client that disconnects: its upstream is cancelled, and the record names the protocol', async () => {
    const gateway = new RoutedGateway({
      a: [{ kind: 'answer', type: 'text/event-stream', pieces: [event({ content: 'Hal' })], ending: 'hang' }],
    });
    const client = new AbortController();
    await ask(gateway, {}, { signal: client.signal });
    client.abort();
    await settle();
    expect(gateway.requests[0]?.isCancelled).toBe(true);
    expect(gateway.records).toMatchObject([{ status: 'cancelled', client: 'messages', route: 'chat' }]);
  });

  test('Q5 dropped fields of the request are named', async () => {
    const gateway = new RoutedGateway({ a: [answerWith('Hello')] });
    const response = await ask(gateway, { container: 'c', stream: false });
    expect(response.headers.get('x-weir-dropped')).toBe('container');
    expect(await response.json()).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text: 'Hello' }],
    });
  });

  test('U4 usage is always requested from the upstream', async () => {
    const gateway = new RoutedGateway({ a: [sse(ROLE, event({ content: 'x' }), event({}, 'stop'), DONE)] });
    await (await ask(gateway)).text();
    expect(gateway.requests[0]?.body.stream_options).toEqual({ include_usage: true });
  });

  test('V2 vendor events: none, even if the deployment passes them', async () => {
    const vendor = 'data: {"type":"x_note","tokens":3}\n\n';
    const gateway = new RoutedGateway(
      { a: [sse(ROLE, vendor, event({ content: 'x' }), event({}, 'stop'), DONE)] },
      { VENDOR_EVENTS: 'pass' },
    );
    expect(await streamOf(await ask(gateway))).not.toContain('x_note');
  });
});

describe('I2 Q1 an effort for a model without reasoning, which Claude Code and Codex send to every model', () => {
  test.each<[path: string, body: object, sent: unknown]>([
    ['/v1/messages', { max_tokens: 9, output_config: { effort: 'high' } }, undefined],
    ['/v1/responses', { input: 'Hi', reasoning: { effort: 'high' } }, undefined],
    ['/v1/chat/completions', { reasoning_effort: 'high' }, 'high'],
  ])('%s: dropped if the upstream speaks another protocol', async (path, body, sent) => {
    const gateway = new RoutedGateway({ b: [answerWith('Hi')] });
    const response = await gateway.ask({ model: 'mistral/b', ...body }, {}, path);
    expect(response.status).toBe(200);
    expect(gateway.requests[0]?.body.reasoning_effort).toBe(sent);
  });
});

describe('I2 a history with Anthropic’s blocks at a provider that speaks Chat Completions', () => {
  const mark = { cache_control: { type: 'ephemeral' } };
  const HISTORY = {
    system: [{ type: 'text', text: 'Be brief', ...mark }],
    tools: [{ name: 'gauge', input_schema: { type: 'object' }, ...mark }],
    messages: [
      { role: 'user', content: 'How high?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Ask the gauge', signature: 'of-anthropic' },
          { type: 'redacted_thinking', data: 'of-anthropic' },
          { type: 'tool_use', id: 'toolu_1', name: 'gauge', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '3 m', ...mark }] },
    ],
  };
  const PROVIDERS = JSON.stringify({ router: { base_url: 'https://router/v1', like: 'openrouter' } });

  test.each([
    ['openai/a', false],
    ['mistral/a', false],
    ['router/a', true],
  ])(
    '%s: no thinking that it would refuse, and marks for its cache where it has them: %s',
    async (model, hasCache) => {
      const gateway = new RoutedGateway({ a: [answerWith('Hi')] }, { PROVIDERS });
      expect((await ask(gateway, { model, stream: false, ...HISTORY })).status).toBe(200);
      const sent = JSON.stringify(gateway.requests[0]?.body);
      expect(sent).not.toContain('of-anthropic');
      if (!hasCache) expect(sent).not.toContain('Ask the gauge');
      expect(sent.includes('cache_control')).toBe(hasCache);
      expect(sent).toContain('"tool_calls":[{');
    },
  );
});

describe('I3 I4 a complete response whose upstream fails afterwards: it ends as complete', () => {
  const WHOLE = [ROLE, event({ content: 'Hi' }), event({}, 'stop', { usage: USAGE })];
  test.each<[what: string, behavior: Behavior]>([
    ['ends without [DONE]', sse(...WHOLE)],
    ['breaks the connection in the place of [DONE]', cut(...WHOLE)],
  ])('that %s', async (_, behavior) => {
    const gateway = new RoutedGateway({ b: [behavior] });
    const message = await streamOf(await ask(gateway, { model: 'mistral/b' }));
    expect(readMessage(message)).toMatchObject({ stop: 'end_turn', error: null });
    const body = { model: 'mistral/b', input: 'Hi', stream: true };
    const response = await (await gateway.ask(body, {}, '/v1/responses')).text();
    expect(response).toContain('event: response.completed');
    expect(response).not.toContain('response.failed');
  });
});
