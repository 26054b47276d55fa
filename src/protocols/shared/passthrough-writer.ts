/** Writes an upstream's events as they came, for a client that speaks its dialect: only what ends a stream early is Weir's own (N1, N2). */
import type { Chunk } from '../../canonical/chunk.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';

/** What a dialect says where its upstream says nothing. */
export interface PassthroughFormat {
  /** @param hasBegun the client has had an event */
  readonly heartbeat: (hasBegun: boolean) => string;
  /** The frames that end a stream that failed. */
  readonly failure: (failure: StreamFailure) => string;
  /** An event's data, where it is another for this client; null: it gets none. */
  readonly data?: (name: string, data: string) => string | null;
}

export class PassthroughWriter implements StreamWriter {
  readonly output: FrameBuffer;
  readonly revision = 0;
  readonly #form: PassthroughFormat;
  #hasBegun = false;

  constructor(form: PassthroughFormat, maxEventBytes: number) {
    this.#form = form;
    this.output = new FrameBuffer(maxEventBytes);
  }

  readonly event = (name: string, data: string): boolean => {
    this.#hasBegun = true;
    const own = this.#form.data === undefined ? data : this.#form.data(name, data);
    if (own === null) return true;
    const head = name === '' ? 'data: ' : `event: ${name}\ndata: `;
    // Data of several lines is as many lines again.
    return this.output.frame(head, own.replaceAll('\n', '\ndata: '));
  };

  /** What the events say is counted, and not sent again. */
  chunk(): boolean {
    return true;
  }

  /** It has passed as an event. */
  vendor(): void {}

  end(failure: StreamFailure | null): void {
    if (failure !== null) this.output.text(this.#form.failure(failure));
  }

  heartbeat(isHeld: boolean): void {
    this.output.text(this.#form.heartbeat(this.#hasBegun && !isHeld));
  }

  restart(): void {
    this.#hasBegun = false;
  }

  /** Any text that depends on the chunk's alone: what is learned by it is only which events have no more than a text. */
  textFrame(chunk: Chunk): string {
    return JSON.stringify(chunk);
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
  }
}
