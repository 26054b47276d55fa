/**
 * Google's Gemini: the native API (`generateContent`), and the API that is compatible with OpenAI's. What each model family accepts was
 * tested on 2026-09-11 with every level (tetsuo-ai/agenc-core#2393). Documents: https://ai.google.dev/gemini-api/docs (read 2026-11-22).
 */
import { spelledIn, valueAt, withValue } from '../fitting/paths.ts';
import { retryInfoOf } from '../protocols/gemini/client-errors.ts';
import {
  batchEmbedPath,
  convertGeminiEmbeddings,
  embedPath,
  geminiEmbeddings,
} from '../protocols/gemini/embeddings.ts';
import { bareModel, familyOf, type GeminiFamily } from '../protocols/gemini/family.ts';
import { geminiForm, generateContentPath, modelPath } from '../protocols/gemini/request-writer.ts';
import { gemini as protocol } from '../protocols/gemini/upstream-reader.ts';
import { REFUSED, type RequestRules } from '../request-translation/rules.ts';
import { isObject, type JsonObject, readArray, readCount, readFlag, readText } from '../shared/json.ts';
import { words } from '../shared/words.ts';
import { closedMessages, compatibleProfile } from './compatible.ts';
import type { ListedModel, Profile, Provider } from './provider.ts';
import type { RefusalRules } from './refusals.ts';

/**
 * 400 "Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots (.),
 * colons (:), or dashes (-), with a maximum length of 64": decolua/9router#369, 2026-03-20.
 */
export const GOOGLE_TOOL_NAMES = /^[a-zA-Z_][\w.:-]{0,63}$/;

/** Refusals of both APIs. */
const GOOGLE_REFUSALS: RefusalRules = {
  // badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22.
  context_length: /\binput token count\b.{0,40}\bexceeds the maximum\b/i,
  // A 429 "Your prepayment credits are depleted. Please go to AI Studio …": JeffOtano/roni#125, 2026-04-14; a 400 "… Please enable
  // billing on your project in Google AI Studio": https://ai.google.dev/gemini-api/docs/troubleshooting, read 2026-11-22.
  empty_balance: /\bprepayment credits are depleted\b|\bplease enable billing on your project\b/i,
  // A 400 that depends on where a Worker runs: google-gemini/deprecated-generative-ai-js#151, 2024-05-25, poenl/gemini-api#4, 2025-11-08.
  unsupported_region: /\buser location is not supported\b/i,
  // A 404: swuecho/chat#597, 2025-02-06.
  missing_model: /^[^:]*: models\/\S{1,256} is not found for API version\b/i,
  // A 403: continuedev/continue#10902, 2026-02-28. Another one, "You do not have permission to access the File x or it may not exist", is
  // about a file in the request: googleapis/python-genai#1218, 2025-08-06.
  bad_credential: /^[^:]*: Permission denied: Consumer '/i,
  retryAfter: readRetryInfo,
};

/** A protobuf duration of at most 6 digits, which is 11 days. */
const DURATION = /^(\d{1,6}(?:\.\d{1,9})?)s$/;

/** It sends no `retry-after`, but "retryDelay": "45.837906927s" in the error's details: dcdpr/jp#1061, 2026-09-03. */
function readRetryInfo(body: JsonObject): number | undefined {
  const [, seconds] = DURATION.exec(readText(retryInfoOf(body)?.retryDelay) ?? '') ?? [];
  return seconds === undefined ? undefined : Number(seconds);
}

/**
 * "Multiple candidates is not enabled for this model": googleapis/js-genai#1609, 2026-05-18, from all models of version
 * 3 and none of version 2. "Logprobs is not enabled": mscraftsman/generative-ai#135, 2025-11-21. "Penalty is not
 * enabled for this model": MisakaNet#1473, 2026-09-04.
 */
const REFUSED_BY_3 = ['n', 'logprobs', 'top_logprobs', 'presence_penalty', 'frequency_penalty'];
const REFUSED_BY_2_5 = REFUSED_BY_3.slice(1);

