/** Moonshot (Kimi): ignores unknown fields (probed in 2026). https://platform.moonshot.ai/docs */

import { reasoningFamily, reasonsAt } from '../request-translation/effort.ts';
import {
  COMPETING_LIMITS,
  type FieldRule,
  type ReasoningFamily,
  type RequestRules,
} from '../request-translation/rules.ts';
import { isForcedTool } from '../request-translation/tools.ts';
import { hasItems, isObject, type JsonObject, objectOf, readArray, readText } from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';
import { compatibleProfile } from './compatible.ts';
import type { ModelTraitsRow, Provider } from './provider.ts';

function isThinking({ thinking }: JsonObject): boolean {
  return !(isObject(thinking) && thinking.type === 'disabled');
}

/**
 * What each family knows, as of 2026-11-23, the newest last. `D` is https://platform.kimi.ai/docs/api/models-overview with its guides, as
 * lemon07r/opencode-kimi-full#11 quotes them (2026-09).
 */
const FAMILIES: readonly ReasoningFamily[] = [
  {
    models: ['moonshot-v1*', 'kimi-latest*', 'kimi-k2', 'kimi-k2-0*', 'kimi-k2-turbo*', 'kimi-k2-instruct*'],
    efforts: [],
    reasons: 'never',
  },
  { models: ['kimi-k2-thinking*', 'kimi-thinking*'], efforts: [], thinking: [] },
  // On and off: D. An effort alone is accepted and has no effect (repowise-dev/repowise#2238, 2026-09-13); beside `thinking` it is 400
  // "cannot specify both 'thinking' and 'reasoning_effort'" (HKUDS/nanobot#3939, 2026-05-20).
  { models: ['kimi-k2.5*', 'kimi-k2.6*'], efforts: ['none'], thinking: ['enabled'] },
  // 400 "invalid thinking: only type=enabled is allowed for this model": MoonshotAI/Kimi-K2#141, 2026-06-22. Nothing else than
  // `{"type":"enabled","keep":"all"}` is accepted (D), which is its default.
  { models: ['kimi-k2*', 'kimi-for-coding*'], efforts: [], thinking: [] },
  // K3 and newer models: "always reasons", by `reasoning_effort` alone: D use-reasoning-effort.
  { models: ['kimi-*', 'k3*'], efforts: ['low', 'high', 'max'], thinking: [] },
];

const KEEPS_ON_REQUEST = ['kimi-k2.6*'];

function modelOf({ model }: JsonObject): string {
  return readText(model)?.toLowerCase() ?? '';
}

function reasons(body: JsonObject): boolean {
  const family = reasoningFamily(FAMILIES, modelOf(body));
  return family !== undefined && reasonsAt(family, undefined);
}

function isThinkingNow(body: JsonObject): boolean {
  return reasons(body) && isThinking(body);
}

function canBeOff(body: JsonObject): boolean {
  return reasoningFamily(FAMILIES, modelOf(body))?.efforts.includes('none') === true;
}

function isNewest(body: JsonObject): boolean {
  return reasoningFamily(FAMILIES, modelOf(body)) === FAMILIES.at(-1);
}

/** The tool that `tool_choice` names. */
function namedTools({ tools, tool_choice }: JsonObject): readonly JsonObject[] {
  const { name } = objectOf(objectOf(tool_choice).function);
  return readArray(tools)
    .filter(isObject)
    .filter((tool) => name !== undefined && objectOf(tool.function).name === name);
}

function hasCalls(messages: unknown): boolean {
  return readArray(messages).some((message) => isObject(message) && hasItems(message.tool_calls));
}

/** `n`, penalties and sampling are fixed at models that reason: temperature 1, or 0.6 without thinking, and `top_p` 0.95. */
const FIXED: FieldRule = { kind: 'refused', when: reasons };

