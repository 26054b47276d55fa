/** OpenToken: chat. Its streams always end with a usage chunk, and it ignores `stream_options`. */
import { openaiChat } from '../protocols/openai-chat/upstream-reader.ts';
import { COMPETING_LIMITS } from '../request-translation/rules.ts';
import type { Provider } from './provider.ts';

export const opentoken: Provider<'OPENTOKEN_API_KEY' | 'OPENTOKEN_BASE_URL'> = {
  id: 'opentoken',
  name: 'OpenToken',
  hosts: [],
  apiKeySettings: ['OPENTOKEN_API_KEY'],
  baseUrlSettings: ['OPENTOKEN_BASE_URL'],
  defaultBaseUrl: null,
  // Its document prints a stream without the usage chunk that each stream has (2026-11): OpenAI's clients get that one.
  quirks: { passesLateUsage: false },
  endpoints: {
    chat: {
      path: () => '/chat/completions',
      // No public page describes its requests (searched on 2026-11-21).
      request: {
        kind: 'chat',
        rules: {
          checked: '2026-11-21',
          fields: {},
          messages: { reasoning: [{ form: 'reasoning_content' }] },
          competingLimits: COMPETING_LIMITS,
          streamUsage: 'always',
        },
      },
      protocol: openaiChat,
    },
  },
};