/**
 * "Function call is missing a thought_signature": securo#884, 2026-09-10. Images in results: docs function-calling,
 * multimodal responses.
 */
const GEMINI_3 = {
  checked: '2026-11-22',
  needsSignatures: true,
  mediaInResults: true,
  refused: REFUSED_BY_3,
} as const;
const GEMINI_2 = {
  checked: '2026-11-22',
  needsSignatures: false,
  sampling: true,
  mediaInResults: false,
  refused: REFUSED_BY_2_5,
} as const;

const ALL_LEVELS = ['minimal', 'low', 'medium', 'high'];

/** "Thinking is not enabled for models/gemini-2.0-…": lobehub/lobehub#7985, 2025-05-27. */
const OLDER = ['gemini-1*', 'gemini-2.0*', 'gemini-2.5-flash-image*', 'gemma-*', 'learnlm-*'];

/** Google's lists have `models/` before each name. */
function withPrefix(glob: string): string[] {
  return [glob, `models/${glob}`];
}

export const GEMINI_FAMILIES: readonly GeminiFamily[] = [
  {
    // The name of a tuned model on Vertex AI does not say its family: it gets only what all families take.
    models: [...OLDER, 'endpoints/*', 'projects/*'],
    thinking: { kind: 'none' },
    ...GEMINI_2,
    refused: ['presence_penalty', 'frequency_penalty'],
  },
  // The bounds: docs thinking#set-budget. Pro cannot turn thinking off; its minimum is 128.
  {
    models: ['gemini-2.5-flash-lite*'],
    thinking: { kind: 'budget', min: 512, max: 24_576, canBeOff: true, byDefault: false },
    ...GEMINI_2,
  },
  {
    models: ['gemini-2.5-pro*'],
    thinking: { kind: 'budget', min: 128, max: 32_768, canBeOff: false, byDefault: true },
    ...GEMINI_2,
  },
  {
    models: ['gemini-2.5*'],
    thinking: { kind: 'budget', min: 1, max: 24_576, canBeOff: true, byDefault: true },
    ...GEMINI_2,
  },
  // maximhq/bifrost#7287, 2026-09-17.
  {
    models: ['gemini-3*-image*'],
    thinking: { kind: 'level', levels: ['minimal', 'high'] },
    sampling: true,
    ...GEMINI_3,
  },
  {
    models: ['gemini-3-pro*'],
    thinking: { kind: 'level', levels: ['low', 'high'] },
    sampling: true,
    ...GEMINI_3,
  },
  {
    models: ['gemini-3.1-pro*'],
    thinking: { kind: 'level', levels: ['low', 'medium', 'high'] },
    sampling: true,
    ...GEMINI_3,
  },
  {
    models: ['gemini-3-flash*', 'gemini-3.1-flash*', 'gemini-3.5-flash', 'gemini-3.5-flash-preview*'],
    thinking: { kind: 'level', levels: ALL_LEVELS },
    sampling: true,
    ...GEMINI_3,
  },
  // From here on sampling is deprecated: these accept and ignore it, the next refuse it. docs latest-model, by SamuelZ12/screen-scribe#17,
  // 2026-07-21, and coder/xum#3745.
  {
    models: ['gemini-3.5-flash-lite*', 'gemini-3.6-flash*'],
    thinking: { kind: 'level', levels: ALL_LEVELS },
    sampling: false,
    ...GEMINI_3,
  },
  // 3.7 and 3.8 respond 400 to `minimal`: fishjar/kiss-translator#1048, 2026-08-21. Newer models are assumed to do the same.
  { thinking: { kind: 'level', levels: ['low', 'medium', 'high'] }, sampling: false, ...GEMINI_3 },
];

/** https://ai.google.dev/gemini-api/docs/models (2026-11-22). */
const OWN_MODELS = ['gemini-*', 'gemma-*'];

const EMBEDDING_MODELS = ['gemini-embedding-*', 'text-embedding-*', 'embedding-*'];

