/** A wire protocol: how the events of an upstream's answer, or a whole answer, are read into canonical parts. */

import type { ChunkPart } from '../canonical/part.ts';
import type { JsonObject } from '../shared/json.ts';

/** The dialects that clients and providers both speak, beside chat (N1). */
export type PassthroughProtocol = 'messages' | 'responses';

export interface ProtocolQuirks {
  /** A word that the provider sends as a tool call's id where it has none. */
  readonly absentToolCallId?: string;
  /** What the provider's usage object says that the answer costs, as an integer of 10^-9 US dollars (P3). */
  readonly costOf?: (usage: JsonObject) => number | undefined;
  /** How many billed searches a `web_search_call` of Responses is, where the usage names no number; absent: a search is one. */
  readonly searchesOf?: (action: JsonObject) => number;
  /** In chat the provider's `completion_tokens` leave the reasoning out, and its total counts it. */
  readonly countsReasoningApart?: boolean;
}

/**
 * Reads one answer, which it may remember. Never throws: what it does not know it leaves out, and a value of the wrong type
 * counts as absent.
 */
export interface ProtocolReader {
  /**
   * One event of a streamed answer, or null where it holds nothing for anyone, as a ping. An event that holds nothing but text
   * changes nothing that is remembered: the fast path reads such events again (`fast-path/fast-path.ts`).
   * @param name of the SSE event, `""` where it has none
   */
  readonly event: (event: JsonObject, name: string) => ChunkPart | null;
  /** A plain answer, which contains everything at once. */
  readonly plain: (answer: JsonObject) => ChunkPart;
  /** What is known only when nothing more comes, or null. Asked once, at the end of the body or at `[DONE]`. */
  readonly end?: () => ChunkPart | null;
}

export interface UpstreamProtocol {
  /** @param provider the id of the provider that answers: it marks what only that one can read (`maker.ts`) */
  readonly open: (quirks: ProtocolQuirks, provider: string) => ProtocolReader;
}

/** A dialect whose events say all by themselves, and whose plain answers have the form of its events. */
export function stateless(read: (event: JsonObject, quirks: ProtocolQuirks) => ChunkPart): UpstreamProtocol {
  return {
    open: (quirks) => {
      const readOne = (event: JsonObject) => read(event, quirks);
      return { event: readOne, plain: readOne };
    },
  };
}
