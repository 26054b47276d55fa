/** Replaces keys of objects in JSON text that comes in pieces, such as a tool call's arguments. All other text stays as it is. */
import { parseJson } from './json.ts';

/** A longer key is none of those that are replaced: bounds what is held back. In UTF-16 units of JSON text. */
const MAX_KEY_CHARS = 2048;

/** JSON text with replaced keys. */
export function replaceKeys(text: string, keys: ReadonlyMap<string, string>): string {
  const replacer = new KeyReplacer(keys);
  return replacer.push(text) + replacer.end();
}

/** Matches what ends a run of text in which nothing can change. */
const STRUCTURE = /["{}[\],]/g;

/** Replaces keys, in linear time. A key that is not complete yet is held back. Several values may follow each other. */
export class KeyReplacer {
  readonly #keys: ReadonlyMap<string, string>;
  /** The open objects and lists: whether each is an object. */
  readonly #isObject: boolean[] = [];
  /** The next string is a key. */
  #awaitsKey = false;
  #isInString = false;
  /** The key so far, with its first quote; null outside of one. */
  #key: string | null = null;
  #isEscaped = false;

  /** @param keys the keys to write, by those to replace */
  constructor(keys: ReadonlyMap<string, string>) {
    this.#keys = keys;
  }

  /** @returns what the piece adds to the text */
  push(piece: string): string {
    let text = '';
    for (let at = 0; at < piece.length; ) {
      const isInString = this.#isInString;
      const end = isInString ? this.#endOfString(piece, at) : this.#nextStructure(piece, at);
      const run = piece.slice(at, end);
      text += this.#key === null ? run : this.#addToKey(run);
      at = end;
      if (!isInString && at < piece.length) text += this.#structure(piece.charAt(at++));
    }
    return text;
  }

  /** @returns what was held back, after the last piece */
  end(): string {
    const rest = this.#key ?? '';
    this.#key = null;
    return rest;
  }

  #nextStructure(piece: string, from: number): number {
    STRUCTURE.lastIndex = from;
    return STRUCTURE.exec(piece)?.index ?? piece.length;
  }

  /** Behind the quote that ends the string, or the end of the piece. */
  #endOfString(piece: string, from: number): number {
    for (let at = from; at < piece.length; at++) {
      const char = piece[at];
      if (this.#isEscaped) this.#isEscaped = false;
      else if (char === '\\') this.#isEscaped = true;
      else if (char === '"') {
        this.#isInString = false;
        return at + 1;
      }
    }
    return piece.length;
  }

  /** @returns the text that is no longer held back */
  #addToKey(run: string): string {
    const key = this.#key + run;
    const isLong = key.length > MAX_KEY_CHARS;
    this.#key = this.#isInString && !isLong ? key : null;
    if (this.#isInString || isLong) return isLong ? key : '';
    const replaced = this.#keys.get(String(parseJson(key)));
    return replaced === undefined ? key : JSON.stringify(replaced);
  }

  #structure(char: string): string {
    switch (char) {
      case '"':
        this.#isInString = true;
        if (!this.#awaitsKey) return char;
        this.#awaitsKey = false;
        this.#key = char;
        return '';
      case '{':
      case '[':
        this.#isObject.push(char === '{');
        this.#awaitsKey = char === '{';
        return char;
      case ',':
        this.#awaitsKey = this.#isObject.at(-1) === true;
        return char;
      default:
        this.#isObject.pop();
        this.#awaitsKey = false;
        return char;
    }
  }
}
