/**
 * Google's Vertex AI: Gemini by `generateContent`, Claude by `rawPredict`, open models by an API like OpenAI's. `S` is
 * ../shared/studies/reach.md section 2, which cites its sources, `R` the recordings vertex--* and *--vertex-*; both of 2026-11-28.
 */
import { geminiForm, generateContentPath, modelPath } from '../protocols/gemini/request-writer.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  objectOf,
  omit,
  readArray,
  readCount,
  readText,
} from '../shared/json.ts';
import { anthropic } from './anthropic.ts';
import { compatibleProfile, TOLERANT } from './compatible.ts';
import { bearer } from './credential.ts';
import { GEMINI_FAMILIES, GOOGLE_TOOL_NAMES, geminiNative } from './gemini.ts';
import type { CloudValues, ListedModel, MakerModel, Profile, Provider } from './provider.ts';
import type { RefusalRules } from './refusals.ts';
import { claudeOf } from './resold.ts';

const REFUSALS: RefusalRules = {
  // R: vertex--refused-unknown-model. A model that is not at the location, or to which the project has no access, has the same words.
  missing_model: /\bPublisher Model\b.{0,300}?\b(?:not found|was not found)\b/i,
  // R: vertex--refused-context-length.
  context_length: /\binput token count\b.{0,60}\bexceeds the maximum\b|\bprompt is too long\b/i,
  // A 403: "Permission 'aiplatform.endpoints.predict' denied on resource", of a service account without the role.
  bad_credential: /\bPermission\b.{0,20}\baiplatform\.[\w.]{1,64}\b.{0,10}\bdenied\b/i,
};

/** An API key, or a token of the caller's (`AUTH=passthrough`), as Google's begin. */
function credential(secret: string): Readonly<Record<string, string>> {
  return secret.startsWith('ya29.') ? bearer(secret) : { 'x-goog-api-key': secret };
}

/** S: it fetches no images. */
const FORM = geminiForm(GEMINI_FAMILIES, GOOGLE_TOOL_NAMES, { fetchesMedia: false });

/** The tier's field in both spellings of Google's APIs. */
const TIER_FIELDS = ['serviceTier', 'service_tier'];

/** It reads no tier in the body: googleapis/python-genai#2433, 2026. */
function sentBody(body: JsonObject): JsonObject {
  const sent = omit(body, ...TIER_FIELDS);
  return Array.isArray(body.contents) ? { ...sent, contents: body.contents.flatMap(sentContents) } : sent;
}

/**
 * The content as Vertex AI takes it. It refuses contents without a role (BerriAI/litellm#32731), and, at Gemini 3,
 * results beside other parts (S): these follow in a content of their own.
 */
function sentContents(content: unknown): readonly unknown[] {
  if (!isObject(content) || !Array.isArray(content.parts)) return [content];
  const whole = (content.role ?? '') === '' ? { role: 'user', ...omit(content, 'role') } : content;
  const parts: readonly unknown[] = content.parts.map(withoutId);
  const results = parts.filter(isResult);
  const others = parts.filter((part) => !isResult(part));
  const isMixed = results.length > 0 && others.length > 0;
  return (isMixed ? [results, others] : [parts]).map((list) => ({ ...whole, parts: list }));
}

function isResult(part: unknown): boolean {
  const { functionResponse, function_response } = objectOf(part);
  return isObject(functionResponse) || isObject(function_response);
}

const CALL_FIELDS = ['functionCall', 'functionResponse', 'function_call', 'function_response'];

/** S: it refuses `id` of calls and results, which AI Studio and its clients have. */
function withoutId(part: unknown): unknown {
  if (!isObject(part)) return part;
  const names = CALL_FIELDS.filter((name) => objectOf(part[name]).id !== undefined);
  if (names.length === 0) return part;
  return { ...part, ...Object.fromEntries(names.map((name) => [name, omit(objectOf(part[name]), 'id')])) };
}

/** https://docs.cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo (2026-11-28); flex: pydantic/pydantic-ai, recorded 2026-03. */
function tierHeaders(body: JsonObject): Readonly<Record<string, string>> {
  const tier = (readText(body.serviceTier) ?? readText(body.service_tier))?.toLowerCase();
  return tier === 'flex' || tier === 'priority' ? { 'x-vertex-ai-llm-shared-request-type': tier } : {};
}

const COUNTED_FIELDS = [
  ...['contents', 'systemInstruction', 'tools', 'generationConfig'],
  // Passthrough keeps the client's spelling.
  ...['system_instruction', 'generation_config'],
];

