/** Xerotier: chat, with vendor events (`x_*`) in its streams. Its base URL contains the project and the endpoint. */

import type { VendorTokens } from '../canonical/part.ts';
import { openaiChat, readUsage } from '../protocols/openai-chat/upstream-reader.ts';
import { COMPETING_LIMITS } from '../request-translation/rules.ts';
import { isObject, type JsonObject, readCount } from '../shared/json.ts';
import type { Provider } from './provider.ts';

/** A research sub-task reports its own tokens, the metadata event reports all tokens of the turn. */
function vendorTokens(type: string, event: JsonObject): VendorTokens | null {
  if (type === 'x_deep_think.subtask_completed') {
    return {
      kind: 'add',
      tokens: (readCount(event.input_tokens) ?? 0) + (readCount(event.output_tokens) ?? 0),
    };
  }
  if (type !== 'x_chat.metadata' || !isObject(event.usage)) return null;
  const { prompt = 0, completion = 0, total = prompt + completion } = readUsage(event.usage);
  return { kind: 'total', tokens: total };
}

export const xerotier: Provider<'XEROTIER_API_KEY' | 'XEROTIER_BASE_URL'> = {
  id: 'xerotier',
  name: 'Xerotier',
  hosts: [],
  apiKeySettings: ['XEROTIER_API_KEY'],
  baseUrlSettings: ['XEROTIER_BASE_URL'],
  defaultBaseUrl: null,
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
          streamUsage: 'on_request',
        },
      },
      protocol: openaiChat,
    },
  },
  vendorTokens,
};
