/** Servers that ignore what they don't know: every host without a profile of its own, and the self-hosted ones that are alike. */
import { OPENAI_TOOL_NAMES } from '../request-translation/openai-fields.ts';
import { RIVAL_LIMITS } from '../request-translation/output-limit.ts';
import type { RequestRules } from '../request-translation/rules.ts';
import { compatibleProfile, STRICT_TEMPLATES } from './compatible.ts';

/** Nothing is left out; reasoning goes back under both of its names: taken by Ollama's cloud, recorded in 2026-08. */
export const TOLERANT: RequestRules = {
  fields: {},
  messages: {
    // Those of Alibaba's ("The length of the tool name cannot exceed 64": QwenLM/Qwen3-VL#2069, 2026-03-19) and of OpenAI's behind
    // another host; a shorter name is no loss to those that take longer ones.
    toolNames: OPENAI_TOOL_NAMES,
    system: STRICT_TEMPLATES,
    reasoning: [{ form: 'both' }],
    takesDetails: true,
    takesExtraContent: true,
  },
  rivalLimits: RIVAL_LIMITS,
  streamUsage: 'asked',
};

export const tolerant = compatibleProfile('tolerant', [], TOLERANT);
