/** OpenRouter: ignores unknown fields. The schema is that of its TypeScript SDK of 2026-08-22. `R` are recorded requests. */

import { COMPETING_LIMITS, OPENAI_TOOL_NAMES, type RequestRules } from '../request-translation/rules.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { readAmount } from '../shared/money.ts';
import { compatibleProfile, STRICT_TEMPLATES } from './compatible.ts';
import type { Profile } from './provider.ts';

const CHAT: RequestRules = {
  fields: {},
  effort: { takes: ['reasoning_effort', 'reasoning'] },
  legacyFunctions: 'converted',
  messages: {
    // "a-z, A-Z, 0-9, underscores, dashes, max 64 chars": the SDK's schema.
    toolNames: OPENAI_TOOL_NAMES,
    system: STRICT_TEMPLATES,
    // Signed and encrypted details are needed by Claude and Gemini 3 in a tool loop: R, 2026-04.
    reasoning: [{ form: 'reasoning' }],
    takesDetails: true,
    takesExtraContent: true,
    // Its upstream refuses a step without one: LibreChat-AI/agents#37, 2026. The placeholder: RooCodeInc/Roo-Code#10640, 2026-01-12.
    missingSignature: { models: ['google/gemini-3*'], at: 'reasoning_details' },
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

export const openrouter: Profile = {
  ...compatibleProfile('openrouter', ['openrouter.ai'], CHAT),
  quirks: { costOf },
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
};