const { embeddings: _, ...geminiEndpoints } = geminiNative.endpoints;

const GEMINI: Profile = {
  ...geminiNative,
  id: 'vertex',
  endpoints: {
    ...geminiEndpoints,
    ...(geminiEndpoints.chat && {
      chat: { ...geminiEndpoints.chat, path: generateContentPath, request: FORM },
    }),
  },
  credential,
  sentBody,
  sentHeaders: tierHeaders,
  // publishers.models.list is beside the project's path.
  models: { path: '/../../../../../../publishers/google/models?pageSize=300', read: readModels },
  // R: vertex--count-tokens-tools.
  tokenCounter: {
    path: (model) => `/v1beta/${modelPath(model)}:countTokens`,
    request: (body) => keepEntries(body, (field) => COUNTED_FIELDS.includes(field)),
    read: ({ totalTokens }) => readCount(totalTokens),
  },
  refusals: { ...geminiNative.refusals, ...REFUSALS },
};

/** S: a tuned model has an endpoint of its own in the publisher's place. */
const TUNED: Profile = { ...GEMINI, versionedBase: /\/(?:v1beta1|locations\/[^/]+)$/ };
const TUNED_NAME = /^endpoints\/[^/]+$/;
/** The whole name, as the console and the SDKs have it. */
const TUNED_WHOLE_NAME = /^projects\/[^/]+\/locations\/[^/]+\/endpoints\/[^/]+$/;

/** R: vertex--claude-text; the model is in the path. */
const CLAUDE_VERSION = { anthropic_version: 'vertex-2023-10-16' } as const;

function withVersion({ model: _model, ...body }: JsonObject): JsonObject {
  return { ...body, ...CLAUDE_VERSION };
}

/** Names have a date after `@`: `claude-sonnet-4-5@20250929`. */
function rawPredictPath({ model, stream }: JsonObject): string {
  const name = encodeURIComponent(readText(model) ?? '').replaceAll('%40', '@');
  return `/models/${name}:${stream === true ? 'streamRawPredict' : 'rawPredict'}`;
}

const { chat } = anthropic.endpoints;
const messages = anthropic.passthrough?.messages;
const counter = anthropic.tokenCounter;

const CLAUDE = claudeOf({
  ...(chat && { endpoints: { chat: { ...chat, path: rawPredictPath } } }),
  ...(messages && { passthrough: { messages: { ...messages, path: rawPredictPath } } }),
  headers: {},
  credential,
  sentBody: withVersion,
  ...(counter && {
    tokenCounter: {
      ...counter,
      path: () => '/models/count-tokens:rawPredict',
      request: (body: JsonObject, model: string) => ({
        ...counter.request(body, model),
        model,
        ...CLAUDE_VERSION,
      }),
      // BerriAI/litellm#39597, 2026-09.
      refusesBetas: true,
    },
  }),
  refusals: REFUSALS,
});

/** Models of other makers, `meta/llama-4-maverick-17b-128e-instruct-maas`, behind a server of Google's. */
const OPEN: Profile = {
  ...compatibleProfile('vertex', [], TOLERANT),
  credential,
  refusals: REFUSALS,
};

/** An entry of `PROVIDERS` at a host of Vertex AI: a second project, or another location. */
export const vertexHost: Profile = {
  ...GEMINI,
  hostPattern: /^(?:[a-z0-9-]{1,40}-)?aiplatform(?:\.(?:us|eu)\.rep)?\.googleapis\.com$/,
};

/** The API at a path of Vertex AI. */
export function vertexProfileAt(path: string): Profile {
  if (/\/endpoints\/openapi\/?$/.test(path)) return OPEN;
  return /\/publishers\/anthropic\/?$/.test(path) ? CLAUDE : vertexHost;
}

/** The ids here of makers that Google names otherwise. */
const MAKERS: Readonly<Record<string, string>> = {
  'deepseek-ai': 'deepseek',
  moonshotai: 'moonshot',
  'zai-org': 'zai',
  mistralai: 'mistral',
};

/**
 * Regional endpoints cost a tenth more for Claude from 4.5 on: https://platform.claude.com/docs/en/about-claude/pricing
 * (from memory, 2026-11-28).
 */
const REGIONAL_FACTOR = 1.1;

