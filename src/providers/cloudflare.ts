/**
 * Cloudflare by REST or by the binding `AI`: Workers AI and the catalogue of AI Gateway, which one bill pays. `D` is
 * https://developers.cloudflare.com/ai-gateway/usage/rest-api/, as of 2026-11-28; `P` packages/workers-ai-provider of cloudflare/ai
 * (2026-07-30), `M` anomalyco/models.dev at f3fc69229 (2026-07-02).
 */
import { statusOfCode } from '../canonical/error-codes.ts';
import { convertWorkersAiEmbeddings, workersAiEmbeddings } from '../protocols/workers-ai/embeddings.ts';
import { workersAi } from '../protocols/workers-ai/upstream-reader.ts';
import { type RequestRules, renamed } from '../request-translation/rules.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount, readText } from '../shared/json.ts';
import { readAmount } from '../shared/money.ts';
import { words } from '../shared/words.ts';
import { compatibleProfile, TOLERANT } from './compatible.ts';
import { bearer } from './credential.ts';
import type { CloudValues, ListedModel, MakerModel, ModelTraitsRow, Profile, Provider } from './provider.ts';
import type { RefusalRules } from './refusals.ts';
import { claudeOf, gptOf } from './resold.ts';

/** The makers of the catalogue, and whose rules and prices are known here under another id. */
const MAKERS: Readonly<Record<string, string>> = {
  google: 'gemini',
  alibaba: 'qwen',
  'zai-org': 'zai',
  moonshotai: 'moonshot',
};

/** `@cf/meta/llama-3.3-70b`, `openai/gpt-5.6`. Workers AI has prices of its own. */
function makerOf(name: string): MakerModel | null {
  const slash = name.indexOf('/');
  if (slash <= 0 || name.startsWith('@')) return null;
  const maker = name.slice(0, slash);
  const model = name.slice(slash + 1);
  // Gateways write `claude-sonnet-4.5`, Anthropic `claude-sonnet-4-5`.
  return { maker: MAKERS[maker] ?? maker, model: maker === 'anthropic' ? model.replaceAll('.', '-') : model };
}

const REFUSALS: RefusalRules = {
  context_length: /^5021:|\bexceeded this model context window limit\b/i,
  // Codes of Workers AI and of the gateway, as P has them: 3042 and 7003 no such model, 5016, 5018, 3023, 3041 no access, 3036 the
  // day's free allocation is used.
  missing_model: /^(?:3042|5007|7003):|\bno such model\b/i,
  bad_credential: /^(?:10000|9109):|\bAuthentication error\b|\bInvalid access token\b/i,
  // The binding's raw responses need not have the documented status.
  statusOf: (code) => statusOfCode('errors', code),
  empty_balance: /^3036:|\bused up your daily free allocation\b/i,
};

/** P: by which a run can be found, and resumed for some minutes. */
const RUN_ID = 'cf-aig-run-id';

/** D: the catalogue answers in the maker's form, also Anthropic's at `/messages`. */
const CLAUDE = claudeOf({ credential: bearer, refusals: REFUSALS, runIdHeader: RUN_ID });

const GPT = gptOf({ refusals: REFUSALS, runIdHeader: RUN_ID });

/** P: `content: null` is refused. The catalogue's other makers answer in the same form. */
const RULES: RequestRules = { ...TOLERANT, messages: { ...TOLERANT.messages, needsContent: 'text' } };

/** https://developers.cloudflare.com/workers-ai/platform/pricing/, by @pydantic/genai-prices 0.1.8 (2026-11-28). */
const NEURONS_PER_DOLLAR = 1000 / 0.011;

const COMPATIBLE = compatibleProfile('cloudflare', [], RULES);

const CHAT: Profile = {
  ...COMPATIBLE,
  endpoints: {
    ...COMPATIBLE.endpoints,
    chat: { path: () => '/chat/completions', request: { kind: 'chat', rules: RULES }, protocol: workersAi },
  },
  quirks: {
    // gpt-oss: cloudflare/ai#560.
    writesCallsAsText: true,
    // Kimi names the first call of each response `functions.<name>:0`: P.
    absentToolCallId: /^functions\.[\w.-]{1,128}:\d{1,4}$/,
    // Responses of 2026-08 to 2026-10 have `usage.neurons`.
    costOf: ({ neurons }) => readAmount(neurons, NEURONS_PER_DOLLAR),
  },
  refusals: REFUSALS,
  runIdHeader: RUN_ID,
  embeddingModels: ['@cf/baai/bge-*', '*embed*'],
};

const FACTS = { source: 'M, providers/cloudflare-workers-ai', checked: '2026-11-28' } as const;
const TOOLS = { tools: true } as const;
const THINKS = { tools: true, reasoning: true } as const;

