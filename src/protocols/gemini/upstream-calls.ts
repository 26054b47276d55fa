/** Reads the function calls of a Gemini candidate: complete ones, and ones whose arguments Vertex streams in pieces. */

import { readName, type ToolCallPart } from '../../canonical/part.ts';
import {
  isObject,
  type JsonObject,
  MAX_JSON_DEPTH,
  objectOf,
  readArray,
  readNumber,
  readText,
} from '../../shared/json.ts';

/** The keys in a call's arguments that Vertex streams by path. They are kept until the call ends. */
const MAX_PARTIAL_KEYS_CHARS = 64 * 1024;

/** The calls of one candidate. */
export class GeminiCalls {
  readonly #provider: string;
  /** The arguments of the call that has not ended. */
  #open: PartialArguments | null = null;
  /** More of the open call was announced. */
  #willContinue = false;
  #isBroken = false;
  /** Of the last call; -1: there was none. */
  #lastIndex = -1;

  /** @param provider the id of the provider, which is kept with its signatures */
  constructor(provider: string) {
    this.#provider = provider;
  }

  /** A piece of the arguments could not be appended to the JSON text. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Reads the `functionCall` of a part. */
  read(part: JsonObject, call: JsonObject): ToolCallPart[] {
    const partials = readArray(call.partialArgs).filter(isObject);
    const isPiece = call.willContinue === true || partials.length > 0;
    if (call.name === undefined && this.#open !== null) {
      // An empty call ends the open one, or a piece after which nothing is announced (vercel/ai#15438), or the next call.
      this.#willContinue = call.willContinue === true;
      return isPiece ? this.#continue(this.#open, partials) : this.#end(call.args);
    }
    const ended = this.#end();
    this.#willContinue = call.willContinue === true;
    if (!isPiece) {
      if (Object.keys(call).length === 0) return ended;
      return [...ended, { ...this.#begin(part, call, argumentsOf(call.args)), isWhole: true }];
    }
    const open = new PartialArguments();
    this.#open = open;
    return [...ended, this.#begin(part, call, this.#add(open, partials))];
  }

  /** Ends the open call at the candidate's finish. If more of it was announced, its arguments stay cut. */
  end(): ToolCallPart[] {
    if (this.#open === null || !this.#willContinue) return this.#end();
    return this.#open.isEmpty ? [this.#fragment('{')] : [];
  }

  /** @param args the arguments, if the call's end repeats them: they count if no piece came */
  #end(args?: unknown): ToolCallPart[] {
    const open = this.#open;
    this.#open = null;
    const isRepeated = open?.isEmpty === true && isObject(args);
    const text = isRepeated ? JSON.stringify(args) : (open?.close() ?? '');
    return text === '' ? [] : [{ ...this.#fragment(text), isWhole: true }];
  }

  #continue(open: PartialArguments, partials: readonly JsonObject[]): ToolCallPart[] {
    const text = this.#add(open, partials);
    return text === '' ? [] : [this.#fragment(text)];
  }

  #add(open: PartialArguments, partials: readonly JsonObject[]): string {
    const texts = partials.map((partial) => open.add(partial));
    this.#isBroken ||= texts.includes(null);
    return texts.join('');
  }

  #begin(part: JsonObject, call: JsonObject, args: string): ToolCallPart {
    const thought_signature = readText(part.thoughtSignature);
    this.#lastIndex++;
    return {
      ...this.#fragment(args),
      id: readName(call.id),
      name: readName(call.name),
      extraContent:
        thought_signature === undefined
          ? undefined
          : { google: { thought_signature }, weir: { provider: this.#provider } },
    };
  }

  /** A piece of the last call. */
  #fragment(text: string): ToolCallPart {
    const index = this.#lastIndex;
    return { index, id: undefined, name: undefined, arguments: text, extraContent: undefined };
  }
}

/** Servers that translate may send the JSON as a text. */
function argumentsOf(args: unknown): string {
  return typeof args === 'string' ? args : JSON.stringify(objectOf(args));
}

/** A key of an object, or an index of an array. */
type PathStep = string | number;

/** An object or an array whose end has not been written. */
interface Container {
  /** Its key or index in the outer container. */
  readonly step: PathStep | null;
  /** The keys of an object, which can't be written twice; null for an array. */
  readonly keys: Set<string> | null;
  /** The number of members, which is the next index of an array. */
  size: number;
}

/** Converts values with their JSON paths into JSON text that only grows. */
class PartialArguments {
  readonly #open: Container[] = [];
  /** The path of the string whose end has not been written, or null. */
  #string: string | null = null;
  #keysChars = 0;

  /**
   * Adds a value, or the next piece of a string.
   * @returns the text to append, or null if the value can't be appended or exceeds a bound
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

  /** Whether nothing was added. */
  get isEmpty(): boolean {
    return this.#open.length === 0;
  }

  /** The text that completes the JSON. Empty within a string whose last piece has not come: the arguments are cut there. */
  close(): string {
    if (this.#string !== null) return '';
    return this.isEmpty ? '{}' : this.#closeTo(0);
  }

  #closeString(): string {
    const end = this.#string === null ? '' : '"';
    this.#string = null;
    return end;
  }

  /** Closes all but the outermost `depth` containers. */
  #closeTo(depth: number): string {
    const closed = this.#open.splice(depth).toReversed();
    return closed.map(({ keys }) => (keys === null ? ']' : '}')).join('');
  }

  /** The text before the value at a path; null if the path is not the next place, or was written before. */
  #enter(steps: readonly PathStep[]): string | null {
    let shared = 1;
    while (shared < steps.length && this.#open[shared]?.step === steps[shared - 1]) shared++;
    let text = this.#closeTo(shared);
    for (let at = this.#open.length; at <= steps.length; at++) {
      const before = at === 0 ? '' : this.#enterMember(steps[at - 1]);
      if (before === null) return null;
      text += before;
      if (at < steps.length) text += this.#openContainer(steps, at);
    }
    return text;
  }

  #openContainer(steps: readonly PathStep[], at: number): string {
    const isArray = typeof steps[at] === 'number';
    this.#open.push({ step: steps[at - 1] ?? null, keys: isArray ? null : new Set(), size: 0 });
    return isArray ? '[' : '{';
  }

  #enterMember(step: PathStep | undefined): string | null {
    const container = this.#open.at(-1);
    if (container === undefined || step === undefined) return null;
    const comma = container.size++ === 0 ? '' : ',';
    if (container.keys === null) return step === container.size - 1 ? comma : null;
    if (typeof step !== 'string' || container.keys.has(step)) return null;
    container.keys.add(step);
    this.#keysChars += step.length + 1;
    return this.#keysChars > MAX_PARTIAL_KEYS_CHARS ? null : `${comma}${JSON.stringify(step)}:`;
  }
}

/** Halves of a surrogate pair in two pieces are escaped, so they form one character again in the joined text. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The JSON of a value that is not a string; null if it has no known type. */
function literalOf({ numberValue, boolValue, nullValue }: JsonObject): string | null {
  if (readNumber(numberValue) !== undefined || typeof boolValue === 'boolean')
    return JSON.stringify(numberValue ?? boolValue);
  return nullValue === undefined ? null : 'null';
}

/** `.name`, `[0]`, `['name']` and `["name"]`, after a `$`. */
const STEP = /\.([^.[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** Null if the path is invalid, too deep, or does not start with a key of the arguments object. */
function readPath(path: string): PathStep[] | null {
  if (!path.startsWith('$')) return null;
  const steps: PathStep[] = [];
  STEP.lastIndex = 1;
  while (STEP.lastIndex < path.length) {
    const [match, name, index, single, double] = STEP.exec(path) ?? [];
    if (match === undefined || steps.length >= MAX_JSON_DEPTH) return null;
    if (index !== undefined) steps.push(Number(index));
    else steps.push(name ?? (single ?? double ?? '').replace(/\\(.)/g, '$1'));
  }
  return typeof steps[0] === 'string' ? steps : null;
}
