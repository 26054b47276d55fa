/** Servers that ignore what they don't know: every host without a profile of its own, and the self-hosted ones that are alike. */
import type { RequestRules } from '../requests/rules.ts';
import { compatibleProfile, STRICT_TEMPLATES } from './compatible.ts';

/** Nothing is left out; reasoning goes back under both of its names: taken by Ollama's cloud, recorded in 2026-08. */
export const TOLERANT: RequestRules = {
  fields: {},
  messages: {
    system: STRICT_TEMPLATES,
    reasoning: [{ form: 'both' }],
    takesDetails: true,
    takesExtraContent: true,
  },
  streamUsage: 'asked',
};

export const tolerant = compatibleProfile('tolerant', [], TOLERANT);
