/** Tests how names become targets: addresses, aliases, and the targets that are skipped (R1-R4). */
import { describe, expect, test } from 'vitest';
import { type TargetsRequest, targetUrl } from '../../src/routing/targets.ts';
import { matchesAnyGlob } from '../../src/shared/glob.ts';
import { find, settingsWith, targetsOf } from './targets.ts';

/** The addresses, then the skipped ones with their reasons; or the error's status and code. */
function lead(names: readonly string[], fields: Partial<TargetsRequest> = {}) {
  const found = find(names, fields);
  if (found.kind === 'error') return [found.error.status, found.error.code];
  const { targets, skipped: others } = found.value;
  const skipped = others.map(({ target, reason }) => `${target.address} ${reason}`);
  return [...targets.map(({ address }) => address), ...skipped];
}

const ALIASES = {
  fast: 'mistral/mistral-small-latest',
  safe: ['deepseek/deepseek-flash', { model: 'mistral/mistral-small-latest' }],
  tiers: [{ model: 'openai/gpt-5', set: { service_tier: 'flex' } }, 'openai/gpt-5', 'openai/gpt-5'],
  'claude-*': 'openai/gpt-5',
  'claude-haiku*': 'openai/gpt-5-mini',
  'claude-opus-5': 'deepseek/deepseek-v4-pro',
  'openai/gpt-4*': 'openai/gpt-5',
  '*-any': 'mistral/any',
};
const settings = settingsWith({ ALIASES: JSON.stringify(ALIASES), DEFAULT_PROVIDER: 'openai' });

describe('R1 bare names', () => {
  const XAI = { base_url: 'http://127.0.0.1:9/v1', like: 'xai' };

  test.each<[name: string, address: string]>([
    ['claude-haiku-4-5', 'anthropic/claude-haiku-4-5'],
    ['gpt-4o-mini', 'openai/gpt-4o-mini'],
    ['o3', 'openai/o3'],
    ['text-embedding-3-small', 'openai/text-embedding-3-small'],
    ['gemini-2.5-flash', 'gemini/gemini-2.5-flash'],
    ['mistral-small-latest', 'mistral/mistral-small-latest'],
    ['codestral-latest', 'mistral/codestral-latest'],
    ['deepseek-chat', 'deepseek/deepseek-chat'],
  ])('%s goes to its maker: %s', (name, address) => {
    expect(lead([name], { settings: settingsWith({ GEMINI_API_KEY: 'g' }) })).toEqual([address]);
  });

  test.each<[id: string, entry: object, found: readonly unknown[]]>([
    ['xai', XAI, ['xai/grok-4.7']],
    ['mine', { base_url: 'https://api.x.ai/v1' }, ['mine/grok-4.7']],
    ['mine', XAI, [404, 'model_not_found']],
  ])('an entry of PROVIDERS is the maker by its name or its host, not by `like`: %s', (id, entry, found) => {
    const own = settingsWith({ PROVIDERS: { [id]: entry } });
    expect(lead(['grok-4.7'], { settings: own })).toEqual(found);
  });

  test.each<[env: Record<string, unknown>, found: readonly unknown[]]>([
    [{ ALIASES: { 'gpt-*': 'mistral/any' }, DEFAULT_PROVIDER: 'router' }, ['mistral/any']],
    [{ DEFAULT_PROVIDER: 'router' }, ['router/gpt-5']],
    [{ BARE_MODELS: 'off' }, [404, 'model_not_found']],
    [{ AUTH: 'passthrough' }, [404, 'model_not_found']],
    [{ OPENAI_API_KEY: '' }, [404, 'model_not_found']],
  ])('%j: gpt-5 is resolved to %j', (env, found) => {
    expect(lead(['gpt-5'], { settings: settingsWith(env) })).toEqual(found);
  });

  test('BARE_MODELS=on with AUTH=passthrough is an invalid setting', () => {
    expect(() => settingsWith({ AUTH: 'passthrough', BARE_MODELS: 'on' })).toThrow('BARE_MODELS');
  });

  test('the globs of a key judge the address', () => {
    const mayUse = (address: string) => address.startsWith('openai/');
    expect(lead(['gpt-5', 'claude-opus-5'], { mayUse })).toEqual([
      'openai/gpt-5',
      'anthropic/claude-opus-5 model_not_allowed',
    ]);
  });

  test('an id of an agent is no model, and goes to the one provider with agents', () => {
    expect(lead(['gpt-5'], { route: 'agents' })).toEqual(['mistral/gpt-5']);
  });

  test.each([
    [{ BARE_MODELS: 'off' }, 'gpt-5 names no provider: did you mean openai/gpt-5?'],
    [
      { OPENAI_API_KEY: '' },
      'its maker openai is not set up in this deployment: its operator has not set OPENAI_API_KEY',
    ],
  ])('%j: the error says what to do', (env, message) => {
    const found = find(['gpt-5'], { settings: settingsWith(env) });
    expect(found).toMatchObject({ error: { message: expect.stringContaining(message) } });
  });
});

