/** Hands on an upstream's plain answer as it is, for a client that speaks its dialect (N1). */
import type { Chunk } from '../../canonical/chunk.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { JsonWriter, StreamFailure } from '../../stream/types.ts';

export class PassthroughJsonWriter implements JsonWriter {
  readonly #fallback: JsonWriter;
  readonly #write: (answer: JsonObject) => JsonObject;
  #answer: JsonObject | null = null;

  /**
   * @param fallback puts the answer together where its upstream streams it all the same
   * @param write the answer as its client gets it
   */
  constructor(fallback: JsonWriter, write: (answer: JsonObject) => JsonObject) {
    this.#fallback = fallback;
    this.#write = write;
  }

  get heldChars(): number {
    return this.#fallback.heldChars;
  }

  get failure(): StreamFailure | null {
    return this.#fallback.failure;
  }

  readonly answer = (answer: JsonObject): void => {
    this.#answer = this.#write(answer);
  };

  chunk(chunk: Chunk): boolean {
    return this.#fallback.chunk(chunk);
  }

  vendor(json: string, name: string): void {
    this.#fallback.vendor(json, name);
  }

  end(failure: StreamFailure | null): void {
    this.#fallback.end(failure);
  }

  take(): string {
    return this.#answer === null ? this.#fallback.take() : JSON.stringify(this.#answer);
  }
}
