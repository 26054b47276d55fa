/** AWS Bedrock: which of its hosts and paths a model is called at, what it refuses, and what its answers and its keys are like. */
import { describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { readSettings } from '../settings/read-settings.ts';
import { CLIENTS, frame, gatewayFetch } from './sdk-clients.ts';
import { answerWith, json, RoutedGateway, read, refuse, settle, sse } from './upstreams.ts';

const ENV = { AWS_BEARER_TOKEN_BEDROCK: 'key-of-aws', AWS_REGION: 'eu-central-1' };
const RUNTIME = 'https://bedrock-runtime.eu-central-1.amazonaws.com';
const MANTLE = 'https://bedrock-mantle.eu-central-1.api.aws';

const message = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' },
  content: [{ type: 'text', text: 'Here.' }],
  usage: { input_tokens: 5, output_tokens: 3 },
};

const converse = {
  output: { message: { role: 'assistant', content: [{ text: 'Here.' }] } },
  ...{ stopReason: 'end_turn', usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 } },
};

async function ask(model: string, env: JsonObject = ENV, fields: JsonObject = {}, path?: string) {
  const isClaude = model.includes('anthropic.');
  const answer = isClaude
    ? ({ kind: 'answer', type: 'application/json', pieces: [JSON.stringify(message)] } as const)
    : answerWith('Here.');
  // By Converse the model is in the path, and chat's own answer is none.
  const isConverse = /^(?:[a-z]+\.)?(?:amazon|meta)\./.test(model);
  const answers = [isConverse ? json(converse) : answer];
  const routed = new RoutedGateway({ [model]: answers }, { ...env, ALIASES: undefined });
  const got = await read(await routed.ask({ model: `bedrock/${model}`, ...fields }, {}, path));
  await settle();
  return { got, routed, request: routed.requests[0], record: routed.records[0] };
}

