/** Tests which failures lead to the next target, streamed and not, before the head and after a heartbeat (R4). */
import { describe, expect, test } from 'vitest';
import {
  answerWith,
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
} from './upstreams.ts';

/** Each way in which the first target may fail without output, and how the attempt is reported. */
const FAILURES: readonly (readonly [
  name: string,
  behavior: Behavior,
  reported: string,
  when?: 'streamed' | 'whole',
])[] = [
  ['no connection', { kind: 'unreachable' }, 'upstream_unreachable'],
  ...[408, 409, 425, 429, 500, 502, 503, 504, 529].map((status): [string, Behavior, string] => [
    `a ${status}`,
    refuse(status),
    String(status),
  ]),
  ['a 429 with a long retry-after', refuse(429, {}, { 'retry-after': '3600' }), '429'],
  ['an empty balance as a 429', refuse(429, { code: 'insufficient_quota' }), '429'],
  ...[401, 402, 403, 404].map((status): [string, Behavior, string] => [
    `a ${status}`,
    refuse(status),
    String(status),
  ]),
  ['a 400 about the key', refuse(400, { message: 'Incorrect API key provided' }), '400'],
  ['a 400 that there is no such model', refuse(400, { code: 'model_not_found' }), '400'],
  ['an error as its first event', sse('data: {"error":{"message":"no","code":"busy"}}\n\n'), 'busy'],
  ['an error event', sse('event: error\ndata: {"message":"no","code":"busy"}\n\n'), 'busy'],
  [
    'an error after comments and a role',
    sse(': queued\n\n', ROLE, 'data: {"error":"no"}\n\n'),
    'upstream_error',
  ],
  // Words of providers that are codes of Weir, too.
  ['a 500 with the code internal_error', refuse(500, { code: 'internal_error' }), '500'],
  [
    'an error event with the code internal_error',
    sse('data: {"error":{"message":"no","code":"internal_error"}}\n\n'),
    'internal_error',
  ],
  [
    'an error as JSON with the code overloaded',
    json({ error: { message: 'no', code: 'overloaded' } }),
    'overloaded',
  ],
  ['an error as JSON', json({ error: { message: 'no', code: 'busy' } }), 'busy'],
  [
    'a page',
    { kind: 'answer', type: 'text/html', pieces: ['<html><title>502</title></html>'] },
    'upstream_invalid',
  ],
  ['a page that calls itself a stream', sse('<html>\n\n', '</html>'), 'upstream_truncated'],
  [
    'text that is no JSON',
    { kind: 'answer', type: 'application/json', pieces: ['oops'] },
    'upstream_invalid',
  ],
  ['JSON without a choice', json({ ok: true }), 'upstream_invalid'],
  ['a line that is no JSON', sse(ROLE, 'data: oops\n\n'), 'upstream_invalid'],
  ['an empty stream', sse(), 'upstream_truncated'],
  ['an end that ends nothing', sse(': queued\n\n', DONE), 'upstream_truncated'],
  ['an empty object', { kind: 'answer', type: 'application/json', pieces: [] }, 'upstream_invalid'],
  ['an end after a role', sse(ROLE), 'upstream_truncated'],
  [
    'a cut after a role',
    { kind: 'answer', type: 'text/event-stream', pieces: [ROLE], ending: 'cut' },
    'upstream_truncated',
  ],
  [
    'a cut within an object',
    { kind: 'answer', type: 'application/json', pieces: ['{"choices":[{"mess'], ending: 'cut' },
    'upstream_truncated',
  ],
  [
    'a finish that means failure',
    sse(event({}, 'insufficient_system_resource')),
    'insufficient_system_resource',
  ],
];

/** The choice of a non-streaming response. */
const TEXT = { choices: [{ index: 0, message: { content: 'Half' }, finish_reason: 'stop' }] };
const BOTH = { model: 'deepseek/first', models: ['mistral/second'] };

