/**
 * Cerebras: refuses unknown fields (400 and 422 `wrong_api_format`). One of its engineers probed what it accepts
 * (pydantic/pydantic-ai#7653, 2026-08-20: `L` below). The schema is that of its Python SDK of 2026-01-06 (`S`).
 */
import { OPENAI_TOOL_NAMES, REFUSED, type RequestRules, renamed } from '../request-translation/rules.ts';
import { closedMessages, compatibleProfile, STRICT_TEMPLATES } from './compatible.ts';
import type { Provider } from './provider.ts';

const CHAT: RequestRules = {
  checked: '2026-11-23',
  fields: {
    // Both limits together are 400: cline/cline#13435, by Cerebras, 2026.
    max_tokens: renamed('max_completion_tokens'),
    // Validated, but never applied: L.
    logit_bias: { kind: 'ignored' },
    // 422 "property 'body.store' is unsupported": openclaude#740, 2026-04-17.
    store: REFUSED,
    // Not in the schema: S.
    metadata: REFUSED,
    safety_identifier: REFUSED,
    prompt_cache_retention: REFUSED,
    prompt_cache_options: REFUSED,
    verbosity: REFUSED,
    modalities: REFUSED,
    top_k: REFUSED,
  },
  refusesEmpty: true,
  effort: {
    checked: '2026-11-23',
    // `thinking` and a `reasoning` object are 422: opencode#6648, 2026-01-02; CLIProxyAPI#1143, 2026-01-21.
    takes: ['reasoning_effort'],
    families: [
      // `none` turns it off: https://inference-docs.cerebras.ai/capabilities/reasoning (read 2026-11-23).
      { models: ['zai-glm*', 'qwen*'], efforts: ['none', 'low', 'medium', 'high'] },
      // gpt-oss, and models that are not released yet. "It rejects `none` and `minimal` with wrong_api_format": the capability table of
      // harn-vm 0.8.113 (2026-06).
      { efforts: ['low', 'medium', 'high'] },
    ],
  },
  legacyFunctions: 'converted',
  messages: {
    // Its schema has no limit (S), and no report of one was found (2026-11-22): OpenAI's limit.
    toolNames: OPENAI_TOOL_NAMES,
    // "Does not expose developer directly": inference-docs.cerebras.ai/resources/openai, read 2026-11-21.
    roles: { developer: 'system' },
    // dcdpr/jp#1176, 2026-09-16.
    system: STRICT_TEMPLATES,
    // `reasoning` is accepted, `reasoning_content` is 400: recorded in 2026-06; proxysoul/Empryo#209, 2026-09-19.
    reasoning: [{ form: 'reasoning' }],
    // Tool messages hold texts alone: the types of @cerebras/cerebras_cloud_sdk 1.91.0, read 2026-11-23.
    mediaInResults: [],
    closed: closedMessages({
      system: ['name'],
      user: ['name'],
      assistant: ['reasoning', 'name'],
      tool: ['name'],
    }),
  },
  streamUsage: 'on_request',
};

export const cerebras: Provider<'CEREBRAS_API_KEY' | 'CEREBRAS_BASE_URL'> = {
  ...compatibleProfile('cerebras', ['api.cerebras.ai'], CHAT),
  name: 'Cerebras',
  apiKeySettings: ['CEREBRAS_API_KEY'],
  baseUrlSettings: ['CEREBRAS_BASE_URL'],
  defaultBaseUrl: 'https://api.cerebras.ai/v1',
};
