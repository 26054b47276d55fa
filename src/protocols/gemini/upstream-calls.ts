/** Reads the calls of one Gemini candidate: whole, or in pieces, as Vertex streams arguments where it is asked to. */

import type { ToolCallPart } from '../../canonical/part.ts';
import { readName } from '../../canonical/part.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { PartialArguments } from './partial-arguments.ts';

export class GeminiCalls {
  readonly #maker: string;
  /** Of the call whose end was not said. */
  #open: PartialArguments | null = null;
  #isBroken = false;
  /** Ids that calls have: a second one with the same would be taken for the first one's rest. */
  readonly #ids = new Set<string>();

  /** @param maker the id of the provider, to which its signatures go back (A7) */
  constructor(maker: string) {
    this.#maker = maker;
  }

  /** A value of the arguments came where it can't be put any more. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** What a part with a `functionCall` says; a call's index is its place among the calls. */
  read(part: JsonObject, call: JsonObject): ToolCallPart[] {
    const partials = readArray(call.partialArgs).filter(isObject);
    const isPiece = call.willContinue === true || partials.length > 0;
    if (call.name === undefined && this.#open !== null) {
      // An empty one ends it; where none comes, the next call or the candidate's finish does (vercel/ai#15438).
      return isPiece ? this.#more(this.#open, partials) : this.end();
    }
    const ended = this.end();
    if (!isPiece) return isEmpty(call) ? ended : [...ended, this.#begin(part, call, whole(call))];
    const open = new PartialArguments();
    this.#open = open;
    return [...ended, this.#begin(part, call, this.#add(open, partials))];
  }

  /** No more comes of the call that is open. */
  end(): ToolCallPart[] {
    const text = this.#open?.close();
    this.#open = null;
    return text === undefined ? [] : [fragment(text)];
  }

  #more(open: PartialArguments, partials: readonly JsonObject[]): ToolCallPart[] {
    const text = this.#add(open, partials);
    return text === '' ? [] : [fragment(text)];
  }

  #add(open: PartialArguments, partials: readonly JsonObject[]): string {
    const texts = partials.map((partial) => open.add(partial));
    this.#isBroken ||= texts.includes(null);
    return texts.join('');
  }

  #begin(part: JsonObject, call: JsonObject, args: string): ToolCallPart {
    const thought_signature = readText(part.thoughtSignature);
    const given = readName(call.id);
    const name = readName(call.name);
    const id = given === undefined || this.#ids.has(given) ? undefined : given;
    if (id !== undefined) this.#ids.add(id);
    return {
      ...fragment(args),
      id,
      name,
      extraContent:
        thought_signature === undefined
          ? undefined
          : { google: { thought_signature }, weir: { provider: this.#maker } },
    };
  }
}

function isEmpty(call: JsonObject): boolean {
  return Object.keys(call).length === 0;
}

/** Arguments as an object. */
function whole(call: JsonObject): string {
  return JSON.stringify(objectOf(call.args));
}

function fragment(text: string): ToolCallPart {
  return { index: undefined, id: undefined, name: undefined, arguments: text, extraContent: undefined };
}