describe.each(FAILURES.map(([name, behavior, reported]) => ({ name, behavior, reported })))(
  'R4 $name',
  ({ behavior, reported }) => {
    test.each([
      ['streamed', true],
      ['whole', false],
    ])('%s: the next target serves the request, and one record has both attempts', async (_, stream) => {
      const gateway = new RoutedGateway({ first: [behavior], second: [answerWith('Hello')] });
      const got = await read(await gateway.ask({ ...BOTH, stream }));
      expect(got).toMatchObject({
        status: 200,
        text: 'Hello',
        finishes: ['stop'],
        error: null,
        isDone: stream,
      });
      expect(got.models).toEqual(['mistral/second']);
      expect(got.ids).toHaveLength(1);
      expect(got.headers.get('x-weir-attempts')).toBe(
        `deepseek/first ${reported} 0ms, mistral/second 200 0ms`,
      );
      expect(got.headers.get('x-weir-provider')).toBe('mistral');
      expect(gateway.requests.map(({ provider, model }) => `${provider}/${model}`)).toEqual([
        'deepseek/first',
        'mistral/second',
      ]);
      await gateway.gateway.idle();
      expect(gateway.records).toMatchObject([
        {
          status: 'finished',
          asked: 'deepseek/first',
          provider: 'mistral',
          model: 'second',
          total_tokens: 8,
          attempts: [
            { provider: 'deepseek', model: 'first' },
            { status: 200, error_code: null },
          ],
        },
      ]);
    });

    test.each([
      ['streamed', true],
      ['whole', false],
    ])('%s, at every target: the error is the last one’s and lists the attempts', async (_, stream) => {
      const gateway = new RoutedGateway({ first: [refuse(503)], second: [behavior] });
      const got = await read(await gateway.ask({ ...BOTH, stream }));
      expect(got.status).toBeGreaterThanOrEqual(400);
      expect(got.error?.message).toMatch(/^Mistral/);
      expect(got.error?.message).toContain(`(tried 2 times: deepseek/first 503, mistral/second ${reported})`);
      expect(got.headers.get('x-weir-attempts')).toMatch(
        /^deepseek\/first 503 0ms, mistral\/second (?:\w+) 0ms$/,
      );
      await gateway.gateway.idle();
      expect(gateway.records).toMatchObject([{ status: 'failed', attempts: [{}, {}], total_tokens: 0 }]);
    });

    test('R5 after a heartbeat: the 200 is sent, and another target can still be tried', async () => {
      const late: Behavior = { kind: 'answer', type: 'text/event-stream', pieces: [ROLE], ending: 'hang' };
      const gateway = new RoutedGateway(
        { slow: [late], first: [behavior], second: [answerWith('Hello')] },
        {
          HEARTBEAT_SECONDS: '15',
          ALIASES: {
            all: [{ model: 'openai/slow', timeout_seconds: 20 }, 'deepseek/first', 'mistral/second'],
          },
        },
      );
      const pending = gateway.ask({ model: 'all', stream: true });
      await settle();
      gateway.clock.advance(15_000);
      const response = await pending;
      expect(response.status).toBe(200);
      for (const name of ['x-weir-provider', 'x-weir-model', 'x-weir-attempts'])
        expect(response.headers.get(name)).toBeNull();
      expect(response.headers.get('x-weir-alias')).toBe('all');
      gateway.clock.advance(5000);
      const got = await read(response);
      expect(got).toMatchObject({ text: 'Hello', models: ['mistral/second'], error: null, isDone: true });
      await gateway.gateway.idle();
      expect(gateway.records).toMatchObject([
        { status: 'finished', attempts: [{ error_code: 'timeout', ms: 20_000 }, {}, { error_code: null }] },
      ]);
    });
  },
);

test("E2 E4 a frame after a heartbeat: the last provider's own message and the attempts, without the name of a setting", async () => {
  const late: Behavior = { kind: 'answer', type: 'text/event-stream', pieces: [ROLE], ending: 'hang' };
  const refused = sse(ROLE, 'data: {"error":{"message":"No such key","type":"authentication_error"}}\n\n');
  const all = [{ model: 'openai/slow', timeout_seconds: 20 }, 'mistral/second'];
  const gateway = new RoutedGateway(
    { slow: [late], second: [refused] },
    { HEARTBEAT_SECONDS: '15', ALIASES: { all } },
  );
  const pending = gateway.ask({ model: 'all', stream: true });
  await settle();
  gateway.clock.advance(15_000);
  const response = await pending;
  gateway.clock.advance(5000);
  const { error } = await read(response);
  expect(error?.message).toBe(
    'Mistral: No such key (tried 2 times: openai/slow timeout, mistral/second upstream_credential)',
  );
});

describe('A5 R8 an attempt that failed and reported its usage', () => {
  const REPORTED = { prompt_tokens: 40, completion_tokens: 1, total_tokens: 41 };
  const failed: readonly (readonly [name: string, stream: boolean, behavior: Behavior])[] = [
    ['streamed', true, sse(event({}, null, { usage: REPORTED }), 'data: {"error":{"message":"no"}}\n\n')],
    ['whole', false, json({ error: { message: 'no' }, usage: REPORTED })],
    [
      'whole, with a text beside the error',
      false,
      json({ ...TEXT, error: { message: 'no' }, usage: REPORTED }),
    ],
  ];

  test.each(failed)(
    '%s: the next target serves the request, and the record has the usage of both',
    async (_, stream, behavior) => {
      const gateway = new RoutedGateway({ first: [behavior], second: [answerWith('Hello')] });
      expect((await read(await gateway.ask({ ...BOTH, stream }))).text).toBe('Hello');
      await gateway.gateway.idle();
      expect(gateway.records).toMatchObject([{ prompt_tokens: 45, total_tokens: 49, estimated: false }]);
    },
  );

  test.each(failed)(
    '%s: no target is left, and the record of the error has the usage',
    async (_, stream, behavior) => {
      const gateway = new RoutedGateway({ first: [behavior] });
      expect((await read(await gateway.ask({ model: 'deepseek/first', stream }))).status).toBe(502);
      await gateway.gateway.idle();
      expect(gateway.records).toMatchObject([{ status: 'failed', ...REPORTED, estimated: false }]);
    },
  );
});

