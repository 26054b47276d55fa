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
async function modelsOf(
  lists: Readonly<Record<string, object>>,
  query = '',
  env: Readonly<Record<string, unknown>> = {},
) {
  const response = await gatewayWith(lists, env).fetch(`/v1/models${query}`, 'x');
  const data = objectsOf(decodeObject(await response.text())?.data);
  return Object.fromEntries(data.map((model) => [model.id, model]));
}

function gatewayWith(lists: Readonly<Record<string, object>>, env: Readonly<Record<string, unknown>>) {
  return new LimitedGateway(
    { ...ENV, ...OPENROUTER, ...env },
    {
      fetch: async (url) => {
        const list = lists[new URL(String(url)).hostname];
        return list === undefined ? new Response('', { status: 500 }) : Response.json(list);
      },
    },
  );
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
  const rows = [...PROVIDERS, ...PROFILES].flatMap(({ modelTraits = [] }) => modelTraits);
  expect(rows.length).toBeGreaterThan(0);
  for (const { source, checked } of rows) {
    expect(source).toMatch(/^https:\/\//);
    expect(checked).toMatch(/^2026-\d{2}-\d{2}$/);
  }
});

const LISTS = {
  'api.openai.com': { data: [{ id: 'gpt-4o-mini' }] },
  'api.anthropic.com': {
    data: [
      { id: 'claude-opus-5', max_input_tokens: 1_000_000, max_tokens: 128_000 },
      { id: 'claude-haiku-4-5', max_input_tokens: 200_000, max_tokens: 64_000 },
    ],
  },
};
const ALIASES = {
  'claude-fast': 'openai/gpt-4o-mini',
  'claude-safe': ['anthropic/claude-opus-5', 'openai/gpt-4o-mini'],
  'claude-odd': ['anthropic/claude-opus-5', 'mistral/unknown'],
  'claude-opus-5': 'anthropic/*',
  'big-*': 'anthropic/claude-*',
};
const SMALL = { context_length: 128_000, max_output_tokens: 16_384 };

test('J5: an entry has its limits under the names that Claude Code reads', async () => {
  const models = await modelsOf(LISTS);
  const limits = { max_input_tokens: 1_000_000, max_tokens: 128_000 };
  expect(models['anthropic/claude-opus-5']).toMatchObject(limits);
});

test('J5: an alias has the facts that hold for each of its models', async () => {
  const models = await modelsOf(LISTS, '', { ALIASES });
  expect(models['claude-fast']).toMatchObject({
    ...SMALL,
    max_input_tokens: 128_000,
    max_tokens: 16_384,
    supports: { tools: true, reasoning: false, images: true, structured_output: true },
  });
  expect(models['claude-safe']).toMatchObject(SMALL);
  expect(models['claude-opus-5']).toMatchObject({ context_length: 1_000_000 });
  for (const field of ['context_length', 'max_output_tokens', 'max_input_tokens', 'max_tokens', 'supports'])
    expect(models['claude-odd']).not.toHaveProperty(field);
});

test('J5: an alias has shipped facts where no list came', async () => {
  expect((await modelsOf({}, '', { ALIASES }))['claude-fast']).toMatchObject(SMALL);
});

test('J5: ?details=true has the price of an alias of one model', async () => {
  const models = await modelsOf(LISTS, '?details=true', { ALIASES });
  expect(models['claude-fast']).toMatchObject({ pricing: { input: 0.15 }, apis: ['chat', 'responses'] });
  expect(models['claude-safe']).not.toHaveProperty('pricing');
});

test.each([
  ['gpt-4o-mini', { id: 'gpt-4o-mini', owned_by: 'openai', ...SMALL }],
  ['big-haiku-4-5', { id: 'big-haiku-4-5', owned_by: 'weir', context_length: 200_000 }],
  ['claude-fast', { id: 'claude-fast', ...SMALL }],
])('J5: GET /v1/models/%s, a name that a request may have, has its facts', async (name, model) => {
  const response = await gatewayWith(LISTS, { ALIASES }).fetch(`/v1/models/${name}`, 'x');
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject(model);
});

test('J5: GET /v1/models/<name>: a name that no request may have is a 404', async () => {
  const response = await gatewayWith(LISTS, { ALIASES }).fetch('/v1/models/gpt-none', 'x');
  expect(response.status).toBe(404);
});

test('J5: models for embeddings are listed where they can be called', async () => {
  const embedding = { data: [{ id: 'codestral-embed' }] };
  const models = await modelsOf({ 'api.mistral.ai': embedding });
  expect(Object.keys(models)).toEqual(['mistral/codestral-embed']);
});

test.each<[string, JsonObject, string, object, string, JsonObject]>([
  [
    'Claude at Bedrock, below a profile and a version',
    { AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_REGION: 'us-east-1' },
    'bedrock-mantle.us-east-1.api.aws',
    { data: [{ id: 'eu.anthropic.claude-sonnet-4-6-v1:0' }] },
    'bedrock/eu.anthropic.claude-sonnet-4-6-v1:0',
    { context_length: 1_000_000, max_output_tokens: 64_000, supports: { tools: true, reasoning: true } },
  ],
  [
    'Claude at Azure, whose window is smaller there',
    { AZURE_API_KEY: 'k', AZURE_RESOURCE: 'acme' },
    'acme.openai.azure.com',
    { data: [{ id: 'claude-opus-4-8' }] },
    'azure/claude-opus-4-8',
    { context_length: 200_000, max_output_tokens: 128_000, supports: { images: true } },
  ],
  [
    'Claude behind a deployment of another name',
    {
      ...{ AZURE_API_KEY: 'k', AZURE_RESOURCE: 'acme' },
      AZURE_MODELS: { mine: 'anthropic/claude-haiku-4-5' },
    },
    'acme.openai.azure.com',
    { data: [] },
    'azure/mine',
    { context_length: 200_000, max_output_tokens: 64_000 },
  ],
  [
    'Workers AI’s own list',
    { CLOUDFLARE_AI_TOKEN: 'k', CLOUDFLARE_ACCOUNT_ID: '0123456789abcdef0123456789abcdef' },
    'api.cloudflare.com',
    {
      result: [
        {
          name: '@cf/a/b',
          task: { name: 'Text Generation' },
          properties: [
            { property_id: 'context_window', value: '128000' },
            { property_id: 'function_calling', value: 'true' },
            { property_id: 'vision', value: 'false' },
            { property_id: 'price', value: [{ unit: 'per M input tokens', price: 0.1 }] },
          ],
        },
      ],
    },
    'cloudflare/@cf/a/b',
    { context_length: 128_000, supports: { tools: true, images: false } },
  ],
])('J3 %s: its facts are those of its model', async (_, env, host, list, id, facts) => {
  expect((await modelsOf({ [host]: list }, '', env))[id]).toMatchObject(facts);
});
