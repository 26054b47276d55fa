/** Workers AI and the catalogue by the binding `AI` (W12): what it is called with, every form that it answers in, errors by number. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { readSettings } from '../settings/read-settings.ts';
import { CLIENTS } from './sdk-clients.ts';
import { answerWith, type Behavior, type Got, RoutedGateway, read, settle, sse } from './upstreams.ts';

interface Call {
  readonly model: string;
  readonly inputs: JsonObject;
  readonly options: Readonly<Record<string, unknown>>;
}

type Run = (call: Call) => Response | Promise<Response>;

/** A binding with what `run` does. */
class FakeAi {
  readonly calls: Call[] = [];
  readonly #run: Run;
  constructor(run: Run) {
    this.#run = run;
  }
  async run(model: string, inputs: JsonObject, options: Call['options']): Promise<Response> {
    const call = { model, inputs, options };
    this.calls.push(call);
    return this.#run(call);
  }
}

const stream = (text: string) => new Response(text, { headers: { 'content-type': 'text/event-stream' } });

/** What the binding answers as a behavior of the tests of upstreams says it. */
function answerOf(behavior: Behavior): Response {
  if (behavior.kind !== 'answer') throw new Error(behavior.kind);
  return new Response(behavior.pieces.join(''), { headers: { 'content-type': behavior.type } });
}

const WHOLE = { response: 'Here.', usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } };
const LLAMA = '@cf/meta/llama-3.3-70b-instruct-fp8-fast';

function gatewayWith(run: Run, env: JsonObject = {}) {
  const ai = new FakeAi(run);
  return { ai, routed: new RoutedGateway({}, { AI: ai, ...env } as unknown as JsonObject) };
}

async function ask(run: Run, fields: JsonObject = {}, env: JsonObject = {}, path?: string) {
  const { ai, routed } = gatewayWith(run, env);
  const response = await routed.ask({ model: `cloudflare/${LLAMA}`, ...fields }, {}, path);
  const got: Got = await read(response);
  await settle();
  return { got, call: ai.calls[0], ai, record: routed.records[0], requests: routed.requests };
}

const clientFetch = (run: Run) => {
  const { routed } = gatewayWith(run);
  return (url: string | URL | Request, init?: RequestInit) => {
    const { pathname, search } = new URL(url instanceof Request ? url.url : url);
    return routed.gateway.fetch(pathname + search, '', { ...init, signal: null });
  };
};

