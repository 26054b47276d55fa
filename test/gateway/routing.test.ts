/** Tests routing in a gateway in memory: targets, timeouts, retries, circuits, reports and memory (R1-R12). */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
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
  TIMER_MS,
  USAGE,
} from './upstreams.ts';

const BOTH = { model: 'deepseek/first', models: ['mistral/second'] };
const HANG: Behavior = { kind: 'hang' };
const WAYS = [
  ['streamed', true],
  ['whole', false],
] as const;

/** A response that sends this and then nothing. */
function hanging(type: string, piece: string): Behavior {
  return { kind: 'answer', type, pieces: [piece], ending: 'hang' };
}

/** A stream that continues after its first text in the given way. */
function begun(ending: 'cut' | 'hang' | 'end', ...more: string[]): Behavior {
  return {
    kind: 'answer',
    type: 'text/event-stream',
    pieces: [ROLE, event({ content: 'Half' }), ...more],
    ending,
  };
}

describe('R1 R10 the upstream’s request', () => {
  test.each([
    ['no models', undefined, 1],
    ['an empty list', [], 1],
    ['a second model', ['mistral/second'], 2],
  ])('models and route are never sent upstream: %s', async (_, models, requests) => {
    const gateway = new RoutedGateway({ first: [refuse(503)], second: [answerWith('Hello')] });
    await read(await gateway.ask({ model: 'deepseek/first', models, route: 'fallback' }));
    expect(gateway.requests).toHaveLength(requests);
    for (const { body } of gateway.requests) {
      expect(body).not.toHaveProperty('models');
      expect(body).not.toHaveProperty('route');
    }
  });

  test("R10 each target gets the request translated for its provider, with its own key and its alias's fields", async () => {
    const steps = [
      { model: 'openai/first', set: { temperature: 0.5, user: null } },
      { model: 'mistral/second', set: { seed: 7 } },
    ];
    const gateway = new RoutedGateway(
      { first: [refuse(500)], second: [answerWith('Hello')] },
      { ALIASES: { both: steps } },
    );
    const got = await read(await gateway.ask({ model: 'both', max_tokens: 5, user: 'u', seed: 1 }));
    expect(got.text).toBe('Hello');
    const messages = [{ role: 'user', content: 'Hello' }];
    expect(gateway.requests.map(({ body }) => body)).toEqual([
      { model: 'first', max_completion_tokens: 5, seed: 1, temperature: 0.5, messages },
      { model: 'second', max_tokens: 5, random_seed: 7, messages },
    ]);
    expect(gateway.requests.map(({ headers }) => headers.get('authorization'))).toEqual([
      'Bearer key-of-openai',
      'Bearer key-of-mistral',
    ]);
    // The dropped fields of the target that served the request, not of the others.
    expect(got.headers.get('x-weir-dropped')).toBe('user');
  });

  test('models without model is accepted, and a value that is no list is refused', async () => {
    const gateway = new RoutedGateway({ second: [answerWith('Hello')] });
    expect((await read(await gateway.ask({ models: ['mistral/second'] }))).text).toBe('Hello');
    const refused = await read(await gateway.ask({ model: 'mistral/second', models: 'mistral/third' }));
    expect([refused.status, refused.error?.param]).toEqual([400, 'models']);
  });
});

