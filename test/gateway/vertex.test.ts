/** Vertex AI: its hosts and paths, the tokens of a service account, what it refuses, and each refusal of a credential with its setting. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { decodeObject, type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { FakeGoogle, type GoogleRequest, SERVICE_ACCOUNT } from '../credentials/fake-google.ts';
import { readSettings } from '../settings/read-settings.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { passing, settle } from './upstreams.ts';

const ENV = {
  ...{ AUTH: 'open', RETRIES: '0', HEARTBEAT_SECONDS: '0' },
  GOOGLE_SERVICE_ACCOUNT: JSON.stringify(SERVICE_ACCOUNT),
  VERTEX_LOCATION: 'us-central1',
};
const { privateKey: OTHER_KEY } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const GEMINI = 'gemini-2.5-flash';
const CLAUDE = 'claude-haiku-4-5@20251001';

function answer({ url }: GoogleRequest): Response {
  if (url.includes('publishers/anthropic')) {
    if (url.includes('count-tokens')) return Response.json({ input_tokens: 14 });
    const content = [{ type: 'text', text: 'Here.' }];
    const shared = {
      id: 'msg_vrtx_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      stop_reason: 'end_turn',
    };
    return Response.json({ ...shared, content, usage: { input_tokens: 5, output_tokens: 3 } });
  }
  if (url.includes('/endpoints/openapi/')) {
    const message = { role: 'assistant', content: 'Here.' };
    const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
    return Response.json({ id: 'c', choices: [{ index: 0, message, finish_reason: 'stop' }], usage });
  }
  if (url.includes(':countTokens')) return Response.json({ totalTokens: 13 });
  return Response.json({
    candidates: [{ content: { role: 'model', parts: [{ text: 'Here.' }] }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: 5,
      candidatesTokenCount: 3,
      totalTokenCount: 8,
      trafficType: 'ON_DEMAND',
    },
  });
}

function gatewayOf(env: JsonObject = {}, skewMs = 0) {
  const clock = new FakeClock();
  const google = new FakeGoogle(() => clock.now() + skewMs, answer);
  const gateway = new LimitedGateway({ ...ENV, ...env }, { fetch: google.fetch, clock });
  const ask = async (model: string, fields: JsonObject = {}, path = '/v1/chat/completions', headers = {}) => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const response = await gateway.post(
      path,
      'x',
      { model: `vertex/${model}`, messages, ...fields },
      { headers },
    );
    const text = await response.text();
    const error = decodeObject(text)?.error as JsonObject | undefined;
    await settle();
    return { status: response.status, text, code: error?.code, message: textOf(error?.message) };
  };
  const record = () => gateway.logged.findLast(({ event }) => event === 'request') ?? {};
  return { google, clock, gateway, ask, record };
}

describe('W13 vertex', () => {
  const project = 'projects/acme-llm/locations';
  test.each([
    ['us-central1', 'https://us-central1-aiplatform.googleapis.com'],
    ['global', 'https://aiplatform.googleapis.com'],
    ['us', 'https://aiplatform.us.rep.googleapis.com'],
    ['eu', 'https://aiplatform.eu.rep.googleapis.com'],
    ['europe-west4', 'https://europe-west4-aiplatform.googleapis.com'],
  ])('the location %s: Gemini, Claude and open models at %s, with a token', async (location, host) => {
    for (const [model, path] of [
      [GEMINI, `v1beta1/${project}/${location}/publishers/google/models/${GEMINI}:generateContent`],
      [CLAUDE, `v1/${project}/${location}/publishers/anthropic/models/${CLAUDE}:rawPredict`],
      [
        'meta/llama-4-maverick-17b-128e-instruct-maas',
        `v1/${project}/${location}/endpoints/openapi/chat/completions`,
      ],
    ] as const) {
      const { google, ask } = gatewayOf({ VERTEX_LOCATION: location });
      expect(await ask(model)).toMatchObject({ status: 200 });
      expect(google.requests.map(({ url }) => url)).toEqual([`${host}/${path}`]);
      expect(google.requests[0]?.headers.get('authorization')).toMatch(/^Bearer ya29\./);
      expect(google.requests[0]?.headers.get('x-goog-api-key')).toBeNull();
    }
  });

  test.each(['/v1/chat/completions', '/v1/messages', '/v1/responses'])(
    'clients of %s reach Gemini and Claude',
    async (path) => {
      const fields = path.endsWith('responses')
        ? { input: 'Hello', messages: undefined }
        : { max_tokens: 64 };
      const { google, ask } = gatewayOf();
      for (const model of [GEMINI, CLAUDE])
        expect(await ask(model, fields, path)).toMatchObject({ status: 200 });
      expect(google.requests[1]?.body).toMatchObject({ anthropic_version: 'vertex-2023-10-16' });
      expect(google.requests[1]?.headers.get('anthropic-version')).toBeNull();
      expect(google.exchanges).toBe(1);
    },
  );

  test('a streamed request has the paths of streams', async () => {
    const { google, ask } = gatewayOf();
    await ask(CLAUDE, { stream: true });
    await ask(CLAUDE, { stream: true, max_tokens: 64 }, '/v1/messages');
    await ask(GEMINI, { stream: true });
    expect(google.requests.map(({ url }) => url.replace(/^.*models\//, ''))).toEqual([
      `${CLAUDE}:streamRawPredict`,
      `${CLAUDE}:streamRawPredict`,
      `${GEMINI}:streamGenerateContent?alt=sse`,
    ]);
    expect(google.requests[1]?.body).toMatchObject({ stream: true });
  });

  test('express mode: Gemini with a key, without a project; the key wins, with one log line', async () => {
    const { google, ask } = gatewayOf({ VERTEX_API_KEY: 'key-of-vertex' });
    expect(await ask(GEMINI)).toMatchObject({ status: 200 });
    expect(google.requests[0]?.url).toBe(
      `https://aiplatform.googleapis.com/v1beta1/publishers/google/models/${GEMINI}:generateContent`,
    );
    expect(google.requests[0]?.headers.get('x-goog-api-key')).toBe('key-of-vertex');
    expect(google.exchanges).toBe(0);
    const read = readSettings({ ...ENV, VERTEX_API_KEY: 'k' });
    expect('overridden' in read && read.overridden).toEqual([
      { setting: 'GOOGLE_SERVICE_ACCOUNT', message: 'is not used, because VERTEX_API_KEY is set' },
    ]);
  });

  test('VERTEX_PROJECT takes the place of the key’s, and VERTEX_BASE_URL that of the host', async () => {
    const { google, ask } = gatewayOf({
      VERTEX_PROJECT: 'other-1',
      VERTEX_BASE_URL: 'https://proxy.example',
    });
    await ask(GEMINI);
    expect(google.requests[0]?.url).toBe(
      `https://proxy.example/v1beta1/projects/other-1/locations/us-central1/publishers/google/models/${GEMINI}:generateContent`,
    );
  });

  const whole = 'projects/9876/locations/us-central1/endpoints/5544';
  test.each([
    ['endpoints/1234567890', `v1beta1/${project}/us-central1/endpoints/1234567890`],
    [whole, `v1beta1/${whole}`],
  ])('the tuned model %s is called at its endpoint, by every client', async (model, path) => {
    const { google, ask, gateway } = gatewayOf({ ALIASES: { tuned: `vertex/${model}` } });
    const origin = 'https://us-central1-aiplatform.googleapis.com';
    for (const client of ['/v1/chat/completions', '/v1/messages', '/v1/responses']) {
      const fields = client.endsWith('responses')
        ? { input: 'Hello', messages: undefined }
        : { max_tokens: 64 };
      expect(await ask(model, { ...fields, temperature: 0.5 }, client)).toMatchObject({ status: 200 });
    }
    const contents = [{ parts: [{ text: 'Hello' }] }];
    const response = await gateway.post('/v1beta/models/tuned:generateContent', 'x', { contents });
    expect(response.status).toBe(200);
    expect(new Set(google.requests.map(({ url }) => url))).toEqual(
      new Set([`${origin}/${path}:generateContent`]),
    );
    expect(google.requests[0]?.body).toMatchObject({ generationConfig: { temperature: 0.5 } });
    expect((await ask(model, {}, '/v1/messages/count_tokens')).text).toContain('13');
    expect(google.requests.at(-1)?.url).toBe(`${origin}/${path}:countTokens`);
  });

  test.each([
    ['systemInstruction', 'generationConfig', 'safetySettings'],
    ['system_instruction', 'generation_config', 'safety_settings'],
  ])('Vertex AI counts %s and %s of a client, and does not get %s', async (system, config, safety) => {
    const { google, gateway } = gatewayOf();
    const counted = {
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      [system]: { parts: [{ text: 'Be brief.' }] },
      [config]: { temperature: 1 },
    };
    const body = { generateContentRequest: { ...counted, [safety]: [] } };
    const response = await gateway.post(`/v1beta/models/vertex/${GEMINI}:countTokens`, 'x', body);
    expect(await response.json()).toEqual({ totalTokens: 13 });
    expect(google.requests.at(-1)?.body).toEqual(counted);
  });

  test.each(['flex', 'priority'])(
    'the tier %s goes as a header, which Vertex AI reads alone',
    async (tier) => {
      const { google, ask, gateway } = gatewayOf();
      expect(await ask(GEMINI, { service_tier: tier })).toMatchObject({ status: 200 });
      const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
      for (const field of ['serviceTier', 'service_tier']) {
        const body = { contents, [field]: tier.toUpperCase() };
        const response = await gateway.post(`/v1beta/models/vertex/${GEMINI}:generateContent`, 'x', body);
        expect(response.status, await response.text()).toBe(200);
      }
      const sent = google.requests.map(({ headers }) => headers.get('x-vertex-ai-llm-shared-request-type'));
      expect(sent).toEqual([tier, tier, tier]);
      await ask(GEMINI, { service_tier: 'default' });
      expect(google.requests.at(-1)?.headers.has('x-vertex-ai-llm-shared-request-type')).toBe(false);
    },
  );

  test('the tier that served a response is that of its traffic, and its price', async () => {
    const { ask, record, google } = gatewayOf();
    const usageMetadata = { promptTokenCount: 1000, candidatesTokenCount: 1000, totalTokenCount: 2000 };
    const candidates = [{ content: { role: 'model', parts: [{ text: 'OK' }] }, finishReason: 'STOP' }];
    const costOf = async (trafficType: string) => {
      google.answers.push(() =>
        Response.json({ candidates, usageMetadata: { ...usageMetadata, trafficType } }),
      );
      const { text } = await ask('gemini-3-flash-preview');
      return [decodeObject(text)?.service_tier, record().cost_nanos];
    };
    const [usual, standard] = await costOf('ON_DEMAND');
    const [flex, half] = await costOf('ON_DEMAND_FLEX');
    expect([usual, flex]).toEqual([undefined, 'flex']);
    expect(standard).toBeGreaterThan(0);
    expect(half).toBe(Number(standard) / 2);
    expect(await costOf('ON_DEMAND_PRIORITY')).toEqual(['priority', null]);
  });

  test('a tool loop has no ids of calls and results, and addresses of images are refused', async () => {
    const { google, ask } = gatewayOf();
    const messages = [
      { role: 'user', content: 'Call f' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '{"b":2}' },
    ];
    expect(await ask(GEMINI, { messages })).toMatchObject({ status: 200 });
    expect(JSON.stringify(google.requests[0]?.body)).not.toContain('"id"');
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const refused = await ask(GEMINI, { messages: [{ role: 'user', content: [image] }] });
    expect(refused).toMatchObject({ status: 400 });
    expect(google.requests).toHaveLength(1);
    const stored = { type: 'image_url', image_url: { url: 'gs://bucket/a.png' } };
    expect(await ask(GEMINI, { messages: [{ role: 'user', content: [stored] }] })).toMatchObject({
      status: 200,
    });
  });

  test('a client of Gemini’s API passes through, in either spelling: without ids, each content with a role', async () => {
    const { google, gateway } = gatewayOf();
    const path = `/v1beta1/projects/p/locations/l/publishers/google/models/${GEMINI}:generateContent`;
    const call = { name: 'f', args: { id: 1 } };
    const result = { name: 'f', response: { id: 2 } };
    const response = await gateway.post(path, 'x', {
      contents: [
        { parts: [{ text: 'Call' }] },
        { role: '', parts: [{ text: 'f' }] },
        { role: 'model', parts: [{ function_call: { id: 'a', ...call }, thoughtSignature: 'c2ln' }] },
        { role: 'user', parts: [{ functionResponse: { id: 'a', ...result } }] },
      ],
    });
    expect(await response.text()).toContain('Here.');
    expect(google.requests[0]?.url).toContain(`/publishers/google/models/${GEMINI}:generateContent`);
    expect(google.requests[0]?.body).toEqual({
      contents: [
        { role: 'user', parts: [{ text: 'Call' }] },
        { role: 'user', parts: [{ text: 'f' }] },
        { role: 'model', parts: [{ function_call: call, thoughtSignature: 'c2ln' }] },
        { role: 'user', parts: [{ functionResponse: result }] },
      ],
    });
  });

  test('results are in a content without other parts, which follow in the next', async () => {
    const { google, ask, gateway } = gatewayOf();
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages = [
      { role: 'user', content: 'Call f' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
      { role: 'user', content: 'And now?' },
    ];
    expect(await ask('gemini-3-flash-preview', { messages })).toMatchObject({ status: 200 });
    const result = { functionResponse: { name: 'f', response: { output: 'done' } } };
    const expected = [
      { role: 'user', parts: [result] },
      { role: 'user', parts: [{ text: 'And now?' }] },
    ];
    expect(objectsOf(google.requests[0]?.body.contents).slice(2)).toEqual(expected);
    const path = '/v1beta/models/vertex/gemini-3-flash-preview:generateContent';
    for (const spelling of ['functionResponse', 'function_response']) {
      const own = { [spelling]: result.functionResponse };
      const contents = [
        { role: 'user', parts: [{ text: 'Call f' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, thoughtSignature: 'c2ln' }] },
        { role: 'user', parts: [{ text: 'And now?' }, own] },
      ];
      const response = await gateway.post(path, 'x', { contents });
      expect(response.status, await response.text()).toBe(200);
      const [, next] = expected;
      const sent = objectsOf(google.requests.at(-1)?.body.contents).slice(2);
      expect(sent).toEqual([{ role: 'user', parts: [own] }, next]);
    }
  });

  test('counts: of Claude without betas, of Gemini by its contents', async () => {
    const { google, ask } = gatewayOf();
    const headers = { 'anthropic-beta': 'context-management-2025-06-27' };
    expect((await ask(CLAUDE, {}, '/v1/messages/count_tokens', headers)).text).toContain('14');
    expect(google.requests[0]?.url).toContain('publishers/anthropic/models/count-tokens:rawPredict');
    expect(google.requests[0]?.body).toMatchObject({ model: CLAUDE });
    expect((await ask(GEMINI, {}, '/v1/messages/count_tokens')).text).toContain('13');
  });

  test('prices are the maker’s, as estimates; Claude’s a tenth higher', async () => {
    const { ask, record } = gatewayOf();
    await ask(CLAUDE);
    expect(record()).toMatchObject({ cost_nanos: 22_000, cost_estimated: true });
    await ask(GEMINI);
    expect(record()).toMatchObject({ cost_estimated: true });
  });

  test.each([
    [
      { GOOGLE_SERVICE_ACCOUNT: '{"client_email": "hunter2"}' },
      'GOOGLE_SERVICE_ACCOUNT',
      'must be the JSON of a key of a service account',
    ],
    [
      { VERTEX_LOCATION: 'hunter2/x' },
      'VERTEX_LOCATION',
      'must be a location such as global, eu or us-central1',
    ],
    [{ VERTEX_PROJECT: 'a/b' }, 'VERTEX_PROJECT', 'must be the id of a project'],
  ])('%j is misconfigured by its name', (env, setting, message) => {
    const read = readSettings({ ...ENV, ...env });
    expect('problems' in read && read.problems).toEqual([{ setting, message }]);
  });

  test.each([
    ['without like, Gemini', 'publishers/google', undefined, GEMINI, `models/${GEMINI}:generateContent`],
    ['like gemini-native', 'publishers/google', 'gemini-native', GEMINI, `models/${GEMINI}:generateContent`],
    ['without like, Claude', 'publishers/anthropic', undefined, CLAUDE, `models/${CLAUDE}:rawPredict`],
    [
      'without like, open models',
      'endpoints/openapi',
      undefined,
      'meta/llama-4-maverick',
      'chat/completions',
    ],
  ])('an entry at a host of Vertex AI, %s: its rules apply', async (_, api, like, model, path) => {
    const base_url = `https://europe-west4-aiplatform.googleapis.com/v1/projects/other/locations/europe-west4/${api}`;
    const entry = { base_url, auth: { google: 'OTHER_ACCOUNT' }, ...(like !== undefined && { like }) };
    const { google, gateway } = gatewayOf({
      OTHER_ACCOUNT: JSON.stringify(SERVICE_ACCOUNT),
      PROVIDERS: { second: entry },
    });
    const response = await gateway.post('/v1/chat/completions', 'x', {
      ...{ model: `second/${model}`, max_tokens: 64, service_tier: 'flex' },
      messages: [
        { role: 'user', content: 'Call f' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'done' },
      ],
    });
    expect(response.status, await response.text()).toBe(200);
    expect(google.requests.map(({ url }) => url)).toEqual([`${base_url}/${path}`]);
    expect(google.requests[0]?.headers.get('authorization')).toMatch(/^Bearer ya29\./);
  });

  test('an entry of PROVIDERS with a service account', async () => {
    const { google, ask } = gatewayOf({
      GOOGLE_SERVICE_ACCOUNT: undefined,
      GOOGLE_KEY: JSON.stringify(SERVICE_ACCOUNT),
      PROVIDERS: {
        vertex: {
          base_url: 'https://eu-aiplatform.example/v1/publishers/google',
          like: 'gemini-native',
          auth: { google: 'GOOGLE_KEY' },
        },
      },
    });
    expect(await ask(GEMINI)).toMatchObject({ status: 200 });
    expect(google.requests[0]?.headers.get('authorization')).toMatch(/^Bearer ya29\./);
    const absent = readSettings({
      PROVIDERS: { g: { base_url: 'https://a.example', auth: { google: 'ABSENT_KEY' } } },
    });
    expect(JSON.stringify('problems' in absent && absent.problems)).toContain(
      'auth.google names a secret that is not set: ABSENT_KEY',
    );
  });
});

describe('W11 tokens of Google', () => {
  test('1,000 concurrent requests: one exchange; it is renewed early, and once more after a 401', async () => {
    const { google, clock, ask } = gatewayOf();
    const release = Promise.withResolvers<void>();
    google.beforeToken = () => release.promise;
    const asked = Array.from({ length: 1000 }, () => ask(GEMINI));
    while (google.exchanges === 0) await settle();
    release.resolve();
    const statuses = (await passing(clock, Promise.all(asked))).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(google.exchanges).toBe(1);
    google.revoke();
    const again = await passing(clock, Promise.all([ask(GEMINI), ask(GEMINI)]));
    expect(again).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(google.exchanges).toBe(2);
    clock.advance(3_600_000 - 4 * 60_000);
    expect(await ask(GEMINI)).toMatchObject({ status: 200 });
    while (google.exchanges < 3) await settle();
    await settle();
    expect(google.exchanges).toBe(3);
  });

  test('a token that ends in mid-flood: one more exchange, and no request fails', async () => {
    const { google, clock, ask } = gatewayOf();
    google.onRequest = () => {
      if (google.requests.length === 200) google.revoke();
    };
    const asked = Array.from({ length: 500 }, () => ask(GEMINI));
    const statuses = (await passing(clock, Promise.all(asked))).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(google.exchanges).toBe(2);
  });

  test('once a token is there, a request makes no more calls and timers than one with a key, and signs nothing', async () => {
    const work = async (env: JsonObject) => {
      const { google, clock, ask } = gatewayOf(env);
      await ask(GEMINI);
      const spies = (['sign', 'importKey', 'digest'] as const).map((name) => vi.spyOn(crypto.subtle, name));
      const [calls, timers] = [google.requests.length + google.exchanges, clock.started];
      for (let i = 0; i < 20; i++) expect(await ask(GEMINI)).toMatchObject({ status: 200 });
      const signed = spies.map(({ mock }) => mock.calls.length);
      vi.restoreAllMocks();
      return {
        signed,
        calls: google.requests.length + google.exchanges - calls,
        timers: clock.started - timers,
      };
    };
    const withKey = await work({ GOOGLE_SERVICE_ACCOUNT: undefined, VERTEX_API_KEY: 'key-of-vertex' });
    expect(await work({})).toEqual(withKey);
    expect(withKey).toMatchObject({ signed: [0, 0, 0], calls: 20 });
  });

  test('the first requester is cancelled: its exchange serves those that wait', async () => {
    const { google, clock, ask, gateway } = gatewayOf();
    const release = Promise.withResolvers<void>();
    google.beforeToken = () => release.promise;
    const first = new AbortController();
    const body = { model: `vertex/${GEMINI}`, messages: [{ role: 'user', content: 'Hello' }] };
    const cancelled = gateway.post('/v1/chat/completions', 'x', body, { signal: first.signal });
    while (google.exchanges === 0) await settle();
    const asked = Array.from({ length: 100 }, () => ask(GEMINI));
    first.abort();
    await settle();
    release.resolve();
    const statuses = (await passing(clock, Promise.all(asked))).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(google.exchanges).toBeLessThanOrEqual(2);
    await cancelled.catch(() => undefined);
  });

  test('a token service that hangs: a waiter ends within its own limit, and the error is not the provider’s', async () => {
    const { google, clock, ask } = gatewayOf();
    google.beforeToken = () => new Promise(() => {});
    const startedAt = clock.now();
    const asked = Array.from({ length: 3 }, () => ask(GEMINI));
    const ended = await passing(clock, Promise.all(asked));
    expect(clock.now() - startedAt).toBeLessThanOrEqual(22_100);
    expect(google.requests).toEqual([]);
    for (const { status, message } of ended) {
      expect(status).toBe(502);
      expect(message).toMatch(/^Google's token service (?:could not be reached|did not answer in time)/);
    }
  });

  const refused = (hint: string) =>
    `Google's token service refused this deployment's credential (400): ${hint}`;
  const denied = (error: string, error_description: string) => ({
    tokenAnswers: [() => Response.json({ error, error_description }, { status: 400 })],
  });
  test.each([
    [
      'an inactive account',
      { isActive: false },
      'the account of GOOGLE_SERVICE_ACCOUNT is not found or not active',
    ],
    ['another audience', { audience: 'https://other.example' }, 'check token_uri in GOOGLE_SERVICE_ACCOUNT'],
    [
      'an account that was disabled',
      denied('invalid_grant', 'Account has been disabled.'),
      'the account of GOOGLE_SERVICE_ACCOUNT is not found or not active',
    ],
    [
      'a deleted account',
      denied('invalid_grant', 'Invalid grant: account not found'),
      'the account of GOOGLE_SERVICE_ACCOUNT is not found or not active',
    ],
    [
      'an unknown key of the account',
      denied('invalid_grant', 'Invalid JWT Signature.'),
      'check GOOGLE_SERVICE_ACCOUNT',
    ],
    [
      'a refused scope',
      denied('invalid_scope', 'Invalid OAuth scope or ID token audience provided.'),
      'its scope https://www.googleapis.com/auth/cloud-platform was refused to GOOGLE_SERVICE_ACCOUNT',
    ],
    [
      'an account without rights',
      denied(
        'unauthorized_client',
        'Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of the scopes requested.',
      ),
      'check GOOGLE_SERVICE_ACCOUNT (unauthorized_client)',
    ],
  ])('%s: the error names the setting', async (_, change, hint) => {
    const { google, ask, record, gateway } = gatewayOf();
    Object.assign(google, change);
    expect(await ask(GEMINI)).toMatchObject({
      status: 502,
      code: 'upstream_credential',
      message: refused(hint),
    });
    expect(record()).toMatchObject({ fault: 'deployment' });
    expect(JSON.stringify(gateway.logged)).not.toMatch(/PRIVATE KEY|ya29/);
  });

  test('a key of another account', async () => {
    const other = { ...SERVICE_ACCOUNT, private_key: OTHER_KEY };
    const { ask } = gatewayOf({ GOOGLE_SERVICE_ACCOUNT: JSON.stringify(other) });
    expect(await ask(GEMINI)).toMatchObject({ message: refused('check GOOGLE_SERVICE_ACCOUNT') });
  });

  test('a key whose escapes became line ends, as in a file of variables, is read', async () => {
    const json = JSON.stringify(SERVICE_ACCOUNT).replaceAll('\\n', '\n');
    const { ask } = gatewayOf({ GOOGLE_SERVICE_ACCOUNT: json });
    expect(await ask(GEMINI)).toMatchObject({ status: 200 });
  });

  test('a key in double quotes of a file of variables, with backslashes before its quotation marks, is read', async () => {
    const written = JSON.stringify(SERVICE_ACCOUNT).replaceAll('"', '\\"').replaceAll('\\n', '\n');
    const { ask } = gatewayOf({ GOOGLE_SERVICE_ACCOUNT: written });
    expect(await ask(GEMINI)).toMatchObject({ status: 200 });
  });

  test('neither the key nor the token is in an error, a log, a record or the status', async () => {
    const { google, ask, gateway, record } = gatewayOf({ ERROR_TEXTS: 'on' });
    await ask(GEMINI);
    const token = google.requests[0]?.headers.get('authorization')?.replace('Bearer ', '') ?? '';
    const [, line = ''] = textOf(SERVICE_ACCOUNT.private_key).split('\n');
    const message = `Invalid value: ${token} with ${line} of ${textOf(SERVICE_ACCOUNT.private_key)}`;
    google.answers.push(() =>
      Response.json({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }, { status: 400 }),
    );
    const { text } = await ask(GEMINI);
    google.revoke();
    google.tokenAnswers.push(() =>
      Response.json({ error: 'invalid_grant', error_description: `Not ${message}` }, { status: 400 }),
    );
    const { text: refusedText } = await ask(GEMINI);
    const status = await (await gateway.fetch('/admin/status', 'admin')).text();
    const all = [text, refusedText, status, JSON.stringify(gateway.logged), JSON.stringify(record())].join(
      '\n',
    );
    expect(status).toContain('vertex');
    for (const secret of [token, line, 'PRIVATE KEY']) expect(all).not.toContain(secret);
  });

  test.each([90, -90])('a clock that is %d minutes off is corrected by Google’s', async (minutes) => {
    const { google, ask } = gatewayOf({}, minutes * 60_000);
    expect(await ask(GEMINI)).toMatchObject({ status: 200 });
    expect(google.exchanges).toBe(2);
  });

  test('a clock that stays off: an expired assertion says how far', async () => {
    const { google, ask } = gatewayOf();
    const date = new Date(1_800_000_000_000 + 2 * 3_600_000).toUTCString();
    const error_description =
      'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.';
    const expired = () =>
      Response.json({ error: 'invalid_grant', error_description }, { status: 400, headers: { date } });
    google.tokenAnswers.push(expired, expired);
    expect(await ask(GEMINI)).toMatchObject({
      code: 'upstream_credential',
      message: refused('the clock of this Worker is 120 minutes behind its'),
    });
    expect(google.exchanges).toBe(2);
  });

  test('a service account without the role: the refusal of Vertex AI names the setting', async () => {
    const { google, ask, record } = gatewayOf();
    const message =
      "Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/projects/acme-llm/locations/us-central1/publishers/google/models/gemini-2.5-flash' (or it may not exist).";
    google.answers.push(() =>
      Response.json({ error: { code: 403, message, status: 'PERMISSION_DENIED' } }, { status: 403 }),
    );
    const { code, message: told } = await ask(GEMINI);
    expect(code).toBe('upstream_credential');
    expect(told).toMatch(/^Vertex AI .*GOOGLE_SERVICE_ACCOUNT/);
    expect(record()).toMatchObject({ fault: 'deployment' });
  });

  test('the token service is down: its own error, after a second try', async () => {
    const { google, ask } = gatewayOf();
    google.tokenAnswers.push(
      () => new Response('', { status: 503 }),
      () => new Response('', { status: 503 }),
    );
    expect(await ask(GEMINI)).toMatchObject({
      code: 'upstream_error',
      message: "Google's token service answered 503",
    });
    expect(google.exchanges).toBe(2);
  });
});
