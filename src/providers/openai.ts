/**
 * OpenAI: chat, legacy completions, and Responses as passthrough. https://platform.openai.com/docs/api-reference (read 2026-11-21).
 * `R` are recorded requests.
 */

import { rowsOf } from '../fitting/rows.ts';
import { responsesForm } from '../protocols/openai-responses/request-writer.ts';
import { openaiResponses } from '../protocols/openai-responses/upstream-reader.ts';
import { reasoningFamily, reasonsAt, requestedEffort } from '../request-translation/effort.ts';
import {
  type FieldRule,
  FUNCTION_TOOLS,
  type MessageRules,
  OPENAI_TOOL_NAMES,
  REFUSED,
  type ReasoningFamily,
  type RequestRules,
  renamed,
} from '../request-translation/rules.ts';
import { hasItems, type JsonObject } from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';
import { words } from '../shared/words.ts';
import { CHAT_ONLY_FIELDS, compatibleProfile, RESPONSES_PASSTHROUGH } from './compatible.ts';
import type { ModelTraitsRow, Provider, ResponsesApi } from './provider.ts';

/** The o models of today, and the next ones. */
const ANY_O = ['o1*', 'o2*', 'o3*', 'o4*', 'o5*', 'o6*', 'o7*', 'o8*', 'o9*'];
/**
 * Other servers have them under an entry of `PROVIDERS` that is like OpenAI. They take sampling while they reason:
 * https://github.com/openai/gpt-oss#recommended-sampling-parameters (from memory, 2026-11-23).
 */
const OPEN_MODELS = ['gpt-oss*'];
const BEFORE_GPT_6 = [
  ...OPEN_MODELS,
  'gpt-3*',
  'gpt-4*',
  'gpt-5*',
  'gpt-audio*',
  'gpt-realtime*',
  'o1*',
  'o3*',
  'o4*',
];

/**
 * What each family knows of reasoning, as of 2026-11-23, the newest last: the levels of @earendil-works/pi-ai 1.5.2 (2026-11-10), and for
 * older models those of OpenAI's pages, as anomalyco/models.dev#2351 (2026-06-13) lists them. `none` is refused by gpt-6-astra (its page:
 * no `none`), gpt-6.1-sol (https://docs.apiyi.com/en/news/gpt-6-1-sol-launch.md) and gpt-6.2 ("The API rejects requests that set reasoning
 * effort to none": the page of gpt-6.2-sol; `minimal`: BerriAI/litellm#52347), but not by gpt-6-sol, gpt-6-luna and gpt-6.1-terra.
 */
const FAMILIES: readonly ReasoningFamily[] = [
  // 400 to an effort from gpt-4o and gpt-4.1: BerriAI/litellm#40470, 2026-09-09. `…-chat-latest` models do not reason
  // (pydantic/pydantic-ai#3326, 2025-11).
  {
    models: words(`
      gpt-3* gpt-4* chatgpt-* *-chat-latest* gpt-audio* *-audio-preview* gpt-realtime* gpt-image*
      computer-use-preview* *-search-preview*
    `),
    efforts: [],
    reasons: 'never',
  },
  { models: ['*-search-api*', 'o1-mini*', 'o1-preview*'], efforts: [] },
  // "Unsupported value: 'medium' is not supported with the 'gpt-5-pro' model. Supported values are: 'high'": anomalyco/models.dev#331.
  { models: ['gpt-5-pro*'], efforts: ['high'] },
  { models: ['*-deep-research*'], efforts: ['medium'] },
  { models: ['gpt-5.2-pro*', 'gpt-5.4-pro*', 'gpt-5.5-pro*'], efforts: ['medium', 'high', 'xhigh'] },
  // "Unsupported parameter: 'reasoning.summary' is not supported with the 'gpt-5.3-codex-spark' model", and o1-pro's.
  { models: ['gpt-5.3-codex-spark*'], efforts: ['low', 'medium', 'high', 'xhigh'], refusesSummary: true },
  {
    models: ['gpt-5.1-codex-max*', 'gpt-5.2-codex*', 'gpt-5.3-codex*'],
    efforts: ['low', 'medium', 'high', 'xhigh'],
  },
  { models: ['gpt-5-codex*', 'gpt-5.1-codex*', 'codex-*'], efforts: ['low', 'medium', 'high'] },
  { models: ['o1-pro*'], efforts: ['low', 'medium', 'high'], refusesSummary: true },
  { models: ['gpt-5', 'gpt-5-*'], efforts: ['minimal', 'low', 'medium', 'high'] },
  // Their default effort is `none`: Microsoft Learn on gpt-5.1, chat-ai#113 on gpt-5.2. For the others it follows from the tools that chat
  // accepts.
  { models: ['gpt-5.1*'], efforts: ['none', 'low', 'medium', 'high'], reasons: 'on_request' },
  {
    models: ['gpt-5.2*', 'gpt-5.3*', 'gpt-5.4*', 'gpt-5.5*'],
    efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    reasons: 'on_request',
  },
  {
    models: ['gpt-6-astra*', 'gpt-6.1-sol*', 'gpt-5.6-cyber*'],
    efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
  },
  {
    models: ['gpt-5.6*', 'gpt-6', 'gpt-6-*', 'gpt-6.1*'],
    efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  },
  { models: OPEN_MODELS, efforts: ['low', 'medium', 'high'] },
  // o1, o3, o4, and the next ones of this kind.
  { models: ANY_O, efforts: ['low', 'medium', 'high'] },
  // gpt-6.2, and the next ones of this kind.
  { models: ['gpt-*'], efforts: ['low', 'medium', 'high', 'xhigh', 'max'] },
];