describe('R2 aliases', () => {
  describe.each(WAYS)(
    "%s: a target that sends no output within its alias's timeout is cancelled",
    (_, stream) => {
      test.each<[name: string, behavior: Behavior]>([
        ['no response', HANG],
        ['comments', hanging('text/event-stream', ': queued\n\n')],
        ['half an object', hanging('application/json', '{')],
      ])('%s', async (_name, behavior) => {
        const gateway = new RoutedGateway(
          { first: [behavior], second: [answerWith('Hello')] },
          { ALIASES: { both: [{ model: 'deepseek/first', timeout_seconds: 2 }, 'mistral/second'] } },
        );
        const pending = gateway.ask({ model: 'both', stream });
        await settle();
        gateway.clock.advance(1999);
        await settle();
        expect(gateway.models).toEqual(['first']);
        gateway.clock.advance(1);
        const got = await read(await pending);
        expect(got).toMatchObject({ text: 'Hello', models: ['mistral/second'] });
        expect(got.headers.get('x-weir-attempts')).toMatch(/^deepseek\/first timeout 2000ms, /);
        expect(gateway.requests[0]?.isCancelled).toBe(true);
        await gateway.gateway.idle();
        // The provider may have read the prompt.
        expect(gateway.records[0]).toMatchObject({ status: 'finished', estimated: true });
        expect(gateway.records[0]?.total_tokens).toBeGreaterThan(USAGE.total_tokens);
      });
    },
  );

  test.each(WAYS)('%s: output within the timeout ends the timeout', async (_, stream) => {
    const slow = { kind: 'answer', type: 'text/event-stream', ending: 'hang' } as const;
    const gateway = new RoutedGateway(
      { first: [{ ...slow, pieces: [event({ content: 'Hello' })] }], second: [answerWith('no')] },
      { ALIASES: { both: [{ model: 'deepseek/first', timeout_seconds: 2 }, 'mistral/second'] } },
    );
    const pending = gateway.ask({ model: 'both', stream });
    await settle();
    gateway.clock.advance(10_000);
    await settle();
    expect(gateway.models).toEqual(['first']);
    expect(gateway.requests[0]?.isCancelled).toBe(false);
    gateway.clock.advance(1_000_000);
    await read(await pending);
  });

  test.each(WAYS)('%s: the last target has its timeout, too', async (_, stream) => {
    const gateway = new RoutedGateway(
      { first: [HANG] },
      { RETRIES: '2', ALIASES: { one: { model: 'deepseek/first', timeout_seconds: 2 } } },
    );
    const pending = gateway.ask({ model: 'one', stream });
    await settle();
    gateway.clock.advance(2000);
    const got = await read(await pending);
    expect([got.status, got.error?.code]).toEqual([504, 'timeout']);
    expect(got.error?.message).toBe('DeepSeek sent no output within 2 seconds');
    expect(gateway.models).toEqual(['first']);
    await gateway.gateway.idle();
    expect(gateway.records).toMatchObject([{ status: 'failed', error_code: 'timeout', estimated: true }]);
  });

  describe.each(WAYS)('%s: `on` of an alias', (_, stream) => {
    const tooLong = refuse(400, { code: 'context_length_exceeded' });
    const filtered = stream
      ? sse(ROLE, event({}, 'content_filter', { usage: USAGE }), DONE)
      : json({ choices: [{ index: 0, message: {}, finish_reason: 'content_filter' }], usage: USAGE });
    const { total_tokens } = USAGE;
    const gatewayWith = (behavior: Behavior, on: string[]) =>
      new RoutedGateway(
        { first: [behavior], second: [answerWith('Hello')] },
        { ALIASES: { both: [{ model: 'openai/first', on }, 'mistral/second'] } },
      );

    test.each<[name: string, behavior: Behavior, on: string, tokens: number]>([
      ['a prompt that is too long', tooLong, 'context_length', total_tokens],
      // The filtered attempt has read the prompt, too.
      ['a filtered output', filtered, 'content_filter', 2 * total_tokens],
      ['a filtered prompt', refuse(400, { code: 'content_filter' }), 'content_filter', total_tokens],
    ])('%s moves on to the next target where it is listed', async (_name, behavior, on, tokens) => {
      const gateway = gatewayWith(behavior, [on]);
      const got = await read(await gateway.ask({ model: 'both', stream }));
      expect(got).toMatchObject({ text: 'Hello', finishes: ['stop'] });
      expect(gateway.models).toEqual(['first', 'second']);
      await gateway.gateway.idle();
      expect(gateway.records[0]?.total_tokens).toBe(tokens);
    });

    test.each<[name: string, behavior: Behavior, on: string[], finishes: string[], tokens: number]>([
      ['a prompt that is too long', tooLong, [], [], 0],
      ['a filtered output', filtered, ['context_length'], ['content_filter'], total_tokens],
    ])('%s is the response where it is not listed', async (_name, behavior, on, finishes, tokens) => {
      const gateway = gatewayWith(behavior, on);
      const got = await read(await gateway.ask({ model: 'both', stream }));
      expect(got).toMatchObject({ text: '', finishes });
      expect(gateway.models).toEqual(['first']);
      await gateway.gateway.idle();
      expect(gateway.records[0]?.total_tokens).toBe(tokens);
    });
  });

  test('if the last target’s filter stops the output, that response is final', async () => {
    const filtered = sse(ROLE, event({}, 'content_filter'), DONE);
    const gateway = new RoutedGateway(
      { first: [filtered] },
      { ALIASES: { one: { model: 'openai/first', on: ['content_filter'] } } },
    );
    const got = await read(await gateway.ask({ model: 'one', stream: true }));
    expect(got).toMatchObject({ status: 200, finishes: ['content_filter'], error: null, isDone: true });
  });

  test('one conversation stays with one target, and conversations are distributed by weight', async () => {
    const steps = [
      { model: 'openai/first', weight: 3 },
      { model: 'mistral/second', weight: 1 },
    ];
    const gateway = new RoutedGateway(
      { first: [answerWith('a')], second: [answerWith('b')] },
      { ALIASES: { both: steps } },
    );
    for (const field of ['prompt_cache_key', 'user']) {
      const before = gateway.requests.length;
      for (let i = 0; i < 40; i++) await gateway.ask({ model: 'both', [field]: `chat ${i % 20}` });
      const models = gateway.models.slice(before);
      expect(models.slice(0, 20)).toEqual(models.slice(20));
      const share = models.filter((model) => model === 'first').length / models.length;
      expect(share).toBeGreaterThan(0.5);
      expect(share).toBeLessThan(1);
    }
  });
});

