/** Tests every setting: its default, a valid value, and the error for an invalid one. */
import { describe, expect, test } from 'vitest';
import { readDeployment } from '../src/feature.ts';
import { createBefore, hasAdmins } from '../src/gateway.ts';
import { readRecordDays } from '../src/ledger/settings.ts';
import { PROVIDERS } from '../src/providers/index.ts';
import type { Provider } from '../src/providers/provider.ts';
import type { RequestRules } from '../src/request-translation/rules.ts';
import { missingSettings } from '../src/settings/settings.ts';
import { ALL_FEATURES, readSettings, type AllSettings as Settings } from './settings/read-settings.ts';

function valid(env: Record<string, unknown> = {}): Settings {
  const result = readSettings(env);
  if (result.kind === 'invalid') throw new Error(JSON.stringify(result.problems));
  return result.settings;
}

/** The names of the invalid settings. It checks that no message contains a value. */
function invalid(env: Record<string, unknown>): string[] {
  const result = readSettings(env);
  if (result.kind === 'valid') return [];
  expect(JSON.stringify(result.problems)).not.toContain('hunter2');
  for (const { message } of result.problems) expect(message).not.toBe('');
  return [...new Set(result.problems.map(({ setting }) => setting))];
}

/** Whether requests for other paths are passed on. */
function hasProxy(env: Record<string, unknown>): boolean {
  const ports = { fetch: async () => new Response(), log: () => {} };
  return createBefore(readDeployment(env, ALL_FEATURES).deployment, ports) !== null;
}

const SECONDS: [name: string, field: keyof Settings['timers'], byDefault: number][] = [
  ['HEARTBEAT_SECONDS', 'heartbeatMs', 15],
  ['IDLE_TIMEOUT_SECONDS', 'idleTimeoutMs', 120],
  ['DEADLINE_SECONDS', 'deadlineMs', 600],
];

describe('readSettings, providers', () => {
  test('no setting at all: valid, without a provider', () => {
    expect([...valid().providers.keys()]).toEqual([]);
  });

  test.each([
    ['deepseek', 'DEEPSEEK', 'https://api.deepseek.com'],
    ['codestral', 'CODESTRAL', 'https://api.mistral.ai/v1'],
    ['openai', 'OPENAI', 'https://api.openai.com/v1'],
  ])(
    '%s: enabled when its key is set, with its own base URL or that of %s_BASE_URL',
    (id, name, byDefault) => {
      const env = { [`${name}_API_KEY`]: ' k ' };
      expect([...valid(env).providers]).toMatchObject([[id, { baseUrl: byDefault, apiKey: 'k' }]]);
      const own = valid({ ...env, [`${name}_BASE_URL`]: 'http://127.0.0.1:9/v1//' });
      expect(own.providers.get(id)?.baseUrl).toBe('http://127.0.0.1:9/v1');
      expect(invalid({ ...env, [`${name}_BASE_URL`]: 'hunter2' })).toEqual([`${name}_BASE_URL`]);
      expect(invalid({ [`${name}_API_KEY`]: { hunter2: 1 } })).toEqual([`${name}_API_KEY`]);
    },
  );

  test('mistral: its key also enables codestral, at the base URL that a setting of either names', () => {
    const codestral = (env: Record<string, string>) => valid(env).providers.get('codestral');
    const env = { MISTRAL_API_KEY: 'm' };
    expect([...valid(env).providers.keys()]).toEqual(['mistral', 'codestral']);
    expect(codestral(env)).toMatchObject({ baseUrl: 'https://api.mistral.ai/v1', apiKey: 'm' });
    expect(codestral({ ...env, MISTRAL_BASE_URL: 'http://m/v1' })?.baseUrl).toBe('http://m/v1');
    const own = { ...env, CODESTRAL_API_KEY: 'c', CODESTRAL_BASE_URL: 'http://c/v1' };
    expect(codestral(own)).toMatchObject({ baseUrl: 'http://c/v1', apiKey: 'c' });
    expect(valid(own).providers.get('mistral')).toMatchObject({ apiKey: 'm' });
    expect(invalid({ ...env, MISTRAL_BASE_URL: 'hunter2' })).toEqual(['MISTRAL_BASE_URL']);
  });

  test.each([
    ['opentoken', 'OPENTOKEN'],
    ['xerotier', 'XEROTIER'],
  ])('%s: needs a base URL as well as a key', (id, name) => {
    expect(invalid({ [`${name}_API_KEY`]: 'hunter2' })).toEqual([`${name}_BASE_URL`]);
    const env = { [`${name}_API_KEY`]: 'k', [`${name}_BASE_URL`]: 'https://api.example/proj/v1/' };
    expect(valid(env).providers.get(id)?.baseUrl).toBe('https://api.example/proj/v1');
    expect(valid({ [`${name}_BASE_URL`]: 'https://api.example' }).providers.size).toBe(0);
  });

  test('K1 AUTH=passthrough: a provider is enabled when its base URL is set, without a key', () => {
    const { providers } = valid({ AUTH: 'passthrough', XEROTIER_BASE_URL: 'https://api.example/v1' });
    const reachable = PROVIDERS.filter(
      ({ id, defaultBaseUrl }) => defaultBaseUrl !== null || id === 'xerotier',
    );
    expect([...providers.keys()].sort()).toEqual(reachable.map(({ id }) => id).sort());
    expect(providers.has('opentoken')).toBe(false);
    expect(providers.get('deepseek')?.apiKey).toBe('');
  });

  test('an empty value: counts as not set', () => {
    expect(valid({ OPENAI_API_KEY: '', OPENAI_BASE_URL: ' ', PROVIDERS: '', AUTH: '' }).providers.size).toBe(
      0,
    );
  });
});

