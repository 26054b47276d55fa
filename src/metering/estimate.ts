/** Estimates tokens from counts, never keeping a text: for answers whose upstream told no usage (M3). */
import { isObject, type JsonObject } from '../canonical/json.ts';

/** Latin text has about four characters a token; scripts beyond it are nearer to one. */
const CHARS_A_TOKEN = 4;
const WIDE_CHARS_A_TOKEN = 1.4;
const FIRST_WIDE_CHAR = 0x0250;

/** Counts a text that comes in pieces. */
export class TextCount {
  #narrow = 0;
  #wide = 0;
  #pieces = 0;

  add(text: string): void {
    if (text === '') return;
    this.#pieces++;
    for (let i = 0; i < text.length; i++) {
      if (text.charCodeAt(i) < FIRST_WIDE_CHAR) this.#narrow++;
      else this.#wide++;
    }
  }

  /** Most upstreams send a piece a token: short pieces are counted as they came, long ones by their characters. */
  get tokens(): number {
    const byChars = this.#narrow / CHARS_A_TOKEN + this.#wide / WIDE_CHARS_A_TOKEN;
    return Math.max(this.#pieces, Math.ceil(byChars));
  }
}

/** What of a request's body the model reads. */
const PROMPT_FIELDS = ['messages', 'prompt', 'suffix', 'tools', 'functions'];
/** Each message costs a few tokens for its role and its borders. */
const TOKENS_A_MESSAGE = 4;

export function estimatePromptTokens(body: JsonObject): number {
  let chars = 0;
  // A stack of its own instead of recursion: a body may be nested deeper than the engine's stack.
  const open: unknown[] = PROMPT_FIELDS.map((field) => body[field]);
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === 'string') chars += isInlineFile(value) ? 0 : weigh(value);
    else if (Array.isArray(value)) for (const item of value) open.push(item);
    else if (isObject(value)) for (const key in value) open.push(value[key]);
  }
  const messages = Array.isArray(body.messages) ? body.messages.length : 0;
  return Math.ceil(chars / CHARS_A_TOKEN) + messages * TOKENS_A_MESSAGE;
}

/** An image or a file in the message: its price has nothing to do with its length in base64. */
function isInlineFile(text: string): boolean {
  return text.startsWith('data:');
}

function weigh(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= FIRST_WIDE_CHAR) wide++;
  return text.length - wide + (wide * CHARS_A_TOKEN) / WIDE_CHARS_A_TOKEN;
}
