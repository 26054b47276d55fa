/**
 * Anthropic: Messages, and what each family of Claude models accepts. https://platform.claude.com/docs/en/api/messages
 * (read 2026-11-22)
 */
import { type ClaudeFamilies, type ClaudeFamily, familyOf } from '../protocols/anthropic-messages/family.ts';
import { fitToFamily, withHiddenThinking } from '../protocols/anthropic-messages/request-thinking.ts';
import { claudeForm } from '../protocols/anthropic-messages/request-writer.ts';
import { anthropicMessages } from '../protocols/anthropic-messages/upstream-reader.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  objectOf,
  readArray,
  readCount,
  readFlag,
  readText,
} from '../shared/json.ts';
import { words } from '../shared/words.ts';
import type { ListedModel, ModelTraitsRow, Provider } from './provider.ts';

// What each family of Claude models accepts, as of 2026-11-22, the newest first (A2). The sources:
// T: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting
// M: the migration guide of each model, https://platform.claude.com/docs/en/models/opus-5-5/migration-guide and its like
// O: the table of https://platform.claude.com/docs/en/models
// V: the AI SDK's getModelCapabilities (vercel/ai@ed857f50, packages/anthropic, 2026-08-22) and its changelog of 2026-09

/**
 * O: 128K output tokens. M: 400 for a thinking budget (`"thinking.type.enabled" is not supported for this model`),
 * sampling or a prefill.
 */
const NEWEST: ClaudeFamily = {
  models: ['claude-fable-*', 'claude-mythos-*', 'claude-opus-5-5*'],
  checked: '2026-11-22',
  maxTokens: 128_000,
  thinking: ['adaptive'],
  // M: 400 `"thinking.type.disabled" is not supported for this model`.
  noThinking: 'never',
  // T: `display` is "omitted" by default from Opus 4.7 on.
  hidesThinking: true,
  // "summarized" is the default of all earlier Claude 4: https://platform.claude.com/docs/en/build-with-claude/thinking (2026-11-22).
  takesDisplay: true,
  // https://platform.claude.com/docs/en/build-with-claude/effort
  efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
  refusesEffort: false,
  // 400 "`temperature` is deprecated for this model", the same for `top_p` and `top_k`: earendil-works/pi#7961, 2026-08-11; M.
  sampling: 'none',
  takesSchemas: true,
  // No beta header is needed: https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-8.
  takesSystemTurns: true,
  // "All active models"; not Haiku 3: https://platform.claude.com/docs/en/build-with-claude/citations (2026-11-29).
  takesCitations: true,
  cachesPrefixes: true,
};

/** T: the only one that accepts `between_tools` instead of `disabled`. */
const SONNET_5_5: ClaudeFamily = { ...NEWEST, models: ['claude-sonnet-5-5*'], noThinking: 'between_tools' };

/** A name, its dated snapshots and its alias. The next version, such as `claude-opus-5-6`, is another model. */
function withSnapshots(model: string): string[] {
  return [`claude-${model}`, `claude-${model}-20*`, `claude-${model}-latest`];
}

/** T: thinking is on by default. Haiku 5.5: M, 2026-10-07. */
const CLAUDE_5: ClaudeFamily = {
  ...NEWEST,
  models: [...['opus-5', 'sonnet-5', 'haiku-5', 'haiku-5-5'].flatMap(withSnapshots), 'claude-opus-4-8*'],
  noThinking: 'disabled',
};

const OPUS_4_7: ClaudeFamily = { ...CLAUDE_5, models: ['claude-opus-4-7*'], takesSystemTurns: false };

/** T: a budget is deprecated but accepted; thinking is off by default. V: no `xhigh`; sampling is accepted. O: 128K, and 64K (Sonnet). */
const OPUS_4_6: ClaudeFamily = {
  ...OPUS_4_7,
  models: ['claude-opus-4-6*'],
  thinking: ['adaptive', 'enabled'],
  hidesThinking: false,
  efforts: ['low', 'medium', 'high', 'max'],
  sampling: 'one',
};
const SONNET_4_6: ClaudeFamily = { ...OPUS_4_6, models: ['claude-sonnet-4-6*'], maxTokens: 64_000 };

