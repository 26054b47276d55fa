/** Azure: which API a deployment is called by, the models behind its names, and what its filter does to streams and refusals. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { readSettings } from '../settings/read-settings.ts';
import { CLIENTS, gatewayFetch } from './sdk-clients.ts';
import { answerWith, type Behavior, event, RoutedGateway, read, refuse, settle, sse } from './upstreams.ts';

const ENV = { AZURE_API_KEY: 'key-of-azure', AZURE_RESOURCE: 'acme' };
const message = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' },
  content: [{ type: 'text', text: 'Here.' }],
  usage: { input_tokens: 5, output_tokens: 3 },
};
const CLAUDE: Behavior = { kind: 'answer', type: 'application/json', pieces: [JSON.stringify(message)] };

async function ask(
  model: string,
  env: JsonObject = ENV,
  fields: JsonObject = {},
  answer: Behavior | null = null,
) {
  const isClaude = /claude/.test(model);
  const name = model.slice(model.indexOf('/') + 1);
  const routed = new RoutedGateway({ [name]: [answer ?? (isClaude ? CLAUDE : answerWith('Here.'))] }, env);
  const got = await read(await routed.ask({ model, ...fields }));
  await settle();
  return { got, request: routed.requests[0], record: routed.records[0] };
}

describe('W9 azure', () => {
  test.each([
    ['gpt-4o-mini', 'https://acme.openai.azure.com/openai/v1/chat/completions', 'api-key'],
    ['my-own-name', 'https://acme.openai.azure.com/openai/v1/chat/completions', 'api-key'],
    ['DeepSeek-V3.2', 'https://acme.openai.azure.com/openai/v1/chat/completions', 'api-key'],
    ['claude-haiku-4-5', 'https://acme.services.ai.azure.com/anthropic/v1/messages', 'x-api-key'],
  ])('%s: is called at %s with the key as %s', async (model, url, header) => {
    const { got, request } = await ask(`azure/${model}`);
    expect(got).toMatchObject({ status: 200, text: 'Here.' });
    expect(request?.url).toBe(url);
    expect(request?.headers.get(header)).toBe('key-of-azure');
    expect(request?.headers.get('authorization')).toBeNull();
    expect(request?.body.model).toBe(model);
  });

  test.each(['https://proxy.example', 'https://proxy.example/openai/v1/', 'https://proxy.example/anthropic'])(
    'AZURE_BASE_URL %s: replaces scheme and host alone, and needs no resource',
    async (AZURE_BASE_URL) => {
      const env = { AZURE_API_KEY: 'k', AZURE_BASE_URL };
      expect((await ask('azure/gpt-4o', env)).request?.url).toBe(
        'https://proxy.example/openai/v1/chat/completions',
      );
      expect((await ask('azure/claude-opus-5-5', env)).request?.url).toBe(
        'https://proxy.example/anthropic/v1/messages',
      );
    },
  );

  test('without its resource: misconfigured by its name, unless an entry of PROVIDERS has the key', () => {
    const message =
      'must be set, because AZURE_API_KEY is: the name of a resource, as in https://<name>.openai.azure.com';
    expect(readSettings({ AZURE_API_KEY: 'k' })).toMatchObject({
      problems: [{ setting: 'AZURE_RESOURCE', message }],
    });
    expect(readSettings({ ...ENV, AZURE_RESOURCE: 'a.example/' })).toMatchObject({
      problems: [{ setting: 'AZURE_RESOURCE' }],
    });
    const eu = { base_url: 'https://eu.openai.azure.com/openai/v1', api_key: 'AZURE_API_KEY' };
    const read = readSettings({ AZURE_API_KEY: 'k', PROVIDERS: { eu } });
    expect(read.kind === 'valid' && [...read.settings.providers.keys()]).toEqual(['eu']);
  });

  const MODELS = { 'my-gpt': 'openai/gpt-6.1-terra', 'my-claude': 'anthropic/claude-opus-5-5' };

  test.each([
    ['text', JSON.stringify(MODELS)],
    ['a table', MODELS],
  ])('AZURE_MODELS as %s: families, API and prices are those of the model', async (_, AZURE_MODELS) => {
    const env = { ...ENV, AZURE_MODELS };
    const gpt = await ask('azure/my-gpt', env, { temperature: 0.5, max_tokens: 64 });
    expect(gpt.request?.body).toMatchObject({ model: 'my-gpt', max_completion_tokens: 64 });
    expect(gpt.got.headers.get('x-weir-dropped')).toBe('temperature');
    expect(gpt.record).toMatchObject({ currency: 'USD', cost_estimated: true });
    const claude = await ask('azure/my-claude', env, { reasoning_effort: 'high' });
    expect(claude.request?.url).toBe('https://acme.services.ai.azure.com/anthropic/v1/messages');
    expect(claude.request?.body).toMatchObject({ model: 'my-claude', thinking: { type: 'adaptive' } });
    expect(claude.record).toMatchObject({ currency: 'USD', cost_estimated: true });
  });

  test('AZURE_MODELS with a model without a maker: misconfigured by name', () => {
    const read = readSettings({ ...ENV, AZURE_MODELS: '{"a": "hunter2"}' });
    expect(read).toMatchObject({ problems: [{ setting: 'AZURE_MODELS' }] });
    expect(JSON.stringify(read)).not.toContain('hunter2');
  });

  test('a deployment with its model’s name has the maker’s price as an estimate, an unknown name none', async () => {
    expect((await ask('azure/gpt-4o-mini')).record).toMatchObject({ currency: 'USD', cost_estimated: true });
    expect((await ask('azure/my-own-name')).record?.cost_nanos).toBeNull();
  });
});

describe('W9 Azure’s own prices', () => {
  test.each([
    ['DeepSeek-V3.2', 5 * 580 + 3 * 1680],
    ['Llama-3.3-70B-Instruct', 5 * 710 + 3 * 710],
    ['Phi-4', 5 * 125 + 3 * 500],
    ['grok-4-20-reasoning', 5 * 2000 + 3 * 6000],
  ])('%s: come before the maker’s, and are marked', async (model, cost_nanos) => {
    expect((await ask(`azure/${model}`)).record).toMatchObject({
      ...{ cost_nanos, currency: 'USD', cost_estimated: true },
    });
  });

  test('a deployment of another name has the price of the model that AZURE_MODELS names', async () => {
    const env = { ...ENV, AZURE_MODELS: { chat: 'deepseek/deepseek-v3.2' } };
    expect((await ask('azure/chat', env)).record?.cost_nanos).toBe(5 * 580 + 3 * 1680);
  });
});

describe('W9 an entry of PROVIDERS at a host of Azure', () => {
  const base_url = 'https://acme.openai.azure.com/openai/deployments/my-gpt';
  const entry = { base_url, api_key: 'AZURE_KEY', query: { 'api-version': '2026-01-01' } };
  const env = (more: JsonObject = {}, key = 'key-of-eu') => ({
    AZURE_KEY: key,
    PROVIDERS: { eu: { ...entry, ...more } },
  });

  test('one deployment: its path, its version, and the key as api-key', async () => {
    const { got, request } = await ask('eu/my-gpt', env());
    expect(got.text).toBe('Here.');
    expect(request?.url).toBe(`${base_url}/chat/completions?api-version=2026-01-01`);
    expect(request?.headers.get('api-key')).toBe('key-of-eu');
    expect(request?.headers.get('authorization')).toBeNull();
  });

  test('a token of Entra ID goes as bearer, as before', async () => {
    const { request } = await ask('eu/my-gpt', env({}, 'eyJhbGciOi.a.b'));
    expect(request?.headers.get('authorization')).toBe('Bearer eyJhbGciOi.a.b');
    expect(request?.headers.get('api-key')).toBeNull();
  });

  test('models: the rules and the price of the model behind a deployment', async () => {
    const { request, record } = await ask(
      'eu/my-gpt',
      env({ models: { 'my-gpt': 'openai/gpt-6.1-terra' } }),
      {
        max_tokens: 64,
      },
    );
    expect(request?.body).toMatchObject({ model: 'my-gpt', max_completion_tokens: 64 });
    expect(record).toMatchObject({ currency: 'USD', cost_estimated: true });
  });

  test('like openai, or a header with the key: as before', async () => {
    const like = (await ask('eu/my-gpt', env({ like: 'openai' }))).request;
    expect(like?.headers.get('authorization')).toBe('Bearer key-of-eu');
    const { api_key: _, ...plain } = entry;
    const header = { AZURE_KEY: 'k2', PROVIDERS: { eu: { ...plain, headers: { 'api-key': '$AZURE_KEY' } } } };
    expect((await ask('eu/my-gpt', header)).request?.headers.get('api-key')).toBe('k2');
  });

  test('an entry named azure replaces the provider', async () => {
    const own = {
      AZURE_API_KEY: 'k',
      OWN: 'o',
      PROVIDERS: { azure: { base_url: 'https://own.example/v1', api_key: 'OWN' } },
    };
    expect((await ask('azure/gpt-4o', own)).request?.url).toBe('https://own.example/v1/chat/completions');
  });
});

const FILTER = { hate: { filtered: false, severity: 'safe' } };
const first = `data: ${JSON.stringify({
  ...{ choices: [], created: 0, id: '', model: '', object: '' },
  prompt_filter_results: [{ prompt_index: 0, content_filter_results: FILTER }],
})}\n\n`;
/** Results of the asynchronous filter: without text, with offsets, before and after the finish. */
const late = (finish_reason: string | null = null) =>
  `data: ${JSON.stringify({
    ...{ id: '', object: '', created: 0, model: '' },
    choices: [
      {
        ...{ index: 0, finish_reason, content_filter_results: FILTER },
        content_filter_offsets: { check_offset: 44, start_offset: 44, end_offset: 198 },
      },
    ],
  })}\n\n`;
