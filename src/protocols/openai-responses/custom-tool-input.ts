/** Extracts the input of a custom tool from the arguments `{"input":"…"}`, which come in pieces. */
import { EmbeddedJson, readText } from '../../shared/json.ts';

/** The text before the input, without white space. */
const PREFIX = '{"input":"';
const PREFIX_PATTERN = /^\s*\{\s*"input"\s*:\s*"/;
/** Models write little white space. */
const MAX_PREFIX_CHARS = 256;

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
/** A backslash, `u` and four digits. */
const MAX_ESCAPE_CHARS = 6;

/** Reads the free text of a custom tool's call from the pieces of its JSON arguments. */
export class CustomToolInput {
  /** `unknown`: the arguments have another form, and are kept until their end. */
  #state: 'prefix' | 'text' | 'complete' | 'unknown' = 'prefix';
  #pending = '';

  /** Whether the input has ended. */
  get isComplete(): boolean {
    return this.#state === 'complete';
  }

  /** @returns the part of the input that this piece of the arguments adds */
  push(piece: string): string {
    if (this.#state === 'complete') return '';
    this.#pending += piece;
    if (this.#state === 'prefix') this.#readPrefix();
    return this.#state === 'text' ? this.#readText() : '';
  }

  /** @returns the rest of the input, after the last piece */
  end(): string {
    // A truncated escape at the end is dropped: it stands for no character.
    if (this.#state === 'text' || this.#state === 'complete') return '';
    const pending = this.#pending;
    this.#pending = '';
    const args = new EmbeddedJson().object(pending);
    if (args === undefined) return pending;
    const texts = Object.values(args);
    return readText(args.input) ?? (texts.length === 1 ? readText(texts[0]) : undefined) ?? pending;
  }

  #readPrefix(): void {
    const prefix = PREFIX_PATTERN.exec(this.#pending)?.[0];
    if (prefix !== undefined) {
      this.#state = 'text';
      this.#pending = this.#pending.slice(prefix.length);
    } else if (
      this.#pending.length > MAX_PREFIX_CHARS ||
      !PREFIX.startsWith(this.#pending.replaceAll(/\s/g, ''))
    ) {
      this.#state = 'unknown';
    }
  }

  #readText(): string {
    const pending = this.#pending;
    let text = '';
    let at = 0;
    // The position of the next quote is kept until it is passed: a search at each escape would be quadratic.
    let end = -1;
    while (at < pending.length) {
      if (end < at) end = indexOrEnd(pending, '"', at);
      const next = Math.min(end, indexOrEnd(pending, '\\', at));
      text += pending.slice(at, next);
      at = next;
      if (pending[at] === '"') {
        this.#state = 'complete';
        at = pending.length;
      } else if (pending[at] === '\\') {
        const escaped = readEscape(pending, at);
        if (escaped === null) break;
        text += escaped.text;
        at += escaped.length;
      }
    }
    this.#pending = pending.slice(at);
    return text;
  }
}

function indexOrEnd(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at < 0 ? text.length : at;
}

/** What an escape stands for, or null if its end is missing. */
function readEscape(text: string, at: number): { readonly text: string; readonly length: number } | null {
  const sign = text[at + 1];
  if (sign === undefined) return null;
  if (sign !== 'u') return { text: ESCAPES[sign] ?? sign, length: 2 };
  if (text.length < at + MAX_ESCAPE_CHARS) return null;
  const code = Number.parseInt(text.slice(at + 2, at + MAX_ESCAPE_CHARS), 16);
  return { text: String.fromCharCode(Number.isNaN(code) ? 0xfffd : code), length: MAX_ESCAPE_CHARS };
}