describe('R3 keys with globs', () => {
  const asKey = async (gateway: RoutedGateway, models: string[], fields: JsonObject) => {
    const token = await gateway.gateway.key({ models });
    return read(await gateway.gateway.ask(token, fields));
  };

  test('a target that the key may not use is skipped and reported; if none is left: 403', async () => {
    const behaviors = { first: [answerWith('no')], second: [answerWith('Hello')] };
    const gateway = new RoutedGateway(behaviors, {
      AUTH: 'keys',
      ALIASES: { both: ['deepseek/first', 'mistral/second'] },
    });
    for (const fields of [BOTH, { model: 'both' }]) {
      const got = await asKey(gateway, ['mistral/*'], fields);
      expect(got.text).toBe('Hello');
      expect(got.headers.get('x-weir-attempts')).toBe(
        'deepseek/first model_not_allowed, mistral/second 200 0ms',
      );
      const refused = await asKey(gateway, ['openai/*'], fields);
      expect([refused.status, refused.error?.message]).toEqual([403, 'This key may not use deepseek/first']);
    }
    expect(new Set(gateway.models)).toEqual(new Set(['second']));
    // The counts of refused requests are written a second later.
    gateway.clock.advance(1000);
    await gateway.gateway.idle();
    expect(gateway.records[0]?.attempts).toEqual([
      { provider: 'deepseek', model: 'first', status: null, error_code: 'model_not_allowed', ms: null },
      { provider: 'mistral', model: 'second', status: 200, error_code: null, ms: 0 },
    ]);
  });
});

describe('R5 after output no other target is tried', () => {
  test.each<[name: string, behavior: Behavior, code: string]>([
    ['a cut', begun('cut'), 'upstream_truncated'],
    ['an end', begun('end'), 'upstream_truncated'],
    ['an error', begun('hang', 'data: {"error":{"message":"no","code":"busy"}}\n\n'), 'busy'],
    ['no JSON', begun('hang', 'data: oops\n\n'), 'upstream_invalid'],
    ['silence', begun('hang'), 'stream_idle_timeout'],
  ])('%s', async (_name, behavior, code) => {
    const gateway = new RoutedGateway(
      { first: [behavior], second: [answerWith('no')] },
      {
        RETRIES: '3',
        ALIASES: { both: [{ model: 'deepseek/first', timeout_seconds: 5 }, 'mistral/second'] },
      },
    );
    const reading = read(await gateway.ask({ model: 'both', stream: true }));
    await settle();
    gateway.clock.advance(120_000);
    const got = await reading;
    expect(got).toMatchObject({ status: 200, text: 'Half', models: ['deepseek/first'], isDone: true });
    expect(got.error?.code).toBe(code);
    expect(gateway.models).toEqual(['first']);
    await gateway.gateway.idle();
    expect(gateway.records).toMatchObject([{ attempts: [{ error_code: code }], estimated: true }]);
  });

  test('a stream that is truncated, for a client that requested one object', async () => {
    const gateway = new RoutedGateway({ first: [begun('cut')], second: [answerWith('no')] });
    const got = await read(await gateway.ask(BOTH));
    expect([got.status, got.error?.code]).toEqual([502, 'upstream_truncated']);
    expect(gateway.models).toEqual(['first']);
  });

  test('chunks before the output are sent with it: one role, and no chunk of another attempt', async () => {
    const gateway = new RoutedGateway({ first: [sse(ROLE, ROLE)], second: [answerWith('Hello')] });
    const response = await gateway.ask({ ...BOTH, stream: true });
    const text = await response.text();
    expect(text.match(/"role":"assistant"/g)).toHaveLength(1);
    expect(text).not.toContain('deepseek');
  });
});

