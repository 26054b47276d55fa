/** Puts a Responses answer together into its one object, for a request that is not streamed (I4). */
import type { Chunk } from '../../canonical/chunk.ts';
import { MAX_ANSWER_BYTES } from '../../shared/limits.ts';
import type { JsonWriter, StreamFailure } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import type { ResponsesSession } from './request-session.ts';
import { ResponseObject } from './response-object.ts';

export class ResponsesJsonWriter implements JsonWriter {
  readonly #session: ResponsesSession;
  readonly #options: WriterOptions;
  #answer: ResponseObject | null = null;
  failure: StreamFailure | null = null;

  constructor(session: ResponsesSession, options: WriterOptions) {
    this.#session = session;
    this.#options = options;
  }

  get heldChars(): number {
    return this.#answer?.output.heldChars ?? 0;
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    const options = { session: this.#session, writer: this.#options, events: null };
    this.#answer ??= new ResponseObject(options, chunk);
    this.#answer.add(chunk);
    return this.heldChars <= MAX_ANSWER_BYTES;
  }

  vendor(): void {}

  end(failure: StreamFailure | null): void {
    this.failure = failure;
  }

  take(): string {
    return this.#answer?.ending.json ?? '';
  }
}
