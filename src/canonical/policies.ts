/** The policies that decide what of a stream a client gets, and how their texts are read (V2, C6, U2, E3). */
import { matchesAnyGlob } from '../shared/glob.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';

export interface Policies {
  /** Patterns of the vendor events that pass: none strips all, `*` passes all. */
  readonly vendorEvents: readonly string[];
  readonly reasoning: 'pass' | 'strip';
  /** Where usage goes that the client did not ask for: on the chunk of the last finish, nowhere, or on a chunk of its own. */
  readonly usageChunk: 'finish' | 'on_request' | 'always';
  readonly errorFrames: 'data' | 'event';
}

export const DEFAULT_POLICIES: Policies = {
  vendorEvents: [],
  reasoning: 'pass',
  usageChunk: 'finish',
  errorFrames: 'data',
};

/** More patterns than this in one list are refused: each is tried on each vendor event. */
const MAX_PATTERNS = 32;
/** And longer ones: matching takes the product of a pattern's length and a name's. */
const MAX_LIST_CHARS = 1024;

/** Reads `strip`, `pass` or a comma-separated list of globs, from the setting and from the header; null where it is none. */
export function parseVendorEvents(text: string): readonly string[] | null {
  if (text.length > MAX_LIST_CHARS) return null;
  const words = text.split(',').map((word) => word.trim());
  if (words.length === 1 && words[0] === 'strip') return [];
  if (words.length === 1 && words[0] === 'pass') return ['*'];
  const isList = words.length <= MAX_PATTERNS && words.every((word) => /^x_[\w.*-]*$|^\*$/.test(word));
  return isList ? words : null;
}

export function passesVendorEvent(policies: Policies, type: string): boolean {
  return type.length <= MAX_NAME_CHARS && matchesAnyGlob(policies.vendorEvents, type);
}
