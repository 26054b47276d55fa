/** The policies that decide which parts of a stream a client gets, and the parser of the vendor event policy. */
import { matchesAnyGlob } from '../shared/glob.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';

export interface Policies {
  /** Glob patterns of the vendor events that pass. An empty list strips all, `*` passes all. */
  readonly vendorEvents: readonly string[];
  readonly reasoning: 'pass' | 'strip';
  /** Where usage goes if the client did not ask for it: on the chunk of the last finish, nowhere, or on a separate chunk. */
  readonly usageChunk: 'finish' | 'on_request' | 'always';
  readonly errorFrames: 'data' | 'event';
}

/** A list with more patterns is refused: each pattern is tried on each vendor event. */
const MAX_PATTERNS = 32;
/** A longer list is refused: matching takes the product of the lengths of pattern and name. */
const MAX_LIST_CHARS = 1024;

/** Parses `strip`, `pass` or a comma-separated list of globs, in the setting or the header. Null if the text is invalid. */
export function parseVendorEvents(text: string): readonly string[] | null {
  if (text.length > MAX_LIST_CHARS) return null;
  const words = text.split(',').map((word) => word.trim());
  if (words.length === 1 && words[0] === 'strip') return [];
  if (words.length === 1 && words[0] === 'pass') return ['*'];
  const isList = words.length <= MAX_PATTERNS && words.every((word) => /^x_[\w.*-]*$|^\*$/.test(word));
  return isList ? words : null;
}

/** Whether the policies send a vendor event of this type on to the client. */
export function passesVendorEvent(policies: Policies, type: string): boolean {
  return type.length <= MAX_NAME_CHARS && matchesAnyGlob(policies.vendorEvents, type);
}
