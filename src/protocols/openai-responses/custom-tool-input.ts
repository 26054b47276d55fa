/** Takes a custom tool's input out of the arguments `{"input":"…"}` as they come in pieces (I4). */
import { EmbeddedJson, readText } from '../../shared/json.ts';

/** What comes before the input, without white space. */
const PREFIX = '{"input":"';
const WHOLE_PREFIX = /^\s*\{\s*"input"\s*:\s*"/;
/** White space that a model puts there is short. */
const MAX_PREFIX_CHARS = 256;

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
/** A backslash, `u` and four digits. */
const MAX_ESCAPE_CHARS = 6;

export class CustomToolInput {
  /** `unknown`: the arguments are not what was asked for, and are held until their end. */
  #state: 'prefix' | 'text' | 'whole' | 'unknown' = 'prefix';
  #held = '';

  /** The input has ended. */
  get isComplete(): boolean {
    return this.#state === 'whole';
  }

  /** @returns what of the input is known by this piece of the arguments */
  push(piece: string): string {
    if (this.#state === 'whole') return '';
    this.#held += piece;
    if (this.#state === 'prefix') this.#readPrefix();
    return this.#state === 'text' ? this.#readText() : '';
  }

  /** @returns the rest of the input, when no further piece comes */
  end(): string {
    // Of an input that was cut within an escape the escape is lost: it stands for no character.
    if (this.#state === 'text' || this.#state === 'whole') return '';
    const held = this.#held;
    this.#held = '';
    const args = new EmbeddedJson().object(held);
    if (args === undefined) return held;
    const texts = Object.values(args);
    return readText(args.input) ?? (texts.length === 1 ? readText(texts[0]) : undefined) ?? held;
  }

  #readPrefix(): void {
    const prefix = WHOLE_PREFIX.exec(this.#held)?.[0];
    if (prefix !== undefined) {
      this.#state = 'text';
      this.#held = this.#held.slice(prefix.length);
    } else if (this.#held.length > MAX_PREFIX_CHARS || !PREFIX.startsWith(this.#held.replaceAll(/\s/g, ''))) {
      this.#state = 'unknown';
    }
  }

  #readText(): string {
    const held = this.#held;
    let text = '';
    let at = 0;
    // The next quote is not searched for again before it is passed: a long piece of escapes would cost its square.
    let end = -1;
    while (at < held.length) {
      if (end < at) end = indexOrEnd(held, '"', at);
      const next = Math.min(end, indexOrEnd(held, '\\', at));
      text += held.slice(at, next);
      at = next;
      if (held[at] === '"') {
        this.#state = 'whole';
        at = held.length;
      } else if (held[at] === '\\') {
        const escaped = readEscape(held, at);
        if (escaped === null) break;
        text += escaped.text;
        at += escaped.length;
      }
    }
    this.#held = held.slice(at);
    return text;
  }
}

function indexOrEnd(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at < 0 ? text.length : at;
}

/** What an escape stands for, or null where its end is yet to come. */
function readEscape(text: string, at: number): { readonly text: string; readonly length: number } | null {
  const sign = text[at + 1];
  if (sign === undefined) return null;
  if (sign !== 'u') return { text: ESCAPES[sign] ?? sign, length: 2 };
  if (text.length < at + MAX_ESCAPE_CHARS) return null;
  const code = Number.parseInt(text.slice(at + 2, at + MAX_ESCAPE_CHARS), 16);
  return { text: String.fromCharCode(Number.isNaN(code) ? 0xfffd : code), length: MAX_ESCAPE_CHARS };
}
