/** Tests requests that a refusal changes: the rounds, the memory and its conditions, what is reported, and what stays as it is. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { REFUSAL_TEXTS } from '../../tools/simulator/refusal-texts.ts';
import { seeded } from '../random.ts';
import { repeatable, runsOf, SEED } from '../random-run.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { answerWith, json, ROLE, RoutedGateway, read, refuse, settle, sse } from './upstreams.ts';

const HOUR_MS = 3_600_000;
const ENV = {
  PROVIDERS: { acme: { base_url: 'https://acme/v1', api_key: 'ACME_KEY' } },
  ACME_KEY: 'key-of-acme',
};
const UNSUPPORTED_TEMPERATURE = {
  message: "Unsupported parameter: 'temperature' is not supported with this model.",
  param: 'temperature',
  code: 'unsupported_parameter',
};
const NO_TEMPERATURE = refuse(400, UNSUPPORTED_TEMPERATURE);
const ONLY_MEDIUM = refuse(400, {
  message:
    "Unsupported value: 'reasoning_effort' does not support 'high' with this model. Supported values are: 'medium'.",
  param: 'reasoning_effort',
});
const WHILE_THINKING = refuse(400, {
  message: '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.',
});
const NAMED_SEED = refuse(400, { message: 'Unrecognized request argument supplied: seed' });
const TOO_LONG = refuse(400, {
  message: "This model's maximum context length is 8192 tokens.",
  code: 'context_length_exceeded',
});

function gatewayOf(behaviors: ConstructorParameters<typeof RoutedGateway>[0], env: JsonObject = {}) {
  return new RoutedGateway(behaviors, { ...ENV, ...env });
}

function errorEvent(error: JsonObject): string {
  return `data: ${JSON.stringify({ error: { type: 'invalid_request_error', ...error } })}\n\n`;
}

function learned({ gateway }: RoutedGateway) {
  return gateway.logged.filter(({ event }) => event === 'provider_learned');
}

describe.each([true, false])('streamed: %s', (stream) => {
  const ask = async (gateway: RoutedGateway, fields: JsonObject, init: RequestInit = {}) =>
    read(await gateway.ask({ model: 'acme/m', stream, ...fields }, init));

  test('Z1 a refused field: one more request without it, which the record and the headers name', async () => {
    const gateway = gatewayOf({ m: [NO_TEMPERATURE, answerWith('Hi')] });
    const response = await ask(gateway, { temperature: 0.7, top_p: 0.5 });
    expect(response).toMatchObject({ status: 200, text: 'Hi' });
    expect(response.headers.get('x-weir-dropped')).toBe('temperature');
    expect(gateway.requests.map(({ body }) => [body.temperature, body.top_p])).toEqual([
      [0.7, 0.5],
      [undefined, 0.5],
    ]);
    await settle();
    expect(gateway.records).toMatchObject([
      {
        status: 'finished',
        attempts: [{ status: 400, cause: expect.stringContaining('temperature') }, { status: 200 }],
      },
    ]);
  });

  test.each(['0', '1'])(
    'H3 Z1 refused in an error event after the role, RETRIES %s: one more request without the field',
    async (RETRIES) => {
      const refused = sse(ROLE + errorEvent(UNSUPPORTED_TEMPERATURE));
      const gateway = gatewayOf({ m: [refused, answerWith('Hi')] }, { RETRIES });
      expect(await ask(gateway, { temperature: 0.7 })).toMatchObject({ status: 200, text: 'Hi' });
      expect(gateway.requests.map(({ body }) => body.temperature)).toEqual([0.7, undefined]);
    },
  );

  test.each(['0', '1'])(
    'H3 an error event after the role that no change mends, RETRIES %s: an HTTP error',
    async (RETRIES) => {
      const overlong = { message: "This model's maximum context length is 8192 tokens." };
      const gateway = gatewayOf({ m: [sse(ROLE + errorEvent(overlong))] }, { RETRIES });
      const response = await ask(gateway, { temperature: 0.7 });
      expect(response).toMatchObject({ status: 400, error: { message: expect.stringContaining('8192') } });
      expect(gateway.requests).toHaveLength(1);
    },
  );

  test('Z1 three rounds at most: the fourth refusal ends the request', async () => {
    const fields = ['temperature', 'top_p', 'seed', 'user'];
    const gateway = gatewayOf({
      m: fields.map((field) => refuse(400, { message: `Unsupported parameter: '${field}'` })),
    });
    const response = await ask(gateway, { temperature: 0, top_p: 0.5, seed: 1, user: 'ada' });
    expect(response.status).toBe(400);
    expect(gateway.requests).toHaveLength(4);
  });

  test('Z4 a host that names one field at a time: those that passed are left out of the next request', async () => {
    const fields = ['temperature', 'top_p', 'seed', 'user'];
    const refusals = fields.map((field) => refuse(400, { message: `Unsupported parameter: '${field}'` }));
    const last = refuse(400, { message: "Unsupported parameter: 'user'" });
    const gateway = gatewayOf({ m: [...refusals, last, answerWith('a'), answerWith('b')] });
    const sent = { temperature: 0, top_p: 0.5, seed: 1, user: 'ada' };
    expect((await ask(gateway, sent)).status).toBe(400);
    expect((await ask(gateway, sent)).status).toBe(200);
    expect((await ask(gateway, sent)).status).toBe(200);
    const left = gateway.requests.map(({ body }) => fields.filter((field) => body[field] !== undefined));
    expect(left).toEqual([fields, ['top_p', 'seed', 'user'], ['seed', 'user'], ['user'], ['user'], [], []]);
    expect(learned(gateway)).toHaveLength(4);
  });

  test.each([
    "The 'metadata' parameter is only allowed when 'store' is enabled.",
    "'metadata' is not supported for this organization",
    "'metadata' is not available on your plan",
    "'metadata' is not supported unless you are verified",
  ])('Z4 a condition that is not on the list: this request is changed, no other: %s', async (text) => {
    const gateway = gatewayOf({ m: [refuse(400, { message: text }), answerWith('a'), answerWith('b')] });
    const metadata = { a: 'b' };
    expect((await ask(gateway, { metadata })).status).toBe(200);
    await ask(gateway, { metadata, store: true });
    expect(gateway.requests.map(({ body }) => body.metadata)).toEqual([metadata, undefined, metadata]);
    expect(learned(gateway)).toEqual([]);
  });

  test('Z4 what one key was refused changes the requests of others once a second key was refused it', async () => {
    const refusals = [NO_TEMPERATURE, answerWith('a'), answerWith('b'), NO_TEMPERATURE];
    const gateway = gatewayOf({ m: [...refusals, answerWith('c'), answerWith('d')] }, { AUTH: 'keys' });
    const keys = [await gateway.gateway.key(), await gateway.gateway.key(), await gateway.gateway.key()];
    const fields = { model: 'acme/m', stream, temperature: 0.7, messages: [{ role: 'user', content: 'Hi' }] };
    const send = async (at: number) =>
      (await gateway.gateway.post('/v1/chat/completions', keys[at] ?? '', fields)).text();
    for (const at of [0, 0, 1, 2, 0]) await send(at);
    expect(gateway.requests.map(({ body }) => body.temperature)).toEqual([
      ...[0.7, undefined],
      undefined,
      ...[0.7, undefined],
      undefined,
      undefined,
    ]);
    expect(learned(gateway)).toHaveLength(1);
  });

  test('E5 what is learned has no value of the caller: neither in the log nor in the memory', async () => {
    const marker = 'zebraquartz';
    const values = refuse(400, {
      message: 'Invalid value. Supported values are: in_memory, pebblelemur.',
      param: 'prompt_cache_retention',
    });
    const effort = refuse(400, { message: 'Invalid reasoning effort' });
    for (const [refusal, fields] of [
      [values, { prompt_cache_retention: marker }],
      [effort, { reasoning_effort: marker }],
    ] as const) {
      const gateway = gatewayOf({ m: [refusal, answerWith('a'), answerWith('b')] });
      await ask(gateway, { ...fields, user: `user-${marker}` });
      await ask(gateway, { ...fields, user: `user-${marker}` });
      await settle();
      expect(gateway.requests).toHaveLength(3);
      expect(learned(gateway)).toHaveLength(1);
      expect(JSON.stringify(learned(gateway))).not.toMatch(/zebraquartz|lemur/);
      expect(JSON.stringify(gateway.records.map(({ attempts }) => attempts))).not.toContain(marker);
    }
  });

  test('Z1 refused again for what Weir set: the client gets the first refusal', async () => {
    const gateway = gatewayOf({
      m: [ONLY_MEDIUM, refuse(400, { message: 'Invalid effort: reasoning_effort' })],
    });
    const response = await ask(gateway, { reasoning_effort: 'high' });
    expect(response.error).toMatchObject({ message: expect.stringContaining("does not support 'high'") });
    expect(gateway.requests.map(({ body }) => body.reasoning_effort)).toEqual(['high', 'medium']);
  });

  test('Z1 E1 refused again in an error event before any output: the client gets the first refusal, whose text the record shows', async () => {
    const again = sse(ROLE + errorEvent({ message: 'Invalid effort: reasoning_effort' }));
    const gateway = gatewayOf({ m: [ONLY_MEDIUM, again] });
    const response = await ask(gateway, { reasoning_effort: 'high' });
    expect(response).toMatchObject({
      status: 400,
      error: { message: expect.stringMatching(/does not support 'high'.*\(tried 2 times/) },
    });
    await settle();
    const [first, second] = gateway.records[0]?.attempts ?? [];
    expect([first?.message_shown, second?.message_shown]).toEqual([true, undefined]);
  });

  test('Z1 refused then for another reason: the client gets that one', async () => {
    const gateway = gatewayOf({ m: [NO_TEMPERATURE, TOO_LONG] });
    const response = await ask(gateway, { temperature: 0.7 });
    expect(response.error).toMatchObject({ code: 'context_length_exceeded' });
  });

  test('Z1 the prompt is too long: one request, as before', async () => {
    const gateway = gatewayOf({ m: [TOO_LONG] });
    expect((await ask(gateway, { temperature: 0.7, max_tokens: 8192 })).status).toBe(400);
    expect(gateway.requests).toHaveLength(1);
  });

  test('Z4 the next request begins with the change, for an hour, and names it', async () => {
    const gateway = gatewayOf({ m: [NO_TEMPERATURE, answerWith('a'), answerWith('b'), answerWith('c')] });
    await ask(gateway, { temperature: 0.7 });
    const second = await ask(gateway, { temperature: 0.2 });
    expect(second.headers.get('x-weir-dropped')).toBe('temperature');
    await gateway.clock.advance(HOUR_MS);
    await ask(gateway, { temperature: 0.2 });
    expect(gateway.requests.map(({ body }) => body.temperature)).toEqual([0.7, undefined, undefined, 0.2]);
  });

  test('Z4 another model and another value: as they are written', async () => {
    const gateway = gatewayOf({ m: [ONLY_MEDIUM, answerWith('a'), answerWith('b')], o: [answerWith('c')] });
    await ask(gateway, { reasoning_effort: 'high' });
    await ask(gateway, { reasoning_effort: 'medium' });
    await ask(gateway, { model: 'acme/o', reasoning_effort: 'high' });
    expect(gateway.requests.map(({ body }) => body.reasoning_effort)).toEqual([
      'high',
      'medium',
      'medium',
      'high',
    ]);
  });

  test('Z4 a condition that the refusal names: requests without thinking keep their temperature', async () => {
    const gateway = gatewayOf({ m: [WHILE_THINKING, answerWith('a'), answerWith('b'), answerWith('c')] });
    const thinking = { type: 'enabled', budget_tokens: 2000 };
    await ask(gateway, { temperature: 0, thinking });
    await ask(gateway, { temperature: 0 });
    await ask(gateway, { temperature: 0.3, thinking });
    expect(gateway.requests.map(({ body }) => body.temperature)).toEqual([0, 1, 0, 1]);
  });

  test.each([
    ['of an eighth of what was asked: later requests begin with it', 16_000, 16_000],
    ['below a sixteenth of what was asked: for one request alone', 4, 50_000],
  ])('Z4 a limit %s', async (_, limit, later) => {
    const refusal = refuse(400, { message: `max_tokens must be at most ${limit}` });
    const gateway = gatewayOf({ m: [refusal, answerWith('a'), answerWith('b')] });
    await ask(gateway, { max_tokens: 128_000 });
    await ask(gateway, { max_tokens: 50_000 });
    expect(gateway.requests.map(({ body }) => body.max_tokens)).toEqual([128_000, limit, later]);
  });

  test('Z4 the changed form is refused: it is forgotten', async () => {
    const gateway = gatewayOf({
      m: [
        ONLY_MEDIUM,
        answerWith('a'),
        refuse(400, { message: 'reasoning_effort: medium is out of order' }),
        answerWith('b'),
      ],
    });
    await ask(gateway, { reasoning_effort: 'high' });
    await ask(gateway, { reasoning_effort: 'high' });
    await ask(gateway, { reasoning_effort: 'high' });
    expect(gateway.requests.map(({ body }) => body.reasoning_effort)).toEqual([
      'high',
      'medium',
      'medium',
      'high',
    ]);
  });

  test('Z4 callers with credentials of their own: nothing is remembered', async () => {
    const gateway = gatewayOf(
      { m: [NO_TEMPERATURE, answerWith('a'), NO_TEMPERATURE, answerWith('b')] },
      { AUTH: 'passthrough' },
    );
    for (const key of ['first', 'second']) {
      await ask(gateway, { temperature: 0.7 }, { headers: { authorization: `Bearer ${key}` } });
    }
    expect(gateway.requests.map(({ body }) => body.temperature)).toEqual([0.7, undefined, 0.7, undefined]);
    expect(learned(gateway)).toEqual([]);
  });

  test('Z5 the log says once what was learned, without the prompt', async () => {
    const gateway = gatewayOf({ m: [NO_TEMPERATURE, answerWith('a'), NO_TEMPERATURE, answerWith('b')] });
    await ask(gateway, { temperature: 0.7, messages: [{ role: 'user', content: 'a secret plan' }] });
    expect(learned(gateway)).toMatchObject([
      {
        provider: 'acme',
        model: 'm',
        finding: { kind: 'unsupported', field: 'temperature' },
        table: 'fields: { temperature: REFUSED }',
      },
    ]);
    expect(JSON.stringify(learned(gateway))).not.toContain('secret plan');
  });

  test('Z3 LEARN=off, and UNSUPPORTED=refuse: the refusal reaches the client', async () => {
    for (const env of [{ LEARN: 'off' }, { UNSUPPORTED: 'refuse' }]) {
      const gateway = gatewayOf({ m: [NO_TEMPERATURE, answerWith('a')] }, env);
      expect((await ask(gateway, { temperature: 0.7 })).status).toBe(400);
      expect(gateway.requests).toHaveLength(1);
    }
  });

  test('Z3 UNSUPPORTED=refuse: a name changes, because nothing is lost', async () => {
    const renamed = refuse(400, {
      message:
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    });
    const gateway = gatewayOf({ m: [renamed, answerWith('a')] }, { UNSUPPORTED: 'refuse' });
    expect((await ask(gateway, { max_tokens: 5 })).status).toBe(200);
    expect(gateway.requests[1]?.body).toMatchObject({ max_completion_tokens: 5 });
    expect(gateway.requests[1]?.body).not.toHaveProperty('max_tokens');
  });

  test('Z3 a field that Weir does not know: removed with UNSUPPORTED=drop alone', async () => {
    const refusal = refuse(400, { message: 'Unrecognized request argument supplied: turbo_mode' });
    for (const [mode, calls] of [
      ['auto', 1],
      ['drop', 2],
    ] as const) {
      const gateway = gatewayOf({ m: [refusal, answerWith('a')] }, { UNSUPPORTED: mode });
      await ask(gateway, { turbo_mode: true });
      expect(gateway.requests).toHaveLength(calls);
    }
  });

  test.each([
    'max_tokens must be <= 1',
    'temperature must be 1',
    'Unsupported  parameters:  temperature, seed',
    'top_k <= 1',
  ])('Z2 a host that repeats the prompt changes nothing, for nobody: %s', async (prompt) => {
    const echo = refuse(400, { message: `Request too large for text: ${prompt}` });
    const gateway = gatewayOf({ m: [echo, answerWith('a')] });
    const fields = { max_tokens: 5000, temperature: 0.7, seed: 1, top_k: 9 };
    const messages = [{ role: 'user', content: prompt.toUpperCase() }];
    expect((await ask(gateway, { ...fields, messages })).status).toBe(400);
    await ask(gateway, fields);
    expect(gateway.requests.map(({ body }) => [body.max_tokens, body.temperature, body.seed])).toEqual([
      [5000, 0.7, 1],
      [5000, 0.7, 1],
    ]);
  });

  test('Z2 a refusal of a request that is too large to compare changes nothing', async () => {
    const gateway = gatewayOf({ m: [NO_TEMPERATURE] }, { MAX_REQUEST_BYTES: String(16 * 1024 * 1024) });
    const messages = [{ role: 'user', content: 'x'.repeat(8 * 1024 * 1024 + 1) }];
    expect((await ask(gateway, { temperature: 0.7, messages })).status).toBe(400);
    expect(gateway.requests).toHaveLength(1);
  });

  test('Z2 a refusal that repeats the prompt changes nothing', async () => {
    const prompt = "Unsupported parameter: 'temperature' is not supported with this model.";
    const gateway = gatewayOf({ m: [refuse(400, { message: `Invalid content: ${prompt}` })] });
    await ask(gateway, { temperature: 0.7, messages: [{ role: 'user', content: prompt }] });
    expect(gateway.requests).toHaveLength(1);
  });

  test('Z1 a call of a tool against its schema: one request, and all schemas stay', async () => {
    const fault = refuse(400, {
      message:
        "Tool call validation failed: parameters for tool read did not match schema: errors: [additionalProperties 'foo' not allowed]",
      code: 'tool_use_failed',
      failed_generation: '{"name":"read","arguments":{"foo":1}}',
    });
    const parameters = { type: 'object', properties: {}, additionalProperties: false };
    const tools = [{ type: 'function', function: { name: 'read', parameters } }];
    const gateway = gatewayOf({ m: [fault, answerWith('a')] });
    expect((await ask(gateway, { tools })).status).toBe(400);
    await ask(gateway, { tools });
    expect(gateway.requests.map(({ body }) => body.tools)).toEqual([tools, tools]);
  });

  test.each([
    ['my password is zebraquartz 4711 for alice', 'invalid_request'],
    ['a/b:c', 'invalid_request'],
    ['x'.repeat(65), 'invalid_request'],
    ['some.code-4_2', 'some.code-4_2'],
  ])('E5 the code %s of a provider is stored as %s', async (code, stored) => {
    for (const behavior of [
      refuse(400, { message: 'No', code }),
      sse(ROLE + errorEvent({ message: 'No', code, status: 400 })),
    ]) {
      const gateway = gatewayOf({ m: [behavior] }, { RETRIES: '0' });
      await ask(gateway, {});
      await settle();
      const [record] = gateway.records;
      expect([record?.error_code, record?.attempts.map(({ error_code }) => error_code)]).toEqual([
        stored,
        [stored],
      ]);
      if (stored !== code)
        expect(JSON.stringify([gateway.records, gateway.gateway.logged])).not.toContain(code);
    }
  });

  test('Z1 the circuit stays closed, however often a field is refused', async () => {
    const behaviors = Array.from({ length: 12 }, () => NAMED_SEED);
    const gateway = gatewayOf({ m: behaviors.flatMap((one) => [one, answerWith('a')]) });
    for (let at = 0; at < 12; at++) {
      await gateway.clock.advance(HOUR_MS);
      expect((await ask(gateway, { seed: at })).status).toBe(200);
    }
  });
});

describe('Z4 two callers', () => {
  const mended = REFUSAL_TEXTS.filter(({ mended }) => mended !== null);

  test.each(mended.map((row) => [row.name, row] as const))(
    '%s: a request without the field is sent as it was',
    async (_, row) => {
      const { text, status = 400, sent } = row;
      const body =
        text.startsWith('{') || text.startsWith('[') ? text : JSON.stringify({ error: { message: text } });
      const gateway = gatewayOf({ m: [{ kind: 'refuse', status, body }, answerWith('a')] });
      const plain = { model: 'acme/m', messages: [{ role: 'user', content: 'Hello' }] };
      const before = gatewayOf({ m: [answerWith('a')] });
      await read(await before.ask(plain));
      await read(await gateway.ask({ model: 'acme/m', ...sent }));
      await read(await gateway.ask(plain));
      expect(gateway.requests.at(-1)?.body).toEqual(before.requests[0]?.body);
    },
  );
});

describe('Z3 random refusals', () => {
  const FIELDS = ['temperature', 'top_p', 'seed', 'user', 'metadata', 'verbosity', 'presence_penalty'];
  const KEPT = ['stop', 'n', 'logprobs', 'response_format'];

  const RUNS = runsOf(60);

  test(`at most three rounds, and no change outside of the list (SEED=${SEED}, ${RUNS} runs)`, async () => {
    for (let seed = SEED; seed < SEED + RUNS; seed++) await repeatable(seed, () => runOnce(seeded(seed)));

    async function runOnce(random: () => number): Promise<void> {
      const refused = [...FIELDS, ...KEPT].filter(() => random() < 1 / 3);
      const sent: JsonObject = {
        ...{ temperature: 0.5, top_p: 0.4, seed: 1, user: 'ada', metadata: { a: 'b' }, verbosity: 'low' },
        ...{
          presence_penalty: 1,
          stop: ['x'],
          n: 2,
          logprobs: true,
          response_format: { type: 'json_object' },
        },
      };
      const gateway = gatewayOf({ m: [answerWith('a')] });
      const behaviors = refused.map((field) => refuse(400, { message: `Unsupported parameter: '${field}'` }));
      const scripted = gatewayOf({ m: [...behaviors, answerWith('a')] });
      await read(await gateway.ask({ model: 'acme/m', ...sent }));
      await read(await scripted.ask({ model: 'acme/m', ...sent }));
      expect(scripted.requests.length).toBeLessThanOrEqual(4);
      const first = scripted.requests[0]?.body ?? {};
      expect(first).toEqual(gateway.requests[0]?.body);
      for (const { body } of scripted.requests) {
        for (const field of KEPT) expect(body[field]).toEqual(first[field]);
        for (const [field, value] of Object.entries(body)) expect(first[field]).toEqual(value);
      }
    }
  });
});

describe('Z1 Z3 passthrough', () => {
  const send = (gateway: RoutedGateway, fields: JsonObject, headers: Record<string, string> = {}) =>
    gateway.gateway.post(
      '/v1/messages',
      'x',
      {
        model: 'anthropic/claude-x',
        max_tokens: 50,
        messages: [{ role: 'user', content: 'Hello' }],
        ...fields,
      },
      { headers: { 'anthropic-version': '2023-06-01', ...headers } },
    );
  const message = json({
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-x', stop_reason: 'end_turn' },
    ...{ content: [{ type: 'text', text: 'Hi' }], usage: { input_tokens: 1, output_tokens: 1 } },
  });
  const env = { ANTHROPIC_API_KEY: 'key-of-anthropic', ANTHROPIC_BASE_URL: 'https://anthropic' };
  const refusal = (message: string) =>
    ({
      kind: 'refuse',
      status: 400,
      body: JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }),
    }) as const;

  test('a field of Messages: sent once more without it, the rest unchanged', async () => {
    const gateway = gatewayOf(
      { 'claude-x': [refusal('metadata: Extra inputs are not permitted'), message] },
      env,
    );
    const response = await send(gateway, { metadata: { user_id: 'a' }, stop_sequences: ['x'] });
    expect([response.status, response.headers.get('x-weir-dropped')]).toEqual([200, 'metadata']);
    const [first, second] = gateway.requests.map(({ body }) => body);
    const { metadata, ...rest } = first ?? {};
    expect([metadata, second]).toEqual([{ user_id: 'a' }, rest]);
  });

  test('one entry of anthropic-beta: the others stay, also in the next request', async () => {
    const text =
      'Unexpected value(s) `beta-b` for the `anthropic-beta` header. Please try again without the header.';
    const gateway = gatewayOf({ 'claude-x': [refusal(text), message, message] }, env);
    const betas = { 'anthropic-beta': 'beta-a,beta-b, beta-c' };
    await send(gateway, {}, betas);
    await send(gateway, {}, betas);
    expect(gateway.requests.map(({ headers }) => headers.get('anthropic-beta'))).toEqual([
      'beta-a,beta-b, beta-c',
      'beta-a, beta-c',
      'beta-a, beta-c',
    ]);
  });

  test('Z1 all entries of anthropic-beta that one refusal names: removed in one round, the others stay', async () => {
    const text = 'Unexpected value(s) `beta-a`, `beta-b`, `beta-c` for the `anthropic-beta` header.';
    const gateway = gatewayOf({ 'claude-x': [refusal(text), message] }, env);
    expect((await send(gateway, {}, { 'anthropic-beta': 'beta-a,beta-b, beta-c,beta-d' })).status).toBe(200);
    expect(gateway.requests.map(({ headers }) => headers.get('anthropic-beta'))).toEqual([
      'beta-a,beta-b, beta-c,beta-d',
      'beta-d',
    ]);
  });

  test('what Messages never changes: the refusal reaches the client after one call', async () => {
    const gateway = gatewayOf(
      { 'claude-x': [refusal('context_management: Extra inputs are not permitted'), message] },
      env,
    );
    expect((await send(gateway, { context_management: { edits: [] } })).status).toBe(400);
    expect(gateway.requests).toHaveLength(1);
  });
});

describe('Z1 a large body', () => {
  test.each([
    [1999, 200],
    [2000, 400],
  ])('a refusal after %i ms: %i', async (ms, status) => {
    const clock = new FakeClock();
    let calls = 0;
    const fetch = async () => {
      calls += 1;
      if (calls > 1)
        return Response.json({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] });
      // After the call the gateway starts its timer.
      await Promise.resolve();
      await clock.advance(ms);
      return Response.json({ error: { message: "Unsupported parameter: 'temperature'" } }, { status: 400 });
    };
    const gateway = new LimitedGateway({ AUTH: 'open', OPENAI_API_KEY: 'k', RETRIES: '0' }, { fetch, clock });
    const messages = [{ role: 'user', content: 'x'.repeat(1024 * 1024) }];
    const body = { model: 'openai/gpt-4o', temperature: 0.7, messages };
    expect((await gateway.post('/v1/chat/completions', 'x', body)).status).toBe(status);
  });
});
