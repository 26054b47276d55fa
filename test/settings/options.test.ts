/** The options of `weir()`: each setting under its name in camel case, over the environment's (W2). */
import { describe, expect, test } from 'vitest';
import { optionProblems, type SettingOptions, withOptions } from '../../src/settings/options.ts';
import { readSettings } from '../../src/settings/settings.ts';

/** Without the providers' own, which are patterns. */
type Named = Exclude<keyof SettingOptions, `${string}ApiKey` | `${string}BaseUrl`>;

/** Each of these options, with a value that is not the default. */
const ALL: { readonly [Name in Named]-?: NonNullable<SettingOptions[Name]> } = {
  auth: 'passthrough',
  adminToken: 'token',
  basePath: '/ai/',
  origin: 'pass',
  originHosts: ['example.com', '*.example.com'],
  corsOrigins: ['https://a.example', 'https://b.example'],
  providers: { groq: { base_url: 'https://api.groq.com/openai/v1', api_key: 'GROQ_API_KEY' } },
  defaultProvider: 'groq',
  aliases: { fast: ['groq/a', { model: 'groq/b', weight: 2 }] },
  retries: 0,
  ledger: 'object',
  budgetFail: 'open',
  prices: [{ provider: 'groq', models: ['*'], since: '2026-11-01', currency: 'USD', input: 1, output: 2 }],
  vendorEvents: ['x_a.*', 'x_b.*'],
  reasoning: 'strip',
  usageChunk: 'always',
  unsupported: 'drop',
  promptCache: 'off',
  errorFrames: 'event',
  heartbeatSeconds: 0.5,
  idleTimeoutSeconds: 0,
  deadlineSeconds: 7,
  maxEventBytes: 1000,
  maxRequestBytes: 2000,
};

function settingsOf(options: SettingOptions, env: Readonly<Record<string, unknown>> = {}) {
  return readSettings(withOptions(env, { ...options }));
}

describe('W2 options', () => {
  test('each one is a setting', () => {
    const options = { ...ALL, groqApiKey: 'k', deepseekApiKey: 'd', deepseekBaseUrl: 'https://d.example' };
    expect(optionProblems(options)).toEqual([]);
    const read = settingsOf(options);
    if (read.kind === 'invalid') throw new Error(JSON.stringify(read.problems));
    const { settings } = read;
    expect(settings).toMatchObject({
      auth: 'passthrough',
      adminToken: 'token',
      basePath: '/ai',
      origin: { kind: 'zone', hosts: ['example.com', '*.example.com'] },
      corsOrigins: ['https://a.example', 'https://b.example'],
      defaultProvider: 'groq',
      aliases: [{ name: 'fast', steps: [{ address: 'groq/a' }, { address: 'groq/b', weight: 2 }] }],
      retries: 0,
      ledger: 'object',
      budgetFail: 'open',
      policies: { reasoning: 'strip', usageChunk: 'always', errorFrames: 'event' },
      unsupported: 'drop',
      promptCache: 'off',
      pacing: { heartbeatMs: 500, idleTimeoutMs: 0, deadlineMs: 7000 },
      maxEventBytes: 1000,
      maxRequestBytes: 2000,
    });
    expect(settings.policies.vendorEvents).toHaveLength(2);
    expect(settings.prices).toHaveLength(1);
    expect(settings.providers.get('groq')?.apiKey).toBe('k');
    expect(settings.providers.get('deepseek')).toMatchObject({ apiKey: 'd', baseUrl: 'https://d.example' });
  });

  test("each setting but RECORD_DAYS and the providers' own is one", () => {
    const read = new Set<string>();
    readSettings(new Proxy({}, { get: (_, name) => void (typeof name === 'string' && read.add(name)) }));
    const settings = [...read].filter((name) => !/_(API_KEY|BASE_URL)$/.test(name) && name !== 'RECORD_DAYS');
    const options = Object.keys(ALL).map((name) => name.replace(/[A-Z]/g, '_$&').toUpperCase());
    // Read only where ORIGIN is pass.
    expect([...settings, 'ORIGIN_HOSTS'].sort()).toEqual(options.sort());
  });

  test('one lies over the environment, and one that is undefined leaves it', () => {
    const env = { BASE_PATH: '/env', AUTH: 'open', DEEPSEEK_API_KEY: 'of-env' };
    const read = settingsOf({ basePath: '/ai', auth: undefined }, env);
    expect(read).toMatchObject({ kind: 'valid', settings: { basePath: '/ai', auth: 'open' } });
  });

  test.each<[option: string, value: unknown, message: RegExp]>([
    ['basepath', '/ai', /none that Weir knows/],
    ['deepseekApikey', 'k', /none that Weir knows/],
    ['recordDays', 60, /RECORD_DAYS/],
  ])('%s is reported by name, without its value', (option, value, message) => {
    expect(optionProblems({ [option]: value })).toEqual([
      { setting: `the option ${option}`, message: expect.stringMatching(message) },
    ]);
  });

  test('one whose value has the wrong type is invalid as its setting is', () => {
    for (const options of [{ basePath: 7 }, { retries: 'x' }, { auth: null }, { providers: [7] }]) {
      const read = readSettings(withOptions({}, options));
      expect([options, read.kind]).toEqual([options, 'invalid']);
    }
  });
});