/** T: only a budget. It has efforts as well, which are unnecessary with a budget. */
const OPUS_4_5: ClaudeFamily = {
  ...SONNET_4_6,
  models: ['claude-opus-4-5*'],
  thinking: ['enabled'],
  efforts: [],
};

/** 400 "This model does not support the effort parameter.": anthropics/claude-code#30795, 2026-03-04. */
const CLAUDE_4_5: ClaudeFamily = {
  ...OPUS_4_5,
  models: ['claude-sonnet-4-5*', 'claude-haiku-4-5*'],
  refusesEffort: true,
};

/** V: 32K output tokens. Only Opus 4.1 accepts schemas, and it is the first that refuses `top_p` together with `temperature`. */
const OPUS_4_1: ClaudeFamily = { ...CLAUDE_4_5, models: ['claude-opus-4-1*'], maxTokens: 32_000 };
const OPUS_4: ClaudeFamily = {
  ...OPUS_4_1,
  models: ['claude-opus-4-0*', 'claude-opus-4-2025*'],
  sampling: 'all',
  takesSchemas: false,
};
const SONNET_4: ClaudeFamily = {
  ...OPUS_4,
  models: ['claude-sonnet-4-0*', 'claude-sonnet-4-2025*', 'claude-3-7-*'],
  maxTokens: 64_000,
};

/** V: none of these. */
const CLAUDE_3_5: ClaudeFamily = {
  ...SONNET_4,
  models: ['claude-3-5-*'],
  maxTokens: 8192,
  thinking: [],
  noThinking: 'absent',
};
const CLAUDE_3: ClaudeFamily = {
  ...CLAUDE_3_5,
  models: ['claude-3*', 'claude-2*'],
  maxTokens: 4096,
  takesCitations: false,
};

/** Servers with the Messages API and other models: only what an older Claude accepts. */
const OTHERS: ClaudeFamily = {
  ...SONNET_4,
  models: ['*'],
  checked: '2026-11-23',
  maxTokens: 32_000,
  refusesEffort: false,
  // Claude Code asks every model for adaptive thinking: it is sent as it came. Other efforts become a budget.
  thinking: ['enabled', 'adaptive'],
  noThinking: 'absent',
  takesDisplay: false,
  takesCitations: false,
  cachesPrefixes: false,
};

// Models of other providers at their Messages endpoints, as of 2026-11-23; the chat endpoints are in moonshot.ts and zai.ts.

/** On and off, as at the chat endpoints: api-docs.deepseek.com/guides/anthropic_api (2026-11-21), moonshot.ts, zai.ts. */
const CAN_BE_OFF: ClaudeFamily = {
  ...OTHERS,
  models: ['deepseek-*', 'kimi-k2.5*', 'kimi-k2.6*', 'glm-4.*', 'glm-5', 'glm-5-*', 'glm-5.1*', 'glm-5.2*'],
  noThinking: 'disabled',
};

/** 400 "invalid thinking: only type=enabled is allowed for this model", by Claude Code: MoonshotAI/Kimi-K2#141, 2026-06-22. */
const KIMI_CODE: ClaudeFamily = {
  ...OTHERS,
  models: ['kimi-k2.7*', 'kimi-k2-thinking*', 'kimi-for-coding*'],
  thinking: ['enabled'],
  noThinking: 'never',
  refusesEffort: true,
};

/** K3 and newer. Adaptive thinking with every effort, probed: NousResearch/hermes-agent#67228, 2026-07-19. Always reasons: moonshot.ts. */
const KIMI_3: ClaudeFamily = {
  ...OTHERS,
  models: ['kimi-*'],
  thinking: ['adaptive', 'enabled'],
  noThinking: 'never',
  efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
};

