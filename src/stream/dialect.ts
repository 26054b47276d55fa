/** A wire protocol: how one parsed event (or one whole answer) of an upstream is read into the canonical part. */
import type { JsonObject } from '../canonical/json.ts';
import type { ChunkPart } from '../canonical/part.ts';

export interface DialectQuirks {
  /** A word that the provider sends as a tool call's id where it has none. */
  readonly absentToolCallId?: string;
  /** What the provider's usage object says that the answer costs, as an integer of 10^-9 US dollars (P3). */
  readonly costOf?: (usage: JsonObject) => number | undefined;
}

/**
 * Reads a chunk, or a plain answer, which is a chunk that contains everything at once.
 * Never throws: what it does not know it leaves out, and a value of the wrong type counts as absent.
 */
export type Dialect = (event: JsonObject, quirks: DialectQuirks) => ChunkPart;
