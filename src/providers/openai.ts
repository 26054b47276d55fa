/** OpenAI: chat, legacy completions, and Responses as passthrough. https://platform.openai.com/docs/api-reference (read 2026-11-21). `R` are recorded requests. */

import { responsesForm } from '../protocols/openai-responses/request-writer.ts';
import { openaiResponses } from '../protocols/openai-responses/upstream-reader.ts';
import { requestedEffort } from '../request-translation/effort.ts';
import {
  FUNCTION_TOOLS,
  OPENAI_TOOL_NAMES,
  REFUSED,
  type RequestRules,
  renamed,
} from '../request-translation/rules.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { hasItems, type JsonObject } from '../shared/json.ts';
import { CHAT_ONLY_FIELDS, compatibleProfile, RESPONSES_PASSTHROUGH } from './compatible.ts';
import type { ModelFactsRow, Provider, ResponsesApi } from './provider.ts';

/**
 * Efforts that models refuse, and the nearest that they accept: the levels of @earendil-works/pi-ai 1.5.2 (2026-11-10). `none` is refused
 * by gpt-6-astra (its page: no `none`), gpt-6.1-sol (https://docs.apiyi.com/en/news/gpt-6-1-sol-launch.md) and gpt-6.2 ("The API
 * rejects requests that set reasoning effort to none": the page of gpt-6.2-sol; `minimal`: BerriAI/litellm#52347), but not by
 * gpt-6-sol, gpt-6-luna and gpt-6.1-terra. All read on 2026-11-22.
 */
const EFFORTS: NonNullable<NonNullable<RequestRules['effort']>['values']> = [
  {
    models: ['gpt-6-astra*', 'gpt-6.1-sol*', 'gpt-6.2*', 'gpt-5.6-cyber*'],
    values: { none: 'low', minimal: 'low' },
  },
  { models: ['gpt-5.6*', 'gpt-6*'], values: { minimal: 'low' } },
  { models: ['gpt-5.1*'], values: { minimal: 'low', xhigh: 'high', max: 'high' } },
  { models: ['gpt-5.2*', 'gpt-5.3*', 'gpt-5.4*', 'gpt-5.5*'], values: { minimal: 'low', max: 'xhigh' } },
  { models: ['gpt-5*'], values: { none: 'minimal', xhigh: 'high', max: 'high' } },
  { models: ['o1*', 'o3*', 'o4*'], values: { none: 'low', minimal: 'low', xhigh: 'high', max: 'high' } },
];

/**
 * 400 from gpt-6 while it reasons, which it does by default: OpenAI's changelog of gpt-6-astra, as CopilotKit/CopilotKit#7191 quotes it
 * (2026-09), and its migration guide, as https://dev.to/aihubmix read it (2026-10-27).
 */
function refusesSampling({ model, reasoning_effort }: JsonObject): boolean {
  return typeof model === 'string' && model.startsWith('gpt-6') && reasoning_effort !== 'none';
}