/**
 * GLM-5.3 and newer. Adaptive thinking with an effort: NousResearch/hermes-agent#91006, 2026-08-20. 400 to `disabled` by Claude Code:
 * farion1231/cc-switch#6737, 2026-08-23. The efforts are those of zai.ts.
 */
const GLM_5_3: ClaudeFamily = { ...KIMI_3, models: ['glm-*'], efforts: ['low', 'high', 'max'] };

/** An unlisted Claude is newer than the listed ones, and so is one under a deployment's own name: `prod-opus`. */
const NEWER: ClaudeFamily = { ...NEWEST, models: ['claude-*', '*claude*', '*opus*'] };
const NEWER_SONNET: ClaudeFamily = { ...SONNET_5_5, models: ['*sonnet*'] };
const NEWER_HAIKU: ClaudeFamily = { ...CLAUDE_5, models: ['*haiku*'] };

export const CLAUDE_FAMILIES: ClaudeFamilies = [
  NEWEST,
  SONNET_5_5,
  CLAUDE_5,
  OPUS_4_7,
  OPUS_4_6,
  SONNET_4_6,
  OPUS_4_5,
  CLAUDE_4_5,
  OPUS_4_1,
  OPUS_4,
  SONNET_4,
  CLAUDE_3_5,
  CLAUDE_3,
  NEWER,
  NEWER_SONNET,
  NEWER_HAIKU,
  CAN_BE_OFF,
  KIMI_CODE,
  KIMI_3,
  GLM_5_3,
  OTHERS,
];

/**
 * What the counter takes, with and without betas; other fields of a request are refused: `MessageCountTokensParams` of @anthropic-ai/sdk
 * 1.12.0 (2026-11-20), https://platform.claude.com/docs/en/api/messages/count_tokens (read 2026-11-22).
 */
const COUNTED_FIELDS = words(`
  model messages system tools tool_choice thinking output_config cache_control speed user_profile_id
  workspace_id billing_policy compaction context_management mcp_servers output_format
`);

const FACTS = {
  supports: { tools: true, reasoning: true, images: true },
  source: 'https://platform.claude.com/docs/en/models',
  checked: '2026-11-23',
} as const;
const OLDER_FACTS = {
  ...FACTS,
  source:
    'https://platform.claude.com/docs/en/models, cited by https://github.com/anomalyco/models.dev at f3fc69229 (2026-07-02)',
  checked: '2026-11-28',
} as const;

/** Of clouds, which do not list Claude's limits. Anthropic's own list has them. Output limits are those of the families. */
const MODEL_TRAITS: readonly ModelTraitsRow[] = [
  { ...FACTS, models: ['claude-haiku-4-5*'], contextTokens: 200_000, maxOutputTokens: 64_000 },
  {
    ...FACTS,
    models: words(`
      claude-opus-5-5* claude-opus-5 claude-opus-5-20* claude-opus-4-6* claude-fable-5-1* claude-sonnet-5
      claude-sonnet-5-20*
    `),
    contextTokens: 1_000_000,
    maxOutputTokens: 128_000,
  },
  {
    ...OLDER_FACTS,
    models: ['claude-opus-4-8*', 'claude-opus-4-7*', 'claude-fable-5', 'claude-fable-5-20*'],
    contextTokens: 1_000_000,
    maxOutputTokens: 128_000,
  },
  { ...OLDER_FACTS, models: ['claude-sonnet-4-6*'], contextTokens: 1_000_000, maxOutputTokens: 64_000 },
  {
    ...OLDER_FACTS,
    models: ['claude-opus-4-5*', 'claude-sonnet-4-5*', 'claude-sonnet-4-20*', 'claude-sonnet-4-0*'],
    contextTokens: 200_000,
    maxOutputTokens: 64_000,
  },
  {
    ...OLDER_FACTS,
    models: ['claude-opus-4-1*', 'claude-opus-4-20*', 'claude-opus-4-0*'],
    contextTokens: 200_000,
    maxOutputTokens: 32_000,
  },
];