describe('readSettings, PROVIDERS', () => {
  const own = { base_url: 'https://api.groq.example/v1/', api_key: 'GROQ_API_KEY' };

  test('a compatible provider: its id is its name, and its key is the secret that it names', () => {
    const { providers } = valid({ PROVIDERS: JSON.stringify({ groq: own }), GROQ_API_KEY: 'k' });
    expect(providers.get('groq')).toMatchObject({
      provider: { id: 'groq', name: 'groq' },
      baseUrl: 'https://api.groq.example/v1',
      apiKey: 'k',
    });
  });

  test('a table instead of text: accepted', () => {
    expect(valid({ PROVIDERS: { groq: own }, GROQ_API_KEY: 'k' }).providers.get('groq')?.apiKey).toBe('k');
  });

  test('no api_key: a provider without a key, such as one in the own network', () => {
    expect(
      valid({ PROVIDERS: { local: { base_url: 'http://10.0.0.1' } } }).providers.get('local')?.apiKey,
    ).toBe('');
  });

  test.each([
    ['https://api.groq.com/openai/v1', undefined, 'none'],
    ['https://api.cerebras.ai/v1', undefined, 'reasoning'],
    ['https://openrouter.ai/api/v1', undefined, 'reasoning'],
    ['https://api.mistral.ai/v1', undefined, 'thinking_parts'],
    ['https://api.deepseek.com', undefined, 'none'],
    ['https://groq.example/v1', undefined, 'both'],
    ['https://groq.example/v1', 'groq', 'none'],
    ['https://api.groq.com/openai/v1', 'tolerant', 'both'],
  ])('Q9 base_url %s, like %s: reasoning is sent as %s', (base_url, like, form) => {
    const entry = { base_url, ...(like === undefined ? {} : { like }) };
    const { provider } = valid({ PROVIDERS: { p: entry } }).providers.get('p') ?? {};
    expect(openaiRules(provider)?.messages.reasoning[0]?.form).toBe(form);
    expect(provider).toMatchObject({ id: 'p', name: 'p' });
  });

  test('N1 responses: passthrough if the entry sets it, or at the provider’s own host', () => {
    const passthroughs = (entry: object) => {
      const providers = valid({ PROVIDERS: { p: { base_url: 'http://10.0.0.1/v1', ...entry } } }).providers;
      return Object.keys(providers.get('p')?.provider.passthrough ?? {});
    };
    expect(passthroughs({})).toEqual([]);
    expect(passthroughs({ like: 'openai' })).toEqual([]);
    expect(passthroughs({ responses: true })).toEqual(['responses']);
    expect(passthroughs({ base_url: 'https://api.x.ai/v1' })).toEqual(['responses']);
    expect(passthroughs({ base_url: 'https://api.x.ai/v1', responses: false })).toEqual([]);
    expect(
      Object.keys(valid({ OPENAI_API_KEY: 'k' }).providers.get('openai')?.provider.passthrough ?? {}),
    ).toEqual(['responses']);
  });

  test('Q9 stream_usage false: usage is not requested on any route', () => {
    const entry = { base_url: 'http://10.0.0.1/v1', stream_usage: false };
    const endpoints = valid({ PROVIDERS: { p: entry } }).providers.get('p')?.provider.endpoints ?? {};
    expect(
      Object.values(endpoints).map(({ request }) => request.kind === 'chat' && request.rules.streamUsage),
    ).toEqual(['always', 'always', 'always', 'always']);
    const requested = valid({ PROVIDERS: { p: { ...entry, stream_usage: true } } }).providers.get('p');
    expect(openaiRules(requested?.provider)?.streamUsage).toBe('on_request');
  });

  test.each([
    ['https://generativelanguage.googleapis.com/v1beta/openai', undefined, 'chat'],
    ['https://generativelanguage.googleapis.com/v1beta/openai/', undefined, 'chat'],
    ['https://generativelanguage.googleapis.com', undefined, 'native'],
    ['https://proxy.example/v1', 'gemini', 'chat'],
    ['https://proxy.example', 'gemini-native', 'native'],
  ])('Q9 %s like %s: Google serves two APIs, this one is %s', (base_url, like, kind) => {
    const entry = { base_url, ...(like === undefined ? {} : { like }) };
    const configured = valid({ PROVIDERS: { google: entry } }).providers.get('google');
    expect(configured?.provider.endpoints.chat?.request.kind).toBe(kind);
    expect(configured?.priceIds.includes('gemini')).toBe(base_url.includes('googleapis'));
  });

  test('A1 GEMINI_API_KEY enables Gemini with its native API and default URL', () => {
    const configured = valid({ GEMINI_API_KEY: 'k' }).providers.get('gemini');
    expect(configured).toMatchObject({ baseUrl: 'https://generativelanguage.googleapis.com', apiKey: 'k' });
    expect(configured?.provider.endpoints.chat?.request.kind).toBe('native');
  });

  test('Q9 headers and query: strings, where $NAME stands for a secret', () => {
    const entry = {
      base_url: 'https://x.openai.azure.com/openai/deployments/d',
      headers: { 'api-key': '$AZURE_KEY', 'x-plain': 'a b' },
      query: { 'api-version': '2026-01-01' },
    };
    expect(valid({ PROVIDERS: { azure: entry }, AZURE_KEY: 'k' }).providers.get('azure')).toMatchObject({
      headers: { 'api-key': 'k', 'x-plain': 'a b' },
      query: { 'api-version': '2026-01-01' },
    });
    expect(invalid({ PROVIDERS: { azure: entry } })).toEqual(['PROVIDERS']);
  });

  test.each<[name: string, value: unknown]>([
    ['an unknown field', { groq: { ...own, hunter2: true } }],
    ['an unknown profile', { groq: { ...own, like: 'hunter2' } }],
    ['responses as text', { groq: { ...own, responses: 'hunter2' } }],
    ['stream_usage as text', { groq: { ...own, stream_usage: 'hunter2' } }],
    ['headers as a list', { groq: { ...own, headers: ['hunter2'] } }],
    ['a header that is no text', { groq: { ...own, headers: { a: { hunter2: 1 } } } }],
    ['a header with a line end', { groq: { ...own, headers: { a: 'hunter2\n' } } }],
    ['a header name with a space', { groq: { ...own, headers: { 'hunter2 b': 'c' } } }],
    ['a header with a secret in the place of its name', { groq: { ...own, headers: { a: '$gsk_hunter2' } } }],
    ['a query that is no object', { groq: { ...own, query: 'hunter2' } }],
    ['no JSON', '{"hunter2"'],
    ['a list', '["hunter2"]'],
    ['an entry that is not an object', { groq: 'hunter2' }],
    ['an invalid base_url', { groq: { ...own, base_url: 'ftp://hunter2' } }],
    ['no base_url', { groq: { api_key: 'GROQ_API_KEY' } }],
    ['a name that Weir knows', { openai: own }],
    ['the name of a provider that once had to be an entry', { gemini: own }],
    ['a name with a slash', { 'a/b': own }],
    ['a name in capitals', { Groq: own }],
    ['a name of 33 letters', { ['a'.repeat(33)]: own }],
    ['the name of a secret that is not set', { groq: { ...own, api_key: 'OTHER' } }],
    ['a secret in place of its name', { groq: { ...own, api_key: 'gsk_hunter2' } }],
  ])('PROVIDERS with %s: invalid, reported by name', (_, value) => {
    expect(invalid({ PROVIDERS: value, GROQ_API_KEY: 'k' })).toEqual(['PROVIDERS']);
  });
});