function familyOf({ model }: JsonObject): ReasoningFamily | undefined {
  return reasoningFamily(FAMILIES, typeof model === 'string' ? model : '');
}

/**
 * "When reasoning effort is not none, remove temperature, top_p, and top_logprobs": OpenAI's guide, as yoagent 0.27.4 quotes it
 * (2026-11-07). 400 "Unsupported parameter: 'temperature' is not supported with this model", "logprobs are not supported with reasoning
 * models": measured at gpt-5.6-terra, 2026-08-30; R refused-temperature; gpt-6, which reasons by default: OpenAI's changelog of
 * gpt-6-astra, as CopilotKit/CopilotKit#7191 quotes it (2026-09).
 */
function isReasoning(body: JsonObject): boolean {
  const family = familyOf(body);
  const takesSampling = matchesModel(OPEN_MODELS, String(body.model));
  return family !== undefined && !takesSampling && reasonsAt(family, requestedEffort(body)?.level);
}

const WHILE_REASONING = { kind: 'refused', when: isReasoning } as const;

function isGpt6OrNewer({ model }: JsonObject): boolean {
  const name = String(model);
  return matchesModel(['gpt-*', ...ANY_O], name) && !matchesModel(BEFORE_GPT_6, name);
}

/**
 * "Only the default (1) value is supported": chat of the models before gpt-6 (BerriAI/litellm#13781, 2025-08). A value that no model
 * accepts is sent, so that the client gets OpenAI's error.
 */
function samplingOnChat(field: 'temperature' | 'top_p', max: number): FieldRule {
  const isRefused = (value: unknown) =>
    typeof value === 'number' && value >= 0 && value <= max && value !== 1;
  return {
    kind: 'refused',
    when: (body) => isReasoning(body) && (isRefused(body[field]) || isGpt6OrNewer(body)),
  };
}

/**
 * 400 "Unknown parameter: 'messages[0].id'", "messages[1].tool_calls[0].index", "…content[0].cache_control" (2024-04 to 2026-09-01). Names,
 * annotations, refusals and audio are accepted: R.
 */
const CLOSED: NonNullable<MessageRules['closed']> = {
  roles: {
    system: ['role', 'content', 'name'],
    developer: ['role', 'content', 'name'],
    user: ['role', 'content', 'name'],
    assistant: ['role', 'content', 'name', 'refusal', 'annotations', 'audio', 'tool_calls', 'function_call'],
    tool: ['role', 'content', 'tool_call_id', 'name'],
    function: ['role', 'content', 'name'],
  },
  parts: {},
  ...FUNCTION_TOOLS,
  toolCall: [...FUNCTION_TOOLS.toolCall, 'custom'],
};