/** Models of Workers AI. `GET /v1/models` lists them where the binding serves them. */
const MODEL_TRAITS: readonly ModelTraitsRow[] = [
  {
    ...FACTS,
    models: ['@cf/openai/gpt-oss-120b', '@cf/openai/gpt-oss-20b'],
    contextTokens: 128_000,
    supports: THINKS,
  },
  {
    ...FACTS,
    models: ['@cf/moonshotai/kimi-k2.6', '@cf/moonshotai/kimi-k2.7-code'],
    supports: { ...THINKS, images: true },
  },
  { ...FACTS, models: ['@cf/zai-org/glm-5.2'], contextTokens: 262_144, supports: THINKS },
  { ...FACTS, models: ['@cf/zai-org/glm-4.7-flash'], contextTokens: 131_072, supports: THINKS },
  { ...FACTS, models: ['@cf/nvidia/nemotron-3-120b-a12b'], contextTokens: 256_000, supports: THINKS },
  { ...FACTS, models: ['@cf/qwen/qwen3-30b-a3b-fp8'], contextTokens: 32_768, supports: THINKS },
  { ...FACTS, models: ['@cf/google/gemma-4-26b-a4b-it'], contextTokens: 256_000 },
  { ...FACTS, models: ['@cf/meta/llama-4-scout-17b-16e-instruct'], contextTokens: 131_000 },
  { ...FACTS, models: ['@cf/meta/llama-3.3-70b-instruct-fp8-fast'], contextTokens: 24_000 },
  {
    ...FACTS,
    models: ['@cf/meta/llama-3.2-11b-vision-instruct'],
    contextTokens: 128_000,
    supports: { images: true },
  },
  { ...FACTS, models: ['@cf/meta/llama-3.1-8b-instruct-fp8'], contextTokens: 32_000 },
  {
    ...FACTS,
    models: ['@cf/mistralai/mistral-small-3.1-24b-instruct'],
    contextTokens: 128_000,
    supports: TOOLS,
  },
  { ...FACTS, models: ['@cf/ibm-granite/granite-4.0-h-micro'], contextTokens: 131_000, supports: TOOLS },
  { ...FACTS, models: ['@cf/qwen/qwq-32b'], contextTokens: 24_000, supports: { reasoning: true } },
  { ...FACTS, models: ['@cf/qwen/qwen2.5-coder-32b-instruct'], contextTokens: 32_768 },
  {
    // Of its price list; nothing else is known of them.
    models: words(`
      @cf/deepseek-ai/deepseek-v4-flash-0731 @cf/deepseek-ai/deepseek-v4-pro-0813 @cf/qwen/qwen3.8-27b
      @cf/zai-org/glm-5.3-flash @cf/baai/bge-m3 @cf/baai/bge-small-en-v1.5 @cf/baai/bge-base-en-v1.5
      @cf/baai/bge-large-en-v1.5 @cf/qwen/qwen3-embedding-0.6b
    `),
    source:
      'https://developers.cloudflare.com/workers-ai/platform/pricing/, cited by @pydantic/genai-prices 0.1.8',
    checked: '2026-11-28',
  },
];

/** Models of the catalogue: M, providers/cloudflare-ai-gateway, and those that P runs (2026-11-28). There are more. */
const CATALOGUE = words(`
  openai/gpt-5.5 openai/gpt-5.4 openai/gpt-5.2 openai/gpt-5-mini openai/gpt-4o-mini
  anthropic/claude-opus-4-8 anthropic/claude-sonnet-5 anthropic/claude-haiku-4-5 google/gemini-2.5-flash
  xai/grok-3 deepseek/deepseek-v4-pro alibaba/qwen3-max minimax/m3
`);

/** P: the binding knows `max_tokens` alone, reports usage unasked, and takes a schema without OpenAI's envelope. */
const BOUND_RULES: RequestRules = {
  ...RULES,
  fields: { ...RULES.fields, max_completion_tokens: renamed('max_tokens') },
  adjustments: [
    {
      when: ({ response_format: format }) => isObject(schemaOf(format)),
      set: ({ response_format: format }) => ({
        response_format: { ...objectOf(format), json_schema: schemaOf(format) },
      }),
      reports: null,
    },
  ],
  streamUsage: 'always',
};

/** The schema in OpenAI's envelope. */
function schemaOf(format: unknown): unknown {
  return objectOf(objectOf(format).json_schema).schema;
}