describe('readSettings, rules in an entry of PROVIDERS', () => {
  const own = { base_url: 'https://acme.example/v1' };

  test.each<[entry: Record<string, unknown>, message: string]>([
    [{ rename: ['hunter2'] }, 'rename must be an object of field names'],
    [{ rename: { seed: 7 } }, 'rename must be an object of field names'],
    [{ rename: { 'hunter 2': 'a' } }, 'rename must be an object of field names'],
    [{ rename: { model: 'hunter2' } }, "rename can't name model, models, messages"],
    [{ rename: { seed: 'stream' } }, "rename can't name model, models, messages"],
    [
      { rename: { seed: 'max_tokens' } },
      'rename can map to max_tokens or max_completion_tokens only from the other',
    ],
    [{ rename: { a: 'b', b: 'c' } }, 'rename must not map to a name that is renamed or dropped'],
    [{ rename: { a: 'b' }, drop: ['a'] }, "rename and drop can't name the same field"],
    [{ rename: { a: 'b' }, drop: ['b'] }, 'rename must not map to a name that is renamed or dropped'],
    [{ drop: 'hunter2' }, 'drop must be a list of field names'],
    [{ drop: [{}] }, 'drop must be a list of field names'],
    [{ drop: Array(65).fill('a') }, 'drop must be a list of field names'],
    [{ drop: ['max_tokens'] }, "drop can't name model, models, messages"],
    [{ roles: { developer: '' } }, 'roles must be an object of role names'],
    [{ effort: 'hunter2' }, 'effort must be an object of values'],
    [{ reasoning: 'hunter2' }, 'reasoning must be one of: reasoning_content, reasoning, both'],
    [{ like: 'anthropic', drop: ['seed'] }, 'apply to chat completions, and anthropic has another API'],
    [{ renmae: {} }, 'accepts only base_url, api_key, like'],
    [{ renmae: {} }, ', not renmae: did you mean rename?'],
    [{ url: 'https://a.example' }, ', not url: did you mean base_url?'],
    [{ baseURL: 'https://a.example' }, ', not baseURL: did you mean base_url?'],
    [{ apiKey: 'A_KEY' }, ', not apiKey: did you mean api_key?'],
    [{ 'sk-hunter2': 1 }, ', not another field'],
    [{ base_url: 'hunter2' }, 'acme: base_url must be an http(s) URL'],
  ])('%j: invalid, with a message about the expected form', (entry, message) => {
    const env = { PROVIDERS: { acme: { ...own, ...entry } } };
    expect(invalid(env)).toEqual(['PROVIDERS']);
    const read = readSettings(env);
    expect(read.kind === 'invalid' && read.problems[0]?.message).toContain(message);
  });
});