export const anthropic: Provider<'ANTHROPIC_API_KEY' | 'ANTHROPIC_BASE_URL'> = {
  id: 'anthropic',
  name: 'Anthropic',
  // https://platform.claude.com/docs/en/api/overview (from memory, 2026-11-23).
  keyPrefixes: ['sk-ant-'],
  hosts: ['api.anthropic.com'],
  apiKeySettings: ['ANTHROPIC_API_KEY'],
  baseUrlSettings: ['ANTHROPIC_BASE_URL'],
  defaultBaseUrl: 'https://api.anthropic.com',
  otherNames: ['claude'],
  endpoints: {
    chat: {
      path: () => '/v1/messages',
      // 400 "tools.18.custom.name: String should have at most 128 characters": anthropics/claude-code#96152, 2026-09-22; "String should
      // match pattern '^[a-zA-Z0-9_-]{1,64}$'" earlier: apify/tester-mcp-client#11, 2025-03-07.
      request: claudeForm(CLAUDE_FAMILIES, {
        names: /^[a-zA-Z0-9_-]{1,128}$/,
        // "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'": anthropics/claude-code#79418, 2026-07-20.
        keys: /^[a-zA-Z0-9_.-]{1,64}$/,
      }),
      protocol: anthropicMessages,
    },
  },
  passthrough: {
    messages: {
      path: '/v1/messages',
      protocol: anthropicMessages,
      rows: [
        {
          kind: 'family',
          fit: (body, model, report) => fitToFamily(body, familyOf(CLAUDE_FAMILIES, model), report),
        },
      ],
      hideReasoning: (body, model) => withHiddenThinking(body, familyOf(CLAUDE_FAMILIES, model)),
    },
  },
  credential: (secret) => ({ 'x-api-key': secret }),
  headers: { 'anthropic-version': '2023-06-01' },
  models: { path: '/v1/models?limit=1000', read: readModels },
  modelTraits: MODEL_TRAITS,
  ownModels: ['claude-*'],
  tokenCounter: {
    path: () => '/v1/messages/count_tokens',
    request: (body) => keepEntries(body, (field) => COUNTED_FIELDS.includes(field)),
    read: ({ input_tokens }) => readCount(input_tokens),
  },
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
  windows: [
    {
      models: ['claude-haiku-4-5*'],
      tokens: 200_000,
      source: 'https://platform.claude.com/docs/en/models',
      checked: '2026-11-23',
    },
    {
      models: words(`
        claude-opus-5-5* claude-opus-5 claude-opus-5-20* claude-opus-4-6* claude-fable-5-1*
        claude-sonnet-5 claude-sonnet-5-20*
      `),
      tokens: 1_000_000,
      source: 'https://platform.claude.com/docs/en/models and the page of each model',
      checked: '2026-11-23',
    },
  ],
  // https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback#billing-and-rate-limits (2026-11-22).
  billsFallbacks: true,
};

/**
 * `created_at` is ISO 8601. https://platform.claude.com/docs/en/api/models-list (2026-11-22); limits and capabilities: `ModelInfo` of
 * @anthropic-ai/sdk 1.12.0 (2026-11-20).
 */
function readModels({ data }: JsonObject): readonly ListedModel[] | null {
  if (!Array.isArray(data)) return null;
  return readArray(data)
    .filter(isObject)
    .flatMap(({ id, created_at, max_input_tokens, max_tokens, capabilities }) => {
      const name = readText(id);
      const created = Math.floor(Date.parse(readText(created_at) ?? '') / 1000);
      if (name === undefined) return [];
      const supported = (capability: string) =>
        readFlag(objectOf(objectOf(capabilities)[capability]).supported);
      return {
        id: name,
        created: Number.isNaN(created) ? 0 : created,
        contextTokens: readCount(max_input_tokens),
        maxOutputTokens: readCount(max_tokens),
        supports: {
          reasoning: supported('thinking'),
          images: supported('image_input'),
          structured_output: supported('structured_outputs'),
        },
      };
    });
}