describe('R6 retry rounds', () => {
  const HALF = () => '80000000-0000-4000-8000-000000000000';

  test.each(WAYS)('%s: one busy target is retried once, by default', async (_, stream) => {
    const behaviors = { first: [refuse(503), answerWith('Hello')] };
    const gateway = new RoutedGateway(behaviors, { RETRIES: '' }, { random: HALF });
    const pending = gateway.ask({ model: 'deepseek/first', stream });
    await settle();
    expect(gateway.models).toEqual(['first']);
    gateway.clock.advance(250);
    const got = await read(await pending);
    expect(got.text).toBe('Hello');
    expect(got.headers.get('x-weir-attempts')).toBe('deepseek/first 503 0ms, deepseek/first 200 0ms');
    expect(got.headers.get('x-weir-provider')).toBe('deepseek');
  });

  test.each(WAYS)(
    '%s: a retry-after is respected; a target with one longer than 5 s is not retried',
    async (_, stream) => {
      const busy = (wait: string) => refuse(429, {}, { 'retry-after': wait });
      const gateway = new RoutedGateway(
        { first: [busy('4'), answerWith('Hello')], second: [busy('6'), answerWith('no')] },
        { RETRIES: '1' },
        { random: HALF },
      );
      const pending = gateway.ask({ ...BOTH, stream });
      await settle();
      gateway.clock.advance(3999);
      await settle();
      expect(gateway.models).toEqual(['first', 'second']);
      gateway.clock.advance(1);
      expect((await read(await pending)).text).toBe('Hello');
      expect(gateway.models).toEqual(['first', 'second', 'first']);
    },
  );

  test.each(WAYS)('%s: the wait in the details of Google’s error is respected', async (_, stream) => {
    const wait = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '3.2s' };
    const google = { base_url: 'https://google', api_key: 'GOOGLE_KEY', like: 'gemini' };
    const gateway = new RoutedGateway(
      { first: [refuse(429, { details: [wait] }), answerWith('Hello')] },
      { PROVIDERS: { google }, GOOGLE_KEY: 'k', RETRIES: '1' },
      { random: HALF },
    );
    const pending = gateway.ask({ model: 'google/first', stream });
    await settle();
    gateway.clock.advance(3999);
    await settle();
    expect(gateway.models).toEqual(['first']);
    gateway.clock.advance(1);
    expect((await read(await pending)).text).toBe('Hello');
  });

  test.each(WAYS)('%s: no target is retried if no failure is recoverable', async (_, stream) => {
    const gateway = new RoutedGateway({ first: [refuse(401)], second: [refuse(404)] }, { RETRIES: '5' });
    const got = await read(await gateway.ask({ ...BOTH, stream }));
    expect(got.headers.get('x-weir-attempts')).toBe('deepseek/first 401 0ms, mistral/second 404 0ms');
    expect(got.headers.get('x-weir-provider')).toBe('mistral');
  });

  test('a failure that is not recoverable is not retried, and the error lists every attempt', async () => {
    const gateway = new RoutedGateway({ first: [refuse(401)], second: [refuse(500)] }, { RETRIES: '2' });
    const pending = gateway.ask({ ...BOTH, stream: true });
    for (let i = 0; i < 3; i++) {
      await settle();
      gateway.clock.advance(500);
    }
    const got = await read(await pending);
    expect(gateway.models).toEqual(['first', 'second', 'second', 'second']);
    expect(got.error?.message).toBe(
      'Mistral: no (tried 4 times: deepseek/first 401, mistral/second 500, mistral/second 500, mistral/second 500)',
    );
    expect(got.headers.get('x-weir-attempts')).toMatch(
      /^deepseek\/first 401 0ms, (?:mistral\/second 500 0ms(?:, )?){3}$/,
    );
  });

  test.each(WAYS)('%s: T3 all attempts end before the deadline', async (_, stream) => {
    const busy = refuse(429, {}, { 'retry-after': '4' });
    const gateway = new RoutedGateway({ first: [busy] }, { RETRIES: '5', DEADLINE_SECONDS: '10' });
    const pending = gateway.ask({ model: 'deepseek/first', stream });
    for (const ms of [4000, 4000]) {
      await settle();
      gateway.clock.advance(ms);
    }
    // The next wait would end after the deadline: the last error is sent at once.
    const got = await read(await pending);
    expect([got.status, gateway.models.length]).toEqual([429, 3]);
    const hung = new RoutedGateway({ first: [busy, HANG] }, { RETRIES: '5', DEADLINE_SECONDS: '10' });
    const late = hung.ask({ model: 'deepseek/first', stream });
    await settle();
    hung.clock.advance(4000);
    await settle();
    hung.clock.advance(6000);
    const end = await read(await late);
    expect([end.status, end.error?.code]).toEqual([504, 'timeout']);
    expect(hung.requests.at(-1)?.isCancelled).toBe(true);
    await hung.gateway.idle();
    expect(hung.records).toMatchObject([
      { status: 'timed_out', attempts: [{ status: 429 }, { error_code: 'timeout' }] },
    ]);
  });

  test.each(WAYS)(
    '%s: T4 a client that disconnects between two attempts ends the request',
    async (_, stream) => {
      const gateway = new RoutedGateway({ first: [refuse(503)] }, { RETRIES: '5' }, { random: HALF });
      const leaving = new AbortController();
      const pending = gateway.ask({ model: 'deepseek/first', stream }, { signal: leaving.signal });
      await settle();
      leaving.abort();
      await settle();
      // No timer waits: one that is left is not set again.
      gateway.clock.advance(TIMER_MS);
      expect(gateway.clock.running).toBe(0);
      await pending.catch(() => {});
      await gateway.gateway.idle();
      expect(gateway.models).toEqual(['first']);
      expect(gateway.records).toMatchObject([{ status: 'cancelled' }]);
    },
  );
});