/** Thoughts are shown on request only: https://ai.google.dev/gemini-api/docs/thinking#summaries (read 2026-11-22). */
function hideReasoning(body: JsonObject): JsonObject {
  const path = spelledIn(body, ['generationConfig', 'thinkingConfig', 'includeThoughts']);
  return valueAt(body, path) === true ? withValue(body, path, false) : body;
}

/** The native API at any base URL, also for entries of `PROVIDERS`. */
export const geminiNative: Profile = {
  id: 'gemini-native',
  hosts: [],
  // Vertex AI, by project and in express mode:
  // https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode/vertex-ai-express-mode-api-reference (2026-11-22).
  versionedBase: /\/publishers\/google$/,
  endpoints: {
    chat: {
      path: generateContentPath,
      request: geminiForm(GEMINI_FAMILIES, GOOGLE_TOOL_NAMES),
      protocol,
    },
    embeddings: {
      path: batchEmbedPath,
      request: geminiEmbeddings,
      protocol,
      convertEmbeddings: convertGeminiEmbeddings,
    },
  },
  passthrough: {
    generate_content: {
      ...{ path: generateContentPath, protocol, hideReasoning },
      needsSignatures: (model) => familyOf(GEMINI_FAMILIES, model).needsSignatures,
    },
    embed_content: { path: embedPath, protocol },
  },
  // https://ai.google.dev/gemini-api/docs/api-key, read 2026-11-22.
  credential: (secret) => ({ 'x-goog-api-key': secret }),
  // https://ai.google.dev/api/models: a page has at most 1,000.
  models: { path: '/v1beta/models?pageSize=1000', read: readModels },
  refusals: GOOGLE_REFUSALS,
  // Gemini 3 uses at most 2,240 (docs media-resolution), earlier models 258 for each tile of 768 pixels (docs tokens): both read
  // 2026-11-22. An image of 6,144 by 6,144 pixels has 64 tiles.
  imageTokens: 16_512,
  windows: [
    {
      // Retired names are routed to newer ones of this list. `gemini-2.5-flash` has no row: no page of Google was found.
      models: words(`
        gemini-4-argon gemini-3.8-flash gemini-3.7-flash gemini-3.6-flash gemini-3.5-flash
        gemini-3.5-flash-lite gemini-3.1-flash-lite gemini-3.1-pro-preview gemini-3-pro-preview
        gemini-3-flash-preview gemini-2.5-pro gemini-2.5-flash-lite
      `).flatMap(withPrefix),
      tokens: 1_048_576,
      source:
        'https://ai.google.dev/gemini-api/docs/models and https://docs.cloud.google.com/gemini-enterprise-agent-platform/models, the page of each model',
      checked: '2026-11-23',
    },
  ],
};

export const gemini: Provider<'GEMINI_API_KEY' | 'GOOGLE_API_KEY' | 'GEMINI_BASE_URL'> = {
  ...geminiNative,
  // https://ai.google.dev/gemini-api/docs/api-key (from memory, 2026-11-23).
  keyPrefixes: ['AIza'],
  id: 'gemini',
  name: 'Gemini',
  // Google's own SDKs read both: googleapis/js-genai 2.18.0 (2026-08-21).
  apiKeySettings: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
  otherNames: ['google', 'google generative ai', 'google ai studio'],
  baseUrlSettings: ['GEMINI_BASE_URL'],
  defaultBaseUrl: 'https://generativelanguage.googleapis.com',
  ownModels: OWN_MODELS,
  embeddingModels: EMBEDDING_MODELS,
  // https://ai.google.dev/api/tokens (read 2026-11-22). Vertex AI takes the contents without `generateContentRequest`.
  tokenCounter: {
    path: (model) => `/v1beta/${modelPath(model)}:countTokens`,
    request: (body, model) => ({ generateContentRequest: { ...body, model: modelPath(model) } }),
    read: ({ totalTokens }) => readCount(totalTokens),
  },
};

/** The ids of the providers with Google's models, in the order in which the paths of Vertex AI's clients name them. */
export const GOOGLE_PROVIDERS = ['vertex', gemini.id] as const;

const SERVED_METHODS = ['generateContent', 'embedContent'];

