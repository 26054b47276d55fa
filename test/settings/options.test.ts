/** Tests the options of `weir()`: each setting in camel case, with precedence over the environment (W2). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROVIDER_SETTINGS } from '../../src/providers/index.ts';
import { FEATURES } from '../../src/settings/feature-settings.ts';
import {
  optionProblems,
  type ProviderOptions,
  type SettingOptions,
  withOptions,
} from '../../src/settings/options.ts';
import { readSettings } from './read-settings.ts';

/** Without the keys and base URLs of providers. */
type Named = Exclude<keyof SettingOptions, keyof ProviderOptions>;

/** Each of these options with a value other than the default. */
const ALL: { readonly [Name in Named]-?: NonNullable<SettingOptions[Name]> } = {
  auth: 'passthrough',
  learn: 'off',
  errorTexts: 'off',
  adminToken: 'token',
  basePath: '/ai/',
  origin: 'pass',
  originHosts: ['example.com', '*.example.com'],
  corsOrigins: ['https://a.example', 'https://b.example'],
  providers: { groq: { base_url: 'https://api.groq.com/openai/v1', api_key: 'GROQ_API_KEY' } },
  secrets: { GROQ_API_KEY: 'k' },
  defaultProvider: 'groq',
  bareModels: 'off',
  aliases: { fast: ['groq/a', { model: 'groq/b', weight: 2 }] },
  retries: 0,
  ledger: 'object',
  users: 'hash',
  userHashKey: 'a secret of users',
  tags: ['team', 'env'],
  cacheReport: 'off',
  accessTeamDomain: 'team.cloudflareaccess.com',
  accessAud: 'aud',
  accessAdmins: ['ada@example.com', '*@ops.example.com'],
  accessGroupsClaim: 'groups',
  jurisdiction: 'eu',
  locationHint: 'weur',
  recordDays: 60,
  recordBytes: 1_000_000,
  responses: 'durable',
  responsesDays: 7,
  responseBytes: 1_000_000,
  keptResponses: 10,
  keptBytes: 1_000_000,
  budgetFail: 'open',
  shards: 'off',
  budgetAlerts: [90, 50],
  alertUrl: 'https://alerts.example/weir',
  alertSecret: 'a-secret-of-16-or-more',
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

const LISTED: ReadonlySet<string> = new Set(FEATURES.map(({ name }) => name));

function settingsOf(options: SettingOptions, env: Readonly<Record<string, unknown>> = {}) {
  return readSettings(withOptions(env, { ...options }));
}

describe('W2 options', () => {
  test('each option is a setting', () => {
    const options = { ...ALL, deepseekApiKey: 'd', deepseekBaseUrl: 'https://d.example' };
    const read = settingsOf(options);
    expect(optionProblems(options, { names: read.names, listed: LISTED })).toEqual([]);
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
      recordDays: 60,
      responses: 'durable',
      responsesDays: 7,
      responseBytes: 1_000_000,
      budgetFail: 'open',
      policies: { reasoning: 'strip', usageChunk: 'always', errorFrames: 'event' },
      unsupported: 'drop',
      promptCache: 'off',
      timers: { heartbeatMs: 500, idleTimeoutMs: 0, deadlineMs: 7000 },
      maxEventBytes: 1000,
      maxRequestBytes: 2000,
    });
    expect(settings.policies.vendorEvents).toHaveLength(2);
    expect(settings.prices).toHaveLength(1);
    expect(settings.providers.get('groq')?.apiKey).toBe('k');
    expect(settings.providers.get('deepseek')).toMatchObject({ apiKey: 'd', baseUrl: 'https://d.example' });
  });

  test("each setting is an option; those of providers follow from the providers' files", () => {
    const ofProviders: readonly string[] = PROVIDER_SETTINGS;
    const settings = [...readSettings({}).names].filter((name) => !ofProviders.includes(name));
    const names = Object.keys(ALL).filter((name) => name !== 'secrets');
    const options = names.map((name) => name.replace(/[A-Z]/g, '_$&').toUpperCase());
    expect(settings.sort()).toEqual(options.sort());
  });

  test('an option takes precedence over the environment, an undefined one does not', () => {
    const env = { BASE_PATH: '/env', AUTH: 'open', DEEPSEEK_API_KEY: 'of-env' };
    const read = settingsOf({ basePath: '/ai', auth: undefined }, env);
    expect(read).toMatchObject({ kind: 'valid', settings: { basePath: '/ai', auth: 'open' } });
  });

  test.each<[option: string, value: unknown, message: RegExp]>([
    ['basepath', '/ai', /^does not exist: did you mean basePath\?$/],
    ['deepseekApikey', 'k', /^does not exist: did you mean deepseekApiKey\?$/],
    ['depseekApiKey', 'k', /^does not exist: did you mean deepseekApiKey\?$/],
    ['mistralBaseURL', 'k', /^does not exist: did you mean mistralBaseUrl\?$/],
    ['acmeApiKey', 'k', /^does not exist: put the keys of your own providers into secrets$/],
    ['temperature', 1, /^does not exist$/],
  ])('%s is reported by name, without its value', (option, value, message) => {
    expect(optionProblems({ [option]: value }, { names: null, listed: LISTED })).toEqual([
      { setting: `the option ${option}`, message: expect.stringMatching(message) },
    ]);
  });

  test('an unused secret is reported, a secret that an entry of providers names in any field is read', () => {
    const entry = { base_url: 'https://a.example/v1', headers: { 'x-key': '$ACME_TOKEN' } };
    const options = { providers: { acme: entry }, secrets: { ACME_TOKEN: 'a', BORIS_API_KEY: 'k' } };
    const read = settingsOf(options);
    expect(read).toMatchObject({ kind: 'valid' });
    expect(optionProblems(options, { names: read.names, listed: LISTED })).toEqual([
      { setting: 'the option secrets.BORIS_API_KEY', message: 'is not used by providers' },
    ]);
    const misspelt = { ...options, secrets: { ACNE_TOKEN: 'a' } };
    const { names, kind } = settingsOf(misspelt);
    expect(kind).toBe('invalid');
    expect(optionProblems(misspelt, { names, listed: LISTED })).toMatchObject([
      { message: 'is not used by providers: did you mean ACME_TOKEN?' },
    ]);
    expect(optionProblems({ secrets: 7 }, { names: null, listed: LISTED })).toMatchObject([
      { setting: 'the option secrets' },
    ]);
  });

  test('each option has a hover text', () => {
    const source = readFileSync(join(import.meta.dirname, '../../src/settings/table.ts'), 'utf8');
    const [, body = ''] = /^export const SETTINGS = \{\n(.*?)^\}/ms.exec(source) ?? [];
    const described = [...body.matchAll(/^(?: {2}\/\*\*.*\*\/| {3}\*\/)\n {2}(\w+): /gm)];
    // `secrets` is an option of hosts alone.
    const options = Object.keys(ALL).filter((name) => name !== 'secrets');
    expect(described.map(([, name]) => name).sort()).toEqual(options.sort());
  });

  test('a value of the wrong type is invalid, as in the setting', () => {
    for (const options of [{ basePath: 7 }, { retries: 'x' }, { auth: null }, { providers: [7] }]) {
      const read = readSettings(withOptions({}, options));
      expect([options, read.kind]).toEqual([options, 'invalid']);
    }
  });
});
