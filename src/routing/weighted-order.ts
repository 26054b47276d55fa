/** The order in which the steps of an alias are tried: as written, or picked by weight so that a conversation stays where it is (R2). */

import type { AliasTarget } from '../settings/aliases.ts';
import { type JsonObject, readText } from '../shared/json.ts';

/** What follows it in a longer text tells no two conversations apart. */
const MAX_TICKET_CHARS = 512;

/** What picks for a request: the same for the requests of one conversation, or of one user, where the body tells. */
export function stickyKey({ prompt_cache_key, user }: JsonObject, random: () => string): string {
  return (readText(prompt_cache_key) ?? readText(user) ?? random()).slice(0, MAX_TICKET_CHARS);
}

/** The first by weight, and the others in the order of theirs; as they are where none has a weight. */
export function orderTargets(steps: readonly AliasTarget[], ticket: string): readonly AliasTarget[] {
  const sum = steps.reduce((total, { weight }) => total + weight, 0);
  if (sum === 0 || steps.length === 1) return steps;
  let left = hashToUnit(ticket) * sum;
  const first = steps.find(({ weight }) => {
    left -= weight;
    return left < 0;
  });
  const others = steps.filter((step) => step !== first).sort((a, b) => b.weight - a.weight);
  return first === undefined ? others : [first, ...others];
}

/** A number from 0 up, below 1, that follows from the text: FNV-1a, mixed as MurmurHash3 ends, because texts may differ little. */
export function hashToUnit(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