/**
 * Lists the models that generate content or embed; others draw. The list has no creation times. Limits and `thinking`:
 * https://ai.google.dev/api/models (2026-11-22).
 */
function readModels(response: JsonObject): readonly ListedModel[] | null {
  if (!Array.isArray(response.models)) return null;
  return response.models.filter(isObject).flatMap((model) => {
    const { name, supportedGenerationMethods: methods } = model;
    const id = bareModel(readText(name) ?? '');
    const isServed = methods === undefined || SERVED_METHODS.some((one) => readArray(methods).includes(one));
    if (id === '' || !isServed) return [];
    return {
      id,
      created: 0,
      contextTokens: readCount(model.inputTokenLimit),
      maxOutputTokens: readCount(model.outputTokenLimit),
      supports: { reasoning: readFlag(model.thinking) },
    };
  });
}

/**
 * The compatible API refuses unknown fields: 400 `Unknown name "x": Cannot find field.`
 * https://ai.google.dev/gemini-api/docs/openai
 */
const CLOSED = closedMessages({ assistant: ['extra_content'], tool: ['name'] });

const CHAT: RequestRules = {
  checked: '2026-11-22',
  fields: {
    store: REFUSED, // openhanako#394, 2026-04-12
    metadata: REFUSED, // agents#45, 2025-05
    prompt_cache_key: REFUSED, // cursor-byok#112, 2026-06-02
    frequency_penalty: REFUSED, // RPGBox#2, 2026-08-29
    // Refused by the same parser; no report of these was found (2026-11-21).
    presence_penalty: REFUSED,
    logprobs: REFUSED,
    top_logprobs: REFUSED,
    logit_bias: REFUSED,
    safety_identifier: REFUSED,
    prompt_cache_retention: REFUSED,
    prompt_cache_options: REFUSED,
    verbosity: REFUSED,
    top_k: REFUSED,
  },
  refusesEmpty: true,
  effort: {
    checked: '2026-11-23',
    // A `reasoning` object is 400: 2026-01-10.
    takes: ['reasoning_effort'],
    // "Reasoning cannot be turned off for Gemini 2.5 Pro or 3 models":
    // https://ai.google.dev/gemini-api/docs/openai#thinking (read 2026-11-21).
    families: [
      { models: OLDER.flatMap(withPrefix), efforts: [], reasons: 'never' },
      { models: ['gemini-2.5-flash*'].flatMap(withPrefix), efforts: ['none', 'low', 'medium', 'high'] },
      { efforts: ['low', 'medium', 'high'] },
    ],
  },
  legacyFunctions: 'converted',
  messages: {
    toolNames: GOOGLE_TOOL_NAMES,
    roles: { developer: 'system' },
    reasoning: [{ form: 'none' }],
    closed: {
      ...CLOSED,
      parts: { ...CLOSED.parts, input_audio: ['type', 'input_audio'] },
      toolCall: [...CLOSED.toolCall, 'extra_content'],
    },
    takesExtraContent: true,
    // 400 "Function call is missing a thought_signature": securo#884, 2026-09-10. The placeholder for calls of other models is
    // documented at https://ai.google.dev/gemini-api/docs/thought-signatures (read 2026-11-21).
    missingSignature: {
      // Gemini 3 and newer: an unlisted name is newer than the listed ones.
      models: ['gemini-*'].flatMap(withPrefix),
      except: [...OLDER, 'gemini-2*'].flatMap(withPrefix),
      at: 'extra_content',
    },
  },
  // Its own fields are `cached_content` and `thinking_config` (docs openai#extra-body, read 2026-11-21). These may be read as limits.
  competingLimits: ['generation_config', 'generationConfig', 'candidate_count', 'candidateCount'].flatMap(
    (name) => [name, `extra_body.google.${name}`],
  ),
  streamUsage: 'on_request',
};

export const geminiCompatible: Profile = {
  ...compatibleProfile('gemini', ['generativelanguage.googleapis.com'], CHAT),
  ownModels: OWN_MODELS,
  refusals: GOOGLE_REFUSALS,
};
