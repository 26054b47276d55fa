/** Collects the frames of what arrived together, so that they leave together (F4). */
import type { Chunk } from '../canonical/chunk.ts';
import type { AnswerFailure, AnswerSink } from './answer-reader.ts';
import { chunkFrame, DONE_FRAME, errorFrame, vendorFrame } from './frame.ts';

export class FrameWriter implements AnswerSink {
  readonly #errorFrames: 'data' | 'event';
  #text = '';

  constructor(errorFrames: 'data' | 'event') {
    this.#errorFrames = errorFrames;
  }

  chunk(chunk: Chunk): void {
    this.#text += chunkFrame(chunk);
  }

  vendor(json: string): void {
    this.#text += vendorFrame(json);
  }

  end(failure: AnswerFailure | null): void {
    if (failure !== null) this.#text += errorFrame(failure.error, this.#errorFrames);
    this.#text += DONE_FRAME;
  }

  /** Nothing was written since the last `take`. */
  get isEmpty(): boolean {
    return this.#text === '';
  }

  /** The frames since the last call, `""` where there are none. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}
