/** Writes the results of a step's calls as Gemini has them: by their calls' names, in their order, before all else in their turn (A2). */

import { StepCalls } from '../../request-translation/tools.ts';
import type { EmbeddedJson, JsonObject } from '../../shared/json.ts';

interface Result {
  readonly id: string;
  readonly parts: readonly JsonObject[];
}

export class StepResults {
  readonly #calls = new StepCalls();
  readonly #embedded: EmbeddedJson;
  #results: Result[] = [];

  constructor(embedded: EmbeddedJson) {
    this.#embedded = embedded;
  }

  begin(): void {
    this.#calls.begin();
  }

  call(id: string, name: string): void {
    this.#calls.add(id, name);
  }

  /**
   * @param parts the result's content: texts and media
   * @param fallbackName for a result whose call is not there
   * @param mediaWithin media stand within the result, not beside it
   */
  add(id: string, parts: readonly JsonObject[], fallbackName: string, mediaWithin: boolean): void {
    const media = parts.filter(({ text }) => text === undefined);
    const text = parts.flatMap((part) => (typeof part.text === 'string' ? [part.text] : [])).join('\n');
    const functionResponse = {
      ...(id === '' ? {} : { id }),
      name: this.#calls.answer(id) ?? fallbackName,
      response: readResult(text, this.#embedded),
      ...(mediaWithin && media.length > 0 ? { parts: media } : {}),
    };
    this.#results.push({ id, parts: [{ functionResponse }, ...(mediaWithin ? [] : media)] });
  }

  /** As many as the calls, in their order, in one turn: Google counts them (google-gemini/gemini-cli#16543, 2026-01-13). */
  take(): JsonObject[] {
    const place = ({ id }: Result) => this.#calls.placeOf(id);
    const results = this.#results.toSorted((a, b) => place(a) - place(b)).map(({ parts }) => parts);
    this.#results = [];
    // What stands beside the results comes after all of them.
    return [...results.flatMap((parts) => parts.slice(0, 1)), ...results.flatMap((parts) => parts.slice(1))];
  }
}

/**
 * A result is an object: any other text is its output, and so is one with a `$ref`, which Google takes for the name of a file beside
 * it: 400 "The referenced name … does not match to a display_name" (vercel/ai#14369, reproduced 2026-07-02).
 */
function readResult(text: string, embedded: EmbeddedJson): JsonObject {
  const result = text.includes('"$ref"') ? undefined : embedded.object(text);
  return result ?? { output: text };
}
