/** How long providers keep the prompts that they cache, and from which size on, with source and date. */
import { matchesAnyGlob } from '../../shared/glob.ts';

export interface PromptCacheFacts {
  /** How long an unused prompt is kept at least, in ms. */
  readonly keptMs: number;
  /** The same for a prompt that was written for longer (`cache_write_long_tokens`); absent: as long as any other. */
  readonly longMs?: number;
  /** Shorter prompts are not cached. */
  readonly minTokens: number;
}

interface CacheRow extends PromptCacheFacts {
  readonly provider: string;
  /** Globs. The first row that matches applies. */
  readonly models: readonly string[];
  readonly source: string;
  readonly checked: string;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const CLAUDE = {
  provider: 'anthropic',
  keptMs: 5 * MINUTE_MS,
  longMs: HOUR_MS,
  source: 'https://platform.claude.com/docs/en/build-with-claude/prompt-caching',
  checked: '2026-11-23',
} as const;
const OPENAI = {
  provider: 'openai',
  minTokens: 1024,
  source: 'https://developers.openai.com/docs/guides/prompt-caching',
  checked: '2026-11-23',
} as const;
const GEMINI = {
  provider: 'gemini',
  // No time is documented. "There is no fixed time, but it should be a few minutes": a developer of the API, cited on
  // simonwillison.net/2025/May/9/gemini-implicit-caching.
  keptMs: 3 * MINUTE_MS,
  source: 'https://ai.google.dev/gemini-api/docs/interactions/caching',
  checked: '2026-11-23',
} as const;

const ROWS: readonly CacheRow[] = [
  // The page's minimum is 1,024 tokens for these, and 4,096 for Opus 4.5, 4.6 and Haiku 4.5. Nothing was found for newer models.
  {
    ...CLAUDE,
    models: ['claude-sonnet-4*', 'claude-opus-4', 'claude-opus-4-1*', 'claude-opus-4-20*'],
    minTokens: 1024,
  },
  { ...CLAUDE, models: ['*'], minTokens: 4096 },
  // `prompt_cache_options.ttl` is 30m or 12h from openai-node 7.40 on.
  { ...OPENAI, models: ['gpt-6*'], keptMs: 30 * MINUTE_MS, longMs: 12 * HOUR_MS },
  // "5 to 10 minutes of inactivity"; up to 24 hours for organizations without zero data retention.
  { ...OPENAI, models: ['*'], keptMs: 5 * MINUTE_MS },
  { ...GEMINI, models: ['*flash*'], minTokens: 1024 },
  { ...GEMINI, models: ['*'], minTokens: 4096 },
  {
    provider: 'deepseek',
    models: ['*'],
    // "Usually within a few hours to a few days", in units of 64 tokens.
    keptMs: 2 * HOUR_MS,
    minTokens: 64,
    source: 'https://api-docs.deepseek.com/guides/kv_cache',
    checked: '2026-11-23',
  },
];

/** For providers of which nothing is documented: the shortest time and the usual minimum of the others. */
const USUAL: PromptCacheFacts = { keptMs: 5 * MINUTE_MS, minTokens: 1024 };

/** How a model's provider caches prompts; the usual facts if the model is not listed. */
export function promptCacheOf(provider: string, model: string): PromptCacheFacts {
  return ROWS.find((row) => row.provider === provider && matchesAnyGlob(row.models, model)) ?? USUAL;
}
