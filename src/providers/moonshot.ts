/** Moonshot (Kimi): ignores unknown fields (probed in 2026). https://platform.moonshot.ai/docs */

import { COMPETING_LIMITS, type RequestRules } from '../request-translation/rules.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { compatibleProfile } from './compatible.ts';
import type { Profile } from './provider.ts';

function isThinking({ thinking }: JsonObject): boolean {
  return !(isObject(thinking) && thinking.type === 'disabled');
}

const CHAT: RequestRules = {
  fields: {},
  effort: {
    takes: ['reasoning_effort', 'thinking'],
    none: 'thinking_disabled',
    // kimi-k3 has low, high and max: synaps-engine 0.11, 2026.
    values: [{ models: ['kimi-k3*'], values: { minimal: 'low', medium: 'high', xhigh: 'max' } }],
  },
  legacyFunctions: 'converted',
  messages: {
    // 400 for a leading digit, "must start with a letter and can contain letters, numbers, underscores, and dashes":
    // MoonshotAI/kimi-cli#2531, 2026-07-22, #1773, 2026-04-07. No own limit was found: OpenAI's.
    toolNames: /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/,
    // 400 "unsupported role ROLE_UNSPECIFIED": openclaw#21911, 2026-02-20.
    roles: { developer: 'system' },
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

export const moonshot: Profile = {
  ...compatibleProfile('moonshot', ['api.moonshot.ai', 'api.moonshot.cn'], CHAT),
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