describe('readSettings, messages about PROVIDERS', () => {
  const own = { base_url: 'https://api.groq.example/v1', api_key: 'GROQ_API_KEY' };

  test.each<[what: string, value: unknown, message: string]>([
    [
      'half a JSON',
      '{"hunter2"',
      'must be a JSON object, and is not valid JSON: it ends too early, at line 1, column 11',
    ],
    ['a list', '["hunter2"]', 'must be a JSON object, and is a list'],
    ['a secret that is not set', { groq: own }, 'groq: api_key names a secret that is not set: GROQ_API_KEY'],
    [
      'a secret that is not set, in a header',
      { groq: { base_url: own.base_url, headers: { a: '$ACME_TOKEN' } } },
      'groq: headers names a secret that is not set: ACME_TOKEN',
    ],
    [
      'what may be the secret itself in the place of its name',
      { groq: { ...own, api_key: 'AKIAHUNTER7EXAMPLE' } },
      'groq: api_key names a secret that is not set',
    ],
  ])('%s: the exact message', (_, PROVIDERS, message) => {
    expect(readSettings({ PROVIDERS })).toMatchObject({ problems: [{ setting: 'PROVIDERS', message }] });
  });

  test.each<[name: string, env: Record<string, unknown>, hint: string]>([
    ['like', { PROVIDERS: { p: { ...own, like: 'tolernt' } }, GROQ_API_KEY: 'k' }, 'did you mean tolerant?'],
    ['DEFAULT_PROVIDER', { OPENAI_API_KEY: 'k', DEFAULT_PROVIDER: 'opnai' }, 'did you mean openai?'],
  ])('%s with a similar name: the message suggests it', (_, env, hint) => {
    const read = readSettings(env);
    expect(read.kind === 'invalid' && read.problems[0]?.message).toContain(hint);
  });
});

