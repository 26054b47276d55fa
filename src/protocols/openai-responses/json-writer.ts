/** Collects the canonical chunks of a non-streaming response into one response object. */
import type { Chunk } from '../../canonical/chunk.ts';
import { MAX_RESPONSE_BYTES } from '../../shared/limits.ts';
import type { JsonWriter } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import { ResponseObject } from './response-object.ts';
import type { ResponsesSession } from './session.ts';

/** Collects the chunks of one output into a response object. */
export class ResponsesJsonWriter implements JsonWriter {
  readonly #session: ResponsesSession;
  readonly #options: WriterOptions;
  #response: ResponseObject | null = null;

  constructor(session: ResponsesSession, options: WriterOptions) {
    this.#session = session;
    this.#options = options;
  }

  get heldChars(): number {
    return this.#response?.output.heldChars ?? 0;
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    const options = { session: this.#session, writer: this.#options, events: null };
    this.#response ??= new ResponseObject(options, chunk);
    this.#response.add(chunk);
    return this.heldChars <= MAX_RESPONSE_BYTES;
  }

  /** The protocol has no vendor events. */
  vendor(): void {}

  take(): string {
    return this.#response?.ending.json ?? '';
  }
}