const BOUND: Profile = {
  ...CHAT,
  endpoints: {
    chat: { path: () => '/run', request: { kind: 'chat', rules: BOUND_RULES }, protocol: workersAi },
    embeddings: {
      path: () => '/run',
      request: workersAiEmbeddings,
      protocol: workersAi,
      convertEmbeddings: convertWorkersAiEmbeddings,
    },
  },
  modelTraits: MODEL_TRAITS,
};

/** P: the catalogue's other makers have OpenAI's form. */
const BOUND_OTHERS: Profile = { ...CHAT, modelTraits: MODEL_TRAITS };

/**
 * Workers AI's list, which is beside the path of the API: `models.list` of Cloudflare's own package `cloudflare` 4.2.0 calls `GET
 * /accounts/{id}/ai/models/search`. Rows with `properties`: answers of 2026-09, such as PlayForm/Auth-Hermes-Cloudflare's.
 */
const LIST = { path: '/../models/search?per_page=1000', read: readModels };
const LISTED_TASKS = ['Text Generation', 'Text Embeddings'];

function readModels({ result }: JsonObject): readonly ListedModel[] | null {
  if (!Array.isArray(result)) return null;
  return result.filter(isObject).flatMap(({ name, task, properties }) => {
    const id = readText(name);
    const kind = readText(objectOf(task).name);
    if (id === undefined || (kind !== undefined && !LISTED_TASKS.includes(kind))) return [];
    const facts = new Map(
      readArray(properties).map((property) => [objectOf(property).property_id, objectOf(property).value]),
    );
    const flag = (property: string) => {
      const value = facts.get(property);
      return value === 'true' || value === 'false' ? value === 'true' : undefined;
    };
    return {
      ...{ id, created: 0 },
      contextTokens: readCount(Number(facts.get('context_window'))),
      supports: { tools: flag('function_calling'), reasoning: flag('reasoning'), images: flag('vision') },
    };
  });
}

const HOST = 'api';
const path = ({ CLOUDFLARE_ACCOUNT_ID: account = '' }: CloudValues) => `/client/v4/accounts/${account}/ai/v1`;
/** D: required for `@cf/…`. */
const headers = ({ CLOUDFLARE_AI_GATEWAY: gateway = 'default' }: CloudValues) => ({
  'cf-aig-gateway-id': gateway,
});

type CloudflareSetting =
  | 'CLOUDFLARE_AI_TOKEN'
  | 'CLOUDFLARE_ACCOUNT_ID'
  | 'CLOUDFLARE_AI_GATEWAY'
  | 'CLOUDFLARE_AI_BASE_URL';

export const cloudflare: Provider<CloudflareSetting> = {
  ...CHAT,
  id: 'cloudflare',
  name: 'Cloudflare',
  // `CLOUDFLARE_API_TOKEN` is wrangler's own, and may deploy Workers: no provider gets it.
  apiKeySettings: ['CLOUDFLARE_AI_TOKEN'],
  baseUrlSettings: ['CLOUDFLARE_AI_BASE_URL'],
  defaultBaseUrl: null,
  otherNames: ['workers ai', 'cloudflare workers ai'],
  cloud: {
    parameters: [
      {
        setting: 'CLOUDFLARE_ACCOUNT_ID',
        form: /^[0-9a-f]{32}$/,
        what: 'the id of the account, 32 hex digits',
        isOfHost: false,
      },
      {
        setting: 'CLOUDFLARE_AI_GATEWAY',
        form: /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
        what: 'the name of a gateway',
        byDefault: 'default',
        isOfHost: false,
      },
    ],
    hosts: { [HOST]: { setting: 'CLOUDFLARE_AI_BASE_URL', origin: () => 'https://api.cloudflare.com' } },
    doors: [
      {
        serves: ({ model }) => model.startsWith('anthropic/'),
        ...{ host: HOST, path, headers, profile: CLAUDE },
      },
      { serves: ({ model }) => model.startsWith('openai/'), ...{ host: HOST, path, headers, profile: GPT } },
      {
        serves: () => true,
        ...{ host: HOST, path, headers, profile: { ...CHAT, models: LIST, modelTraits: MODEL_TRAITS } },
      },
    ],
    binding: {
      name: 'AI',
      gateway: 'CLOUDFLARE_AI_GATEWAY',
      doors: [
        { serves: ({ model }) => model.startsWith('anthropic/'), profile: CLAUDE },
        { serves: ({ model }) => model.startsWith('openai/'), profile: GPT },
        { serves: ({ model }) => !model.startsWith('@'), profile: BOUND_OTHERS },
        { serves: () => true, profile: BOUND },
      ],
      models: [...MODEL_TRAITS.flatMap(({ models }) => models), ...CATALOGUE],
    },
    makers: ['openai', 'anthropic', 'gemini', 'xai', 'groq', 'deepseek'],
    makerOf,
  },
};
