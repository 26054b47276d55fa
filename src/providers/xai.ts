/** xAI: ignores unknown fields, but refuses some that it knows with 400 "Argument not supported" (probed 2026-09-12: `L` below). */

import { rowsOf } from '../fitting/rows.ts';
import { responsesForm } from '../protocols/openai-responses/request-writer.ts';
import { openaiResponses } from '../protocols/openai-responses/upstream-reader.ts';
import { reasoningFamily } from '../request-translation/effort.ts';
import {
  COMPETING_LIMITS,
  OPENAI_TOOL_NAMES,
  REFUSED,
  type ReasoningFamily,
  type RequestRules,
} from '../request-translation/rules.ts';
import type { JsonObject } from '../shared/json.ts';
import { readAmount } from '../shared/money.ts';
import { CHAT_ONLY_FIELDS, compatibleProfile, RESPONSES_PASSTHROUGH } from './compatible.ts';
import type { ModelTraitsRow, Provider, ResponsesApi } from './provider.ts';

/**
 * What each family knows, as of 2026-11-23, the newest last; both APIs have the same levels. `D` is
 * https://docs.x.ai/developers/model-capabilities/text/reasoning.
 */
const FAMILIES: readonly ReasoningFamily[] = [
  { models: ['*non-reasoning*', 'grok-2*', 'grok-beta*', 'grok-vision*'], efforts: [], reasons: 'never' },
  // https://docs.x.ai/docs/guides/reasoning (2025): low and high.
  { models: ['grok-3-mini*'], efforts: ['low', 'high'] },
  { models: ['grok-3', 'grok-3-*'], efforts: [], reasons: 'never' },
  { models: ['*-multi-agent*'], efforts: ['low', 'medium', 'high', 'xhigh'] },
  // "Model grok-4-1-fast-reasoning does not support parameter reasoningEffort": router-for-me/CLIProxyAPI#3968, 2026-06-23;
  // grok-build-0.1: ColeMurray/background-agents#1238, 2026-08-01.
  {
    models: ['grok-4', 'grok-4-*', 'grok-4.1*', 'grok-4.20*', 'grok-code*', 'grok-build-0*'],
    efforts: [],
  },
  { models: ['grok-4.3*', 'grok-latest*'], efforts: ['none', 'low', 'medium', 'high'] },
  // "Reasoning cannot be disabled": D, by anomalyco/models.dev#3110 (2026-07-08); 400 on 2026-09-29: anomalyco/opencode#39448.
  { models: ['grok-4.5*', 'grok-build-latest*'], efforts: ['low', 'medium', 'high'] },
  // Grok 4.6, 4.7 and newer models. `xhigh`: chenyme/grok2api#901, 2026-08-13; 4.7: farion1231/cc-switch#7584, 2026-09-22, from D.
  { efforts: ['low', 'medium', 'high', 'xhigh'] },
];

const CHAT: RequestRules = {
  checked: '2026-11-22',
  fields: {
    // 400 from every model, even 0: L.
    presence_penalty: REFUSED,
    frequency_penalty: REFUSED,
    // 400 from grok-4.6; other models accept it: L.
    stop: REFUSED,
    // Accepted, but absent from the responses of current models: L.
    logprobs: { kind: 'ignored' },
    top_logprobs: { kind: 'ignored' },
    // 400 "Argument not supported: metadata": Open-WebUI-OpenRouter-pipe#62, 2026-09-21.
    metadata: REFUSED,
  },
  refusesEmpty: true,
  effort: {
    checked: '2026-11-23',
    takes: ['reasoning_effort'],
    families: FAMILIES,
  },
  legacyFunctions: 'converted',
  messages: {
    // No own limit was found (2026-11-22): OpenAI's.
    toolNames: OPENAI_TOOL_NAMES,
    // earendil-works/pi lists it as unsupported, 2026.
    roles: { developer: 'system' },
    // Recorded as accepted, 2026-03.
    reasoning: [{ form: 'reasoning_content' }],
  },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
};

/** Through Responses `seed` and log probabilities are accepted: @ai-sdk/xai 5.0.12 (2026-09-28) sends them. */
const RESPONSES: RequestRules = {
  fields: {
    metadata: REFUSED,
  },
  effort: {
    takes: ['reasoning_effort'],
    families: FAMILIES,
  },
  messages: { reasoning: [] },
  streamUsage: 'always',
};