const CHAT: RequestRules = {
  checked: '2026-11-22',
  fields: {
    // 400 from reasoning models: R refused-max-tokens; every chat model accepts the other name: R, 122 requests.
    max_tokens: renamed('max_completion_tokens'),
    // 400 without tools: openai-agents-python, 2026-08-22.
    parallel_tool_calls: { kind: 'refused', when: (body) => !hasItems(body.tools) },
    // "Only allowed when 'store' is enabled": qwen-code#243, 2025-08.
    metadata: { kind: 'refused', when: (body) => body.store !== true },
    temperature: samplingOnChat('temperature', 2),
    top_p: samplingOnChat('top_p', 1),
    // "Unrecognized request argument supplied: top_k"; no API of OpenAI has it: openai/openai-java#71, 2024-12-31.
    top_k: REFUSED,
  },
  refusesEmpty: true,
  effort: {
    checked: '2026-11-23',
    // `thinking` is 400 "Unknown parameter" (2026-08-28), and so is a `reasoning` object.
    takes: ['reasoning_effort'],
    families: FAMILIES,
  },
  messages: {
    // 400 "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64":
    // ravitemer/mcphub.nvim#243, 2025-09-08; other characters: redhat-community-ai-tools/UnifAI#266, 2026-09-03.
    toolNames: OPENAI_TOOL_NAMES,
    // 400 "string too long. Expected a string with maximum length 40": langgenius/dify#28987, 2025-12-01; anomalyco/opencode#12653,
    // 2026-02-08.
    toolCallIds: /^[\s\S]{1,40}$/,
    // "Image URLs are only allowed for messages with role 'user'": OpenHands/OpenHands#7700, 2025-04-22. Later models accept one without
    // reading it: openai/openai-openapi#523, 2026-02-12.
    mediaInResults: [],
    reasoning: [{ form: 'none' }],
    closed: CLOSED,
    refused: ['cache_control'],
  },
  streamUsage: 'on_request',
};

/** With a `suffix` they are fill-in-the-middle. */
const COMPLETIONS: RequestRules = {
  fields: { max_completion_tokens: renamed('max_tokens') },
  messages: { reasoning: [] },
  streamUsage: 'on_request',
};

/** Others answer 400 "Encrypted content is not supported with this model" to a request for encrypted reasoning. */
function isReasoningModel(model: string): boolean {
  const family = familyOf({ model });
  return family !== undefined && family.reasons !== 'never';
}

const RESPONSES: RequestRules = {
  fields: {
    // "Not supported by GPT-6 and later models": @ai-sdk/openai 4.0.118 (2026-11-13).
    prompt_cache_retention: { kind: 'refused', when: isGpt6OrNewer },
    temperature: WHILE_REASONING,
    top_p: WHILE_REASONING,
    top_k: REFUSED,
    logprobs: WHILE_REASONING,
    top_logprobs: WHILE_REASONING,
  },
  effort: {
    takes: ['reasoning_effort'],
    // "Unsupported parameter: 'reasoning.effort' is not supported with this model", gpt-4o:
    // RageAgainstThePixel/OpenAI-DotNet#500, 2025-10-24.
    families: FAMILIES,
  },
  // "Unknown parameter: 'tools[0].x'", as in chat.
  messages: { reasoning: [], closed: CLOSED },
  streamUsage: 'always',
};

/**
 * Which API serves a chat request, by model family, newest first (read 2026-11-22). `gpt-*` and `ANY_O` at the end are models that are not
 * released yet: they count as the newest family, here and in `FAMILIES`.
 */
