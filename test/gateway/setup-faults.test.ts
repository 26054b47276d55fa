/** Mistakes of an operator: messages name the setting; the log and the record have the host and the cause, which no client sees. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { answerWith, type Behavior, RoutedGateway, read, refuse, settle } from './upstreams.ts';

const ASKED = { model: 'deepseek/a' };

async function failed(behavior: Behavior, env: JsonObject = {}) {
  const routed = new RoutedGateway({ a: [behavior] }, env);
  const { status, error } = await read(await routed.ask(ASKED));
  await settle();
  const [record] = routed.records;
  return { status, error: error ?? {}, attempts: record?.attempts ?? [], gateway: routed.gateway };
}

describe('an upstream with a wrong setting', () => {
  test('an unreachable host: the message names the setting, and the record has the host and the cause', async () => {
    const { status, error, attempts } = await failed({ kind: 'unreachable' });
    expect(status).toBe(502);
    expect(error).toMatchObject({ message: 'DeepSeek could not be reached: check DEEPSEEK_BASE_URL' });
    expect(attempts).toMatchObject([
      {
        cause:
          'https://deepseek/chat/completions: connect ECONNREFUSED 10.0.0.1:443: check DEEPSEEK_BASE_URL',
      },
    ]);
  });

  test('an unreachable host at the default address: the message names no setting', async () => {
    const { error } = await failed({ kind: 'unreachable' }, { DEEPSEEK_BASE_URL: undefined });
    expect(error).toMatchObject({ message: 'DeepSeek could not be reached' });
  });

  test('a base URL with one segment too many: the 404 says to check it', async () => {
    const { status, error, attempts } = await failed(refuse(404, { message: 'Not found' }), {
      DEEPSEEK_BASE_URL: 'https://deepseek/v1',
    });
    expect([status, error.message]).toEqual([404, 'DeepSeek: Not found: check DEEPSEEK_BASE_URL']);
    expect(attempts).toMatchObject([
      { cause: 'https://deepseek/v1/chat/completions: answered 404: check DEEPSEEK_BASE_URL' },
    ]);
  });

  test('an unknown model: the 404 does not name the base URL', async () => {
    const { error } = await failed(refuse(404, { message: 'The model a does not exist' }));
    expect(error.message).toBe('DeepSeek: The model a does not exist');
  });

  test('a refused key: the message names its setting', async () => {
    const { error, attempts } = await failed(refuse(401));
    expect(error).toMatchObject({
      code: 'upstream_credential',
      message: "DeepSeek refused this deployment's credential (401): check DEEPSEEK_API_KEY",
    });
    expect(attempts).toMatchObject([
      { cause: 'https://deepseek/chat/completions: answered 401: check DEEPSEEK_API_KEY' },
    ]);
  });

  test('an entry of PROVIDERS: the message names its secret or its field', async () => {
    const PROVIDERS = { acme: { base_url: 'https://acme/v1', api_key: 'ACME_TOKEN' } };
    const routed = new RoutedGateway(
      { bad: [refuse(401)], dead: [{ kind: 'unreachable' }] },
      { PROVIDERS, ACME_TOKEN: 'of-acme' },
    );
    const message = async (model: string) => (await read(await routed.ask({ model }))).error?.message;
    expect(await message('acme/bad')).toBe(
      "acme refused this deployment's credential (401): check ACME_TOKEN",
    );
    expect(await message('acme/dead')).toBe('acme could not be reached: check base_url of acme in PROVIDERS');
  });

  test('a secret in the query or in the reason is not in the log', async () => {
    const PROVIDERS = {
      acme: { base_url: 'https://acme/v1', api_key: 'ACME_TOKEN', query: { key: '$ACME_TOKEN' } },
    };
    const routed = new RoutedGateway(
      { a: [{ kind: 'unreachable' }] },
      { PROVIDERS, ACME_TOKEN: 'of-acme-1' },
    );
    await read(await routed.ask({ model: 'acme/a' }));
    await settle();
    expect(JSON.stringify(routed.gateway.logged)).toContain('https://acme/v1/chat/completions: connect');
    expect(JSON.stringify(routed.gateway.logged)).not.toContain('of-acme-1');
  });

  test('E4 a key sees its record without the cause, the admin sees it with the cause', async () => {
    const gateway = new LimitedGateway(
      { AUTH: 'keys', RETRIES: '0', OPENAI_BASE_URL: 'http://10.0.0.7/v1' },
      { fetch: async () => Promise.reject(new Error('connect ECONNREFUSED')) },
    );
    const key = await gateway.key();
    await (await gateway.ask(key)).text();
    await gateway.idle();
    const attemptsFor = async (token: string) => {
      const list = decodeObject(await (await gateway.fetch('/v1/usage/records', token)).text()) ?? {};
      const id = textOf(objectsOf(list.data)[0]?.request_id);
      const found = await (await gateway.fetch(`/v1/usage/records/${id}`, token)).text();
      return objectsOf(decodeObject(found)?.attempts);
    };
    expect(await attemptsFor('admin')).toMatchObject([
      { cause: 'http://10.0.0.7/v1/chat/completions: connect ECONNREFUSED: check OPENAI_BASE_URL' },
    ]);
    const [own] = await attemptsFor(key);
    expect(own).toMatchObject({ error_code: 'upstream_unreachable' });
    expect(own).not.toHaveProperty('cause');
  });

  test('a client that disconnected: the record has no cause', async () => {
    const routed = new RoutedGateway({ a: [{ kind: 'hang' }] });
    const client = new AbortController();
    const answer = routed.ask({ ...ASKED, stream: true }, { signal: client.signal });
    await settle();
    client.abort();
    await answer.catch(() => undefined);
    await settle();
    expect(JSON.stringify(routed.records)).not.toContain('"cause"');
  });
});

describe('unknown names', () => {
  const ENV = { AUTH: 'open', DEEPSEEK_API_KEY: '', MISTRAL_API_KEY: 'k', ALIASES: { fast: 'openai/a' } };

  test.each([
    [
      'opnai/gpt-4o-mini',
      'opnai/gpt-4o-mini: unknown provider "opnai": did you mean openai? Providers here: mistral',
    ],
    ['replicate/gpt-4o-mini', 'unknown provider "replicate". Providers here: mistral, codestral, openai'],
    ['azure/gpt-4o-mini', 'azure is not set up in this deployment: its operator has not set AZURE_API_KEY'],
    ['fsat', 'fsat names no provider: did you mean fast? Providers here: mistral'],
    ['llama-4', 'llama-4 names no provider: write <provider>/<model>. Providers here: mistral'],
    [
      'deepseek-chat',
      'deepseek-chat names no provider, and its maker deepseek is not set up in this deployment: its operator has not set DEEPSEEK_API_KEY',
    ],
    ['grok-4.7', 'its maker xai is not set up in this deployment: its operator has not set XAI_API_KEY'],
    ['groq/llama-4', 'groq is not set up in this deployment: its operator has not set GROQ_API_KEY'],
    ['deepsek/a', 'unknown provider "deepsek": did you mean deepseek? Providers here: mistral'],
    [
      'deepseek/a',
      'The provider deepseek is not set up in this deployment: its operator has not set DEEPSEEK_API_KEY',
    ],
  ])('model %s: 404 with the nearest that is known', async (model, message) => {
    const { status, error } = await errorOf(await new LimitedGateway(ENV).ask('', { model }));
    expect(status).toBe(404);
    expect(error).toMatchObject({ code: 'model_not_found', message: expect.stringContaining(message) });
  });

  test.each<[model: string, env: JsonObject, message: string]>([
    ['gpt-4o-mni', { AUTH: 'open' }, 'OpenAI: The model does not exist: did you mean gpt-4o-mini?'],
    ['gpt-9-huge', { AUTH: 'open' }, 'OpenAI: The model does not exist.'],
  ])(
    'a model %s that the provider does not have: its 404, with the nearest model that has a price',
    async (model, env, message) => {
      const fetch = async () =>
        Response.json({ error: { message: 'The model does not exist.' } }, { status: 404 });
      const { status, error } = await errorOf(
        await new LimitedGateway(env, { fetch }).ask('', { model: `openai/${model}` }),
      );
      expect([status, error.message]).toEqual([404, message]);
    },
  );

  test('a model from the cached list is suggested, but not one that the key may not use', async () => {
    const fetch = async (url: Request | string) =>
      String(url).endsWith('/models')
        ? Response.json({ data: [{ id: 'weir-one' }] })
        : Response.json({ error: { message: 'No such model' } }, { status: 404 });
    const gateway = new LimitedGateway({ AUTH: 'keys' }, { fetch });
    const [all, some] = [
      await gateway.key(),
      await gateway.key({ models: ['openai/weir-one?', 'openai/weir-on'] }),
    ];
    await (await gateway.fetch('/v1/models', all)).text();
    const message = async (key: string) => {
      return (await errorOf(await gateway.ask(key, { model: 'openai/weir-on' }))).error.message;
    };
    expect(await message(all)).toBe('OpenAI: No such model: did you mean weir-one?');
    expect(await message(some)).toBe('OpenAI: No such model');
  });

  test('GET /v1/models/<id> with a misspelt id: names the nearest one in the list', async () => {
    const fetch = async () => Response.json({ data: [{ id: 'gpt-4o-mini' }] });
    const gateway = new LimitedGateway({ ...ENV, MISTRAL_API_KEY: '' }, { fetch });
    const { error } = await errorOf(await gateway.fetch('/v1/models/openai/gpt-40-mini', ''));
    expect(error.message).toBe('There is no model "openai/gpt-40-mini": did you mean openai/gpt-4o-mini?');
  });
});

describe('paths below a base path', () => {
  test.each([
    ['/v1/chat/completions', 'here: every path begins with the base path /llm, which a router'],
    ['/llmx', 'here: every path begins with the base path /llm, which a router'],
    ['/llm/v1/images', 'here. Routes: '],
  ])('%s: the 404 lists the routes with their base path', async (path, place) => {
    const gateway = new LimitedGateway({ AUTH: 'open', BASE_PATH: '/llm' });
    const { status, error } = await errorOf(await gateway.post(path, '', {}));
    expect(status).toBe(404);
    expect(error.message).toContain(`There is no POST ${path} ${place}`);
    expect(error.message).toContain('Routes: POST /llm/v1/chat/completions, POST /llm/v1/fim/completions, ');
    expect(error.message).toContain(', GET /llm/dashboard');
  });
});

describe('an empty list of models says why', () => {
  test.each<[what: string, env: JsonObject, answer: () => Promise<Response>, notice: string]>([
    [
      'no provider',
      { OPENAI_API_KEY: '' },
      async () => Response.json({}),
      'No provider is called: the operator has',
    ],
    [
      'a provider that can’t be reached',
      {},
      () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:80')),
      'No provider listed its models: openai could not be reached',
    ],
    ['a refused key', {}, async () => new Response('', { status: 401 }), 'openai answered 401'],
    ['an invalid list', {}, async () => new Response('<html>'), 'openai did not send a list'],
    ['an empty list', {}, async () => Response.json({ data: [] }), 'The providers listed no models'],
  ])('%s', async (_, env, fetch, notice) => {
    const own = { AUTH: 'open', DEEPSEEK_API_KEY: '', OPENAI_BASE_URL: 'http://10.0.0.7/v1', ...env };
    const gateway = new LimitedGateway(own, { fetch });
    const list = decodeObject(await (await gateway.fetch('/v1/models', '')).text());
    expect(list).toMatchObject({ object: 'list', data: [], has_more: false });
    expect(list?.notice).toContain(notice);
    expect(list?.notice).not.toContain('10.0.0.7');
    expect(gateway.logged).toContainEqual({ event: 'models_empty', notice: list?.notice });
  });

  test('the log has the address, the cause and the settings of each provider that failed', async () => {
    const fetch = () => Promise.reject(new Error('connect ECONNREFUSED'));
    const own = { AUTH: 'open', DEEPSEEK_API_KEY: '', OPENAI_BASE_URL: 'http://10.0.0.7/v1' };
    const gateway = new LimitedGateway(own, { fetch });
    await (await gateway.fetch('/v1/models', '')).text();
    expect(gateway.logged).toContainEqual({
      event: 'models_unavailable',
      provider: 'openai',
      cause: 'http://10.0.0.7/v1/models: connect ECONNREFUSED',
      check: 'OPENAI_API_KEY, OPENAI_BASE_URL',
    });
  });

  test('a key that may use no model of the list', async () => {
    const fetch = async () => Response.json({ data: [{ id: 'a' }] });
    const gateway = new LimitedGateway({ AUTH: 'keys', DEEPSEEK_API_KEY: '' }, { fetch });
    const key = await gateway.key({ models: ['mistral/*'] });
    const list = decodeObject(await (await gateway.fetch('/v1/models', key)).text());
    expect(list).toMatchObject({ data: [], notice: 'This key may use none of the models' });
  });

  test('a list that is not empty has no notice', async () => {
    const fetch = async () => Response.json({ data: [{ id: 'a' }] });
    const gateway = new LimitedGateway({ AUTH: 'open', DEEPSEEK_API_KEY: '' }, { fetch });
    const list = decodeObject(await (await gateway.fetch('/v1/models', '')).text());
    expect(list?.data).toHaveLength(1);
    expect(list).not.toHaveProperty('notice');
  });
});

test('a complete response has no cause in its record', async () => {
  const routed = new RoutedGateway({ a: [answerWith('Hi')] });
  await read(await routed.ask(ASKED));
  await settle();
  expect(JSON.stringify(routed.records)).not.toContain('"cause"');
});

async function errorOf(response: Response) {
  return { status: response.status, error: objectOf(decodeObject(await response.text())?.error) };
}
