/** Ids of tool calls as Anthropic's clients have them, `toolu_…`: the upstream's own id is read back out of one (Q3). */
import { fromBase64, toBase64 } from '../shared/reasoning-state.ts';

const OWN = /^toolu_[\w-]+$/;
/** Anthropic refuses an id with any other character. */
const CLEAN = /^[\w-]+$/;
const CLEAN_PREFIX = 'toolu_weir_';
const ENCODED_PREFIX = 'toolu_weirb_';

export function toToolUseId(id: string): string {
  if (OWN.test(id)) return id;
  return CLEAN.test(id) ? CLEAN_PREFIX + id : ENCODED_PREFIX + toBase64(id);
}

export function fromToolUseId(id: string): string {
  if (id.startsWith(CLEAN_PREFIX)) return id.slice(CLEAN_PREFIX.length);
  return (id.startsWith(ENCODED_PREFIX) && fromBase64(id.slice(ENCODED_PREFIX.length))) || id;
}