describe('R7 circuits', () => {
  const ALIASES = { both: ['deepseek/first', 'mistral/second'] };
  const served = async (gateway: RoutedGateway) =>
    (await read(await gateway.ask({ model: 'both' }))).headers.get('x-weir-attempts');

  test('five consecutive failures open the circuit for 10 s; then one request probes the target', async () => {
    const failing = [...Array(6).fill(refuse(503)), answerWith('first')];
    const gateway = new RoutedGateway({ first: failing, second: [answerWith('second')] }, { ALIASES });
    for (let i = 0; i < 5; i++) expect(await served(gateway)).toMatch(/^deepseek\/first 503/);
    expect(await served(gateway)).toBe('deepseek/first circuit_open, mistral/second 200 0ms');
    gateway.clock.advance(10_000);
    const several = await Promise.all([served(gateway), served(gateway), served(gateway)]);
    expect(several.filter((reported) => reported?.startsWith('deepseek/first 503'))).toHaveLength(1);
    expect(await served(gateway)).toMatch(/circuit_open/);
    gateway.clock.advance(10_000);
    expect(await served(gateway)).toBeNull();
    expect(await served(gateway)).toBeNull();
    expect(gateway.models.slice(-2)).toEqual(['first', 'first']);
  });

  test("a probe that ends with the caller's mistake has no result: the next request probes the target", async () => {
    const failing = [...Array(5).fill(refuse(503)), refuse(400), refuse(503), answerWith('first')];
    const gateway = new RoutedGateway({ first: failing, second: [answerWith('second')] }, { ALIASES });
    for (let i = 0; i < 5; i++) await served(gateway);
    gateway.clock.advance(10_000);
    expect((await gateway.ask({ model: 'both' })).status).toBe(400);
    expect(await served(gateway)).toMatch(/^deepseek\/first 503/);
    expect(await served(gateway)).toMatch(/circuit_open/);
  });

  test("a refusal of the deployment's key opens the circuit for a minute, for this route only", async () => {
    const gateway = new RoutedGateway({ first: [refuse(401)], second: [answerWith('second')] }, { ALIASES });
    expect(await served(gateway)).toMatch(/^deepseek\/first 401/);
    expect(await served(gateway)).toMatch(/circuit_open/);
    gateway.clock.advance(59_999);
    expect(await served(gateway)).toMatch(/circuit_open/);
    await gateway.ask({ model: 'both', prompt: 'a' }, {}, '/v1/completions');
    expect(gateway.models.at(-2)).toBe('first');
    gateway.clock.advance(1);
    expect(await served(gateway)).toMatch(/^deepseek\/first 401/);
  });

  test('if every circuit is open, all targets are tried', async () => {
    const gateway = new RoutedGateway({ first: [refuse(401)] });
    for (let i = 0; i < 3; i++) await gateway.ask({ model: 'deepseek/first' });
    expect(gateway.models).toHaveLength(3);
  });

  test('failures of one caller do not open the circuit for other callers', async () => {
    const ofOne: readonly Behavior[] = [
      ...Array(6).fill(refuse(429)),
      ...Array(6).fill(refuse(500)),
      refuse(404, { message: 'No such File object: file-1' }),
      refuse(403, { message: 'You do not have permission to access the File x' }),
    ];
    // The circuit opens for this caller meanwhile.
    const gateway = new RoutedGateway(
      { first: [...ofOne, answerWith('first')], second: [answerWith('second')] },
      { ALIASES, AUTH: 'keys', ADMIN_TOKEN: 'admin' },
    );
    const [one, other] = [await gateway.gateway.key(), await gateway.gateway.key()];
    const ask = async (key: string) => {
      const messages = [{ role: 'user', content: 'Hello' }];
      const answer = await gateway.gateway.post('/v1/chat/completions', key, { model: 'both', messages });
      return (await read(answer)).headers.get('x-weir-attempts');
    };
    const met: (string | null)[] = [];
    while (gateway.models.filter((model) => model === 'first').length < ofOne.length) {
      met.push(await ask(one));
      if (met.at(-1)?.includes('circuit_open')) gateway.clock.advance(10_000);
    }
    expect(met.filter((reported) => reported?.includes('circuit_open'))).not.toEqual([]);
    expect(await ask(other)).toBeNull();
  });

  test.each([
    ['a 400', refuse(400)],
    ['a 403 for what the prompt says', refuse(403, { message: 'Your input was flagged' })],
  ])("the caller's own mistakes never count: %s", async (_name, mistake) => {
    const gateway = new RoutedGateway(
      { first: [...Array(9).fill(mistake), answerWith('first')] },
      { ALIASES },
    );
    for (let i = 0; i < 9; i++) await gateway.ask({ model: 'both' });
    expect(await served(gateway)).toBeNull();
  });
});

