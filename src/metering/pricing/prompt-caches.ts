/**
 * How long providers keep the prompts that they cache, and from which size on, as they document it on the pages named
 * here (2026-11-23).
 */
import { matchesAnyGlob } from '../../shared/glob.ts';

export interface PromptCacheTerms {
  /** How long an unused prompt is kept at least, in ms; absent: the provider documents no time. */
  readonly keptMs?: number;
  /** The same for a prompt that was written for longer (`cache_write_long_tokens`); absent: {@link keptMs}. */
  readonly longMs?: number;
  /** Shorter prompts are not cached. */
  readonly minTokens: number;
}

interface CacheRow extends PromptCacheTerms {
  readonly provider: string;
  /** Globs. The first row that matches applies. */
  readonly models: readonly string[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The highest minimum of any provider, where none is documented: from there on nothing too much is counted as lost. */
const HIGHEST_MIN = 4096;

// https://platform.claude.com/docs/en/build-with-claude/prompt-caching
const CLAUDE = {
  provider: 'anthropic',
  keptMs: 5 * MINUTE_MS,
  longMs: HOUR_MS,
} as const;
// https://developers.openai.com/api/docs/guides/prompt-caching
const OPENAI = { provider: 'openai', minTokens: 1024 } as const;
// https://ai.google.dev/gemini-api/docs/caching. It has no time: "Try to send requests with similar prefix in a short amount of time".
const GEMINI = { provider: 'gemini' } as const;

const ROWS: readonly CacheRow[] = [
  // "The minimum cacheable prompt length on Claude Opus 5 is 512 tokens, down from 1,024 tokens on Claude Opus 4.8" (whats-new-opus-5).
  // The others by docs.litellm.ai/docs/completion/prompt_caching (2026-10-07). Sonnet 4.6 began at 2,048 (anthropic-sdk-python#1194).
  { ...CLAUDE, models: ['claude-opus-5', 'claude-fable-5', 'claude-mythos-5'], minTokens: 512 },
  { ...CLAUDE, models: ['claude-sonnet-4-6*', 'claude-opus-4-7*'], minTokens: 2048 },
  {
    ...CLAUDE,
    models: [
      'claude-sonnet-5',
      'claude-opus-4-8*',
      'claude-sonnet-4*',
      'claude-opus-4-1*',
      'claude-opus-4-20*',
    ],
    minTokens: 1024,
  },
  // 4,096 for Opus 4.5, 4.6 and Haiku 4.5. Nothing was found for newer models.
  { ...CLAUDE, models: ['*'], minTokens: HIGHEST_MIN },
  // `prompt_cache_options.ttl`: "the minimum lifetime", 30m (the default) or 12h (openai-node 7.55); for GPT-5.6 and later.
  { ...OPENAI, models: ['gpt-5.6*', 'gpt-6*'], keptMs: 30 * MINUTE_MS, longMs: 12 * HOUR_MS },
  // "5 to 10 minutes of inactivity". The 24 hours of `prompt_cache_retention` are a maximum.
  { ...OPENAI, models: ['*'], keptMs: 5 * MINUTE_MS },
  { ...GEMINI, models: ['gemini-2.5*'], minTokens: 2048 },
  { ...GEMINI, models: ['*'], minTokens: 4096 },
  // https://api-docs.deepseek.com/guides/kv_cache
  {
    provider: 'deepseek',
    models: ['*'],
    // "Usually within a few hours to a few days" (the page until 2026-04). Today's has no time and no minimum.
    keptMs: 2 * HOUR_MS,
    minTokens: HIGHEST_MIN,
  },
  // https://console.groq.com/docs/prompt-caching
  {
    provider: 'groq',
    models: ['*'],
    // "All cached data automatically expires after 2 hours without use."
    keptMs: 2 * HOUR_MS,
    minTokens: HIGHEST_MIN,
  },
  // https://inference-docs.cerebras.ai/capabilities/prompt-caching
  {
    provider: 'cerebras',
    models: ['*'],
    // "We guarantee a Time-To-Live (TTL) of 5 minutes"; blocks of 100 to 600 tokens.
    keptMs: 5 * MINUTE_MS,
    minTokens: 600,
  },
  // https://docs.mistral.ai/studio-api/conversations/advanced/prompt-caching
  {
    provider: 'mistral',
    models: ['*'],
    // Blocks of 64 tokens. No time is documented.
    minTokens: 64,
  },
  // https://docs.x.ai/developers/advanced-api-usage/prompt-caching/best-practices
  {
    provider: 'xai',
    models: ['*'],
    // "Cache entries can be evicted at any time."
    minTokens: HIGHEST_MIN,
  },
  // https://docs.z.ai/guides/capabilities/cache
  {
    provider: 'zai',
    models: ['*'],
    minTokens: HIGHEST_MIN,
  },
  // https://docs.fireworks.ai/guides/prompt-caching
  {
    provider: 'fireworks',
    models: ['*'],
    // "At least several minutes", "up to several hours".
    minTokens: HIGHEST_MIN,
  },
];

/** How a model's provider caches prompts; null: nothing of it is documented, so nothing is said about what was not read. */
export function promptCacheOf(provider: string, model: string): PromptCacheTerms | null {
  return ROWS.find((row) => row.provider === provider && matchesAnyGlob(row.models, model)) ?? null;
}
