/** A reasoning item's `encrypted_content`: what the upstream wants back of one item, tagged with who made it (I7). */

import { readProviderTag, tagProvider } from '../../canonical/reasoning-details.ts';
import { type EmbeddedJson, isObject, type JsonObject, readText } from '../../shared/json.ts';
import { fromBase64, type ReasoningState, toBase64, withProviderTag } from '../shared/reasoning-state.ts';

/** @param provider the id of the provider that made the tokens */
export function writeTokens(provider: string, tokens: readonly ReasoningState[]): string {
  return tagProvider({ provider, payload: toBase64(JSON.stringify(tokens)) });
}

/** The tokens in canonical form, their maker in them; none where the text is not Weir's, or is no longer whole. */
export function readTokens(encrypted: unknown, embedded: EmbeddedJson): readonly ReasoningState[] {
  const marked = readProviderTag(encrypted);
  if (marked === null) return [];
  return embedded
    .list(fromBase64(marked.payload))
    .filter(isObject)
    .flatMap((entry) => readEntry(entry, marked.provider));
}

function readEntry({ detail, call, extra_content }: JsonObject, provider: string): ReasoningState[] {
  if (isObject(detail)) return [{ detail: withProviderTag(detail, provider) }];
  const id = readText(call);
  if (id === undefined || !isObject(extra_content)) return [];
  return [{ call: id, extra_content: { ...extra_content, weir: { provider } } }];
}

/** The ids of reasoning that Weir wrote: a provider that was asked for one would look for what it never kept. */
const OWN_REASONING = /^rs_[0-9a-f]{32}_\d+$/;

export function isOwnReasoning(id: unknown): boolean {
  return typeof id === 'string' && OWN_REASONING.test(id);
}