const RESPONSES_API: ResponsesApi = {
  checked: '2026-11-22',
  endpoint: {
    path: () => '/responses',
    request: responsesForm({
      absent: CHAT_ONLY_FIELDS,
      request: RESPONSES,
      // https://developers.openai.com/api/docs/guides/prompt-caching (read 2026-11-22): the key is part of what selects the server.
      takesPromptCacheKey: true,
    }),
    protocol: openaiResponses,
  },
  chatOnly: CHAT_ONLY_FIELDS,
  families: [
    // No Responses: truefoundry/models#2006, 2026-08-04, from OpenAI's model pages.
    { models: ['*-search-preview*', '*-search-api*', 'gpt-audio*', '*-audio-preview*'], api: 'chat' },
    {
      models: [...OPEN_MODELS, 'o1-mini*', 'o1-preview*', 'gpt-3.5-*', 'gpt-4*', '*-chat-latest*'],
      api: 'chat',
    },
    // "This model is only supported in v1/responses": HeyPuter/puter#1303 (2025-06-12), openai/codex#1306, n8n-io/n8n#18352,
    // docker/docker-agent#313; `ResponsesModel` of openai 7.57.0 (2026-11-13).
    {
      models: words(`
        o1-pro* o3-pro* gpt-*-pro* *-codex* codex-* *-deep-research* computer-use-preview* *-cyber*
        gpt-daybreak-* gpt-rosalind-* gpt-*-rosalind*
      `),
      api: 'responses_only',
    },
    // 400 to tools at every effort, `none` included: firebase/genkit#6303 (2026-09-08), LibreChat-AI/agents#506 (2026-09-04). gpt-6.1-sol:
    // the same words. gpt-6.1-terra: "Tool calls need Responses" (its page). gpt-6.2: its guide.
    { models: ['gpt-6-astra*', 'gpt-6.1*', 'gpt-6.2*'], api: 'prefer_responses', toolsOnChat: [] },
    // 400 without an effort and with `low`, 200 with `none`: BerriAI/litellm#34569, 2026-07-24. gpt-6-sol and -luna:
    // onyx-dot-app/onyx#15008.
    { models: ['gpt-5.6*', 'gpt-6-*'], api: 'prefer_responses', toolsOnChat: ['none'] },
    // 400 with an effort: openai/openai-openapi#541 (2026-05-18), pipecat-ai/pipecat#4043 (2026-03-16).
    { models: ['gpt-5.4*', 'gpt-5.5*'], api: 'prefer_responses', toolsOnChat: ['none', 'absent'] },
    { models: ['gpt-5*', 'o1*', 'o3*', 'o4*'], api: 'prefer_responses' },
    { models: ['gpt-*', ...ANY_O], api: 'prefer_responses', toolsOnChat: [] },
  ],
};

/** The tables of models.dev, which name OpenAI's pages as their sources. */
const MODELS_DEV = {
  source: 'https://github.com/anomalyco/models.dev at f3fc69229 (2026-07-02), providers/openai/models',
  checked: '2026-11-22',
} as const;

const TEXT_AND_IMAGES = { tools: true, reasoning: false, images: true, structured_output: true } as const;
const REASONING = { tools: true, reasoning: true, images: true, structured_output: true } as const;

/** OpenAI's list has only names. Limits include the output. */
const MODEL_TRAITS: readonly ModelTraitsRow[] = [
  {
    models: ['gpt-6.2-sol*', 'gpt-6.1-sol*', 'gpt-6-sol*'],
    contextTokens: 1_050_000,
    maxOutputTokens: 128_000,
    supports: REASONING,
    source:
      'https://developers.openai.com/api/docs/models/gpt-6.2-sol; of the other two https://runware.ai/docs/models/openai-gpt-6-sol.md and the page of gpt-6-1-sol at Google Cloud',
    checked: '2026-11-22',
  },
  {
    models: ['gpt-6.2-astra*', 'gpt-5.6*'],
    supports: { tools: true, reasoning: true },
    source:
      'https://developers.openai.com/api/docs/models/gpt-6.2-astra, cited by BerriAI/litellm#52347; gpt-5.6: BerriAI/litellm#34569',
    checked: '2026-11-23',
  },
  {
    models: ['gpt-6-luna*'],
    contextTokens: 1_050_000,
    maxOutputTokens: 128_000,
    supports: REASONING,
    source: 'https://runware.ai/docs/models/openai-gpt-6-luna.md',
    checked: '2026-11-22',
  },
  {
    models: ['gpt-6.1-terra*'],
    contextTokens: 1_050_000,
    maxOutputTokens: 128_000,
    supports: REASONING,
    source: 'https://www.getmaxim.ai/bifrost/model-library/compare/openrouter/gpt-6.1-terra.md',
    checked: '2026-11-22',
  },
  {
    models: ['gpt-6-astra*'],
    contextTokens: 1_050_000,
    maxOutputTokens: 128_000,
    supports: { tools: true, reasoning: true },
    source: 'https://vercel.com/ai-gateway/models/gpt-6-astra.md',
    checked: '2026-11-22',
  },
  {
    ...MODELS_DEV,
    models: ['gpt-5.5', 'gpt-5.5-20*', 'gpt-5.4', 'gpt-5.4-20*'],
    contextTokens: 1_050_000,
    maxOutputTokens: 128_000,
    supports: REASONING,
  },
  {
    ...MODELS_DEV,
    models: [
      'gpt-5.4-mini*',
      'gpt-5.3-codex',
      'gpt-5.2',
      'gpt-5.2-20*',
      'gpt-5.1',
      'gpt-5.1-20*',
      'gpt-5-mini*',
    ],
    contextTokens: 400_000,
    maxOutputTokens: 128_000,
    supports: REASONING,
  },
  {
    ...MODELS_DEV,
    models: ['o1', 'o1-20*', 'o3', 'o3-20*', 'o4-mini', 'o4-mini-20*'],
    contextTokens: 200_000,
    maxOutputTokens: 100_000,
    supports: REASONING,
  },
  {
    ...MODELS_DEV,
    models: ['o3-mini', 'o3-mini-20*'],
    contextTokens: 200_000,
    maxOutputTokens: 100_000,
    supports: { ...REASONING, images: false },
  },
  {
    ...MODELS_DEV,
    models: ['gpt-4.1'],
    contextTokens: 1_047_576,
    maxOutputTokens: 32_768,
    supports: TEXT_AND_IMAGES,
  },
  {
    ...MODELS_DEV,
    models: ['gpt-4o', 'gpt-4o-20*', 'gpt-4o-mini', 'gpt-4o-mini-20*'],
    contextTokens: 128_000,
    maxOutputTokens: 16_384,
    supports: TEXT_AND_IMAGES,
  },
];