describe('readSettings, models', () => {
  test('DEFAULT_PROVIDER: none by default, or an enabled provider', () => {
    expect(valid().defaultProvider).toBeNull();
    expect(valid({ DEFAULT_PROVIDER: 'openai', OPENAI_API_KEY: 'k' }).defaultProvider).toBe('openai');
    expect(invalid({ DEFAULT_PROVIDER: 'hunter2' })).toEqual(['DEFAULT_PROVIDER']);
    expect(invalid({ DEFAULT_PROVIDER: 'openai' })).toEqual(['DEFAULT_PROVIDER']);
  });

  const MISTRAL = { MISTRAL_API_KEY: 'k' };

  test('R2 ALIASES: none by default, an address, or steps with weight, timeout, fields and refusals', () => {
    expect(valid().aliases).toEqual([]);
    const plain = { weight: 0, timeoutMs: null, set: {}, on: [], api: null };
    const full = { weight: 2, timeout_seconds: 1.5, set: { user: 'u' }, on: ['content_filter'] };
    const aliases = {
      fast: 'mistral/mistral-small-latest',
      'claude-*': ['mistral/a', { model: 'mistral/b', ...full }],
    };
    for (const ALIASES of [aliases, JSON.stringify(aliases)]) {
      expect(valid({ ...MISTRAL, ALIASES }).aliases).toEqual([
        { name: 'fast', steps: [{ ...plain, address: 'mistral/mistral-small-latest' }] },
        {
          name: 'claude-*',
          steps: [
            { ...plain, address: 'mistral/a' },
            { address: 'mistral/b', weight: 2, timeoutMs: 1500, set: full.set, on: full.on, api: null },
          ],
        },
      ]);
    }
  });

  test('R2 ALIASES: a bare name is a model of the default provider, never an alias', () => {
    const env = { ...MISTRAL, DEFAULT_PROVIDER: 'mistral', ALIASES: { fast: 'mistral-small-latest' } };
    expect(valid(env).aliases[0]?.steps[0]?.address).toBe('mistral/mistral-small-latest');
    for (const ALIASES of [{ a: 'b', b: 'mistral/c' }, { a: 'a' }, { a: 'opnai/c' }]) {
      expect(invalid({ ...env, ALIASES })).toEqual(['ALIASES']);
    }
  });

  test.each<[value: unknown, message: string]>([
    ['hunter2', 'must be a JSON object, and is not valid JSON: the error is at line 1, column 1'],
    [
      '{"fast":"mistral/a",}',
      'must be a JSON object, and is not valid JSON: the error is at line 1, column 21',
    ],
    [' ', 'must be a JSON object, and is empty'],
    ['[]', 'must be a JSON object, and is a list'],
    [[], 'must be a JSON object, and is a list'],
    [
      { fast: 'mistrall/b' },
      'with a provider that is set up here: mistral, codestral: did you mean mistral?',
    ],
    [{ fast: 1 }, 'fast: must name a model'],
    [{ fast: '' }, 'fast: must name a model'],
    [{ fast: [] }, 'fast: must have 1 to 8 steps'],
    [{ fast: Array.from({ length: 9 }, () => 'mistral/a') }, 'fast: must have 1 to 8 steps'],
    [
      { fast: ['mistral/a', 'hunter2/b'] },
      'fast step 2: must be <provider>/<model> with a provider that is set up',
    ],
    [{ fast: 'openai/b' }, 'fast: must be <provider>/<model> with a provider that is set up'],
    [{ fast: 'mistral/' }, 'fast: must be <provider>/<model>'],
    [{ fast: 'mistral/a', faster: 'fast' }, 'faster: must be <provider>/<model>'],
    [{ fast: { model: 'mistral/a', weight: -1 } }, 'fast: weight must be a number, at least 0'],
    [{ fast: { model: 'mistral/a', weight: '1' } }, 'fast: weight must be'],
    [{ fast: { model: 'mistral/a', timeout_seconds: 0 } }, 'fast: timeout_seconds must be'],
    [{ fast: { model: 'mistral/a', set: { model: 'hunter2' } } }, 'fast: set must be an object'],
    [{ fast: { model: 'mistral/a', set: { stream: true } } }, 'fast: set must be an object'],
    [{ fast: { model: 'mistral/a', set: [] } }, 'fast: set must be an object'],
    [
      { fast: { model: 'mistral/a', on: ['hunter2'] } },
      'fast: on must be a list of: context_length, content_filter',
    ],
    [{ fast: { model: 'mistral/a', on: 'content_filter' } }, 'fast: on must be a list'],
    [{ fast: { model: 'mistral/a', hunter2: 1 } }, 'fast: accepts only model, weight'],
    [
      { fast: ['mistral/a', { model: 'mistral/b', wieght: 1 }] },
      'fast step 2: accepts only model, weight, timeout_seconds, set, on, api, not wieght: did you mean weight?',
    ],
    [{ fast: { model: 'mistral/a', colour: 1 } }, ', not colour'],
    [{ 'hunter 2 with spaces': 1 }, 'an alias: must name a model'],
  ])('R2 ALIASES %j is misconfigured, by name', (ALIASES, message) => {
    expect(invalid({ ...MISTRAL, ALIASES })).toEqual(['ALIASES']);
    const read = readSettings({ ...MISTRAL, ALIASES });
    expect(read.kind === 'invalid' && read.problems[0]?.message).toContain(message);
  });

  test('R6 RETRIES: 1 by default, a whole number from 0 to 5', () => {
    expect(valid().retries).toBe(1);
    expect(valid({ RETRIES: '0' }).retries).toBe(0);
    expect(valid({ RETRIES: '5' }).retries).toBe(5);
    for (const RETRIES of ['6', '-1', '1.5', 'hunter2']) expect(invalid({ RETRIES })).toEqual(['RETRIES']);
  });
});

describe('readSettings, fixed values', () => {
  test.each<[name: string, read: (settings: Settings) => unknown, words: readonly string[]]>([
    ['AUTH', (settings) => settings.auth, ['keys', 'passthrough', 'open']], // `access` needs further settings.
    ['LEDGER', (settings) => settings.ledger, ['kv', 'object']],
    ['RESPONSES', (settings) => settings.responses, ['stateless', 'durable']],
    ['REASONING', (settings) => settings.policies.reasoning, ['pass', 'strip']],
    ['USAGE_CHUNK', (settings) => settings.policies.usageChunk, ['finish', 'on_request', 'always']],
    ['PROMPT_CACHE', (settings) => settings.promptCache, ['auto', 'off']],
    ['UNSUPPORTED', (settings) => settings.unsupported, ['auto', 'drop', 'refuse']],
    ['ERROR_FRAMES', (settings) => settings.policies.errorFrames, ['data', 'event']],
  ])('%s: its first value by default, each of its values, and no other', (name, read, words) => {
    expect(read(valid())).toBe(words[0]);
    for (const word of words) expect(read(valid({ [name]: ` ${word} ` }))).toBe(word);
    for (const value of ['hunter2', words[0]?.toUpperCase(), true]) {
      if (value !== words[0]) expect(invalid({ [name]: value })).toEqual([name]);
    }
  });

  test('V2 VENDOR_EVENTS: strip by default, pass, or globs', () => {
    expect(valid().policies.vendorEvents).toEqual([]);
    expect(valid({ VENDOR_EVENTS: 'pass' }).policies.vendorEvents).toEqual(['*']);
    expect(valid({ VENDOR_EVENTS: 'x_a.*, x_b' }).policies.vendorEvents).toEqual(['x_a.*', 'x_b']);
    expect(invalid({ VENDOR_EVENTS: 'hunter2' })).toEqual(['VENDOR_EVENTS']);
  });

  test('K2 ADMIN_TOKEN: none by default, which closes the admin routes', () => {
    expect(valid().adminToken).toBeNull();
    expect(valid({ ADMIN_TOKEN: '' }).adminToken).toBeNull();
    expect(valid({ ADMIN_TOKEN: 't' }).adminToken).toBe('t');
    expect(invalid({ ADMIN_TOKEN: ['hunter2'] })).toEqual(['ADMIN_TOKEN']);
  });
});

