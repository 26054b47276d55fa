/** Where an answer goes as it is read: to a client's frames, or to one object, each in its client's dialect. */
import type { Chunk } from '../canonical/chunk.ts';
import type { ApiError, UpstreamError } from '../canonical/error.ts';
import type { JsonObject } from '../shared/json.ts';
import type { FrameBuffer } from './frame-buffer.ts';

/** Why an answer failed. */
export interface StreamFailure {
  /** As a client sees it in a frame. */
  readonly error: ApiError;
  /** The upstream's error, or null where Weir found the failure: before the head it decides the HTTP status (E1). */
  readonly upstreamError: UpstreamError | null;
}

export interface ChunkSink {
  /** @returns false where the chunk is more than the sink takes: the answer then fails (B3) */
  chunk(chunk: Chunk): boolean;
  /** A vendor event that passes: its JSON as the upstream wrote it, and the name of its SSE event, `""` where it has none. */
  vendor(json: string, name: string): void;
  /**
   * An event as its upstream sent it, for a client that speaks the same dialect: it gets these in the place of chunks (N1). Absent:
   * it gets chunks.
   * @param event what the data say
   * @returns false where it is more than the sink takes
   */
  readonly event?: (name: string, data: string, event: JsonObject) => boolean;
  /** The same for a plain answer. */
  readonly answer?: (answer: JsonObject) => void;
  /** The answer is over, whole (null) or failed. Called once, after everything else. */
  end(failure: StreamFailure | null): void;
}

/** Writes the frames that a client reads. One stream has one writer, whichever answers are tried in it. */
export interface StreamWriter extends ChunkSink {
  readonly output: FrameBuffer;
  /**
   * Writes what tells the client that the stream is alive (T1).
   * @param isHeld what was written of the answer so far has not been sent
   */
  heartbeat(isHeld: boolean): void;
  /** What was written so far is thrown away unsent: the next answer begins anew. */
  restart(): void;
  /** Changes with all but the chunk that decides a text's frame, such as the block that is open: for the fast path. */
  readonly revision: number;
  /**
   * The one frame that a chunk with nothing but one text becomes as things stand, or null where it is more than that frame.
   * It changes nothing. What `splice` adds itself is left out.
   */
  textFrame(chunk: Chunk): string | null;
  /** A text's frame on the fast path: its literals, with the JSON string's bytes out of `source` between each two of them. */
  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void;
}

/** Puts an answer together into one object. */
export interface JsonWriter extends ChunkSink {
  /** What is held of the answer, in UTF-16 units, estimated. */
  readonly heldChars: number;
  /** Why there is no object, once the answer has ended; null where there is one. */
  readonly failure: StreamFailure | null;
  /** The object's JSON text, once the answer has ended whole. */
  take(): string;
}
