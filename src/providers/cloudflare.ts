/**
 * Cloudflare by REST: Workers AI and the catalogue of AI Gateway, which one bill pays. `D` is
 * https://developers.cloudflare.com/ai-gateway/usage/rest-api/, as of 2026-11-28; `P` packages/workers-ai-provider of cloudflare/ai
 * (2026-07-30).
 */
import type { RequestRules } from '../request-translation/rules.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount, readText } from '../shared/json.ts';
import { readAmount } from '../shared/money.ts';
import { compatibleProfile, TOLERANT } from './compatible.ts';
import { bearer } from './credential.ts';
import type { CloudValues, ListedModel, MakerModel, Profile, Provider } from './provider.ts';
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
  // Codes of Workers AI and of the gateway, as P has them: 3042 and 7003 no such model, 5016, 5018, 3023, 3041 no access, 3036 the
  // day's free allocation is used.
  missing_model: /^(?:3042|5007|7003):|\bno such model\b/i,
  bad_credential: /^(?:10000|9109):|\bAuthentication error\b|\bInvalid access token\b/i,
  empty_balance: /^3036:|\bused up your daily free allocation\b/i,
};

/** D: the catalogue answers in the maker's form, also Anthropic's at `/messages`. */
const CLAUDE = claudeOf({ credential: bearer, refusals: REFUSALS });

const GPT = gptOf({ refusals: REFUSALS });

/** P: `content: null` is refused. The catalogue's other makers answer in the same form. */
const RULES: RequestRules = { ...TOLERANT, messages: { ...TOLERANT.messages, needsContent: 'text' } };

/** https://developers.cloudflare.com/workers-ai/platform/pricing/, by @pydantic/genai-prices 0.1.8 (2026-11-28). */
const NEURONS_PER_DOLLAR = 1000 / 0.011;

const CHAT: Profile = {
  ...compatibleProfile('cloudflare', [], RULES),
  quirks: {
    // Kimi names the first call of each response `functions.<name>:0`: P.
    absentToolCallId: /^functions\.[\w.-]{1,128}:\d{1,4}$/,
    // Responses of 2026-08 to 2026-10 have `usage.neurons`.
    costOf: ({ neurons }) => readAmount(neurons, NEURONS_PER_DOLLAR),
  },
  refusals: REFUSALS,
  embeddingModels: ['@cf/baai/bge-*', '*embed*'],
};

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
      { serves: () => true, ...{ host: HOST, path, headers, profile: { ...CHAT, models: LIST } } },
    ],
    makers: ['openai', 'anthropic', 'gemini', 'xai', 'groq', 'deepseek'],
    makerOf,
  },
};
