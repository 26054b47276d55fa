/** A key is enough: each provider by its usual secret alone, beside entries of `PROVIDERS` from before it was built in. */
import { describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import { configuredMaker } from '../../src/settings/bare-models.ts';
import type { Settings } from '../../src/settings/settings.ts';
import { answerWith, RoutedGateway, read } from '../gateway/upstreams.ts';
import { readSettings } from './read-settings.ts';

function valid(env: Record<string, unknown>): Settings {
  const settings = readSettings(env);
  if (settings.kind === 'invalid') throw new Error(JSON.stringify(settings.problems));
  return settings.settings;
}

/** The gateway of a fresh clone: no setting but those of the test. */
const CLONE = {
  ...{ DEEPSEEK_API_KEY: undefined, MISTRAL_API_KEY: undefined, OPENAI_API_KEY: undefined },
  ...{ DEEPSEEK_BASE_URL: undefined, MISTRAL_BASE_URL: undefined, OPENAI_BASE_URL: undefined },
};

const KEYS = [
  ['GROQ_API_KEY', 'groq', 'https://api.groq.com/openai/v1'],
  ['XAI_API_KEY', 'xai', 'https://api.x.ai/v1'],
  ['OPENROUTER_API_KEY', 'openrouter', 'https://openrouter.ai/api/v1'],
  ['TOGETHER_API_KEY', 'together', 'https://api.together.xyz/v1'],
  ['FIREWORKS_API_KEY', 'fireworks', 'https://api.fireworks.ai/inference/v1'],
  ['CEREBRAS_API_KEY', 'cerebras', 'https://api.cerebras.ai/v1'],
  ['MOONSHOT_API_KEY', 'moonshot', 'https://api.moonshot.ai/v1'],
  ['ZAI_API_KEY', 'zai', 'https://api.z.ai/api/paas/v4'],
] as const;

describe('W7 a key is enough', () => {
  test.each(KEYS)(
    '%s alone on a fresh clone: %s is called at its own address with it',
    async (secret, id, url) => {
      const gateway = new RoutedGateway({ m: [answerWith('Here.')] }, { ...CLONE, [secret]: 'k' });
      expect(await read(await gateway.ask({ model: `${id}/m`, stream: true }))).toMatchObject({
        text: 'Here.',
      });
      const [request] = gateway.requests;
      expect(request?.url).toBe(`${url}/chat/completions`);
      expect(request?.headers.get('authorization')).toBe('Bearer k');
    },
  );

  test('every built-in provider with an address of its own is on by each of its keys alone', () => {
    for (const { id, apiKeySettings, defaultBaseUrl } of PROVIDERS) {
      // OpenToken and Xerotier have no address, and a cloud needs its region.
      if (defaultBaseUrl === null) continue;
      for (const setting of apiKeySettings)
        expect([...valid({ [setting]: 'k' }).providers.keys()], setting).toContain(id);
    }
  });

  test.each(KEYS)('%s with <ID>_BASE_URL: %s is called there', (secret, id) => {
    const name = `${id.toUpperCase()}_BASE_URL`;
    const { providers } = valid({ [secret]: 'k', [name]: 'https://proxy.example/v1/' });
    expect(providers.get(id)).toMatchObject({ baseUrl: 'https://proxy.example/v1', urlSetting: name });
    expect(readSettings({ [secret]: 'k', [name]: 'hunter2' })).toMatchObject({
      kind: 'invalid',
      problems: [{ setting: name }],
    });
  });

  test.each(KEYS)('%s and an entry of PROVIDERS named %s: the entry replaces the provider', (secret, id) => {
    const entry = { base_url: 'https://own.example/v1', api_key: 'OWN_KEY' };
    const env = { [secret]: 'k', OWN_KEY: 'o', [`${id.toUpperCase()}_BASE_URL`]: 'hunter2' };
    const configured = valid({ ...env, PROVIDERS: { [id]: entry } }).providers.get(id);
    expect(configured).toMatchObject({
      baseUrl: 'https://own.example/v1',
      apiKey: 'o',
      keySetting: 'OWN_KEY',
    });
  });

  test('a bare name still goes to the entry with the maker’s host, and without one to the provider', () => {
    const entry = { base_url: 'https://api.x.ai/v1', api_key: 'XAI_API_KEY' };
    const { providers } = valid({ XAI_API_KEY: 'k', PROVIDERS: { mine: entry } });
    expect(configuredMaker('grok-4.7', providers)).toBe('mine');
    expect([...providers.keys()].sort()).toEqual(['mine', 'xai']);
    expect(configuredMaker('grok-4.7', valid({ XAI_API_KEY: 'k' }).providers)).toBe('xai');
    const google = { base_url: 'https://generativelanguage.googleapis.com', api_key: 'GOOGLE_API_KEY' };
    const both = valid({ GOOGLE_API_KEY: 'k', PROVIDERS: { google } });
    expect(configuredMaker('gemini-3-flash', both.providers)).toBe('google');
  });

  test('a name with the id of a provider that is not set up goes to DEFAULT_PROVIDER, which may be another gateway', async () => {
    const PROVIDERS = { hub: { base_url: 'https://hub.example/v1' } };
    const env = { ...CLONE, PROVIDERS, DEFAULT_PROVIDER: 'hub' };
    const gateway = new RoutedGateway({ 'xai/grok-4': [answerWith('Here.')] }, env);
    expect(await read(await gateway.ask({ model: 'xai/grok-4' }))).toMatchObject({ text: 'Here.' });
  });

  test('GEMINI_API_KEY comes before GOOGLE_API_KEY, with one line in the log', () => {
    const keyOf = (env: Record<string, unknown>) => valid(env).providers.get('gemini')?.keySetting;
    expect(keyOf({ GOOGLE_API_KEY: 'a' })).toBe('GOOGLE_API_KEY');
    expect(keyOf({ GOOGLE_API_KEY: 'a', GEMINI_API_KEY: 'b' })).toBe('GEMINI_API_KEY');
    const line = { setting: 'GOOGLE_API_KEY', message: 'is not used, because GEMINI_API_KEY is set' };
    expect(readSettings({ GOOGLE_API_KEY: 'a', GEMINI_API_KEY: 'b' }).overridden).toEqual([line]);
    expect(readSettings({ GOOGLE_API_KEY: 'a' }).overridden).toEqual([]);
    const google = { base_url: 'https://proxy.example', api_key: 'GOOGLE_API_KEY' };
    const used = { GOOGLE_API_KEY: 'a', GEMINI_API_KEY: 'b', PROVIDERS: { google } };
    expect(readSettings(used).overridden).toEqual([]);
    // Codestral has a key of its own, and Mistral uses the other one.
    expect(readSettings({ MISTRAL_API_KEY: 'a', CODESTRAL_API_KEY: 'b' }).overridden).toEqual([]);
  });
});
