/** OpenRouter: ignores unknown fields. The schema is that of its TypeScript SDK of 2026-08-22. `R` are recorded requests. */

import {
  COMPETING_LIMITS,
  OPENAI_TOOL_NAMES,
  type ReasoningFamily,
  type RequestRules,
} from '../request-translation/rules.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { readAmount } from '../shared/money.ts';
import { words } from '../shared/words.ts';
import { compatibleProfile, STRICT_TEMPLATES } from './compatible.ts';
import type { Provider } from './provider.ts';

/** OpenRouter chooses the model's nearest level itself. */
const EFFORTS = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
const [, ...FROM_LOW] = EFFORTS;

/**
 * 400 "Reasoning is mandatory for this endpoint and cannot be disabled." OpenRouter's list names these models
 * (`reasoning.mandatory`: dendrux/dendrux#44, 2026-07-25, with gpt-5 and deepseek-r1). Others by reports:
 * gemini-3.7-flash (elie222/rakazo#114, 2026-08-22: `low` is accepted), minimax-m2.5, step-3.5-flash
 * (musistudio/claude-code-router#1215, #1238, 2026-02), stealth/ox-alpha (earendil-works/pi#8454, 2026-08-21). The rest
 * is what the model's own provider refuses, as of 2026-11-23: a model that is missing here would be a 400, one too many
 * reasons a little. In each of these kinds an unlisted name is newer than the listed ones.
 */
const FAMILIES: readonly ReasoningFamily[] = [
  { models: ['openai/gpt-5', 'openai/gpt-5-*'], efforts: EFFORTS },
  { models: ['openai/*-pro*', 'openai/*codex*', 'openai/gpt-5.6-cyber*'], efforts: FROM_LOW },
  {
    models: words(`
      openai/gpt-3* openai/gpt-4* openai/chatgpt* openai/gpt-5.* openai/gpt-6 openai/gpt-6-sol*
      openai/gpt-6-luna* openai/gpt-6.1-terra* google/gemini-1* google/gemini-2.0*
      google/gemini-2.5-flash* google/gemini-flash-1* google/gemini-pro* x-ai/grok-2* x-ai/grok-3
      x-ai/grok-3-beta* x-ai/grok-4-fast* x-ai/grok-4.1* x-ai/grok-4.20* x-ai/grok-4.3* moonshotai/kimi-k2
      moonshotai/kimi-k2-0* moonshotai/kimi-k2.5* moonshotai/kimi-k2.6* z-ai/glm-4* z-ai/glm-5
      z-ai/glm-5-* z-ai/glm-5v* z-ai/glm-5.1* z-ai/glm-5.2* anthropic/claude-2* anthropic/claude-3*
      anthropic/claude-*-4* anthropic/claude-opus-5 anthropic/claude-sonnet-5 anthropic/claude-haiku-5*
    `),
    efforts: ['none', ...EFFORTS],
  },
  {
    models: words(`
      openai/* google/gemini-* x-ai/* moonshotai/* z-ai/* anthropic/* minimax/* stepfun/* stealth/*
      deepseek/deepseek-r1*
    `),
    efforts: FROM_LOW,
  },
  { efforts: ['none', ...EFFORTS] },
];

