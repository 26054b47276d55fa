/** What `GET /v1/models` reports of models: what the provider's list has, and what is shipped. */
import { expect, test } from 'vitest';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import { decodeObject, type JsonObject, objectsOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
import './upstreams.ts';

const ENV = { AUTH: 'open', ANTHROPIC_API_KEY: 'k', GEMINI_API_KEY: 'k', MISTRAL_API_KEY: 'k' };
const OPENROUTER = {
  PROVIDERS: '{"openrouter":{"base_url":"https://openrouter.ai/api/v1","api_key":"OPENROUTER_KEY"}}',
  OPENROUTER_KEY: 'k',
};

/** The models that `GET /v1/models` lists where each host has one of these lists. */
async function modelsOf(lists: Readonly<Record<string, object>>, query = '') {
  const gateway = new LimitedGateway(
    { ...ENV, ...OPENROUTER },
    {
      fetch: async (url) => {
        const list = lists[new URL(String(url)).hostname];
        return list === undefined ? new Response('', { status: 500 }) : Response.json(list);
      },
    },
  );
  const response = await gateway.fetch(`/v1/models${query}`, 'x');
  const data = objectsOf(decodeObject(await response.text())?.data);
  return Object.fromEntries(data.map((model) => [model.id, model]));
}

test.each<[string, string, object, string, JsonObject]>([
  [
    'Anthropic',
    'api.anthropic.com',
    {
      data: [
        {
          id: 'claude-opus-5',
          max_input_tokens: 1_000_000,
          max_tokens: 128_000,
          capabilities: { image_input: { supported: true }, thinking: { supported: true } },
        },
      ],
    },
    'anthropic/claude-opus-5',
    { context_length: 1_000_000, max_output_tokens: 128_000, supports: { reasoning: true, images: true } },
  ],
  [
    'Gemini',
    'generativelanguage.googleapis.com',
    { models: [{ name: 'models/gemini-x', inputTokenLimit: 1048, outputTokenLimit: 64, thinking: true }] },
    'gemini/gemini-x',
    { context_length: 1048, max_output_tokens: 64, supports: { reasoning: true } },
  ],
  [
    'Mistral',
    'api.mistral.ai',
    {
      data: [
        { id: 'm', max_context_length: 32_768, capabilities: { function_calling: true, vision: false } },
      ],
    },
    'mistral/m',
    { context_length: 32_768, supports: { tools: true, images: false } },
  ],
  [
    'OpenRouter',
    'openrouter.ai',
    {
      data: [
        {
          id: 'a/b',
          context_length: 8192,
          architecture: { input_modalities: ['text', 'image'] },
          top_provider: { max_completion_tokens: 4096 },
          supported_parameters: ['tools', 'structured_outputs'],
        },
      ],
    },
    'openrouter/a/b',
    {
      context_length: 8192,
      max_output_tokens: 4096,
      supports: { tools: true, reasoning: false, images: true, structured_output: true },
    },
  ],
  [
    'OpenAI, whose list has only names,',
    'api.openai.com',
    { data: [{ id: 'gpt-4o-mini' }] },
    'openai/gpt-4o-mini',
    {
      context_length: 128_000,
      max_output_tokens: 16_384,
      supports: { tools: true, reasoning: false, images: true, structured_output: true },
    },
  ],
])('J5: a model of %s has its limits and capabilities', async (_, host, list, id, facts) => {
  expect((await modelsOf({ [host]: list }))[id]).toMatchObject(facts);
});

test('J5: facts that are not known are absent', async () => {
  const models = await modelsOf({ 'api.openai.com': { data: [{ id: 'gpt-unknown' }] } });
  expect(Object.keys(models['openai/gpt-unknown'] ?? {}).sort()).toEqual(
    ['created', 'created_at', 'display_name', 'id', 'object', 'owned_by', 'type'].sort(),
  );
});

test('J5: ?details=true adds the APIs, the price in force and the source of shipped facts', async () => {
  const list = { 'api.openai.com': { data: [{ id: 'gpt-4o-mini' }] } };
  expect((await modelsOf(list))['openai/gpt-4o-mini']).not.toHaveProperty('pricing');
  expect((await modelsOf(list, '?details=true'))['openai/gpt-4o-mini']).toMatchObject({
    apis: ['chat', 'responses'],
    pricing: { currency: 'USD', input: 0.15, output: 0.6, source: expect.stringContaining('https://') },
    facts_source: expect.stringContaining('https://'),
    facts_checked: '2026-11-22',
  });
});

test.each([
  ['api.openai.com', 'openai/gpt-4o', ['chat', 'responses']],
  ['api.openai.com', 'openai/gpt-6-sol', ['chat', 'responses']],
  ['api.openai.com', 'openai/gpt-6-pro', ['responses']],
  ['api.openai.com', 'openai/text-embedding-3-small', ['embeddings']],
  ['api.mistral.ai', 'mistral/mistral-embed', ['embeddings']],
  ['api.anthropic.com', 'anthropic/claude-opus-5', ['messages']],
] as const)('J5: at %s %s is served by %j', async (host, id, apis) => {
  const list = { [host]: { data: [{ id: id.slice(id.indexOf('/') + 1) }] } };
  expect((await modelsOf(list, '?details=true'))[id]).toMatchObject({ apis });
});

test("J5: Gemini's models for embeddings are listed, those that only draw are not", async () => {
  const models = [
    { name: 'models/gemini-embedding-001', supportedGenerationMethods: ['embedContent', 'countTokens'] },
    { name: 'models/imagen-4', supportedGenerationMethods: ['predict'] },
  ];
  const listed = await modelsOf({ 'generativelanguage.googleapis.com': { models } }, '?details=true');
  expect(Object.keys(listed)).toEqual(['gemini/gemini-embedding-001']);
  expect(listed['gemini/gemini-embedding-001']).toMatchObject({ apis: ['embeddings'] });
});

test('J5: every shipped fact, also of a profile, has a page and a day', () => {
  const rows = [...PROVIDERS, ...PROFILES].flatMap(({ modelFacts = [] }) => modelFacts);
  expect(rows.length).toBeGreaterThan(0);
  for (const { source, checked } of rows) {
    expect(source).toMatch(/^https:\/\//);
    expect(checked).toMatch(/^2026-\d{2}-\d{2}$/);
  }
});
