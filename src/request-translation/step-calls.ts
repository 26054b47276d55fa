/** The calls of a step and their arguments, as an API of its own takes them back with their results (A2). */
import type { EmbeddedJson } from '../shared/embedded-json.ts';
import { isObject, type JsonObject, readText } from '../shared/json.ts';

interface Calls {
  /** How many other ids came before. */
  readonly place: number;
  /** What the calls of this id are known by, in their order. */
  readonly names: string[];
  answered: number;
}

/** By the ids that their client gave them, which several may have between them. */
export class StepCalls {
  readonly #calls = new Map<string, Calls>();

  /** A step begins: what was called before is answered by now, or never. */
  begin(): void {
    this.#calls.clear();
  }

  add(id: string, name: string): void {
    const known = this.#calls.get(id);
    if (known !== undefined) known.names.push(name);
    else this.#calls.set(id, { place: this.#calls.size, names: [name], answered: 0 });
  }

  /** The name of the call that a result is of: of calls with one id the first result is the first one's. */
  answer(id: string): string | undefined {
    const known = this.#calls.get(id);
    return known?.names[Math.min(known.answered++, known.names.length - 1)];
  }

  /** Where the calls of this id stand; behind all others where there is none. */
  placeOf(id: string): number {
    return this.#calls.get(id)?.place ?? this.#calls.size;
  }
}

/**
 * A call's arguments as an object: none where they are blank or null; a text that is no object (cut by a limit, or beyond the bounds)
 * is kept as one of them, as it must not block the conversation for ever.
 */
export function argumentsObject(value: unknown, embedded: EmbeddedJson): JsonObject {
  if (isObject(value)) return value;
  const text = readText(value)?.trim() ?? '';
  if (text === '' || text === 'null') return {};
  return embedded.object(text) ?? { arguments: value };
}