describe('W12 the binding AI', () => {
  test('is called with the model, the inputs without it, a raw response, the gateway and a signal; no network', async () => {
    const { got, call, requests, record } = await ask(() => Response.json(WHOLE), { max_tokens: 9 });
    expect(got).toMatchObject({ status: 200, text: 'Here.', finishes: ['stop'] });
    expect(call?.model).toBe(LLAMA);
    expect(call?.inputs).toEqual({ messages: [{ role: 'user', content: 'Hello' }], max_tokens: 9 });
    expect(call?.options).toMatchObject({ returnRawResponse: true, gateway: { id: 'default' } });
    expect(call?.options.signal).toBeInstanceOf(AbortSignal);
    expect(requests).toEqual([]);
    expect(record).toMatchObject({ provider: 'cloudflare', model: LLAMA, cost_nanos: 5 * 293 + 3 * 2253 });
  });

  test('CLOUDFLARE_AI_GATEWAY names the gateway; an invalid one is misconfigured by its name', async () => {
    const { call } = await ask(() => Response.json(WHOLE), {}, { CLOUDFLARE_AI_GATEWAY: 'team-a' });
    expect(call?.options.gateway).toEqual({ id: 'team-a' });
    const env = { AI: new FakeAi(() => Response.json(WHOLE)), CLOUDFLARE_AI_GATEWAY: 'a/b' };
    expect(readSettings(env as unknown as JsonObject)).toMatchObject({
      problems: [{ setting: 'CLOUDFLARE_AI_GATEWAY' }],
    });
  });

  test('comes before REST; an entry named cloudflare, and callers with keys of their own, come before it', async () => {
    const AI = new FakeAi(() => Response.json(WHOLE));
    const rest = { CLOUDFLARE_AI_TOKEN: 'k', CLOUDFLARE_ACCOUNT_ID: '0123456789abcdef0123456789abcdef' };
    const baseOf = (env: object) => {
      const settings = readSettings(env as JsonObject);
      return settings.kind === 'valid' ? settings.settings.providers.get('cloudflare')?.baseUrl : undefined;
    };
    expect(baseOf({ ...rest, AI })).toBe('https://workers-binding.ai');
    expect(baseOf({ ...rest, AI, AUTH: 'passthrough' })).toContain('https://api.cloudflare.com');
    expect(baseOf({ AI, AUTH: 'passthrough', CLOUDFLARE_ACCOUNT_ID: 'no' })).toBeUndefined();
    const own = { cloudflare: { base_url: 'https://own.example/v1' } };
    expect(baseOf({ AI, PROVIDERS: own })).toBe('https://own.example/v1');
    expect(baseOf({ AI: {} })).toBeUndefined();
    expect(baseOf({ AI: 'text' })).toBeUndefined();
  });

  test('GET /v1/models lists Workers AI and the catalogue, with what is known, and calls nothing', async () => {
    const { ai, routed } = gatewayWith(() => Response.json(WHOLE));
    const response = await routed.gateway.fetch('/v1/models', 'x');
    const models = objectsOf(decodeObject(await response.text())?.data);
    const byId = new Map(models.map((model) => [model.id, model]));
    expect(byId.get(`cloudflare/${LLAMA}`)).toMatchObject({ context_length: 24_000 });
    expect(byId.get('cloudflare/anthropic/claude-haiku-4-5')).toMatchObject({ context_length: 200_000 });
    expect(byId.has('cloudflare/openai/gpt-5.5')).toBe(true);
    expect(byId.has('cloudflare/@cf/baai/bge-m3')).toBe(true);
    expect(ai.calls).toEqual([]);
  });

  test('a client that leaves ends the call', async () => {
    const begin = new TextEncoder().encode('data: {"response":"Hi"}\n\n');
    let signal: AbortSignal | undefined;
    const { routed } = gatewayWith(({ options }) => {
      signal = options.signal instanceof AbortSignal ? options.signal : undefined;
      const body = new ReadableStream({ type: 'bytes', start: (controller) => controller.enqueue(begin) });
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    });
    const response = await routed.ask({ model: `cloudflare/${LLAMA}`, stream: true });
    const reader = response.body?.getReader();
    await reader?.read();
    expect(signal?.aborted).toBe(false);
    await reader?.cancel();
    await settle();
    expect(signal?.aborted).toBe(true);
  });

  test.each([
    ['openai/gpt-4o-mini', {}, 'messages'],
    ['openai/gpt-5.6-sol', { reasoning_effort: 'high' }, 'input'],
    ['google/gemini-2.5-flash', {}, 'messages'],
    ['anthropic/claude-haiku-4-5', {}, 'max_tokens'],
  ])('the catalogue’s %s gets its maker’s form', async (model, fields, member) => {
    const message = {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' },
      content: [{ type: 'text', text: 'Here.' }],
      usage: { input_tokens: 5, output_tokens: 3 },
    };
    const { got, call, record } = await ask(
      () =>
        model.startsWith('anthropic/')
          ? Response.json(message)
          : answerOf(Object(answerWith('Here.'))(false)),
      { model: `cloudflare/${model}`, ...fields },
    );
    expect(call?.model).toBe(model);
    expect(call?.inputs).toHaveProperty(member);
    expect(call?.inputs).not.toHaveProperty('model');
    if (member !== 'input') expect(got.text).toBe('Here.');
    if (member !== 'input') expect(record).toMatchObject({ cost_estimated: true, currency: 'USD' });
  });
});

