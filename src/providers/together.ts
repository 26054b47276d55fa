/** Together: accepts nulls and unknown fields (recorded in 2024 and 2026-08). The schema is its openapi.yaml of 2026-04-28. */
import { renamed } from '../request-translation/rules.ts';
import { compatibleProfile, TOLERANT } from './compatible.ts';

export const together = compatibleProfile('together', ['api.together.xyz', 'api.together.ai'], {
  ...TOLERANT,
  // The schema has only `max_tokens`.
  fields: { max_completion_tokens: renamed('max_tokens') },
  // No `developer`: earendil-works/pi#3624, by a Together employee, 2026-04-23.
  messages: { ...TOLERANT.messages, roles: { developer: 'system' } },
});
