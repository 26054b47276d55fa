/** OpenRouter's habits: it ignores what it does not know. The schema is its TypeScript SDK's of 2026-08-22; recorded requests are `R`. */
import type { RequestRules } from '../requests/rules.ts';
import { compatibleProfile } from './compatible.ts';

const CHAT: RequestRules = {
  fields: {},
  effort: { takes: ['reasoning_effort', 'reasoning'] },
  legacyFunctions: 'converted',
  messages: {
    // Signed and encrypted details are needed by Claude and Gemini 3 in a tool loop: R, 2026-04.
    reasoning: [{ form: 'reasoning' }],
    takesDetails: true,
    takesExtraContent: true,
    // Its upstream refuses a step without: LibreChat-AI/agents#37, 2026; the stand-in: RooCodeInc/Roo-Code#10640, 2026-01-12.
    missingSignature: { models: ['google/gemini-3*'], at: 'reasoning_details' },
  },
  streamUsage: 'asked',
};

export const openrouter = compatibleProfile('openrouter', ['openrouter.ai'], CHAT);