const CHAT: RequestRules = {
  checked: '2026-11-22',
  fields: {},
  effort: { checked: '2026-11-23', takes: ['reasoning_effort', 'reasoning'], families: FAMILIES },
  legacyFunctions: 'converted',
  messages: {
    // "a-z, A-Z, 0-9, underscores, dashes, max 64 chars": the SDK's schema.
    toolNames: OPENAI_TOOL_NAMES,
    system: STRICT_TEMPLATES,
    // Signed and encrypted details are needed by Claude and Gemini 3 in a tool loop: R, 2026-04.
    reasoning: [{ form: 'reasoning' }],
    takesDetails: true,
    takesExtraContent: true,
    // The parts that @openrouter/ai-sdk-provider 2.10.0 sends in tool messages; the types of @openrouter/sdk 1.3.19 have them, too (both
    // read 2026-11-23).
    mediaInResults: ['image_url', 'file', 'input_audio', 'video_url'],
    // Its upstream refuses a step without one: LibreChat-AI/agents#37, 2026. The placeholder: RooCodeInc/Roo-Code#10640, 2026-01-12.
    missingSignature: {
      models: ['google/gemini-*', '~google/gemini-*'],
      except: ['google/gemini-1*', 'google/gemini-2*', 'google/gemini-pro*', 'google/gemini-flash-1*'],
      at: 'reasoning_details',
    },
    // "Expected `thinking` or `redacted_thinking`, but found …": R openrouter--reasoning-details-back, 2026-04;
    // OpenRouterTeam/ai-sdk-provider#245, 2025-11-21. Later Claude models use adaptive thinking, which requires none.
    signedSteps: [
      'anthropic/claude-3.7*',
      'anthropic/claude-*-4',
      'anthropic/claude-*-4.1*',
      'anthropic/claude-*-4.5*',
    ],
  },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
  // https://openrouter.ai/docs/use-cases/usage-accounting, read 2026-11-21: deprecated, because every response has its cost.
  takesUsageInclude: true,
};

/**
 * The cost in dollars, in every response: R. If the upstream is paid with the deployment's own key (`is_byok`), `cost` is only
 * OpenRouter's fee, and the upstream's cost is a separate field (usage-accounting#cost-breakdown). Otherwise both are the same money.
 */
function costOf({ cost, is_byok, cost_details }: JsonObject): number | undefined {
  const charged = readAmount(cost);
  if (is_byok !== true) return charged;
  const upstream = readAmount(isObject(cost_details) ? cost_details.upstream_inference_cost : undefined);
  return charged === undefined || upstream === undefined ? undefined : charged + upstream;
}

export const openrouter: Provider<'OPENROUTER_API_KEY' | 'OPENROUTER_BASE_URL'> = {
  ...compatibleProfile('openrouter', ['openrouter.ai'], CHAT),
  name: 'OpenRouter',
  apiKeySettings: ['OPENROUTER_API_KEY'],
  baseUrlSettings: ['OPENROUTER_BASE_URL'],
  defaultBaseUrl: 'https://openrouter.ai/api/v1',
  // https://openrouter.ai/docs/api-reference/authentication (from memory, 2026-11-23).
  keyPrefixes: ['sk-or-'],
  // Models for embeddings are listed on request: https://openrouter.ai/docs/models (read 2026-11-23).
  models: { path: '/models?output_modalities=text,embeddings' },
  embeddingModels: ['*embed*', 'baai/bge-*', 'intfloat/*', 'sentence-transformers/*', 'thenlper/*'],
  // 87 of 87 recorded streams (rig, 2026-08), none of which had requested it. @openrouter/ai-sdk-provider 3.1 relies on it.
  quirks: { costOf, passesLateUsage: true },
  refusals: {
    // 400: R refused-unknown-model, 2026-08. 404: chatboxai/chatbox#2743, 2025-11-21; "No endpoints found that support tool use" is about
    // the request itself.
    missing_model: /\bis not a valid model ID\b|^[^:]*: No endpoints found for /i,
    // 402, because of the request's max_tokens: can1357/oh-my-pi#9569, 2026-08-24.
    exceeds_balance: /^[^:]*: This request requires more credits, or fewer max_tokens\b/i,
    // 403: https://openrouter.ai/docs/api/reference/errors-and-debugging, read 2026-11-22.
    content_filter: /\brequires moderation\b|\binput was flagged\b/i,
  },
  // `:online` adds results of a web search (https://openrouter.ai/docs/guides/features/plugins/web-search); a preset may add prompts
  // and plugins; Perplexity's models and OpenAI's search models always search. From memory, 2026-11-22.
  searchingModels: ['*:online*', '@preset/*', '*@preset/*', 'perplexity/*', '*-search*', '*deep-research*'],
  // It also serves OpenAI's models.
  imageTokens: 48_169,
  // "For non-streaming requests or unsupported providers, the model will continue processing and you will be billed for the complete
  // response." It lists 19 providers as supported, and 28 as not.
  goesOnAfterClose: {
    source: 'https://openrouter.ai/docs/api-reference/streaming',
    checked: '2026-11-28',
  },
};
