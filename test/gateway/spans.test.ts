/** Tests the spans of a request (W4): names, parents, attributes, and that each ends exactly once. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { type FakeSpan, FakeTracing } from './fake-tracing.ts';
import {
  answerWith,
  type Behavior,
  DONE,
  event,
  ROLE,
  RoutedGateway,
  read,
  refuse,
  settle,
  sse,
} from './upstreams.ts';

const BOTH = { model: 'deepseek/first', models: ['mistral/second'] };
const WAYS = [
  ['streamed', true],
  ['whole', false],
] as const;

function traced(
  behaviors: ConstructorParameters<typeof RoutedGateway>[0],
  env: JsonObject = {},
  tracing = new FakeTracing(),
) {
  return { tracing, gateway: new RoutedGateway(behaviors, env, { tracing }) };
}

function expectEnded({ spans, ended }: FakeTracing, count: number): void {
  expect(spans.map(({ ends }) => ends)).toEqual(Array(count).fill(1));
  // A span that ends before one below it would cut that one off.
  for (const [at, span] of ended.entries())
    if (span.parent !== null) expect(ended.indexOf(span.parent)).toBeGreaterThan(at);
}

describe.each(WAYS)('W4 %s', (_, stream) => {
  test('one span for the request and one below it for each attempt, with the conventions’ names', async () => {
    const { tracing, gateway } = traced({ first: [refuse(503)], second: [answerWith('Hello')] });
    await read(await gateway.ask({ ...BOTH, stream }));
    await gateway.gateway.idle();
    const [request, ...attempts] = tracing.spans;
    expect(tracing.below(request)).toEqual(attempts);
    expect(request).toMatchObject({ name: 'chat deepseek/first', parent: null, error: null });
    expect(request?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'deepseek/first',
      ...(stream ? { 'gen_ai.request.stream': true } : {}),
      'gen_ai.provider.name': 'mistral_ai',
      'gen_ai.response.model': 'second',
      'gen_ai.response.finish_reasons': 'stop',
      'gen_ai.response.time_to_first_chunk': 0,
      'gen_ai.usage.input_tokens': 5,
      'gen_ai.usage.output_tokens': 3,
      'weir.request_id': gateway.records[0]?.request_id,
      'weir.key_id': gateway.records[0]?.key_id,
      'weir.status': 'finished',
      'weir.attempts': 2,
      'weir.estimated': false,
    });
    // No tokens: a sum over all spans counts them once.
    expect(attempts.map(({ name, attributes, error }) => [name, attributes, error])).toEqual([
      [
        'chat first',
        {
          'gen_ai.operation.name': 'chat',
          'gen_ai.provider.name': 'deepseek',
          'gen_ai.request.model': 'first',
          'http.response.status_code': 503,
          'error.type': 'upstream_overloaded',
        },
        'upstream_overloaded',
      ],
      [
        'chat second',
        {
          'gen_ai.operation.name': 'chat',
          'gen_ai.provider.name': 'mistral_ai',
          'gen_ai.request.model': 'second',
          'http.response.status_code': 200,
        },
        null,
      ],
    ]);
    expectEnded(tracing, 3);
  });

  test('Y4 the request’s span names its user, session, app and tags, if they are known', async () => {
    const { tracing, gateway } = traced({ first: [answerWith('Hello')] });
    const headers = { 'x-session-id': 's1', 'x-weir-app': 'search', 'x-weir-tags': 'team=a,env=b' };
    await read(await gateway.ask({ model: 'deepseek/first', user: 'ada', stream }, { headers }));
    const [request, attempt] = tracing.spans.map(({ attributes }) => attributes);
    expect(request).toMatchObject({
      'user.id': 'ada',
      'session.id': 's1',
      'weir.app': 'search',
      'weir.tag.team': 'a',
      'weir.tag.env': 'b',
    });
    expect(attempt).not.toHaveProperty('user.id');
  });

  test('the runtime’s span of a fetch is a child of the attempt’s span', async () => {
    const { tracing, gateway } = traced({ first: [refuse(503)], second: [answerWith('Hello')] });
    const callers: (FakeSpan | null)[] = [];
    gateway.onRequest = () => callers.push(tracing.active);
    await read(await gateway.ask({ ...BOTH, stream }));
    expect(callers).toEqual(tracing.spans.slice(1));
  });

  test('all attempts fail: each span has its error, and the request’s span the last one', async () => {
    const { tracing, gateway } = traced({ first: [{ kind: 'unreachable' }], second: [refuse(429)] });
    await read(await gateway.ask({ ...BOTH, stream }));
    const reported = tracing.spans.map(({ error, attributes }) => [error, attributes['error.type']]);
    expect(reported).toEqual([
      ['rate_limited', 'rate_limited'],
      ['upstream_unreachable', 'upstream_unreachable'],
      ['rate_limited', 'rate_limited'],
    ]);
    expect(tracing.spans[1]?.attributes).not.toHaveProperty('http.response.status_code');
    expectEnded(tracing, 3);
  });

  test('T3 the deadline ends both', async () => {
    const { tracing, gateway } = traced({ first: [{ kind: 'hang' }] }, { DEADLINE_SECONDS: '10' });
    const pending = gateway.ask({ model: 'deepseek/first', stream });
    await settle();
    expect(tracing.spans.map(({ ends }) => ends)).toEqual([0, 0]);
    gateway.clock.advance(10_000);
    await read(await pending);
    expect(tracing.spans[0]).toMatchObject({ error: 'timeout', attributes: { 'weir.status': 'timed_out' } });
    expectEnded(tracing, 2);
  });

  test.each<[string, Behavior]>([
    ['before any output', { kind: 'hang' }],
    [
      'after output',
      {
        kind: 'answer',
        type: 'text/event-stream',
        pieces: [ROLE, event({ content: 'Half' })],
        ending: 'hang',
      },
    ],
  ])('T4 a client that disconnects %s ends both, without an error', async (_when, behavior) => {
    const { tracing, gateway } = traced({ first: [behavior] });
    const leaving = new AbortController();
    gateway.ask({ model: 'deepseek/first', stream }, { signal: leaving.signal }).catch(() => {});
    await settle();
    leaving.abort();
    await settle();
    expect(tracing.spans.map(({ error }) => error)).toEqual([null, null]);
    expect(tracing.spans[0]?.attributes['weir.status']).toBe('cancelled');
    expectEnded(tracing, 2);
  });

  test('a span that is not recorded gets no attributes and has no children', async () => {
    const { tracing, gateway } = traced({ first: [answerWith('Hello')] }, {}, new FakeTracing(false));
    const got = await read(await gateway.ask({ model: 'deepseek/first', stream }));
    expect(got.text).toBe('Hello');
    expect(tracing.spans.map(({ attributes, ends }) => [attributes, ends])).toEqual([[{}, 0]]);
  });
});

test('W4 each route has its operation; cached and reasoning tokens are attributes', async () => {
  const usage = {
    prompt_tokens: 5,
    completion_tokens: 3,
    total_tokens: 8,
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  const { tracing, gateway } = traced({ 'gpt-4o-mini': [answerWith('Hello', usage)] });
  await read(await gateway.ask({ model: 'openai/gpt-4o-mini' }));
  await read(await gateway.ask({ model: 'openai/gpt-4o-mini', prompt: 'a' }, {}, '/v1/completions'));
  await read(await gateway.ask({ model: 'mistral/m', prompt: 'a' }, {}, '/v1/fim/completions'));
  await read(await gateway.ask({ agent_id: 'a' }, {}, '/v1/agents/completions'));
  expect(tracing.spans.filter(({ parent }) => parent === null).map(({ name }) => name)).toEqual([
    'chat openai/gpt-4o-mini',
    'text_completion openai/gpt-4o-mini',
    'text_completion mistral/m',
    'invoke_agent a',
  ]);
  expect(tracing.spans[0]?.attributes).toMatchObject({
    'gen_ai.usage.cache_read.input_tokens': 4,
    'gen_ai.usage.reasoning.output_tokens': 2,
    'weir.currency': 'USD',
  });
  expect(tracing.spans[0]?.attributes['weir.cost']).toBeGreaterThan(0);
  expect(tracing.spans.every(({ ends }) => ends === 1)).toBe(true);
});

test('W4 M1 a request that is refused before any upstream is called has neither span nor record', async () => {
  const { tracing, gateway } = traced({});
  expect((await gateway.ask({ model: 'nowhere/m' })).status).toBe(404);
  expect(tracing.spans).toEqual([]);
});

test('W4 R5 a complete output without text ends its spans', async () => {
  const { tracing, gateway } = traced({ first: [sse(ROLE, event({}, 'stop'), DONE)] });
  await read(await gateway.ask({ model: 'deepseek/first', stream: true }));
  expectEnded(tracing, 2);
});