export const openai: Provider<'OPENAI_API_KEY' | 'OPENAI_BASE_URL'> = {
  ...compatibleProfile('openai', ['api.openai.com'], CHAT, COMPLETIONS),
  name: 'OpenAI',
  // https://platform.openai.com/docs/api-reference/authentication (from memory, 2026-11-23).
  keyPrefixes: ['sk-proj-', 'sk-svcacct-', 'sk-admin-'],
  responses: RESPONSES_API,
  passthrough: {
    responses: {
      ...RESPONSES_PASSTHROUGH.responses,
      encryptsReasoning: isReasoningModel,
      rows: rowsOf(RESPONSES),
    },
  },
  apiKeySettings: ['OPENAI_API_KEY'],
  baseUrlSettings: ['OPENAI_BASE_URL'],
  defaultBaseUrl: 'https://api.openai.com/v1',
  modelTraits: MODEL_TRAITS,
  // Its lists of models, and its fine-tuned ones: https://platform.openai.com/docs/models (2026-11-22).
  ownModels: [
    'gpt-*',
    'chatgpt-*',
    'codex-*',
    ...ANY_O,
    'text-embedding-3-*',
    'text-embedding-ada-*',
    'ft:gpt-*',
  ],
  embeddingModels: ['text-embedding-*'],
  // Its newer text: badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22.
  refusals: { context_length: /\bexceeds the context window\b/i },
  // They search before they answer: https://platform.openai.com/docs/guides/tools-web-search (from memory, 2026-11-22).
  searchingModels: ['*-search-preview*', '*-search-api*', '*-deep-research*'],
  // They do not reason: https://platform.openai.com/docs/models (2026-11-22).
  visibleOutputModels: [
    'gpt-3.5-turbo*',
    'gpt-4o',
    'gpt-4o-20*',
    'gpt-4o-mini',
    'gpt-4o-mini-20*',
    'gpt-4.1*',
  ],
  // gpt-4o-mini: 2,833 and 5,667 for each of at most 8 tiles: https://platform.openai.com/docs/guides/images-vision (2026-11-22).
  imageTokens: 48_169,
  // Prompt and output. The most input is 922,000 on the pages that name it.
  windows: [
    {
      models: words(`
        gpt-6.2-sol gpt-6.1-sol gpt-6.1-terra gpt-6-astra gpt-6-luna gpt-5.6 gpt-5.6-sol gpt-5.6-terra
        gpt-5.6-luna gpt-5.5
      `).flatMap((name) => [name, `${name}-20*`]),
      tokens: 1_050_000,
      source: 'https://developers.openai.com/api/docs/models, its page compare, and the page of gpt-6.2-sol',
      checked: '2026-11-23',
    },
    {
      models: ['gpt-6.2-astra', 'gpt-6-sol'].flatMap((name) => [name, `${name}-20*`]),
      tokens: 1_050_000,
      source:
        'the pages of the models, cited by https://vercel.com/ai-gateway/models and https://docs.litellm.ai/blog/gpt_6_sol_luna',
      checked: '2026-11-23',
    },
  ],
};
