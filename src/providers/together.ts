/** Together: accepts nulls and unknown fields (recorded in 2024 and 2026-08). The schema is its openapi.yaml of 2026-04-28. */
import { type RequestRules, renamed } from '../request-translation/rules.ts';
import { compatibleProfile, TOLERANT } from './compatible.ts';
import type { Provider } from './provider.ts';

export const CHAT: RequestRules = {
  ...TOLERANT,
  // The schema has only `max_tokens`.
  fields: { max_completion_tokens: renamed('max_tokens') },
  // No `developer`: earendil-works/pi#3624, by a Together employee, 2026-04-23.
  messages: { ...TOLERANT.messages, roles: { developer: 'system' } },
};

export const together: Provider<'TOGETHER_API_KEY' | 'TOGETHER_BASE_URL'> = {
  ...compatibleProfile('together', ['api.together.xyz', 'api.together.ai'], CHAT),
  name: 'Together',
  apiKeySettings: ['TOGETHER_API_KEY'],
  baseUrlSettings: ['TOGETHER_BASE_URL'],
  defaultBaseUrl: 'https://api.together.xyz/v1',
};