describe('R8 reports of attempts', () => {
  test('one attempt: no header, and one entry in the record', async () => {
    const gateway = new RoutedGateway({ first: [answerWith('Hello')] }, { RETRIES: '1' });
    const got = await read(await gateway.ask(BOTH));
    expect(got.headers.has('x-weir-attempts')).toBe(false);
    await gateway.gateway.idle();
    expect(gateway.records[0]?.attempts).toEqual([
      { provider: 'deepseek', model: 'first', status: 200, error_code: null, ms: 0 },
    ]);
  });

  test('only the headers of the upstream that served the request are passed on', async () => {
    const first = refuse(429, {}, { 'retry-after': '7', 'x-ratelimit-remaining-requests': '0' });
    const gateway = new RoutedGateway({ first: [first], second: [answerWith('Hello')] });
    const got = await read(await gateway.ask({ ...BOTH, stream: true }));
    expect([got.headers.get('retry-after'), got.headers.get('x-ratelimit-remaining-requests')]).toEqual([
      null,
      null,
    ]);
    const none = new RoutedGateway({ first: [refuse(500)], second: [first] });
    expect((await read(await none.ask(BOTH))).headers.get('retry-after')).toBe('7');
  });

  test('the attempts are in the record that the caller can look up', async () => {
    const gateway = new RoutedGateway({ first: [refuse(503)], second: [answerWith('Hello')] });
    const response = await gateway.ask(BOTH);
    await response.text();
    await gateway.gateway.idle();
    const id = response.headers.get('x-weir-request-id');
    const record = decodeObject(await (await gateway.gateway.fetch(`/v1/usage/records/${id}`, 'x')).text());
    expect(record).toMatchObject({
      asked: 'deepseek/first',
      provider: 'mistral',
      attempts: [
        { provider: 'deepseek', status: 503, ms: 0 },
        { provider: 'mistral', status: 200 },
      ],
    });
  });
});

describe.each(WAYS)('R4 %s: a refusal whose body does not end', (_, stream) => {
  const cutOff = (status: number, ending: 'cut' | 'hang'): Behavior => {
    return { kind: 'refuse', status, body: '{"error":{"message":"no"', ending };
  };

  test('that hangs: the next target is tried after 5 s, and the upstream is cancelled', async () => {
    const gateway = new RoutedGateway({ first: [cutOff(503, 'hang')], second: [answerWith('Hello')] });
    const pending = gateway.ask({ ...BOTH, stream });
    await settle();
    expect(gateway.models).toEqual(['first']);
    gateway.clock.advance(5000);
    expect(await read(await pending)).toMatchObject({ status: 200, text: 'Hello' });
    expect(gateway.requests[0]?.isCancelled).toBe(true);
  });

  test('whose connection breaks: its status decides, as with the complete body', async () => {
    const behaviors = {
      first: [cutOff(503, 'cut')],
      second: [cutOff(400, 'cut')],
      third: [answerWith('Hello')],
    };
    const gateway = new RoutedGateway(behaviors);
    const got = await read(await gateway.ask({ ...BOTH, models: [...BOTH.models, 'openai/third'], stream }));
    expect(got.status).toBe(400);
    expect(gateway.models).toEqual(['first', 'second']);
  });
});

describe('R9 an attempt that is given up is cancelled at once', () => {
  const SILENCE = { ...sse(ROLE), ending: 'hang' } as Behavior;

  test.each<[name: string, behavior: Behavior]>([
    [
      'an error event of a stream that goes on',
      { ...sse('data: {"error":"no"}\n\n'), ending: 'hang' } as Behavior,
    ],
    ['a line that is no JSON', { ...sse('data: oops\n\n'), ending: 'hang' } as Behavior],
    ['silence', SILENCE],
  ])('%s', async (_name, behavior) => {
    const gateway = new RoutedGateway({
      first: [behavior],
      second: [SILENCE],
    });
    const pending = gateway.ask({ ...BOTH, stream: true });
    await settle();
    if (behavior === SILENCE) gateway.clock.advance(120_000);
    await settle();
    expect(gateway.models).toEqual(['first', 'second']);
    expect(gateway.requests.map(({ isCancelled }) => isCancelled)).toEqual([true, false]);
    gateway.clock.advance(1_000_000);
    await read(await pending);
    expect(gateway.requests.map(({ isCancelled }) => isCancelled)).toEqual([true, true]);
  });

  test.each(WAYS)('%s: T4 a client that disconnects cancels the current attempt', async (_, stream) => {
    const gateway = new RoutedGateway({ first: [refuse(503)], second: [HANG] }, { RETRIES: '3' });
    const leaving = new AbortController();
    const pending = gateway.ask({ ...BOTH, stream }, { signal: leaving.signal });
    await settle();
    leaving.abort();
    await settle();
    expect(gateway.requests.at(-1)?.isCancelled).toBe(true);
    await pending.catch(() => {});
    await gateway.gateway.idle();
    expect(gateway.models).toEqual(['first', 'second']);
    expect(gateway.records).toMatchObject([
      { status: 'cancelled', attempts: [{ status: 503 }, { status: null }] },
    ]);
  });
});