describe('readSettings, Cloudflare Access', () => {
  const ACCESS = { ACCESS_TEAM_DOMAIN: 'team.cloudflareaccess.com', ACCESS_AUD: 'aud' };

  test('Y3 ACCESS_TEAM_DOMAIN: a domain, or http on loopback alone; only together with ACCESS_AUD', () => {
    const issuerOf = (domain: string) => valid({ ...ACCESS, ACCESS_TEAM_DOMAIN: domain }).access?.issuer;
    expect(valid().access).toBeNull();
    for (const domain of ['team.cloudflareaccess.com', 'https://Team.cloudflareaccess.com/'])
      expect(issuerOf(domain)).toBe('https://team.cloudflareaccess.com');
    expect(issuerOf('http://127.0.0.1:8080')).toBe('http://127.0.0.1:8080');
    for (const domain of [
      'http://team.cloudflareaccess.com',
      'http://127.0.0.1.evil.com',
      'http://127.0.0.1@evil.com',
      'http://localhost.evil.com',
      'http://10.0.0.1',
      'team',
      'team.cloudflareaccess.com/path',
      'user@team.cloudflareaccess.com',
    ])
      expect(invalid({ ...ACCESS, ACCESS_TEAM_DOMAIN: domain })).toEqual(['ACCESS_TEAM_DOMAIN']);
    expect(invalid({ ...ACCESS, ACCESS_AUD: '' })).toEqual(['ACCESS_AUD']);
    expect(invalid({ ACCESS_AUD: 'aud' })).toEqual(['ACCESS_TEAM_DOMAIN']);
  });

  test('Y3 ACCESS_ADMINS: addresses, whose globs match on their side of the @, and names of service tokens', () => {
    const ACCESS_ADMINS = ' Ada@Example.com, *@ops.example.com,*-ops@*.example.com, ada@*, ci.access,';
    expect(valid({ ...ACCESS, ACCESS_ADMINS }).access?.admins).toEqual([
      'ada@example.com',
      '*@ops.example.com',
      '*-ops@*.example.com',
      'ada@*',
      'ci.access',
    ]);
    for (const entry of [
      '*',
      '*.access',
      'ci*',
      '*@*corp.com',
      'a@b@c',
      'a@',
      '@',
      'a@*.',
      'a b@c.com',
      'a@b.*',
    ])
      expect(invalid({ ...ACCESS, ACCESS_ADMINS: `ada@hunter2.com, ${entry}` })).toEqual(['ACCESS_ADMINS']);
    expect(invalid({ ACCESS_ADMINS: 'ada@hunter2.com' })).toEqual(['ACCESS_ADMINS']);
  });

  test('Y3 AUTH=access needs Access, and with USERS=off a USER_HASH_KEY', () => {
    expect(valid({ ...ACCESS, AUTH: 'access' }).auth).toBe('access');
    expect(invalid({ AUTH: 'access' })).toEqual(['AUTH']);
    expect(invalid({ ...ACCESS, AUTH: 'access', USERS: 'off' })).toEqual(['USER_HASH_KEY']);
    expect(invalid({ ...ACCESS, AUTH: 'access', USERS: 'hash', USER_HASH_KEY: 'hunter2' })).toEqual([
      'USER_HASH_KEY',
    ]);
    const hashed = { ...ACCESS, AUTH: 'access', USERS: 'off', USER_HASH_KEY: 'a secret of users' };
    expect(valid(hashed).userHashKey).toBe('a secret of users');
    expect(valid({ ...ACCESS, USERS: 'off' }).users).toBe('off');
  });
});

describe('readSettings, numbers', () => {
  test.each(SECONDS)(
    'T1 T2 T3 %s: its default, fractions, 0 for off, and nothing that is not a time',
    (...row) => {
      const [name, field, byDefault] = row;
      const read = (value: string) => valid({ [name]: value }).timers[field];
      expect(valid().timers[field]).toBe(byDefault * 1_000);
      expect([read('0'), read('0.25'), read('30')]).toEqual([0, 250, 30_000]);
      for (const value of ['hunter2', '-1', 'Infinity', 'NaN', '1e9', '5s', {}]) {
        expect(invalid({ [name]: value })).toEqual([name]);
      }
    },
  );

  test.each<[name: string, read: (settings: Settings) => number, byDefault: number]>([
    ['MAX_EVENT_BYTES', (settings) => settings.maxEventBytes, 1_048_576],
    ['MAX_REQUEST_BYTES', (settings) => settings.maxRequestBytes, 10_485_760],
  ])('B1 B2 %s: its default, a whole number, and nothing else', (name, read, byDefault) => {
    expect(read(valid())).toBe(byDefault);
    expect(read(valid({ [name]: '2048' }))).toBe(2_048);
    for (const value of ['hunter2', '0', '-1', '1.5', '1MB', 'Infinity', null]) {
      expect(invalid({ [name]: value })).toEqual([name]);
    }
  });
});

