/** Writes the frames of chat and text completions: canonical chunks as they are (F1-F3, E2, V2). */
import type { Chunk } from '../../canonical/chunk.ts';
import type { StreamFailure, StreamWriter } from '../../stream/chunk-sink.ts';
import { FrameBuffer } from '../../stream/frame-buffer.ts';
import { chunkFrame, DATA, DONE_FRAME, errorFrame, HEARTBEAT_FRAME, vendorFrame } from './sse-frame.ts';

export class ChatWriter implements StreamWriter {
  readonly output: FrameBuffer;
  /** A chunk's frame depends on nothing but the chunk. */
  readonly revision = 0;
  readonly #errorFrames: 'data' | 'event';

  /** @param errorFrames whether an error's data line has `event: error` before it (E3) */
  constructor(errorFrames: 'data' | 'event', maxEventBytes: number) {
    this.#errorFrames = errorFrames;
    this.output = new FrameBuffer(maxEventBytes);
  }

  chunk(chunk: Chunk): boolean {
    return this.output.frame(DATA, JSON.stringify(chunk));
  }

  vendor(json: string, name: string): void {
    this.output.text(vendorFrame(json, name));
  }

  end(failure: StreamFailure | null): void {
    if (failure !== null) this.output.text(errorFrame(failure.error, this.#errorFrames));
    this.output.text(DONE_FRAME);
  }

  heartbeat(): void {
    this.output.text(HEARTBEAT_FRAME);
  }

  restart(): void {}

  textFrame(chunk: Chunk): string {
    return chunkFrame(chunk);
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
  }
}