const CHAT: RequestRules = {
  checked: '2026-11-23',
  fields: {
    // 400 "invalid temperature: only 1 is allowed for this model": Warma10032/VideoAdGuard#34, 2026-04-21; D for the others.
    temperature: FIXED,
    top_p: FIXED,
    n: FIXED,
    presence_penalty: FIXED,
    frequency_penalty: FIXED,
    // 400 "tool_choice 'required' is incompatible with thinking enabled" at models whose thinking cannot be off: D,
    // UKGovernmentBEIS/inspect_ai#5152 (2026-08-31, probed). At the others see below.
    tool_choice: {
      kind: 'refused',
      when: (body) => isForcedTool(body.tool_choice) && !isNewest(body) && isThinkingNow(body),
    },
  },
  adjustments: [
    // can1357/oh-my-pi#1077, 2026-05-14: with thinking off the forced call is accepted.
    {
      when: (body) => isForcedTool(body.tool_choice) && canBeOff(body) && isThinkingNow(body),
      set: () => ({ thinking: { type: 'disabled' } }),
      reports: 'thinking',
    },
    // K3 accepts `required`, and no named tool: D, UKGovernmentBEIS/inspect_ai#5152. With that tool alone the meaning is the same.
    {
      when: (body) => isNewest(body) && namedTools(body).length === 1,
      set: (body) => ({ tools: namedTools(body), tool_choice: 'required' }),
      reports: 'tool_choice',
    },
    // It ignores the reasoning of earlier steps otherwise: D, by can1357/oh-my-pi#1839, 2026-06-04.
    {
      when: (body) =>
        matchesModel(KEEPS_ON_REQUEST, modelOf(body)) && isThinking(body) && hasCalls(body.messages),
      set: ({ thinking }) => ({ thinking: { keep: 'all', ...objectOf(thinking), type: 'enabled' } }),
      reports: null,
    },
  ],
  refusesEmpty: true,
  effort: {
    checked: '2026-11-23',
    takes: ['reasoning_effort', 'thinking'],
    none: 'thinking_disabled',
    families: FAMILIES,
  },
  legacyFunctions: 'converted',
  messages: {
    // 400 for a leading digit, "must start with a letter and can contain letters, numbers, underscores, and dashes":
    // MoonshotAI/kimi-cli#2531, 2026-07-22, #1773, 2026-04-07. No own limit was found: OpenAI's.
    toolNames: /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/,
    // 400 "unsupported role ROLE_UNSPECIFIED": openclaw#21911, 2026-02-20.
    roles: { developer: 'system' },
    // Moonshot's own CLI sends images in tool messages: MoonshotAI/kimi-cli, kosong/chat_provider/kimi.py, read 2026-11-23.
    mediaInResults: ['image_url'],
    reasoning: [
      // 400 "thinking is enabled but reasoning_content is missing", for every message of models that preserve thinking
      // (MoonshotAI/kimi-cli#2498, 2026-07-14); `""` counts as missing, `" "` does not (theopenco/llmgateway#2093, 2026-04-26).
      { models: ['kimi-*'], form: 'reasoning_content', required: { text: ' ', when: isThinking } },
      { form: 'reasoning_content' },
    ],
  },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
};

const FACTS = {
  supports: { tools: true, reasoning: true },
  source: 'https://platform.kimi.ai/docs/api/models-overview; limits cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-23',
} as const;

const MODEL_TRAITS: readonly ModelTraitsRow[] = [
  { ...FACTS, models: ['kimi-k3'], contextTokens: 1_048_576 },
  { ...FACTS, models: ['kimi-k2.5', 'kimi-k2.6', 'kimi-k2.7-code*'], contextTokens: 262_144 },
];

export const moonshot: Provider<'MOONSHOT_API_KEY' | 'MOONSHOT_BASE_URL'> = {
  ...compatibleProfile('moonshot', ['api.moonshot.ai', 'api.moonshot.cn'], CHAT),
  name: 'Moonshot',
  apiKeySettings: ['MOONSHOT_API_KEY'],
  baseUrlSettings: ['MOONSHOT_BASE_URL'],
  defaultBaseUrl: 'https://api.moonshot.ai/v1',
  otherNames: ['kimi'],
  modelTraits: MODEL_TRAITS,
  ownModels: ['kimi-*', 'moonshot-*'],
  refusals: {
    // badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22.
    context_length: /\bexceeded model token limit\b/i,
    // 400: TauricResearch/TradingAgents#1305, 2026-09-06.
    content_filter: /\bconsidered high risk\b/i,
    // A 404, "Not found the model x or Permission denied": langgenius/dify#39778, 2026-07-30.
    missing_model: /^[^:]*: not found the model\b/i,
    // A 403: MoonshotAI/Kimi-K2#5, 2025-07-17.
    empty_balance: /\bexceeded current quota, please check your plan and billing details\b/i,
  },
};