describe('W12 requests to Workers AI', () => {
  test('no null content, max_tokens under its own name, a bare schema', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const calls = [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const { call } = await ask(() => Response.json(WHOLE), {
      max_completion_tokens: 7,
      response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } },
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: null, tool_calls: calls },
        { role: 'tool', tool_call_id: 'c1', content: 'done' },
      ],
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(call?.inputs).toMatchObject({
      ...{ max_tokens: 7, stream: true },
      response_format: { type: 'json_schema', json_schema: schema },
    });
    expect(objectOf(objectOf(call?.inputs.response_format).json_schema)).not.toHaveProperty('schema');
    expect(objectsOf(call?.inputs.messages)[1]).toMatchObject({ content: '', tool_calls: calls });
    expect(call?.inputs).not.toHaveProperty('stream_options');
    expect(call?.inputs).not.toHaveProperty('max_completion_tokens');
  });

  test('the catalogue keeps OpenAI’s envelope', async () => {
    const json_schema = { name: 'n', schema: { type: 'object' } };
    const { call } = await ask(() => answerOf(Object(answerWith('x'))(false)), {
      model: 'cloudflare/google/gemini-2.5-flash',
      response_format: { type: 'json_schema', json_schema },
    });
    expect(call?.inputs.response_format).toEqual({ type: 'json_schema', json_schema });
  });

  test.each([
    [
      'a list',
      {
        shape: [2, 2],
        data: [
          [0.5, -1],
          [2, 0.25],
        ],
        pooling: 'cls',
      },
    ],
    [
      'OpenAI’s form',
      {
        object: 'list',
        data: [
          { index: 0, embedding: [0.5, -1] },
          { index: 1, embedding: [2, 0.25] },
        ],
      },
    ],
  ])('embeddings: %s becomes OpenAI’s form', async (_, answer) => {
    const { ai, routed } = gatewayWith(() => Response.json(answer));
    const body = { model: 'cloudflare/@cf/baai/bge-m3', input: ['a', 'b'], messages: undefined };
    const response = await routed.ask(body, {}, '/v1/embeddings');
    const list = decodeObject(await response.text());
    expect(ai.calls[0]).toMatchObject({ model: '@cf/baai/bge-m3', inputs: { text: ['a', 'b'] } });
    expect(objectsOf(list?.data).map(({ embedding }) => embedding)).toEqual([
      [0.5, -1],
      [2, 0.25],
    ]);
    await settle();
    expect(routed.records[0]).toMatchObject({ provider: 'cloudflare', route: 'embeddings' });
    expect(routed.records[0]?.cost_nanos).toBeGreaterThan(0);
  });
});

describe('W12 what Workers AI answers', () => {
  const CALL = ['get_weather', '{"location":"London"}'] as const;
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }];

  test.each<[string, Run, Partial<{ text: string; calls: readonly (readonly string[])[] }>]>([
    ['native JSON', () => Response.json(WHOLE), { text: 'Here.', calls: [] }],
    [
      'native JSON in REST’s envelope',
      () => Response.json({ result: WHOLE, success: true }),
      { text: 'Here.' },
    ],
    ['a structured output as an object', () => Response.json({ response: { a: 1 } }), { text: '{"a":1}' }],
    ['a number', () => Response.json({ response: 42 }), { text: '42' }],
    [
      'a flat call',
      () =>
        Response.json({ response: null, tool_calls: [{ name: CALL[0], arguments: { location: 'London' } }] }),
      { text: '', calls: [CALL] },
    ],
    ['JSON of OpenAI’s form', () => answerOf(Object(answerWith('Here.'))(false)), { text: 'Here.' }],
  ])('%s: every client reads it, also where it asked for a stream', async (_, run, seen) => {
    for (const [client, readAs] of Object.entries(CLIENTS))
      expect(await readAs(clientFetch(run), `cloudflare/${LLAMA}`), client).toMatchObject(seen);
  });

  test('padding and usage in every chunk reach no client but as one usage', async () => {
    const usage = (completion_tokens: number) => ({ prompt_tokens: 5, completion_tokens });
    const { got, record } = await ask(
      () =>
        stream(
          [
            { response: 'He', p: 'abc', usage: usage(1) },
            { response: 'llo', p: 'abcdefgh', usage: usage(2) },
            { response: '', usage: { ...usage(3), total_tokens: 8 } },
          ]
            .map((one) => `data: ${JSON.stringify(one)}\n\n`)
            .join('') + 'data: [DONE]\n\n',
        ),
      { stream: true },
    );
    expect(got).toMatchObject({ text: 'Hello', finishes: ['stop'], isDone: true });
    expect(record).toMatchObject({ prompt_tokens: 5, completion_tokens: 3, estimated: false });
  });

  test.each([true, false])('neurons that are reported are the cost, stream: %s', async (isStreamed) => {
    const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8, neurons: 2.5 };
    const { record } = await ask(
      () =>
        isStreamed
          ? stream(`data: ${JSON.stringify({ response: 'Hi', usage })}\n\ndata: [DONE]\n\n`)
          : Response.json({ response: 'Hi', usage }),
      { stream: isStreamed },
    );
    expect(record).toMatchObject({ cost_nanos: 27_500, cost_source: 'upstream', currency: 'USD' });
  });

  const forced = { tools, tool_choice: { type: 'function', function: { name: 'get_weather' } } };
  const asText = (text: string, finish: string | null = 'stop') =>
    stream(
      [...text]
        .map((content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
        .join('') +
        (finish === null
          ? ''
          : `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: finish }] })}\n\n`) +
        'data: [DONE]\n\n',
    );

  test.each([
    ['arguments beside the name', '{"name":"get_weather","location":"London"}'],
    ['arguments', ' {"name":"get_weather","arguments":{"location":"London"}}'],
    ['parameters, in a list', '[{"name":"get_weather","parameters":{"location":"London"}}]'],
  ])('a forced call as text, with %s: is a call', async (_, text) => {
    for (const run of [() => asText(text), () => asText(text, null)]) {
      const { routed } = gatewayWith(run);
      const response = await routed.ask({
        model: 'cloudflare/@cf/openai/gpt-oss-20b',
        stream: true,
        ...forced,
      });
      const raw = await response.text();
      const deltas = raw.split('\n\n').map((line) => decodeObject(line.replace('data: ', '')) ?? {});
      const choices = deltas.flatMap(({ choices: list }) => objectsOf(list));
      const calls = choices.flatMap(({ delta }) => objectsOf(objectOf(delta).tool_calls));
      expect(calls.map((call) => textOf(objectOf(call.function).name)).join('')).toBe('get_weather');
      const args = calls.map((call) => textOf(objectOf(call.function).arguments)).join('');
      expect(JSON.parse(args)).toEqual({ location: 'London' });
      expect(choices.map(({ delta }) => textOf(objectOf(delta).content)).join('')).toBe('');
      expect(choices.map(({ finish_reason }) => finish_reason).filter(Boolean)).toEqual(['tool_calls']);
    }
  });

  test.each([
    ['another name', '{"name":"analysis","location":"London"}', forced],
    ['prose', 'It is sunny {"name":"get_weather"}', forced],
    ['no forced call', '{"name":"get_weather","location":"London"}', { tools }],
    ['JSON that is cut', '{"name":"get_weather","loc', forced],
  ])('text with %s stays text', async (_, text, fields) => {
    const { got } = await ask(() => asText(text), { stream: true, ...fields });
    expect(got).toMatchObject({ text, finishes: ['stop'] });
  });
});