describe('R1 R2 findTargets, names', () => {
  test.each<[names: string[], addresses: string[]]>([
    [['deepseek/deepseek-flash'], ['deepseek/deepseek-flash']],
    [['router/google/gemini'], ['router/google/gemini']],
    [['gpt-5'], ['openai/gpt-5']],
    [['google/gemini'], ['openai/google/gemini']],
    [['fast'], ['mistral/mistral-small-latest']],
    [['safe'], ['deepseek/deepseek-flash', 'mistral/mistral-small-latest']],
    [
      ['gpt-5', 'safe', 'fast'],
      ['openai/gpt-5', 'deepseek/deepseek-flash', 'mistral/mistral-small-latest'],
    ],
    // The same model with other fields is another target; duplicates are removed.
    [['tiers'], ['openai/gpt-5', 'openai/gpt-5']],
    // The exact name first, then globs in the configured order.
    [['claude-opus-5'], ['deepseek/deepseek-v4-pro']],
    [['claude-haiku-5'], ['openai/gpt-5']],
    [['openai/gpt-4o'], ['openai/gpt-5']],
    // A glob without a slash does not match addresses.
    [['x-any'], ['mistral/any']],
    [['deepseek/x-any'], ['deepseek/x-any']],
  ])('%j is resolved to %j', (names, addresses) => {
    expect(lead(names, { settings })).toEqual(addresses);
  });

  test('an alias’s target has its fields, its timeout and its `on`', () => {
    const step = { model: 'openai/gpt-5', set: { user: 'x' }, timeout_seconds: 2.5, on: ['context_length'] };
    const found = find(['a', 'gpt-5'], {
      settings: settingsWith({ ALIASES: { a: [step] }, DEFAULT_PROVIDER: 'openai' }),
    });
    expect(found).toMatchObject({
      value: {
        targets: [
          { model: 'gpt-5', aliasTarget: { set: { user: 'x' }, timeoutMs: 2500, on: ['context_length'] } },
          { model: 'gpt-5', aliasTarget: { set: {}, timeoutMs: null, on: [] } },
        ],
      },
    });
  });

  test.each<[alias: string, step: string, name: string, address: string]>([
    ['claude-*', 'anthropic/*', 'claude-haiku-4-5', 'anthropic/claude-haiku-4-5'],
    ['gpt-4o', 'openai/*', 'gpt-4o', 'openai/gpt-4o'],
    ['google/*', 'router/*', 'google/gemini-3-pro', 'router/google/gemini-3-pro'],
    ['*-small*', 'router/*', 'x-small-2', 'router/x-small-2'],
    ['fast-*', 'router/llama-*', 'fast-4', 'router/llama-4'],
    ['*-eu', 'router/eu/*-latest', 'mistral-large-eu', 'router/eu/mistral-large-latest'],
    ['a-*-b', 'gpt-*', 'a-4o-mini-b', 'openai/gpt-4o-mini'],
  ])('alias %j, step %j: the name %j is resolved to %j', (alias, step, name, address) => {
    const own = settingsWith({ ALIASES: { [alias]: [step, { model: step, weight: 1 }] } });
    expect(lead([name], { settings: own })).toEqual([address]);
  });

  test('a name that contains a * itself is put into the step once', () => {
    const own = settingsWith({ ALIASES: { 'fast-*': 'router/llama-*' } });
    expect(lead(['fast-a*b'], { settings: own })).toEqual(['router/llama-a*b']);
  });

  test.each<[alias: string, step: string]>([
    ['fast', 'router/llama-*'],
    ['fast-*', 'router/*-llama-*'],
    ['*-fast-*', 'router/llama-*'],
    ['fast-*', 'router/**'],
    ['fast-*', '*/llama'],
    ['*', '*'],
  ])('alias %j, step %j: a * that stands for nothing is an invalid setting', (alias, step) => {
    expect(() => settingsWith({ ALIASES: { [alias]: step } })).toThrow('ALIASES');
  });

  test.each<[names: string[], code: string]>([
    [['llama-4'], 'model_not_found'],
    [['codex/x'], 'model_not_found'],
    [['xerotier/x'], 'model_not_found'],
    [['openai/'], 'model_not_found'],
    [['openai/gpt-5', 'nowhere'], 'model_not_found'],
  ])('%j: a name that can’t be resolved is an error', (names, code) => {
    expect(lead(names)).toEqual([404, code]);
  });

  test('more targets than the maximum are refused, also if few names stand for them', () => {
    const steps = Array.from({ length: 5 }, (_, i) => `openai/m${i}`);
    const others = steps.map((name) => `${name}b`);
    const more = settingsWith({ ALIASES: { a: steps, b: others } });
    expect(lead(['a'], { settings: more })).toHaveLength(5);
    expect(lead(['a', 'b'], { settings: more })).toEqual([400, 'invalid_request']);
  });
});

