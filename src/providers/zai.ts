/** Z.ai: ignores unknown top-level fields (twenty variants probed, PI-Desktop#30, 2026-09-02). https://docs.z.ai */
import { COMPETING_LIMITS, OPENAI_TOOL_NAMES, type RequestRules } from '../request-translation/rules.ts';
import { compatibleProfile } from './compatible.ts';

const CHAT: RequestRules = {
  fields: {},
  effort: {
    takes: ['reasoning_effort', 'thinking'],
    none: 'thinking_disabled',
    // "Please use low, high, or max": pydantic-ai's profile of 2026-08.
    values: [{ models: ['glm-5.3*'], values: { minimal: 'low', medium: 'high', xhigh: 'max' } }],
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

export const zai = compatibleProfile('zai', ['api.z.ai', 'open.bigmodel.cn'], CHAT);