function makerOf(name: string): MakerModel | null {
  if (name.startsWith('gemini-')) return { maker: 'gemini', model: name };
  if (name.startsWith('claude-'))
    return { maker: 'anthropic', model: name.replace('@', '-'), priceFactor: REGIONAL_FACTOR };
  if (TUNED_NAME.test(name) || TUNED_WHOLE_NAME.test(name)) return null;
  const [, maker, model] = /^([a-z0-9-]{2,32})\/(.{1,200}?)(?:-maas)?$/.exec(name) ?? [];
  if (maker === undefined || model === undefined) return null;
  return { maker: MAKERS[maker] ?? maker, model };
}

const ORIGIN = 'https://aiplatform.googleapis.com';

/** The origin of a location. S. `global-aiplatform…` is a 404: BYK/loreai#987, 2026-06-25. */
export function vertexOrigin({
  VERTEX_PROJECT: project,
  VERTEX_LOCATION: location = 'global',
}: CloudValues): string {
  // Express mode is at the global host alone.
  if (project === undefined || location === 'global') return ORIGIN;
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`;
  return `https://${location}-aiplatform.googleapis.com`;
}

/** The path of a project and what follows in it; without a project, that of express mode. */
function pathOf(version: string, ...rest: readonly string[]) {
  return ({ VERTEX_PROJECT: project, VERTEX_LOCATION: location = 'global' }: CloudValues) => {
    const place = project === undefined ? [] : ['projects', project, 'locations', location];
    return `/${[version, ...place, ...rest].join('/')}`;
  };
}

type VertexSetting =
  | 'VERTEX_API_KEY'
  | 'GOOGLE_SERVICE_ACCOUNT'
  | 'VERTEX_LOCATION'
  | 'VERTEX_PROJECT'
  | 'VERTEX_BASE_URL';

export const vertex: Provider<VertexSetting> = {
  ...GEMINI,
  id: 'vertex',
  name: 'Vertex AI',
  hosts: [],
  apiKeySettings: ['VERTEX_API_KEY'],
  auth: { kind: 'google', key: 'GOOGLE_SERVICE_ACCOUNT', project: 'VERTEX_PROJECT' },
  baseUrlSettings: ['VERTEX_BASE_URL'],
  defaultBaseUrl: null,
  otherNames: ['google vertex', 'vertex', 'google vertex ai'],
  cloud: {
    parameters: [
      {
        setting: 'VERTEX_LOCATION',
        form: /^(?:global|us|eu|[a-z]{2,20}-[a-z]{2,20}\d{1,2})$/,
        what: 'a location such as global, eu or us-central1',
        byDefault: 'global',
        isOfHost: false,
      },
      {
        setting: 'VERTEX_PROJECT',
        form: /^(?:[a-z0-9.-]{1,64}:)?[a-z0-9][a-z0-9-]{2,61}[a-z0-9]$/,
        what: 'the id of a project',
        isOfHost: false,
        isOfAuth: true,
      },
    ],
    hosts: { api: { setting: 'VERTEX_BASE_URL', origin: vertexOrigin } },
    doors: [
      {
        serves: ({ model }) => model.startsWith('claude-'),
        ...{ host: 'api', path: pathOf('v1', 'publishers/anthropic'), profile: CLAUDE },
      },
      {
        serves: ({ model }) => TUNED_NAME.test(model),
        ...{ host: 'api', path: pathOf('v1beta1'), profile: TUNED },
      },
      {
        serves: ({ model }) => TUNED_WHOLE_NAME.test(model),
        ...{ host: 'api', path: () => '/v1beta1', profile: TUNED },
      },
      {
        serves: ({ model }) => model.includes('/') && !model.startsWith('models/'),
        ...{ host: 'api', path: pathOf('v1', 'endpoints/openapi'), profile: OPEN },
      },
      {
        serves: () => true,
        ...{ host: 'api', path: pathOf('v1beta1', 'publishers/google'), profile: GEMINI },
      },
    ],
    makers: ['gemini', 'anthropic', 'deepseek', 'moonshot', 'zai', 'mistral', 'xai', 'openai'],
    makerOf,
  },
};

/** https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1beta1/publishers.models/list (from memory, 2026-11-28). */
function readModels({ publisherModels }: JsonObject): readonly ListedModel[] | null {
  if (!Array.isArray(publisherModels)) return null;
  return readArray(publisherModels)
    .filter(isObject)
    .flatMap((model) => {
      const id = /^publishers\/google\/models\/(gemini-[\w.-]+)$/.exec(
        readText(objectOf(model).name) ?? '',
      )?.[1];
      return id === undefined ? [] : { id, created: 0 };
    });
}