describe('R11 aliases are reported', () => {
  const ALIASES = { fast: 'mistral/second', 'claude-*': 'deepseek/first', both: BOTH.models };

  test('in x-weir-alias only: chunks name the address that served the request', async () => {
    const gateway = new RoutedGateway({ first: [answerWith('a')], second: [answerWith('b')] }, { ALIASES });
    for (const [model, served] of [
      ['fast', 'mistral/second'],
      ['claude-opus-9', 'deepseek/first'],
    ] as const) {
      for (const stream of [true, false]) {
        const response = await gateway.ask({ model, stream });
        expect(response.headers.get('x-weir-alias')).toBe(model);
        const text = await response.text();
        expect(text).not.toContain(model);
        expect(text).toContain(`"model":"${served}"`);
      }
    }
    expect((await gateway.ask({ model: 'mistral/second' })).headers.has('x-weir-alias')).toBe(false);
    await gateway.gateway.idle();
    expect(gateway.records[0]?.asked).toBe('fast');
  });

  test('in /v1/models, except globs and aliases without a target that the key may use', async () => {
    const gateway = new RoutedGateway({}, { AUTH: 'keys', ALIASES });
    const token = await gateway.gateway.key({ models: ['mistral/*'] });
    const listed = async (bearer: string) => {
      const list = decodeObject(await (await gateway.gateway.fetch('/v1/models', bearer)).text());
      return objectsOf(list?.data).map(({ id }) => textOf(id));
    };
    expect(await listed('admin')).toEqual(['fast', 'both']);
    expect(await listed(token)).toEqual(['fast', 'both']);
    expect(await listed(await gateway.gateway.key({ models: ['openai/*'] }))).toEqual([]);
  });
});

describe('R12 every route', () => {
  const textChoice = { index: 0, text: 'Hello', finish_reason: 'stop' };
  const text = (isStreamed: boolean): Behavior =>
    isStreamed
      ? sse(`data: ${JSON.stringify({ choices: [textChoice] })}\n\n`, DONE)
      : json({ choices: [textChoice] });

  describe.each(WAYS)('%s: falls back', (_, stream) => {
    test.each([
      ['/v1/chat/completions', {}, answerWith('Hello')],
      ['/v1/completions', { prompt: 'a' }, text],
      ['/v1/fim/completions', { prompt: 'a', suffix: 'b' }, text],
      ['/beta/completions', { prompt: 'a' }, text],
      ['/openai/deployments/openai%2Ffirst/chat/completions', {}, answerWith('Hello')],
    ])('%s', async (path, fields, answer) => {
      const gateway = new RoutedGateway({ first: [refuse(503)], second: [answer] });
      const models = ['deepseek/second'];
      const got = await read(
        await gateway.ask({ model: 'openai/first', models, stream, ...fields }, {}, path),
      );
      expect(got.text).toBe('Hello');
      expect(got.headers.get('x-weir-attempts')).toBe('openai/first 503 0ms, deepseek/second 200 0ms');
    });
  });

  test('an agent is one target, which is retried', async () => {
    const gateway = new RoutedGateway({ ag: [refuse(503), answerWith('Hello')] }, { RETRIES: '1' });
    const fields = { agent_id: 'ag', models: ['deepseek/first'] };
    const pending = gateway.ask(fields, {}, '/v1/agents/completions');
    await settle();
    gateway.clock.advance(250);
    expect((await read(await pending)).text).toBe('Hello');
    expect(gateway.requests.map(({ provider, body }) => [provider, body.agent_id, body.models])).toEqual([
      ['mistral', 'ag', undefined],
      ['mistral', 'ag', undefined],
    ]);
  });
});