describe('W12 refusals of Workers AI, by number', () => {
  const ROWS: readonly (readonly [number, string, number, string])[] = [
    [3003, 'Incomplete request', 400, 'invalid_request'],
    [3006, 'Request too large', 413, 'request_too_large'],
    [3007, 'Request timed out', 504, 'timeout'],
    [3008, 'Request aborted', 504, 'timeout'],
    [3023, 'Account blocked', 502, 'upstream_refused'],
    [3036, 'You have used up your daily free allocation of 10,000 neurons', 502, 'upstream_balance'],
    [3040, 'Capacity temporarily exceeded', 429, 'rate_limited'],
    [3041, 'Not allowed', 502, 'upstream_refused'],
    [3042, 'Invalid model ID', 404, 'model_not_found'],
    [5004, 'Invalid data', 400, 'invalid_request'],
    [5005, 'LoRa unsupported', 400, 'invalid_request'],
    [5006, 'AiError: Bad input', 400, 'invalid_request'],
    [5007, 'No such model @cf/x', 400, 'model_not_found'],
    [5016, 'Model agreement not accepted', 502, 'upstream_refused'],
    [5018, 'Account not allowed', 502, 'upstream_refused'],
    [5019, 'Deprecated SDK version', 400, 'invalid_request'],
    [2014, 'Provider request timeout', 504, 'timeout'],
    [2021, 'Bring your own key for this model', 502, 'upstream_refused'],
    [3039, 'Finetune is missing required files', 400, 'invalid_request'],
    [3043, 'Internal server error', 502, 'upstream_error'],
    [3046, 'Request timeout', 504, 'timeout'],
    [
      5021,
      'The estimated number of input and maximum output tokens (31271) exceeded this model context window limit (24000).',
      400,
      'invalid_request',
    ],
    [5024, "JSON Mode couldn't be met", 502, 'upstream_error'],
    [7003, 'No such model in the catalogue', 404, 'model_not_found'],
    [9109, 'Invalid access token', 502, 'upstream_credential'],
    [10000, 'Authentication error', 502, 'upstream_credential'],
  ];
  const forms: Readonly<Record<string, (code: number, message: string) => Run>> = {
    thrown: (code, message) => () => {
      throw new Error(`${code}: ${message}`);
    },
    'thrown with its name': (code, message) => () => {
      throw Object.assign(new Error(`InferenceUpstreamError: ${code}: ${message}`));
    },
    'a list of errors': (code, message) => () =>
      Response.json({ errors: [{ code, message }], success: false }, { status: 500 }),
    'an internal code': (code, message) => () =>
      Response.json({ internalCode: code, description: message, name: 'AiError' }, { status: 400 }),
  };

  describe.each(Object.entries(forms))('%s', (_, form) => {
    test.each(ROWS)('%i', async (code, message, status, expected) => {
      const { got, record } = await ask(form(code, message), {}, { ERROR_TEXTS: 'on' });
      expect(got.status).toBe(status);
      expect(record?.error).toBe(expected);
      expect(JSON.stringify(record)).toContain(message.slice(0, 12));
    });
  });

  test('5021, the window: a step for longer prompts follows', async () => {
    const big = 'cloudflare/@cf/zai-org/glm-5.3-flash';
    const ALIASES = { fits: [{ model: `cloudflare/${LLAMA}`, on: ['context_length'] }, big] };
    const { got, ai } = await ask(
      ({ model }) => {
        if (model === LLAMA)
          throw new Error(
            '5021: The estimated number of input and maximum output tokens (9) exceeded this model context window limit (8).',
          );
        return Response.json(WHOLE);
      },
      { model: 'fits' },
      { ALIASES },
    );
    expect(got).toMatchObject({ status: 200, text: 'Here.' });
    expect(ai.calls.map(({ model }) => `cloudflare/${model}`)).toEqual([`cloudflare/${LLAMA}`, big]);
  });

  test('an unknown number is an error of the provider, with its sentence', async () => {
    for (const error of ['9999: Something new', 'InferenceUpstreamError: AiError: 9999: Something new']) {
      const { got, record } = await ask(
        () => {
          throw new Error(error);
        },
        {},
        { ERROR_TEXTS: 'on' },
      );
      expect(got.status).toBe(502);
      expect(record?.error).toBe('upstream_error');
      expect(JSON.stringify(record)).toContain('Something new');
    }
  });

  test.each(['Network connection lost', 'Network connection lost at 10.0.0.1:4431: no answer'])(
    'an unknown error of the binding, "%s": not reached, as a network that fails',
    async (message) => {
      const { got } = await ask(() => {
        throw new Error(message);
      });
      expect(got.error?.code).toBe('upstream_unreachable');
    },
  );

  test('retry-after of the response reaches the client', async () => {
    const { got } = await ask(() =>
      Response.json(
        { errors: [{ code: 3040, message: 'Capacity temporarily exceeded' }] },
        { status: 429, headers: { 'retry-after': '7' } },
      ),
    );
    expect(got.headers.get('retry-after')).toBe('7');
  });
});

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'shared', 'streams', 'other');
const names = existsSync(FOLDER)
  ? readdirSync(FOLDER).filter((name) => /^workers-ai--.*\.sse$/.test(name))
  : [];

