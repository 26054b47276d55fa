/** The policies that decide what of a stream a client gets, and how their texts are read (V2, C6, U2, E3). */
import { matchesAnyGlob } from './glob.ts';

export interface Policies {
  /** Patterns of the vendor events that pass: none strips all, `*` passes all. */
  readonly vendorEvents: readonly string[];
  readonly reasoning: 'pass' | 'strip';
  readonly usageChunk: 'on_request' | 'always';
  readonly errorFrames: 'data' | 'event';
}

export const DEFAULT_POLICIES: Policies = {
  vendorEvents: [],
  reasoning: 'pass',
  usageChunk: 'on_request',
  errorFrames: 'data',
};

/** More patterns than this in one list are refused: each is tried on each vendor event. */
const MAX_PATTERNS = 32;

/** Reads `strip`, `pass` or a comma-separated list of globs, from the setting and from the header; null where it is none. */
export function parseVendorEvents(text: string): readonly string[] | null {
  const words = text.split(',').map((word) => word.trim());
  if (words.length === 1 && words[0] === 'strip') return [];
  if (words.length === 1 && words[0] === 'pass') return ['*'];
  const isList = words.length <= MAX_PATTERNS && words.every((word) => /^x_[\w.*-]*$|^\*$/.test(word));
  return isList ? words : null;
}

export function passesVendorEvent(policies: Policies, type: string): boolean {
  return matchesAnyGlob(policies.vendorEvents, type);
}