const usage = `data: ${JSON.stringify({ id: 'up', choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } })}\n\n`;

describe('W9 the filter of Azure', () => {
  const text = [
    event({ role: 'assistant', content: '' }),
    event({ content: 'All ' }),
    late(),
    event({ content: 'clear.' }),
  ];
  const streams = {
    'results before the role, among the text and before the finish': [
      first,
      ...text,
      late(),
      event({}, 'stop'),
      usage,
    ],
    'results after the finish': [first, ...text, event({}, 'stop'), late(), usage],
  };

  for (const [what, pieces] of Object.entries(streams))
    test.each(Object.keys(CLIENTS))(`${what}: %s clients read the text and its end`, async (client) => {
      // An alias with fields is translated: the answer is one of chat, whichever protocol the client speaks.
      const ALIASES = { chat: { model: 'azure/gpt-4o-mini', set: { user: 'u' } } };
      const own = { env: { ...ENV, ALIASES }, model: 'gpt-4o-mini' };
      const seen = await CLIENTS[client]?.(gatewayFetch(sse(...pieces, 'data: [DONE]\n\n'), own), 'chat');
      const [protocol = ''] = client.split(',');
      const finish = { chat: 'stop', Messages: 'end_turn', Responses: 'completed', Gemini: 'STOP' }[protocol];
      expect(seen).toMatchObject({ text: 'All clear.', finish });
    });

  test('the frame before the role opens no output, and its empty id and model are not the response’s', async () => {
    const { got } = await ask(
      'azure/gpt-4o-mini',
      ENV,
      { stream: true },
      sse(first, ...text, event({}, 'stop'), usage, 'data: [DONE]\n\n'),
    );
    expect(new Set(got.ids).size).toBe(1);
    expect(got.ids[0]).toBe('up');
    expect(got.models.every((model) => model === 'azure/gpt-4o-mini')).toBe(true);
  });

  test('text that the asynchronous filter stops ends as content_filter, not as a success', async () => {
    const { got } = await ask(
      'azure/gpt-4o-mini',
      ENV,
      { stream: true },
      sse(first, ...text, late('content_filter'), 'data: [DONE]\n\n'),
    );
    expect(got).toMatchObject({ text: 'All clear.', finishes: ['content_filter'] });
  });

  test.each([true, false])(
    'a blocked prompt, stream: %s: 400 with the code, the fault and the sentence',
    async (stream) => {
      const sentence =
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.";
      const innererror = {
        code: 'ResponsibleAIPolicyViolation',
        content_filter_result: { violence: { filtered: true } },
      };
      const blocked = refuse(400, {
        message: sentence,
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror,
      });
      const { got, record } = await ask('azure/gpt-4o-mini', ENV, { stream }, blocked);
      expect(got.status).toBe(400);
      expect(got.error).toMatchObject({
        code: 'content_filter',
        type: 'invalid_request_error',
        param: 'prompt',
      });
      expect(got.error?.message).toBe(`Azure: ${sentence}`);
      expect(record).toMatchObject({ error_code: 'content_filter' });
    },
  );

  test.each([
    [
      401,
      { code: '401', message: 'Access denied due to invalid subscription key or wrong API endpoint.' },
      'upstream_credential',
    ],
    [
      404,
      { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' },
      'DeploymentNotFound',
    ],
    [
      429,
      { code: 'RateLimitReached', message: 'Your requests have exceeded rate limit.' },
      'RateLimitReached',
    ],
  ])('a refusal with %d: the code is %s', async (status, error, code) => {
    const { got } = await ask('azure/gpt-4o-mini', ENV, {}, refuse(status, error));
    expect(got.error?.code).toBe(code);
    if (status === 401) expect(got.error?.message).toContain('check AZURE_API_KEY');
  });
});