describe('W8 bedrock', () => {
  test.each([
    ['us.openai.gpt-5.6-sol', `${RUNTIME}/openai/v1/chat/completions`],
    ['global.openai.gpt-5.6-sol', `${RUNTIME}/openai/v1/chat/completions`],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', `${RUNTIME}/anthropic/v1/messages`],
    ['apac.anthropic.claude-haiku-4-5', `${RUNTIME}/anthropic/v1/messages`],
    ['anthropic.claude-3-haiku-20240307-v1:0', `${RUNTIME}/anthropic/v1/messages`],
    ['openai.gpt-oss-20b-1:0', `${RUNTIME}/openai/v1/chat/completions`],
    ['anthropic.claude-haiku-4-5', `${MANTLE}/anthropic/v1/messages`],
    ['openai.gpt-5.6-luna', `${MANTLE}/openai/v1/chat/completions`],
    ['google.gemma-4-31b', `${MANTLE}/openai/v1/chat/completions`],
    ['xai.grok-4.3', `${MANTLE}/openai/v1/chat/completions`],
    ['openai.gpt-oss-120b', `${MANTLE}/v1/chat/completions`],
    ['google.gemma-3-27b-it', `${MANTLE}/v1/chat/completions`],
    ['moonshotai.kimi-k2.5', `${MANTLE}/v1/chat/completions`],
    ['deepseek.v3.2', `${MANTLE}/v1/chat/completions`],
  ])('%s: is called at %s, with the key as bearer and its own name', async (model, url) => {
    const { got, request } = await ask(model);
    expect(got).toMatchObject({ status: 200, text: 'Here.' });
    expect(request?.url).toBe(url);
    expect(request?.headers.get('authorization')).toBe('Bearer key-of-aws');
    expect(request?.headers.get('x-api-key')).toBeNull();
    expect(request?.body.model).toBe(model);
  });

  test.each([
    ['mistral.devstral-2-123b', /^[a-zA-Z0-9]{9}$/],
    ['moonshotai.kimi-k2.5', /^call_abc-def$/],
  ])('%s at Mantle: ids of calls match %s', async (model, ids) => {
    const tool_calls = [{ id: 'call_abc-def', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: '', tool_calls },
      { role: 'tool', tool_call_id: 'call_abc-def', content: 'x' },
    ];
    const { request } = await ask(model, ENV, { messages });
    const [, turn, result] = objectsOf(request?.body.messages);
    expect(result?.tool_call_id).toMatch(ids);
    expect(objectsOf(turn?.tool_calls)[0]?.id).toBe(result?.tool_call_id);
  });

  test.each([
    ['us-east-1', 'https://bedrock-runtime.us-east-1.amazonaws.com'],
    ['cn-north-1', 'https://bedrock-runtime.cn-north-1.amazonaws.com.cn'],
    ['eusc-de-east-1', 'https://bedrock-runtime.eusc-de-east-1.amazonaws.eu'],
    ['us-gov-west-1', 'https://bedrock-runtime.us-gov-west-1.amazonaws.com'],
  ])('AWS_REGION %s: the host is %s', async (AWS_REGION, host) => {
    const { request } = await ask('us.openai.gpt-5.6-sol', { ...ENV, AWS_REGION });
    expect(request?.url).toBe(`${host}/openai/v1/chat/completions`);
  });

  test.each([
    'https://proxy.example',
    'https://proxy.example/',
    'https://proxy.example/openai/v1',
    'https://proxy.example/anthropic',
  ])('base URLs %s: replace scheme and host alone, without a region', async (url) => {
    const env = {
      AWS_BEARER_TOKEN_BEDROCK: 'k',
      BEDROCK_BASE_URL: url,
      BEDROCK_MANTLE_BASE_URL: url.replace('proxy', 'other'),
    };
    const urlOf = async (model: string) => (await ask(model, env)).request?.url;
    expect(await urlOf('us.openai.gpt-5.6-sol')).toBe('https://proxy.example/openai/v1/chat/completions');
    expect(await urlOf('us.anthropic.claude-haiku-4-5')).toBe('https://proxy.example/anthropic/v1/messages');
    expect(await urlOf('openai.gpt-oss-20b')).toBe('https://other.example/v1/chat/completions');
  });

  test('without its region, or with one that is none: misconfigured by its name', () => {
    const problems = (env: JsonObject) => readSettings(env) as { problems?: unknown };
    expect(problems({ AWS_BEARER_TOKEN_BEDROCK: 'k' }).problems).toEqual([
      {
        setting: 'AWS_REGION',
        message: 'must be set, because AWS_BEARER_TOKEN_BEDROCK is: a region such as us-east-1',
      },
    ]);
    expect(problems({ ...ENV, AWS_REGION: 'hunter2/x' }).problems).toEqual([
      { setting: 'AWS_REGION', message: 'must be a region such as us-east-1' },
    ]);
    expect(problems({ ...ENV, BEDROCK_MANTLE_BASE_URL: 'hunter2' }).problems).toMatchObject([
      { setting: 'BEDROCK_MANTLE_BASE_URL' },
    ]);
    expect(problems({ AWS_REGION: 'hunter2/x' }).problems).toBeUndefined();
  });

  test('an entry of PROVIDERS with its key, from before it was built in: needs no region, and wins by its name', async () => {
    const entry = { base_url: 'https://own.example/v1', api_key: 'AWS_BEARER_TOKEN_BEDROCK' };
    const named = readSettings({ AWS_BEARER_TOKEN_BEDROCK: 'k', PROVIDERS: { bedrock: entry } });
    expect(named.kind === 'valid' && named.settings.providers.get('bedrock')?.baseUrl).toBe(
      'https://own.example/v1',
    );
    const other = readSettings({ AWS_BEARER_TOKEN_BEDROCK: 'k', PROVIDERS: { aws: entry } });
    expect(other.kind === 'valid' && [...other.settings.providers.keys()]).toEqual(['aws']);
  });

  test('"isn’t supported on this route": one try at the other prefix, which is remembered', async () => {
    const model = 'writer.palmyra-x5';
    const wrong = refuse(400, { message: `model \`${model}\` isn't supported on this route` });
    const routed = new RoutedGateway({ [model]: [wrong, answerWith('Here.')] }, ENV);
    for (let i = 0; i < 2; i++) {
      expect(await read(await routed.ask({ model: `bedrock/${model}` }))).toMatchObject({ text: 'Here.' });
      await settle();
    }
    expect(routed.requests.map(({ url }) => url)).toEqual([
      `${MANTLE}/v1/chat/completions`,
      `${MANTLE}/openai/v1/chat/completions`,
      `${MANTLE}/openai/v1/chat/completions`,
    ]);
  });

  test('the same of both prefixes: the client gets the refusal, after two requests', async () => {
    const model = 'writer.palmyra-x5';
    const wrong = refuse(404, { message: `model \`${model}\` isn’t supported on this route` });
    const routed = new RoutedGateway({ [model]: [wrong] }, ENV);
    const { status, error } = await read(await routed.ask({ model: `bedrock/${model}` }));
    expect([status, routed.requests.length]).toEqual([404, 2]);
    expect(error?.message).toContain('supported on this route');
  });

  test('a key that has ended: the error names the setting', async () => {
    const ended = {
      kind: 'refuse',
      status: 403,
      body: '{"message":"Authentication failed: Please make sure your API Key is valid."}',
    } as const;
    const routed = new RoutedGateway({ 'openai.gpt-oss-20b': [ended] }, ENV);
    expect(await read(await routed.ask({ model: 'bedrock/openai.gpt-oss-20b' }))).toMatchObject({
      status: 502,
      error: {
        code: 'upstream_credential',
        message: "AWS Bedrock refused this deployment's credential (403): check AWS_BEARER_TOKEN_BEDROCK",
      },
    });
  });

  test('families are those of the model: OpenAI’s and Anthropic’s rules apply below a profile and a maker', async () => {
    const gpt = await ask('us.openai.gpt-5.6-sol', ENV, { temperature: 0.5, max_tokens: 64 });
    expect(gpt.request?.body).toMatchObject({ max_completion_tokens: 64 });
    expect(gpt.got.headers.get('x-weir-dropped')).toBe('temperature');
    const claude = await ask('us.anthropic.claude-opus-5-5-v1:0', ENV, { reasoning_effort: 'high' });
    expect(claude.request?.body).toMatchObject({
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
    });
    const old = await ask('eu.anthropic.claude-sonnet-4-5-20250929-v1:0', ENV, { reasoning_effort: 'high' });
    expect(old.request?.body.thinking).toMatchObject({ type: 'enabled' });
  });

  test('prices are the maker’s, of a profile that is not global a tenth higher, and marked as estimates', async () => {
    const cost = async (model: string) => {
      const { record } = await ask(model);
      return [record?.cost_nanos, record?.cost_estimated];
    };
    const [global] = await cost('global.anthropic.claude-haiku-4-5');
    expect(await cost('global.anthropic.claude-haiku-4-5')).toEqual([20_000, true]);
    expect(global).toBe(5 * 1000 + 3 * 5000);
    expect(await cost('us.anthropic.claude-haiku-4-5-20251001-v1:0')).toEqual([22_000, true]);
    expect(await cost('anthropic.claude-haiku-4-5')).toEqual([22_000, true]);
    expect(await cost('nvidia.unknown-9')).toEqual([null, false]);
  });

  test('AWS’s own price comes first, below a profile and a version, and is marked', async () => {
    const cost = async (model: string) => {
      const { record } = await ask(model);
      return [record?.cost_nanos, record?.cost_estimated];
    };
    const nemotron = 5 * 150 + 3 * 650;
    expect(await cost('nvidia.nemotron-super-3-120b')).toEqual([nemotron, true]);
    const maverick = 5 * 240 + 3 * 970;
    expect(await cost('meta.llama4-maverick-17b-instruct-v1:0')).toEqual([maverick, true]);
    expect(await cost('us.meta.llama4-maverick-17b-instruct-v1:0')).toEqual([maverick, true]);
    // Z.ai asks less than AWS; DeepSeek and Moonshot have other prices.
    expect(await cost('zai.glm-5')).toEqual([5 * 1000 + 3 * 3200, true]);
    expect(await cost('deepseek.v3.2')).toEqual([5 * 620 + 3 * 1850, true]);
    expect(await cost('openai.gpt-oss-120b-1:0')).toEqual([5 * 150 + 3 * 600, true]);
    expect(await cost('global.amazon.nova-2-lite-v1:0')).toEqual([5 * 300 + 3 * 2500, true]);
    expect(await cost('eu.amazon.nova-2-lite-v1:0')).toEqual([5 * 330 + 3 * 2750, true]);
  });

  test('GPT at Mantle that refuses chat: the request goes through Responses, and the next one at once', async () => {
    const model = 'openai.gpt-5.6-luna';
    const refused = refuse(400, {
      code: 'validation_error',
      message: `The model '${model}' does not support the '/v1/chat/completions' API`,
      ...{ param: null, type: 'invalid_request_error' },
    });
    const item = {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' },
      content: [{ type: 'output_text', text: 'Here.', annotations: [] }],
    };
    const whole = {
      kind: 'answer',
      type: 'application/json',
      pieces: [JSON.stringify(response('resp_a', [item]))],
    } as const;
    const routed = new RoutedGateway({ [model]: [refused, whole] }, ENV);
    for (let i = 0; i < 2; i++)
      expect(await read(await routed.ask({ model: `bedrock/${model}` }))).toMatchObject({ text: 'Here.' });
    const path = `${MANTLE}/openai/v1`;
    expect(routed.requests.map(({ url }) => url)).toEqual([
      `${path}/chat/completions`,
      `${path}/responses`,
      `${path}/responses`,
    ]);
  });

  test.each([
    ['openai.gpt-oss-20b', '/v1/responses'],
    ['google.gemma-4-31b', '/openai/v1/responses'],
    ['xai.grok-4.3', '/openai/v1/responses'],
    ['qwen.qwen3-32b', '/v1/chat/completions'],
  ])('a Responses client of %s is served at %s', async (model, path) => {
    const whole = {
      kind: 'answer',
      type: 'application/json',
      pieces: [JSON.stringify(response('resp_a', []))],
    } as const;
    const routed = new RoutedGateway({ [model]: [whole] }, ENV);
    const body = { model: `bedrock/${model}`, input: 'Hi', messages: undefined };
    await (await routed.ask(body, {}, '/v1/responses')).text();
    expect(routed.requests[0]?.url).toBe(`${MANTLE}${path}`);
  });
});

