/** Anthropic: Messages. https://platform.claude.com/docs/en/api/messages (read 2026-11-22); what each model family takes is in its own file. */

import { familyOf } from '../protocols/anthropic-messages/family.ts';
import { withHiddenThinking } from '../protocols/anthropic-messages/request-thinking.ts';
import { claudeForm } from '../protocols/anthropic-messages/request-writer.ts';
import { anthropicMessages } from '../protocols/anthropic-messages/upstream-reader.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { CLAUDE_FAMILIES } from './claude-families.ts';
import type { Provider } from './provider.ts';

export const anthropic: Provider<'ANTHROPIC_API_KEY' | 'ANTHROPIC_BASE_URL'> = {
  id: 'anthropic',
  name: 'Anthropic',
  hosts: ['api.anthropic.com'],
  apiKeySettings: ['ANTHROPIC_API_KEY'],
  baseUrlSettings: ['ANTHROPIC_BASE_URL'],
  defaultBaseUrl: 'https://api.anthropic.com',
  endpoints: {
    chat: {
      path: () => '/v1/messages',
      // 400 "tools.18.custom.name: String should have at most 128 characters": anthropics/claude-code#96152, 2026-09-22; "String should
      // match pattern '^[a-zA-Z0-9_-]{1,64}$'" before: apify/tester-mcp-client#11, 2025-03-07.
      request: claudeForm(CLAUDE_FAMILIES, /^[a-zA-Z0-9_-]{1,128}$/),
      protocol: anthropicMessages,
    },
  },
  lanes: {
    messages: {
      path: '/v1/messages',
      protocol: anthropicMessages,
      hideReasoning: (body, model) => withHiddenThinking(body, familyOf(CLAUDE_FAMILIES, model)),
    },
  },
  quirks: {},
  credential: (secret) => ({ 'x-api-key': secret }),
  headers: { 'anthropic-version': '2023-06-01' },
  models: { path: '/v1/models?limit=1000', read: readModels },
  refusals: {
    // "prompt is too long: 208310 tokens > 200000 maximum"; "input length and `max_tokens` exceed context limit": badlogic/pi-mono,
    // packages/ai/src/utils/overflow.ts, read 2026-11-22.
    context_length: /\bprompt is too long\b|\binput length and `max_tokens` exceed context limit\b/i,
    // cline/cline#4462, 2025-06.
    content_filter: /\bblocked by content filtering policy\b/i,
    // 404s: "model: claude-x" (siddartha19/investormate#3, 2026-02-27), "Claude Fable 5 is not available. Please use …"
    // (anthropics/claude-code#68126, 2026-06-13).
    missing_model: /^[^:]*: (?:model: |Claude [\w .-]{1,64} is not available\. Please use )/,
    // A 403: can1357/oh-my-pi#38, 2026-02-12.
    bad_credential: /^[^:]*: OAuth token does not meet scope requirement\b/,
    // A 400: anthropics/claude-code#66314, 2026-06-08.
    empty_balance: /\bcredit balance is too low\b/i,
    // A 404: https://platform.claude.com/docs/en/build-with-claude/message-threads (2026-11-22).
    missing_state: /^thread_not_found:/,
  },
  // 3.75 megapixels from Opus 4.7 on, 750 pixels a token: https://platform.claude.com/docs/en/build-with-claude/vision (2026-11-22).
  imageTokens: 5120,
  // https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback#billing-and-rate-limits (2026-11-22).
  billsFallbacks: true,
  vendorTokens: () => null,
};

/** `created_at` is ISO 8601. https://platform.claude.com/docs/en/api/models-list (2026-11-22) */
function readModels({ data }: JsonObject) {
  if (!Array.isArray(data)) return null;
  return readArray(data)
    .filter(isObject)
    .flatMap(({ id, created_at }) => {
      const name = readText(id);
      const created = Math.floor(Date.parse(readText(created_at) ?? '') / 1000);
      return name === undefined ? [] : [{ id: name, created: Number.isNaN(created) ? 0 : created }];
    });
}