test('X2 RESPONSES_DAYS: 30 by default, from 1 to 365; X6 RESPONSE_BYTES: 32 MiB by default', () => {
  expect(valid()).toMatchObject({ responsesDays: 30, responseBytes: 32 * 1024 * 1024 });
  expect(valid({ RESPONSES_DAYS: '7' }).responsesDays).toBe(7);
  for (const value of ['0', '366', '1.5', 'hunter2'])
    expect(invalid({ RESPONSES_DAYS: value })).toEqual(['RESPONSES_DAYS']);
});

test('L8 RECORD_BYTES: 8 GB by default, from 100,000 bytes to less than an object holds', () => {
  expect(valid().room.recordBytes).toBe(8_000_000_000);
  for (const value of ['100000', '8e9', '9000000000'])
    expect(valid({ RECORD_BYTES: value }).room.recordBytes).toBe(Number(value));
  for (const value of ['99999', '0', '-1', '1000000.5', '9000000001', '8 GB', 'Infinity'])
    expect(invalid({ RECORD_BYTES: value })).toEqual(['RECORD_BYTES']);
});

test('L4 RECORD_DAYS: 35 by default, at least as long as a Queue may redeliver', () => {
  expect(valid().recordDays).toBe(35);
  expect(['15', '400'].map((value) => valid({ RECORD_DAYS: value }).recordDays)).toEqual([15, 400]);
  for (const value of ['14', '0', '-1', '20.5', 'hunter2', '4000', {}])
    expect(invalid({ RECORD_DAYS: value })).toEqual(['RECORD_DAYS']);
  expect(readRecordDays({ RECORD_DAYS: '20' })).toBe(20);
  expect(readRecordDays({ RECORD_DAYS: 'hunter2' })).toBe(35);
});

describe('readSettings, paths and origins', () => {
  test.each([
    [undefined, ''],
    ['/', ''],
    ['/llm', '/llm'],
    ['/llm/', '/llm'],
    ['/a/b.c/~d-e_f//', '/a/b.c/~d-e_f'],
  ])('BASE_PATH %j: is %j', (value, expected) => {
    expect(valid({ BASE_PATH: value }).basePath).toBe(expected);
  });

  test.each(['hunter2', 'https://hunter2/', '/a b', '/:id', '/*', '/a?b'])(
    'BASE_PATH %j: invalid',
    (value) => {
      expect(invalid({ BASE_PATH: value })).toEqual(['BASE_PATH']);
    },
  );

  test.each<[name: string, env: Record<string, unknown>, origin: Settings['origin']]>([
    ['not set', {}, { kind: 'none' }],
    ['404', { ORIGIN: '404', ORIGIN_HOSTS: 'shop.example' }, { kind: 'none' }],
    [
      'pass, with hosts',
      { ORIGIN: ' pass ', ORIGIN_HOSTS: 'Shop.example , *.shop.example,127.0.0.1:3000,' },
      { kind: 'zone', hosts: ['shop.example', '*.shop.example', '127.0.0.1:3000'] },
    ],
    ['an origin', { ORIGIN: 'https://a.example:8443' }, { kind: 'url', url: 'https://a.example:8443' }],
    ['an origin with a slash', { ORIGIN: 'http://localhost/' }, { kind: 'url', url: 'http://localhost' }],
  ])('W1 ORIGIN %s: where requests for other paths go', (_, env, origin) => {
    expect(valid(env).origin).toEqual(origin);
    expect(hasProxy({ ...env, AUTH: 'hunter2' })).toBe(origin.kind !== 'none');
  });

  test.each([
    ['PASS', undefined, 'ORIGIN'],
    ['hunter2', undefined, 'ORIGIN'],
    ['shop.example', undefined, 'ORIGIN'],
    ['ftp://shop.example', undefined, 'ORIGIN'],
    ['https://shop.example/hunter2', undefined, 'ORIGIN'],
    ['https://shop.example?hunter2', undefined, 'ORIGIN'],
    ['https://hunter2:hunter2@shop.example', undefined, 'ORIGIN'],
    ['pass', undefined, 'ORIGIN_HOSTS'],
    ['pass', ' , ', 'ORIGIN_HOSTS'],
    ['pass', '*', 'ORIGIN_HOSTS'],
    ['pass', 'shop.*', 'ORIGIN_HOSTS'],
    ['pass', 'https://shop.example', 'ORIGIN_HOSTS'],
    ['pass', 'shop.example/hunter2', 'ORIGIN_HOSTS'],
    ['pass', 'shop.example, hunter2!', 'ORIGIN_HOSTS'],
  ])('W1 ORIGIN=%s with ORIGIN_HOSTS=%s: invalid, without a mount', (ORIGIN, hosts, setting) => {
    expect(invalid({ ORIGIN, ORIGIN_HOSTS: hosts })).toEqual([setting]);
    expect(hasProxy({ ORIGIN, ORIGIN_HOSTS: hosts })).toBe(false);
  });

  test('CORS_ORIGINS: none by default, comma-separated origins, or any', () => {
    expect(valid().corsOrigins).toEqual([]);
    const origins = ['https://app.example.com', 'http://127.0.0.1:5173'];
    expect(valid({ CORS_ORIGINS: ` ${origins.join(' , ')},` }).corsOrigins).toEqual(origins);
    expect(valid({ CORS_ORIGINS: '*' }).corsOrigins).toEqual(['*']);
    for (const value of ['hunter2', 'https://hunter2/', 'https://hunter2/path', 'app.example.com']) {
      expect(invalid({ CORS_ORIGINS: value })).toEqual(['CORS_ORIGINS']);
    }
  });
});