const response = (id: string, output: readonly object[]) => ({
  ...{ id, object: 'response', status: 'completed', model: 'openai.gpt-5.6-luna', output },
  usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 },
});

/** A response with one call, which begins to count anew. */
function callResponse(id: string) {
  const item = {
    type: 'function_call',
    id: `fc_${id}`,
    call_id: 'call_0',
    name: 'f',
    arguments: '{}',
    status: 'completed',
  };
  const turned = (type: string, members: object) =>
    `${frame(type, members).split('\n').slice(0, 2).reverse().join('\n')}\n\n`;
  return sse(
    turned('response.created', { response: response(id, []) }),
    turned('response.output_item.added', {
      output_index: 0,
      item: { ...item, arguments: '', status: 'in_progress' },
    }),
    turned('response.function_call_arguments.delta', { output_index: 0, item_id: item.id, delta: '{}' }),
    turned('response.output_item.done', { output_index: 0, item }),
    turned('response.completed', { response: response(id, [item]) }),
  );
}

describe('W8 calls of bedrock that are named call_0 in each response', () => {
  const model = 'openai.gpt-5.6-luna';
  const env = { ...ENV, ALIASES: { luna: { model: `bedrock/${model}`, api: 'responses' } } };
  const tools = [
    { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } },
  ];

  test.each([true, false])(
    'a chat client, stream: %s: each has an id of its own, which goes back',
    async (stream) => {
      const routed = new RoutedGateway(
        { [model]: [callResponse('resp_a'), callResponse('resp_b'), callResponse('resp_c')] },
        env,
      );
      const messages: JsonObject[] = [{ role: 'user', content: 'Call f' }];
      const ids = new Set<string>();
      for (let step = 0; step < 2; step++) {
        const text = await (await routed.ask({ model: 'luna', stream, tools, messages })).text();
        const [, id = ''] = /"tool_calls":\[\{[^}]*?"id":"([^"]+)"/.exec(text) ?? [];
        ids.add(id);
        messages.push(
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: id, content: 'done' },
        );
      }
      expect(ids.size).toBe(2);
      expect([...ids]).not.toContain('call_0');
      await (await routed.ask({ model: 'luna', stream, tools, messages })).text();
      const input = objectsOf(routed.requests.at(-1)?.body.input);
      const called = input.filter(({ type }) => type === 'function_call').map(({ call_id }) => call_id);
      expect(called).toEqual([...ids]);
      expect(
        input.filter(({ type }) => type === 'function_call_output').map(({ call_id }) => call_id),
      ).toEqual(called);
    },
  );

  test.each(['Messages, streamed', 'Messages', 'chat, streamed', 'chat'])(
    '%s: reads the call',
    async (client) => {
      const seen = await CLIENTS[client]?.(gatewayFetch(callResponse('resp_a'), { env, model }), 'luna');
      expect(seen?.calls).toEqual([['f', '{}']]);
    },
  );
});