const CHAT: RequestRules = {
  fields: {
    // 400 from reasoning models: R refused-max-tokens; every chat model accepts the other name: R, 122 requests.
    max_tokens: renamed('max_completion_tokens'),
    // 400 without tools: openai-agents-python, 2026-08-22.
    parallel_tool_calls: { kind: 'refused', when: (body) => !hasItems(body.tools) },
    // "Only allowed when 'store' is enabled": qwen-code#243, 2025-08.
    metadata: { kind: 'refused', when: (body) => body.store !== true },
    temperature: { kind: 'refused', when: refusesSampling },
    top_p: { kind: 'refused', when: refusesSampling },
    // "Unrecognized request argument supplied: top_k"; no API of OpenAI has it: openai/openai-java#71, 2024-12-31.
    top_k: REFUSED,
  },
  effort: {
    // `thinking` is 400 "Unknown parameter" (2026-08-28), and so is a `reasoning` object.
    takes: ['reasoning_effort'],
    // 400 from gpt-4o and gpt-4.1: BerriAI/litellm#40470, 2026-09-09.
    models: ['gpt-5*', 'gpt-6*', 'o1*', 'o3*', 'o4*'],
    values: EFFORTS,
  },
  messages: {
    // 400 "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64":
    // ravitemer/mcphub.nvim#243, 2025-09-08; other characters: redhat-community-ai-tools/UnifAI#266, 2026-09-03.
    toolNames: OPENAI_TOOL_NAMES,
    reasoning: [{ form: 'none' }],
    // 400 "Unknown parameter: 'messages[0].id'", "messages[1].tool_calls[0].index", "…content[0].cache_control" (2024-04 to
    // 2026-09-01). Names, annotations, refusals and audio are accepted: R.
    closed: {
      roles: {
        system: ['role', 'content', 'name'],
        developer: ['role', 'content', 'name'],
        user: ['role', 'content', 'name'],
        assistant: [
          'role',
          'content',
          'name',
          'refusal',
          'annotations',
          'audio',
          'tool_calls',
          'function_call',
        ],
        tool: ['role', 'content', 'tool_call_id', 'name'],
        function: ['role', 'content', 'name'],
      },
      parts: {},
      ...FUNCTION_TOOLS,
      toolCall: [...FUNCTION_TOOLS.toolCall, 'custom'],
    },
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

/** Models that reason. `…-chat-latest` models do not (pydantic/pydantic-ai#3326, 2025-11). */
const REASONING_MODELS = ['gpt-5*', 'gpt-6*', 'o1*', 'o3*', 'o4*', 'codex*', '*-deep-research*'];

/** Their default effort is `none`: Microsoft Learn on gpt-5.1, chat-ai#113 on gpt-5.2. For the others it follows from the tools that chat accepts. */
const WITHOUT_DEFAULT_EFFORT = ['gpt-5.1*', 'gpt-5.2*', 'gpt-5.3*', 'gpt-5.4*', 'gpt-5.5*'];

/**
 * "When reasoning effort is not none, remove temperature, top_p, and top_logprobs": OpenAI's guide, as yoagent 0.27.4 quotes it
 * (2026-11-07). 400 "Unsupported parameter: 'temperature' is not supported with this model", "logprobs are not supported with reasoning
 * models": measured at gpt-5.6-terra, 2026-08-30.
 */
function isReasoning(body: JsonObject): boolean {
  const model = typeof body.model === 'string' ? body.model : '';
  if (!isReasoningModel(model)) return false;
  const effort = requestedEffort(body)?.effort;
  return effort === undefined ? !matchesAnyGlob(WITHOUT_DEFAULT_EFFORT, model) : effort !== 'none';
}

/** Others answer 400 "Encrypted content is not supported with this model" to a request for encrypted reasoning. */
function isReasoningModel(model: string): boolean {
  return matchesAnyGlob(REASONING_MODELS, model) && !model.includes('-chat-latest');
}

const WHILE_REASONING = { kind: 'refused', when: isReasoning } as const;

const RESPONSES: RequestRules = {
  fields: {
    // "not supported by GPT-6 and later models": @ai-sdk/openai 4.0.118 (2026-11-13).
    prompt_cache_retention: { kind: 'refused', when: ({ model }) => String(model).startsWith('gpt-6') },
    temperature: WHILE_REASONING,
    top_p: WHILE_REASONING,
    top_k: REFUSED,
    logprobs: WHILE_REASONING,
    top_logprobs: WHILE_REASONING,
  },
  effort: {
    takes: ['reasoning_effort'],
    // "Unsupported parameter: 'reasoning.effort' is not supported with this model", gpt-4o: RageAgainstThePixel/OpenAI-DotNet#500, 2025-10-24.
    models: REASONING_MODELS,
    values: EFFORTS,
  },
  messages: { reasoning: [] },
  streamUsage: 'always',
};

/**
 * Which API serves a chat request, by model family, newest first (read 2026-11-22). `gpt-*` and `o*` at the end are models that are not
 * released yet: they count as the newest family.
 */
const RESPONSES_API: ResponsesApi = {
  endpoint: {
    path: () => '/responses',
    request: responsesForm({
      absent: CHAT_ONLY_FIELDS,
      request: RESPONSES,
      reasoningModels: REASONING_MODELS,
      otherModels: ['*-chat-latest*'],
      reasonOnRequest: WITHOUT_DEFAULT_EFFORT,
      // "Unsupported parameter: 'reasoning.summary' is not supported with the 'gpt-5.3-codex-spark' model", and o1-pro's.
      withoutSummary: ['gpt-5.3-codex-spark*', 'o1-pro*'],
      // https://developers.openai.com/api/docs/guides/prompt-caching (read 2026-11-22): the key is part of what selects the server.
      takesPromptCacheKey: true,
    }),
    protocol: openaiResponses,
  },
  chatOnly: CHAT_ONLY_FIELDS,
  families: [
    // No Responses: truefoundry/models#2006, 2026-08-04, from OpenAI's model pages.
    { models: ['*-search-preview*', '*-search-api*', 'gpt-audio*', '*-audio-preview*'], api: 'chat' },
    { models: ['o1-mini*', 'o1-preview*', 'gpt-3.5-*', 'gpt-4*', '*-chat-latest*'], api: 'chat' },
    // "This model is only supported in v1/responses": HeyPuter/puter#1303 (2025-06-12), openai/codex#1306, n8n-io/n8n#18352,
    // docker/docker-agent#313; `ResponsesModel` of openai 7.57.0 (2026-11-13).
    {
      models: [
        ...['o1-pro*', 'o3-pro*', 'gpt-*-pro*', '*-codex*', 'codex-*', '*-deep-research*'],
        ...['computer-use-preview*', '*-cyber*', 'gpt-daybreak-*', 'gpt-rosalind-*', 'gpt-*-rosalind*'],
      ],
      api: 'responses_only',
    },
    // 400 to tools at every effort, `none` included: firebase/genkit#6303 (2026-09-08), LibreChat-AI/agents#506 (2026-09-04). gpt-6.1-sol:
    // the same words. gpt-6.1-terra: "Tool calls need Responses" (its page). gpt-6.2: its guide.
    { models: ['gpt-6-astra*', 'gpt-6.1*', 'gpt-6.2*'], api: 'prefer_responses', toolsOnChat: [] },
    // 400 without an effort and with `low`, 200 with `none`: BerriAI/litellm#34569, 2026-07-24. gpt-6-sol and -luna: onyx-dot-app/onyx#15008.
    { models: ['gpt-5.6*', 'gpt-6-*'], api: 'prefer_responses', toolsOnChat: ['none'] },
    // 400 with an effort: openai/openai-openapi#541 (2026-05-18), pipecat-ai/pipecat#4043 (2026-03-16).
    { models: ['gpt-5.4*', 'gpt-5.5*'], api: 'prefer_responses', toolsOnChat: ['none', 'absent'] },
    { models: ['gpt-5*', 'o1*', 'o3*', 'o4*'], api: 'prefer_responses' },
    { models: ['gpt-*', 'o*'], api: 'prefer_responses', toolsOnChat: [] },
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
const MODEL_FACTS: readonly ModelFactsRow[] = [
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
  responses: RESPONSES_API,
  passthrough: {
    responses: { ...RESPONSES_PASSTHROUGH.responses, encryptsReasoning: isReasoningModel },
  },
  apiKeySettings: ['OPENAI_API_KEY'],
  baseUrlSettings: ['OPENAI_BASE_URL'],
  defaultBaseUrl: 'https://api.openai.com/v1',
  modelFacts: MODEL_FACTS,
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
};
