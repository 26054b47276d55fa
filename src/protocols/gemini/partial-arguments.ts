/** Writes a call's arguments as JSON text that only grows, out of the values by path in which Vertex streams them. */

import { type JsonObject, MAX_JSON_DEPTH, readText } from '../../shared/json.ts';
import { MAX_PARTIAL_KEYS_CHARS } from '../../shared/limits.ts';

/** A key of an object, or a place in an array. */
type Step = string | number;

/** An object or an array whose end was not written. */
interface Open {
  /** Where it stands in the one around it. */
  readonly step: Step | null;
  /** What is in it: keys of an object can't be written twice, and the next place of an array is their number. */
  readonly keys: Set<string> | null;
  places: number;
}

export class PartialArguments {
  readonly #open: Open[] = [];
  /** The path of the string whose end was not written, or null. */
  #string: string | null = null;
  #keysChars = 0;

  /**
   * A value, or the next piece of a string.
   * @returns what it adds to the text; null where that can't be said at the text's end, or is beyond a bound
   */
  add(partial: JsonObject): string | null {
    const path = readText(partial.jsonPath) ?? '';
    const isLast = partial.willContinue !== true;
    const text = typeof partial.stringValue === 'string' ? escaped(partial.stringValue) : null;
    if (text !== null && this.#string !== null && path === this.#string) {
      return text + (isLast ? this.#closeString() : '');
    }
    const value = text === null ? literalOf(partial) : `"${text}`;
    if (value === null) return '';
    const steps = readPath(path);
    const start = this.#closeString();
    const entered = steps === null ? null : this.#enter(steps);
    if (entered === null) return null;
    if (text !== null) this.#string = path;
    return start + entered + value + (isLast ? this.#closeString() : '');
  }

  /** What is missing at the end. */
  close(): string {
    const end = this.#closeString() + this.#closeTo(0);
    return end === '' ? '{}' : end;
  }

  #closeString(): string {
    const end = this.#string === null ? '' : '"';
    this.#string = null;
    return end;
  }

  /** Ends all but the outermost ones. */
  #closeTo(count: number): string {
    const ended = this.#open.splice(count).toReversed();
    return ended.map(({ keys }) => (keys === null ? ']' : '}')).join('');
  }

  /** What stands before the value at a path; null where it has another place, or was written. */
  #enter(steps: readonly Step[]): string | null {
    let shared = 1;
    while (shared < steps.length && this.#open[shared]?.step === steps[shared - 1]) shared++;
    let text = this.#closeTo(shared);
    for (let at = this.#open.length; at <= steps.length; at++) {
      const before = at === 0 ? '' : this.#enterOne(steps[at - 1]);
      if (before === null) return null;
      text += before;
      if (at < steps.length) text += this.#begin(steps, at);
    }
    return text;
  }

  #begin(steps: readonly Step[], at: number): string {
    const isArray = typeof steps[at] === 'number';
    this.#open.push({ step: steps[at - 1] ?? null, keys: isArray ? null : new Set(), places: 0 });
    return isArray ? '[' : '{';
  }

  #enterOne(step: Step | undefined): string | null {
    const open = this.#open.at(-1);
    if (open === undefined || step === undefined) return null;
    const comma = open.places++ === 0 ? '' : ',';
    if (open.keys === null) return step === open.places - 1 ? comma : null;
    if (typeof step !== 'string' || open.keys.has(step)) return null;
    open.keys.add(step);
    this.#keysChars += step.length + 1;
    return this.#keysChars > MAX_PARTIAL_KEYS_CHARS ? null : `${comma}${JSON.stringify(step)}:`;
  }
}

/** Halves of a surrogate pair that come apart are escaped, and stand together again. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** A value that is no string, as JSON; null where there is none that is known. */
function literalOf({ numberValue, boolValue, nullValue }: JsonObject): string | null {
  if (typeof numberValue === 'number' || typeof boolValue === 'boolean')
    return JSON.stringify(numberValue ?? boolValue);
  return nullValue === undefined ? null : 'null';
}

/** `.name`, `[0]`, `['name']` and `["name"]`, behind a `$`. */
const STEP = /\.([^.[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** Null for what is no path to a value within an object, or one that is too deep. */
function readPath(path: string): Step[] | null {
  if (!path.startsWith('$')) return null;
  const steps: Step[] = [];
  STEP.lastIndex = 1;
  while (STEP.lastIndex < path.length) {
    const [found, name, place, single, double] = STEP.exec(path) ?? [];
    if (found === undefined || steps.length >= MAX_JSON_DEPTH) return null;
    if (place !== undefined) steps.push(Number(place));
    else steps.push(name ?? (single ?? double ?? '').replace(/\\(.)/g, '$1'));
  }
  return typeof steps[0] === 'string' ? steps : null;
}
