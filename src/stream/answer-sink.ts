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
  chunk(chunk: Chunk): void;
  /** The JSON of a vendor event that passes, as the upstream wrote it. */
  vendor(json: string): void;
  /** The answer is over, whole (null) or failed. Called once, after everything else. */
  end(failure: AnswerFailure | null): void;
}