describe('R4 failures after which no other target is tried', () => {
  const MISTAKES: readonly (readonly [name: string, behavior: Behavior, status: number])[] = [
    ...[400, 413, 422].map((status) => [`a ${status}`, refuse(status), status] as const),
    [
      'an error event that is a 400',
      sse('data: {"error":{"message":"no","type":"invalid_request_error"}}\n\n'),
      400,
    ],
  ];

  test.each(MISTAKES)("%s is the caller's mistake", async (_name, behavior, status) => {
    for (const stream of [true, false]) {
      const gateway = new RoutedGateway(
        { first: [behavior], second: [answerWith('Hello')] },
        { RETRIES: '3' },
      );
      const got = await read(await gateway.ask({ ...BOTH, stream }));
      expect(got.status).toBe(status);
      expect(got.error?.message).toBe('DeepSeek: no');
      expect(gateway.models).toEqual(['first']);
      expect(got.headers.has('x-weir-attempts')).toBe(false);
    }
  });

  test.each([true, false])('streamed %s: OpenRouter’s 403 for the content of the prompt', async (stream) => {
    const router = { base_url: 'https://openrouter', api_key: 'ROUTER_KEY', like: 'openrouter' };
    const gateway = new RoutedGateway(
      { first: [refuse(403, { message: 'Your input was flagged' })], second: [answerWith('Hello')] },
      { PROVIDERS: { router }, ROUTER_KEY: 'k', RETRIES: '3' },
    );
    const got = await read(await gateway.ask({ model: 'router/first', models: ['mistral/second'], stream }));
    expect([got.status, got.error?.code, gateway.models]).toEqual([400, 'content_filter', ['first']]);
  });

  test.each([401, 402, 403, 404])("a %i is the caller's mistake under AUTH=passthrough", async (status) => {
    const gateway = new RoutedGateway(
      { first: [refuse(status)], second: [answerWith('Hello')] },
      { AUTH: 'passthrough' },
    );
    const got = await read(await gateway.ask({ model: 'deepseek/first', models: ['deepseek/second'] }));
    expect(got.status).toBe(status);
    expect(gateway.models).toEqual(['first']);
  });

  test("AUTH=passthrough: only targets of the first one's provider are tried", async () => {
    const gateway = new RoutedGateway(
      { first: [refuse(503)], second: [answerWith('no')], third: [answerWith('Hello')] },
      { AUTH: 'passthrough' },
    );
    const models = ['mistral/second', 'deepseek/third'];
    const got = await read(await gateway.ask({ model: 'deepseek/first', models }));
    expect(got.text).toBe('Hello');
    expect(gateway.requests.map(({ provider, headers }) => [provider, headers.get('authorization')])).toEqual(
      [
        ['deepseek', 'Bearer x'],
        ['deepseek', 'Bearer x'],
      ],
    );
    expect(got.headers.get('x-weir-attempts')).toBe(
      'mistral/second other_provider, deepseek/first 503 0ms, deepseek/third 200 0ms',
    );
  });

  test('a complete response without text is final', async () => {
    const empty = (isStreamed: boolean) =>
      isStreamed
        ? sse(ROLE, event({}, 'stop'), DONE)
        : json({
            choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'stop' }],
          });
    for (const stream of [true, false]) {
      const gateway = new RoutedGateway({ first: [empty], second: [answerWith('Hello')] });
      const got = await read(await gateway.ask({ ...BOTH, stream }));
      expect(got).toMatchObject({ status: 200, text: '', finishes: ['stop'] });
      expect(gateway.models).toEqual(['first']);
    }
  });

  test('a request that a provider does not accept: at the first target it is refused, later it is one more failed attempt', async () => {
    const fields = { temperature: 1, presence_penalty: 1, stream: false };
    const first = new RoutedGateway({ second: [answerWith('Hello')] });
    const refused = await read(await first.ask({ ...BOTH, ...fields }));
    expect([refused.status, refused.error?.code]).toEqual([400, 'unsupported_parameter']);
    const later = new RoutedGateway({ other: [refuse(503)], second: [answerWith('Hello')] });
    const got = await read(
      await later.ask({ model: 'openai/other', models: ['deepseek/first', 'mistral/second'], ...fields }),
    );
    expect(got.text).toBe('Hello');
    expect(got.headers.get('x-weir-attempts')).toBe(
      'openai/other 503 0ms, deepseek/first unsupported_parameter 0ms, mistral/second 200 0ms',
    );
    expect(later.models).toEqual(['other', 'second']);
  });
});