/**
 * "Use the Responses API. Chat Completions is deprecated": https://docs.x.ai/developers/model-capabilities/text/best-practices (read
 * 2026-11-22). Encrypted reasoning comes through Responses alone.
 */
const RESPONSES_API: ResponsesApi = {
  checked: '2026-11-22',
  endpoint: {
    path: () => '/responses',
    request: responsesForm({
      absent: CHAT_ONLY_FIELDS.filter((field) => field !== 'seed'),
      request: RESPONSES,
      // https://docs.x.ai/developers/advanced-api-usage/prompt-caching/maximizing-cache-hits (read 2026-11-22)
      takesPromptCacheKey: true,
    }),
    protocol: openaiResponses,
  },
  // xAI's chat refuses the other fields that Responses lacks, too.
  chatOnly: ['n', 'logit_bias'],
  families: [
    // 400 "Multi Agent requests are not allowed on chat completions": chatwise#1306, 2026-03-18.
    { models: ['*-multi-agent*'], api: 'responses_only' },
    { models: ['*'], api: 'prefer_responses' },
  ],
};

/** With this factor the recorded costs match its price list (2026-03). */
const TICKS_PER_DOLLAR = 1e10;

function costOf({ cost_in_usd_ticks }: JsonObject): number | undefined {
  return readAmount(cost_in_usd_ticks, TICKS_PER_DOLLAR);
}

const MODEL_TRAITS: readonly ModelTraitsRow[] = [
  {
    models: ['grok-4.7', 'grok-4.7-latest', 'grok-4.6', 'grok-4.6-latest'],
    supports: { tools: true, reasoning: true },
    source:
      'https://docs.x.ai/developers/model-capabilities/text/reasoning, cited by farion1231/cc-switch#7584 (2026-09-22) and chenyme/grok2api#901 (2026-08-13)',
    checked: '2026-11-23',
  },
  {
    models: ['grok-4.5', 'grok-4.5-latest'],
    contextTokens: 500_000,
    supports: { tools: true, reasoning: true },
    source: 'https://docs.apiyi.com/en/api-capabilities/grok/overview',
    checked: '2026-11-22',
  },
  {
    models: ['grok-4.3', 'grok-4.3-latest'],
    contextTokens: 1_000_000,
    supports: { tools: true, reasoning: true, images: true },
    source: 'https://vercel.com/ai-gateway/models/grok-4.3/about',
    checked: '2026-11-22',
  },
  {
    models: ['grok-4-fast*', 'grok-4-1-fast*'],
    contextTokens: 2_000_000,
    source: 'https://promptfoo.dev/docs/providers/xai',
    checked: '2026-11-22',
  },
];

export const xai: Provider<'XAI_API_KEY' | 'XAI_BASE_URL'> = {
  ...compatibleProfile('xai', ['api.x.ai'], CHAT),
  name: 'xAI',
  apiKeySettings: ['XAI_API_KEY'],
  baseUrlSettings: ['XAI_BASE_URL'],
  defaultBaseUrl: 'https://api.x.ai/v1',
  otherNames: ['grok'],
  // https://docs.x.ai/docs/tutorial (from memory, 2026-11-23).
  keyPrefixes: ['xai-'],
  // Recorded: xai--responses-*, 2026-08.
  responses: RESPONSES_API,
  passthrough: {
    responses: {
      ...RESPONSES_PASSTHROUGH.responses,
      rows: rowsOf(RESPONSES),
      encryptsReasoning: (model) => reasoningFamily(FAMILIES, model)?.reasons !== 'never',
    },
  },
  modelTraits: MODEL_TRAITS,
  ownModels: ['grok-*'],
  // Recorded in chat: 165 + 2 tokens, 129 of reasoning, 296 in all (xai--text, 2026-03). Its Responses API includes
  // them in the output tokens. The chunk after the finish of recorded streams that had not requested usage (2026-08).
  quirks: { costOf, countsReasoningApart: true, passesLateUsage: true },
  refusals: {
    // badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22.
    context_length: /\bmaximum prompt length is \d/i,
    // 403: theopenco/llmgateway#1785, 2026-03-03; Wei-Shaw/sub2api#5359, 2026-08-07.
    content_filter: /\bcontent violates usage guidelines\b/i,
  },
};