describe('readSettings, PRICES', () => {
  const PRICE = { provider: 'groq', models: ['llama-*'], since: '2026-11-01', currency: 'USD', input: 0.5 };

  test('P2 PRICES: none by default, a list as text or as an array', () => {
    expect(valid().prices).toEqual([]);
    expect(valid({ PRICES: JSON.stringify([PRICE]) }).prices).toEqual([PRICE]);
    expect(valid({ PRICES: [PRICE] }).prices).toEqual([PRICE]);
  });

  test.each([
    ['no JSON', '[hunter2]', 'must be a JSON list, and is not valid JSON: the error is at line 1, column 2'],
    ['an object', '{"hunter2":1}', 'must be a JSON list, and is an object'],
    ['a number', 5, 'must be a JSON list, and is a number'],
    [
      'a wrong price',
      [{ ...PRICE, currency: 'hunter2' }],
      'price 1: currency must be an ISO 4217 code, such as USD',
    ],
    [
      'more than 5 KB',
      Array(60).fill(PRICE),
      'holds at most 5 KB: store longer lists under the key config/prices in WEIR_KV',
    ],
  ])('P2 PRICES with %s: invalid, with the reason', (_, value, message) => {
    expect(invalid({ PRICES: value })).toEqual(['PRICES']);
    const result = readSettings({ PRICES: value });
    expect(result).toMatchObject({ problems: [{ setting: 'PRICES', message }] });
  });

  test.each<[what: string, entry: Record<string, unknown>, ids: string[]]>([
    ['a known host', { base_url: 'https://api.groq.com/openai/v1' }, ['own', 'groq']],
    ['another host', { base_url: 'https://llm.example.com/v1' }, ['own']],
    [
      'another host that is like a provider',
      { base_url: 'https://llm.example.com/v1', like: 'groq' },
      ['own'],
    ],
    ['a known host that is like another', { base_url: 'https://api.x.ai/v1', like: 'groq' }, ['own', 'xai']],
  ])(
    'P2 PROVIDERS with %s: priced under its own name, then as the provider whose host it is',
    (_, entry, ids) => {
      expect(valid({ PROVIDERS: { own: entry } }).providers.get('own')?.priceIds).toEqual(ids);
    },
  );

  test('P2 a built-in provider: priced under its own id at every base URL', () => {
    const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'https://api.groq.com/openai/v1' };
    expect(valid(env).providers.get('openai')?.priceIds).toEqual(['openai']);
  });
});

test('several settings invalid: all are reported at once', () => {
  const env = { AUTH: 'hunter2', ORIGIN: 'hunter2', MAX_EVENT_BYTES: 'hunter2', ALIASES: 'hunter2' };
  expect(invalid(env).sort()).toEqual(['ALIASES', 'AUTH', 'MAX_EVENT_BYTES', 'ORIGIN']);
});

describe('missingSettings', () => {
  test('no provider and no admin token: both are reported', () => {
    const missing = (env: Record<string, string>) =>
      missingSettings(valid(env), hasAdmins(readDeployment(env, ALL_FEATURES).deployment.features)).map(
        ({ setting }) => setting,
      );
    expect(missing({})).toEqual(['DEEPSEEK_API_KEY', 'ADMIN_TOKEN']);
    expect(missing({ AUTH: 'open' })).toEqual(['DEEPSEEK_API_KEY']);
    expect(missing({ OPENAI_API_KEY: 'k' })).toEqual(['ADMIN_TOKEN']);
    expect(missing({ OPENAI_API_KEY: 'k', ADMIN_TOKEN: 't' })).toEqual([]);
    const access = { ACCESS_TEAM_DOMAIN: 'team.cloudflareaccess.com', ACCESS_AUD: 'aud' };
    expect(missing({ OPENAI_API_KEY: 'k', ...access })).toEqual(['ADMIN_TOKEN']);
    expect(missing({ OPENAI_API_KEY: 'k', ...access, ACCESS_ADMINS: 'ada@example.com' })).toEqual([]);
  });
});

/** The rules of the provider's chat completions. */
function openaiRules(provider: Provider | undefined): RequestRules | undefined {
  const form = provider?.endpoints.chat?.request;
  return form?.kind === 'chat' ? form.rules : undefined;
}