/** With arguments as one writes them, because Messages have the object. */
function plain(seen: { readonly calls: readonly (readonly [string, string])[] } | undefined) {
  return { ...seen, calls: seen?.calls.map(([name, json]) => [name, JSON.stringify(JSON.parse(json))]) };
}

/** What each example holds, and whether it ends. */
const HELD: Readonly<Record<string, JsonObject>> = {
  'forced-tool-as-text': { text: '{"name":"get_weather","location":"London"}' },
  'kimi-repeated-ids': { text: '', calls: [['list_toolbox_tools', '{}']] },
  'native-empty-tool-calls': { text: 'Hello chunk1', calls: [] },
  'native-text': { text: 'Hello chunk1Hello chunk2' },
  'native-tool-call': { text: '', calls: [['get_weather', '{"location":"London"}']] },
  'null-finalizer': { text: '', calls: [['get_weather', '{"location":"London"}']] },
  'openai-reasoning-usage-grows': { text: 'A **cow is cool', reasoning: 'Okay, the user is asking' },
  'reasoning-then-tool': {
    reasoning: 'Let me think about this.',
    calls: [['get_weather', '{"location":"Paris"}']],
  },
  'sequential-tools': {
    calls: [
      ['writeFile', '{"path":"a.txt","content":"hello"}'],
      ['writeFile', '{"path":"b.txt","content":"world"}'],
    ],
  },
};