describe('R8 G2 budgets', () => {
  const entry = { since: '2026-01-01T00:00:00Z', currency: 'USD', input: 0 };
  const PRICES = JSON.stringify([
    { ...entry, provider: 'deepseek', models: ['first'], output: 1 },
    { ...entry, provider: 'mistral', models: ['second'], output: 50 },
  ]);

  test('one reservation for the most expensive target and the longest output, and one settlement of the sum', async () => {
    const gateway = new RoutedGateway(
      { first: [refuse(503)], second: [answerWith('Hello')] },
      { AUTH: 'keys', PRICES },
    );
    const token = await gateway.gateway.key({ budget: { USD: 5 } });
    const response = await gateway.gateway.ask(token, { ...BOTH, max_tokens: 10_000 });
    expect(response.headers.get('x-weir-budget-remaining')).toBe('4.50 USD');
    await response.text();
    await gateway.gateway.idle();
    const calls = gateway.gateway.calls.filter((call) => !call.startsWith('kv'));
    expect(calls).toEqual(['reserve', 'settleReservation']);
    expect([gateway.gateway.sql.count('reservations'), gateway.gateway.sql.count('spent')]).toEqual([0, 1]);
  });

  test("each target gets the key's output limit under the provider's name for it", async () => {
    const gateway = new RoutedGateway(
      { first: [refuse(503)], second: [answerWith('Hello')] },
      {
        AUTH: 'keys',
        ALIASES: { both: ['openai/first', { model: 'mistral/second', set: { max_tokens: 9 } }] },
      },
    );
    const token = await gateway.gateway.key({ max_output_tokens: 50, rpm: 5 });
    const got = await read(await gateway.gateway.ask(token, { model: 'both' }));
    expect(gateway.requests.map(({ body }) => [body.max_completion_tokens, body.max_tokens])).toEqual([
      [50, undefined],
      [undefined, 9],
    ]);
    expect(got.headers.get('x-weir-changed')).toBeNull();
  });

  test('tokens of all attempts are charged', async () => {
    const filtered = json({
      choices: [{ index: 0, message: {}, finish_reason: 'content_filter' }],
      usage: USAGE,
    });
    const gateway = new RoutedGateway(
      { first: [filtered], second: [answerWith('Hello')] },
      {
        AUTH: 'keys',
        ALIASES: { both: [{ model: 'openai/first', on: ['content_filter'] }, 'mistral/second'] },
      },
    );
    const token = await gateway.gateway.key({ budget: { tokens: 100_000 } });
    await (await gateway.gateway.ask(token, { model: 'both' })).text();
    await gateway.gateway.idle();
    const spent = gateway.gateway.sql.exec<{ tokens: number }>('SELECT tokens FROM spent').toArray();
    expect(spent).toEqual([{ tokens: 2 * USAGE.total_tokens }]);
  });

  test('a hard budget in money skips a step without a price, as one that the key may not use', async () => {
    const ALIASES = { both: ['openai/unpriced', 'mistral/second'] };
    const gateway = new RoutedGateway({ second: [answerWith('Hello')] }, { AUTH: 'keys', PRICES, ALIASES });
    const token = await gateway.gateway.key({ budget: { USD: 5 } });
    const got = await read(await gateway.gateway.ask(token, { model: 'both' }));
    expect(got.text).toBe('Hello');
    expect(gateway.requests.map(({ body }) => body.model)).toEqual(['second']);
    expect(got.headers.get('x-weir-attempts')).toContain('openai/unpriced model_not_allowed');
  });

  test('a budget in money refuses a request whose targets have no price, and names the model', async () => {
    const ALIASES = { both: ['openai/unpriced', 'mistral/other'] };
    const gateway = new RoutedGateway({}, { AUTH: 'keys', PRICES, ALIASES });
    const token = await gateway.gateway.key({ budget: { USD: 5 } });
    const refused = await read(await gateway.gateway.ask(token, { model: 'both' }));
    expect([refused.status, refused.error?.code]).toEqual([403, 'model_not_allowed']);
    expect(refused.error?.message).toContain('openai/unpriced has no price in USD');
    expect(gateway.requests).toEqual([]);
  });

  test.each([{ budget: { USD: 5, mode: 'warn' } }, { budget: { tokens: 100_000 } }])(
    'a budget that needs no price skips nothing: %j',
    async (limits) => {
      const ALIASES = { both: ['openai/unpriced', 'mistral/second'] };
      const gateway = new RoutedGateway(
        { unpriced: [answerWith('Hello')] },
        { AUTH: 'keys', PRICES, ALIASES },
      );
      const token = await gateway.gateway.key(limits);
      expect((await read(await gateway.gateway.ask(token, { model: 'both' }))).text).toBe('Hello');
    },
  );

  test("a server of one's own with a price of 0 is used under a hard budget", async () => {
    const own = { ...entry, provider: 'openai', models: ['*'], output: 0 };
    const gateway = new RoutedGateway(
      { mine: [answerWith('Hello')] },
      { AUTH: 'keys', PRICES: JSON.stringify([own]) },
    );
    const token = await gateway.gateway.key({ budget: { USD: 0 } });
    expect((await read(await gateway.gateway.ask(token, { model: 'openai/mine' }))).text).toBe('Hello');
  });

  test('a tier without a price is refused with the name of the model', async () => {
    const gateway = new RoutedGateway({}, { AUTH: 'keys', PRICES });
    const token = await gateway.gateway.key({ budget: { USD: 5 } });
    const fields = { model: 'deepseek/first', service_tier: 'priority' };
    const refused = await read(await gateway.gateway.ask(token, fields));
    expect(refused.error?.message).toContain('deepseek/first with the service_tier');
  });
});

test('B5 M1 R4 an exception while the next target is prepared: an error, one record, no memory kept', async () => {
  const broken = () => {
    throw new Error('the inside of it');
  };
  for (const stream of [true, false]) {
    let uuids = 0;
    const gateway = new RoutedGateway(
      { first: [refuse(503)] },
      { RETRIES: '1' },
      {
        // The backoff of the second round is drawn after the first one has failed.
        random: () => (uuids++ > 0 ? broken() : crypto.randomUUID()),
      },
    );
    const got = await read(await gateway.ask({ model: 'deepseek/first', stream }));
    expect([got.status, got.error?.code]).toEqual([500, 'internal_error']);
    expect(JSON.stringify(got.error)).not.toContain('inside');
    await gateway.gateway.idle();
    expect(gateway.records).toMatchObject([{ status: 'failed', error_code: 'internal_error' }]);
    expect(
      objectOf(gateway.gateway.logged.find((line) => objectOf(line).event === 'internal_error')),
    ).not.toEqual({});
  }
});