describe('W8 reasoning that Bedrock encrypted, of a Responses client', () => {
  const reasoning = (data: string) => ({
    type: 'reasoning',
    id: 'rs_1',
    summary: [],
    encrypted_content: data,
  });
  const inputOf = async (address: string, data: string, env: JsonObject = {}) => {
    const model = address.slice(address.indexOf('/') + 1);
    const whole = {
      kind: 'answer',
      type: 'application/json',
      pieces: [JSON.stringify(response('resp_a', []))],
    } as const;
    const routed = new RoutedGateway({ [model]: [whole] }, { ...ENV, ...env });
    const call = { type: 'function_call', id: 'fc_1', call_id: 'call_0', name: 'f', arguments: '{}' };
    const result = { type: 'function_call_output', call_id: 'call_0', output: 'done' };
    const input = [{ role: 'user', content: 'Hi' }, reasoning(data), call, result];
    await (await routed.ask({ model: address, input, messages: undefined }, {}, '/v1/responses')).text();
    return objectsOf(objectOf(routed.requests[0]?.body).input);
  };
  const kinds = (items: readonly JsonObject[]) =>
    items.map(({ type, id }) => `${String(type ?? 'message')} ${String(id ?? '-')}`);

  test('goes back to Bedrock', async () => {
    const sent = await inputOf('bedrock/openai.gpt-5.6-luna', 'rsn_abc');
    expect(kinds(sent)).toContain('reasoning rs_1');
  });

  test('goes to no other provider, nor that of another one to Bedrock: the rest goes without ids', async () => {
    const rest = ['message -', 'function_call -', 'function_call_output -'];
    expect(kinds(await inputOf('openai/gpt-5.6-luna', 'rsn_abc'))).toEqual(rest);
    const entry = { base_url: 'https://api.x.ai/v1', api_key: 'OPENAI_API_KEY' };
    expect(kinds(await inputOf('mine/grok-4', 'rsn_abc', { PROVIDERS: { mine: entry } }))).toEqual(rest);
    expect(kinds(await inputOf('openai/gpt-5.6-luna', 'gAAAAAB'))).toContain('reasoning rs_1');
  });

  test('goes to an entry of the operator’s own, which may be Bedrock', async () => {
    const entry = { base_url: 'https://bedrock.example/openai/v1', responses: true };
    expect(
      kinds(await inputOf('aws/openai.gpt-5.6-luna', 'rsn_abc', { PROVIDERS: { aws: entry } })),
    ).toContain('reasoning rs_1');
  });
});
