/** Z.ai: ignores unknown top-level fields (twenty variants probed, PI-Desktop#30, 2026-09-02). https://docs.z.ai */
import {
  COMPETING_LIMITS,
  OPENAI_TOOL_NAMES,
  type ReasoningFamily,
  type RequestRules,
} from '../request-translation/rules.ts';
import { isForcedTool } from '../request-translation/tools.ts';
import { compatibleProfile } from './compatible.ts';
import type { ModelTraitsRow, Provider } from './provider.ts';

/**
 * What each family knows, as of 2026-11-23, the newest last. `D` is https://docs.z.ai/guides/capabilities/thinking, as
 * charmbracelet/catwalk#603 (2026-09-16) and esengine/DeepSeek-Reasonix#9642 (2026-08-31) quote it.
 */
const FAMILIES: readonly ReasoningFamily[] = [
  {
    models: ['glm-3*', 'glm-4', 'glm-4-*', 'glm-4v*', 'charglm*', 'codegeex*'],
    efforts: [],
    reasons: 'never',
  },
  // On and off, without levels: anomalyco/models.dev, providers/zai/models (2026-07-02).
  { models: ['glm-4*', 'glm-5', 'glm-5-*', 'glm-5v*', 'glm-5.1*'], efforts: ['none'] },
  // It knows all words, and has two levels: https://docs.z.ai/api-reference/llm/chat-completion (2026-06-25, by models.dev).
  { models: ['glm-5.2*'], efforts: ['none', 'high', 'max'] },
  // GLM-5.3 and newer models. "Only max, high and low are supported. Any other input will result in an error": D. 400
  // code 1210 to `disabled`, "This model always engages in thinking and cannot be disabled; please use low, high, or
  // max": NousResearch/hermes-agent#85890 (2026-08-14). `medium` was accepted in a live probe of the Coding Plan
  // (NousResearch/hermes-agent#91844, 2026-08-21), whose endpoint also ignores `disabled`; what D names works at both.
  { efforts: ['low', 'high', 'max'], thinking: ['enabled'] },
];

const CHAT: RequestRules = {
  checked: '2026-11-23',
  fields: {
    // 400 "Tool choice must be auto": vectorize-io/hindsight#4246, 2026-09-09.
    tool_choice: { kind: 'refused', when: ({ tool_choice }) => isForcedTool(tool_choice) },
  },
  refusesEmpty: true,
  effort: {
    checked: '2026-11-23',
    takes: ['reasoning_effort', 'thinking'],
    none: 'thinking_disabled',
    families: FAMILIES,
  },
  legacyFunctions: 'converted',
  messages: {
    // No own limit was found (2026-11-22): OpenAI's.
    toolNames: OPENAI_TOOL_NAMES,
    // 400 "[1214] Incorrect role information": PI-Desktop#30, 2026-09-02.
    roles: { developer: 'system' },
    // Recorded as accepted with parallel calls, 2026-03; optional.
    reasoning: [{ form: 'reasoning_content' }],
  },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
};

const MODEL_TRAITS: readonly ModelTraitsRow[] = [
  {
    models: ['glm-5.3', 'glm-5.3-flash', 'glm-5.2'],
    contextTokens: 1_000_000,
    supports: { tools: true, reasoning: true },
    source: 'https://docs.z.ai/guides/capabilities/thinking; limits cited by @pydantic/genai-prices 0.1.8',
    checked: '2026-11-23',
  },
];

export const zai: Provider<'ZAI_API_KEY' | 'ZAI_BASE_URL'> = {
  ...compatibleProfile('zai', ['api.z.ai', 'open.bigmodel.cn'], CHAT),
  name: 'Z.ai',
  apiKeySettings: ['ZAI_API_KEY'],
  baseUrlSettings: ['ZAI_BASE_URL'],
  defaultBaseUrl: 'https://api.z.ai/api/paas/v4',
  otherNames: ['zhipu', 'glm', 'bigmodel'],
  modelTraits: MODEL_TRAITS,
  ownModels: ['glm-*'],
};
