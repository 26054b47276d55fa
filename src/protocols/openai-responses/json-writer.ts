/** Puts a Responses answer together into its one object, for a request that is not streamed (I4). */
import type { Chunk } from '../../canonical/chunk.ts';
import { MAX_ANSWER_BYTES } from '../../shared/limits.ts';
import type { AnswerFailure, WholeBuilder } from '../../stream/chunk-sink.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import type { ResponsesSession } from './request-session.ts';
import { ResponsesAnswer } from './response-object.ts';

export class ResponsesBuilder implements WholeBuilder {
  readonly #session: ResponsesSession;
  readonly #options: WriterOptions;
  #answer: ResponsesAnswer | null = null;
  failure: AnswerFailure | null = null;

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
    this.#answer ??= new ResponsesAnswer(options, chunk);
    this.#answer.add(chunk);
    return this.heldChars <= MAX_ANSWER_BYTES;
  }

  vendor(): void {}

  end(failure: AnswerFailure | null): void {
    this.failure = failure;
  }

  take(): string {
    return this.#answer?.ending.json ?? '';
  }
}