describe('R3 findTargets, skipped targets', () => {
  const onlyMistral = (address: string) => matchesAnyGlob(['mistral/*'], address);

  test("a target that the key's globs forbid is skipped and reported", () => {
    expect(lead(['safe'], { settings, mayUse: onlyMistral })).toEqual([
      'mistral/mistral-small-latest',
      'deepseek/deepseek-flash model_not_allowed',
    ]);
  });

  test('all targets are forbidden: 403', () => {
    expect(lead(['openai/a', 'deepseek/b'], { mayUse: onlyMistral })).toEqual([403, 'model_not_allowed']);
  });

  test('R3 a router is skipped for a forbidden model in its `fallbacks`, set by the client or by the alias', () => {
    const mayUse = (address: string) => address !== 'router/b';
    expect(lead(['router/a'], { mayUse, body: { fallbacks: ['b'] } })).toEqual([403, 'model_not_allowed']);
    expect(lead(['router/a'], { mayUse, body: { fallbacks: [{ model: 'b' }] } })).toEqual([
      403,
      'model_not_allowed',
    ]);
    const set = settingsWith({ ALIASES: { r: { model: 'router/a', set: { fallbacks: ['b'] } } } });
    expect(lead(['r'], { settings: set, mayUse })).toEqual([403, 'model_not_allowed']);
  });

  test('a provider without the route is skipped; if no other is left, the error names it', () => {
    const withBare = settingsWith({ OPENTOKEN_API_KEY: 't', OPENTOKEN_BASE_URL: 'http://t' });
    const fim = { settings: withBare, route: 'fim' } as const;
    expect(lead(['opentoken/x', 'mistral/y'], fim)).toEqual(['mistral/y', 'opentoken/x unsupported_route']);
    expect(lead(['opentoken/x'], fim)).toEqual([400, 'unsupported_route']);
  });

  test("R4 a caller's own key is sent to the first target's provider only", () => {
    const names = ['openai/a', 'deepseek/b', 'openai/c'];
    expect(lead(names, { callerPays: true })).toEqual(['openai/a', 'openai/c', 'deepseek/b other_provider']);
  });
});

describe('A1 the URL of a request in Gemini’s own API, by its base_url', () => {
  test.each([
    ['https://g', 'https://g/v1beta/models/m:streamGenerateContent?alt=sse'],
    ['https://g/v1beta', 'https://g/v1beta/models/m:streamGenerateContent?alt=sse'],
    [
      'https://gw/v1/a/g/google-ai-studio',
      'https://gw/v1/a/g/google-ai-studio/v1beta/models/m:streamGenerateContent?alt=sse',
    ],
    [
      'https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google',
      'https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse',
    ],
    [
      'https://aiplatform.googleapis.com/v1/publishers/google/',
      'https://aiplatform.googleapis.com/v1/publishers/google/models/m:streamGenerateContent?alt=sse',
    ],
  ])('%s: %s', (base_url, url) => {
    const PROVIDERS = JSON.stringify({ own: { base_url, like: 'gemini-native' } });
    const [target] = targetsOf(['own/m'], { settings: settingsWith({ PROVIDERS }) });
    expect(targetUrl(target, target.endpoint, { model: 'm', stream: true })).toBe(url);
  });
});
