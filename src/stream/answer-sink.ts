/** Where an answer goes as it is read: to frames, or to one object. */
import type { Chunk } from '../canonical/chunk.ts';
import type { ApiError, UpstreamError } from '../canonical/error.ts';

/** Why an answer failed. */
export interface AnswerFailure {
  /** As a client sees it in a frame. */
  readonly error: ApiError;
  /** The upstream's error, or null where Weir found the failure: before the head it decides the HTTP status (E1). */
  readonly upstreamError: UpstreamError | null;
}

export interface AnswerSink {
  /** @returns false where the chunk is more than the sink takes: the answer then fails (B3) */
  chunk(chunk: Chunk): boolean;
  /** A vendor event that passes: its JSON as the upstream wrote it, and the name of its SSE event, `""` where it has none. */
  vendor(json: string, name: string): void;
  /** The answer is over, whole (null) or failed. Called once, after everything else. */
  end(failure: AnswerFailure | null): void;
}