describe.skipIf(names.length === 0)('W12 examples of Workers AI (skipped without ../shared/streams)', () => {
  describe.each(names.map((name) => name.replace(/^workers-ai--|\.sse$/g, '')))('%s', (name) => {
    const run = () => stream(readFileSync(join(FOLDER, `workers-ai--${name}.sse`), 'utf8'));

    test.each(Object.keys(CLIENTS))('%s', async (client) => {
      const seen = CLIENTS[client]?.(clientFetch(run), `cloudflare/${LLAMA}`);
      const held = HELD[name];
      if (held === undefined) await expect(seen).rejects.toThrow();
      else expect(plain(await seen)).toMatchObject(held);
    });
  });

  test('calls that Kimi names alike in each response get ids of their own', async () => {
    const run = () => stream(readFileSync(join(FOLDER, 'workers-ai--kimi-repeated-ids.sse'), 'utf8'));
    const idOf = async () => {
      const { routed } = gatewayWith(run);
      const response = await routed.ask({ model: `cloudflare/${LLAMA}`, stream: true });
      return /"tool_calls":\[\{[^}]*?"id":"([^"]+)"/.exec(await response.text())?.[1];
    };
    expect(await idOf()).not.toBe(await idOf());
  });
});

test('W12 a body that ends without a finish, a closing chunk and [DONE] is cut', async () => {
  const { got } = await ask(() => answerOf(sse('data: {"response":"partial"}\n\n')), { stream: true });
  expect(got.error?.code).toBe('upstream_truncated');
});

describe('W12 a hard budget in money', () => {
  const BUDGET = { budget: { USD: 0.05 } };

  test.each([
    [LLAMA, 5 * 293 + 3 * 2253],
    ['@cf/openai/gpt-oss-20b', 5 * 200 + 3 * 300],
  ])(
    '%s: its published price is charged, and an empty budget refuses the next request',
    async (model, nanos) => {
      const { ai, routed } = gatewayWith(() => Response.json(WHOLE), { AUTH: 'keys' });
      const key = await routed.gateway.key(BUDGET);
      const body = {
        model: `cloudflare/${model}`,
        messages: [{ role: 'user', content: 'Hello' }],
        max_tokens: 100,
      };
      const response = await routed.gateway.post('/v1/chat/completions', key, body);
      expect(response.status, await response.text()).toBe(200);
      await settle();
      expect(routed.records[0]).toMatchObject({ cost_nanos: nanos, cost_estimated: false });
      const spent = await routed.gateway.post('/v1/chat/completions', key, {
        ...body,
        max_tokens: 100_000_000,
      });
      expect(spent.status).toBe(429);
      expect(ai.calls).toHaveLength(1);
    },
  );

  test('a model without a published price: refused before the call, with what is missing', async () => {
    const { ai, routed } = gatewayWith(() => Response.json(WHOLE), { AUTH: 'keys' });
    const key = await routed.gateway.key(BUDGET);
    const body = { model: 'cloudflare/@cf/acme/new-1b', messages: [{ role: 'user', content: 'Hello' }] };
    const response = await routed.gateway.post('/v1/chat/completions', key, body);
    expect(response.status).toBe(403);
    expect(await response.text()).toMatch(/@cf\/acme\/new-1b has no price in USD.*PRICES/s);
    expect(ai.calls).toEqual([]);
  });
});

describe.skipIf(names.length === 0)(
  'W12 errors of Workers AI by example (skipped without ../shared/streams)',
  () => {
    describe.each([
      ['error-capacity', 429, 429, 'rate_limited'],
      ['error-capacity', 200, 429, 'rate_limited'],
      ['error-auth', 401, 502, 'upstream_credential'],
      ['error-auth', 200, 502, 'upstream_error'],
    ] as const)('%s with the status %i', (name, own, status, error) => {
      const run = () => {
        const example = readFileSync(join(FOLDER, `workers-ai--${name}.json`), 'utf8');
        return new Response(example, { status: own, headers: { 'content-type': 'application/json' } });
      };

      test.each(Object.keys(CLIENTS))('%s: throws', async (client) => {
        await expect(CLIENTS[client]?.(clientFetch(run), `cloudflare/${LLAMA}`)).rejects.toThrow();
      });

      test('has its status and code', async () => {
        const { got, record } = await ask(run);
        expect([got.status, record?.error]).toEqual([status, error]);
      });
    });
  },
);
