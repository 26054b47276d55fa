/** The APIs of makers whose models a cloud sells, with what the cloud does in its own way. */
import { anthropic } from './anthropic.ts';
import { openai } from './openai.ts';
import type { Profile } from './provider.ts';
import type { RefusalRules } from './refusals.ts';

interface OfCloud extends Partial<Profile> {
  /** These come before the maker's, as its `modelTraits` do. */
  readonly refusals: RefusalRules;
}

const { tokenCounter: _, models: __, keyPrefixes: ___, ...claude } = anthropic;

/** Claude by Anthropic's API. A cloud does not list models by it, and whether it counts tokens was not found (2026-11-28). */
export function claudeOf(cloud: OfCloud): Profile {
  return {
    ...{ ...claude, ...cloud },
    refusals: { ...claude.refusals, ...cloud.refusals },
    modelTraits: [...(cloud.modelTraits ?? []), ...(claude.modelTraits ?? [])],
  };
}

const { keyPrefixes: ____, ...gpt } = openai;

/** OpenAI's models by its API. */
export function gptOf(cloud: OfCloud): Profile {
  return { ...gpt, ...cloud, refusals: { ...gpt.refusals, ...cloud.refusals } };
}
