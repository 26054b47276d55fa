/** Cloudflare by REST: which path of `/ai/v1` a model is called at, with which account, gateway and token. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { readSettings } from '../settings/read-settings.ts';
import { answerWith, type Behavior, RoutedGateway, read, settle } from './upstreams.ts';

const ACCOUNT = '0123456789abcdef0123456789abcdef';
const ENV = { CLOUDFLARE_AI_TOKEN: 'token-of-cf', CLOUDFLARE_ACCOUNT_ID: ACCOUNT };
const BASE = `https://api.cloudflare.com/client/v4/accounts/${ACCOUNT}/ai/v1`;
const message = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' },
  content: [{ type: 'text', text: 'Here.' }],
  usage: { input_tokens: 5, output_tokens: 3 },
};
const CLAUDE: Behavior = { kind: 'answer', type: 'application/json', pieces: [JSON.stringify(message)] };

async function ask(model: string, env: JsonObject = ENV, fields: JsonObject = {}) {
  const answer = model.startsWith('anthropic/') ? CLAUDE : answerWith('Here.');
  const routed = new RoutedGateway({ [model]: [answer] }, env);
  const got = await read(await routed.ask({ model: `cloudflare/${model}`, ...fields }));
  await settle();
  return { got, request: routed.requests[0], record: routed.records[0] };
}

describe('W10 cloudflare', () => {
  test.each([
    ['@cf/meta/llama-3.3-70b-instruct-fp8-fast', `${BASE}/chat/completions`],
    ['openai/gpt-4o-mini', `${BASE}/chat/completions`],
    ['google/gemini-3-flash', `${BASE}/chat/completions`],
    ['xai/grok-4.3', `${BASE}/chat/completions`],
    ['anthropic/claude-haiku-4-5', `${BASE}/messages`],
  ])('%s: is called at %s with the token as bearer and the default gateway', async (model, url) => {
    const { got, request } = await ask(model);
    expect(got).toMatchObject({ status: 200, text: 'Here.' });
    expect(request?.url).toBe(url);
    expect(request?.headers.get('authorization')).toBe('Bearer token-of-cf');
    expect(request?.headers.get('x-api-key')).toBeNull();
    expect(request?.headers.get('cf-aig-gateway-id')).toBe('default');
    expect(request?.body.model).toBe(model);
  });

  test('CLOUDFLARE_AI_GATEWAY and CLOUDFLARE_AI_BASE_URL: the gateway, and scheme and host', async () => {
    const env = { ...ENV, CLOUDFLARE_AI_GATEWAY: 'team-a', CLOUDFLARE_AI_BASE_URL: 'https://proxy.example/' };
    const { request } = await ask('openai/gpt-4o-mini', env);
    expect(request?.url).toBe(`https://proxy.example/client/v4/accounts/${ACCOUNT}/ai/v1/chat/completions`);
    expect(request?.headers.get('cf-aig-gateway-id')).toBe('team-a');
  });

  test('without its account, or with one that is none: misconfigured by its name', () => {
    const message = 'must be set, because CLOUDFLARE_AI_TOKEN is: the id of the account, 32 hex digits';
    expect(readSettings({ CLOUDFLARE_AI_TOKEN: 'k' })).toMatchObject({
      problems: [{ setting: 'CLOUDFLARE_ACCOUNT_ID', message }],
    });
    expect(readSettings({ ...ENV, CLOUDFLARE_ACCOUNT_ID: 'hunter2' })).toMatchObject({
      problems: [{ setting: 'CLOUDFLARE_ACCOUNT_ID' }],
    });
    expect(readSettings({ ...ENV, CLOUDFLARE_AI_GATEWAY: 'a/b' })).toMatchObject({
      problems: [{ setting: 'CLOUDFLARE_AI_GATEWAY' }],
    });
  });

  test('CLOUDFLARE_API_TOKEN, which is wrangler’s, turns nothing on', () => {
    const read = readSettings({ CLOUDFLARE_API_TOKEN: 'k', CLOUDFLARE_ACCOUNT_ID: ACCOUNT });
    expect(read.kind === 'valid' && read.settings.providers.size).toBe(0);
  });

  test('an entry named cloudflare replaces the provider', () => {
    const PROVIDERS = { cloudflare: { base_url: 'https://own.example/v1', api_key: 'CLOUDFLARE_AI_TOKEN' } };
    const read = readSettings({ CLOUDFLARE_AI_TOKEN: 'k', PROVIDERS });
    expect(read.kind === 'valid' && read.settings.providers.get('cloudflare')?.baseUrl).toBe(
      'https://own.example/v1',
    );
  });

  test('prices of the catalogue are the makers’, as estimates; Workers AI has its own', async () => {
    expect((await ask('openai/gpt-4o-mini')).record).toMatchObject({ currency: 'USD', cost_estimated: true });
    expect((await ask('anthropic/claude-haiku-4.5')).record).toMatchObject({
      currency: 'USD',
      cost_estimated: true,
    });
    expect((await ask('@cf/meta/llama-3.3-70b-instruct-fp8-fast')).record).toMatchObject({
      ...{ currency: 'USD', cost_estimated: false },
      cost_nanos: 5 * 293 + 3 * 2253,
    });
    expect((await ask('@cf/acme/unknown-1b')).record?.cost_nanos).toBeNull();
  });
});
