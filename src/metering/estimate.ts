/** Estimates the number of tokens of a text that passes, without keeping it, for responses whose upstream reports no usage. */
import { fieldsWhere } from '../facts/fields.ts';
import { isObject, type JsonObject, readArray } from '../shared/json.ts';
import { wordSet } from '../shared/words.ts';

/** Consecutive characters of one kind that form a token, as an average over the tokenizers of current models. */
const LETTERS_A_TOKEN = 7;
const DIGITS_A_TOKEN = 3;
const SIGNS_A_TOKEN = 2;
/** In other than Latin scripts, a token has little more than one character. */
const TOKENS_A_WIDE_CHAR = 1 / 1.3;
const FIRST_WIDE_CHAR = 0x250;
/** Dashes, curly quotes and other general punctuation. */
const FIRST_WIDE_SIGN = 0x2000;
const LAST_WIDE_SIGN = 0x20ff;

/** At most so many characters of one piece are counted. */
const MAX_COUNTED_CHARS = 256 * 1024;

/** Tokens of a tool call in addition to its name and arguments. */
const TOKENS_A_CALL = 9;
/** An upper bound of these: the markup of every public chat template has fewer bytes (2026-11-22). */
const MAX_TOKENS_A_CALL = 128;

/** A UTF-16 unit beyond ASCII has at most so many bytes of UTF-8. */
const MAX_UNIT_BYTES = 3;

const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
/** `b`, `f`, `n`, `r`, `t`: escapes of white space and similar characters. */
const SPACE_ESCAPES = [0x62, 0x66, 0x6e, 0x72, 0x74];
const FIRST_SURROGATE = 0xd800;

/** Kinds are numbers, and the kinds of ASCII are in a table, because every character of every response is looked up. */
const SPACE = 0;
const LETTER = 1;
const DIGIT = 2;
const SIGN = 3;
const WIDE = 4;
const CHARS_A_TOKEN = Uint8Array.of(0, LETTERS_A_TOKEN, DIGITS_A_TOKEN, SIGNS_A_TOKEN, 0);
const ASCII_KINDS = Uint8Array.from({ length: 0x80 }, (_, code) => kindOfAscii(code));

/** Counts the tokens of a text that comes in pieces. A word that spans two pieces counts once. */
export class TokenCount {
  #tokens = 0;
  /** An upper bound of the text's bytes in UTF-8. */
  #bytes = 0;
  #wideUnits = 0;
  #pieces = 0;
  #wideChars = 0;
  /** The last character's kind, and how many more of it belong to the same token. */
  #kind = SPACE;
  #charsLeft = 0;

  add(text: string): void {
    if (text === '') return;
    this.#pieces++;
    const counted = Math.min(text.length, MAX_COUNTED_CHARS);
    const tokensBefore = this.#tokens;
    const wideBefore = this.#wideChars;
    const unitsBefore = this.#wideUnits;
    for (let i = 0; i < counted; i++) this.#addChar(text.charCodeAt(i));
    const wideUnits = this.#wideUnits - unitsBefore + text.length - counted;
    this.#bytes += text.length + wideUnits * (MAX_UNIT_BYTES - 1);
    if (counted === text.length) return;
    // The rest of a long piece is extrapolated from its start: counting 8 MB would take 100 ms.
    const more = text.length / counted - 1;
    this.#tokens += (this.#tokens - tokensBefore) * more;
    this.#wideChars += (this.#wideChars - wideBefore) * more;
  }

  /** Like {@link add}, for the bytes of a JSON string between `from` and `to`. Only the kinds of characters are decoded. */
  addRaw(bytes: Uint8Array, from: number, to: number): void {
    this.#pieces++;
    this.#bytes += to - from;
    for (let i = from; i < to; i++) {
      const byte = bytes[i] ?? 0;
      if (byte === BACKSLASH) {
        i += this.#addEscape(bytes, i + 1);
      } else if (byte < 0x80) {
        this.#addChar(byte);
      } else if (byte >= 0xc0) {
        this.#addChar(firstOfSequence(byte, bytes[i + 1] ?? 0));
        // A character beyond the basic plane has two UTF-16 units, which `add` counts.
        if (byte >= 0xf0) this.#addChar(FIRST_SURROGATE);
      }
    }
  }

  /** @returns the number of bytes of the escape after its backslash */
  #addEscape(bytes: Uint8Array, at: number): number {
    const byte = bytes[at] ?? 0;
    if (byte === LOWER_U) {
      this.#addChar(Number.parseInt(String.fromCharCode(...bytes.subarray(at + 1, at + 5)), 16));
      return 5;
    }
    this.#addChar(SPACE_ESCAPES.includes(byte) ? 0x20 : byte);
    return 1;
  }

  addCall(): void {
    this.#tokens += TOKENS_A_CALL;
    this.#bytes += MAX_TOKENS_A_CALL;
  }

  /** An upper bound for every tokenizer: a token has at least one byte. */
  get maxTokens(): number {
    return this.#bytes;
  }

  /** At least the number of pieces, because most upstreams send one piece for each token. */
  get tokens(): number {
    return Math.max(this.#pieces, Math.ceil(this.#tokens + this.#wideChars * TOKENS_A_WIDE_CHAR));
  }

  #addChar(code: number): void {
    const isWide = code >= 0x80;
    if (isWide) this.#wideUnits++;
    const kind = isWide ? kindBeyondAscii(code) : (ASCII_KINDS[code] ?? SIGN);
    if (kind !== this.#kind) {
      this.#kind = kind;
      this.#charsLeft = 0;
    }
    if (kind === WIDE) this.#wideChars++;
    // A space belongs to the word after it.
    if (kind === WIDE || kind === SPACE) return;
    if (this.#charsLeft === 0) {
      this.#tokens++;
      this.#charsLeft = CHARS_A_TOKEN[kind] ?? 1;
    }
    this.#charsLeft--;
  }
}

function kindOfAscii(code: number): number {
  if (code <= 0x20) return SPACE;
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  const small = code | 0x20;
  return small >= 0x61 && small <= 0x7a ? LETTER : SIGN;
}

function kindBeyondAscii(code: number): number {
  if (code < FIRST_WIDE_CHAR) return code < 0xc0 ? SIGN : LETTER;
  return code >= FIRST_WIDE_SIGN && code <= LAST_WIDE_SIGN ? SIGN : WIDE;
}

/** A code of the same kind as the UTF-8 sequence that begins with these two bytes. */
function firstOfSequence(lead: number, second: number): number {
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | (second & 0x3f);
  return lead < 0xf0 ? ((lead & 0x0f) << 12) | ((second & 0x3f) << 6) : FIRST_SURROGATE;
}

/** The fields of a request body that the model reads. */
const PROMPT_FIELDS = fieldsWhere(({ isEstimated }) => isEstimated === true);
/** Tokens of a message's role and delimiters. */
const TOKENS_A_MESSAGE = 4;
/** Fields with media or their address, if it has the data. The length of that text does not correlate with its tokens. */
const MEDIA_FIELDS: ReadonlySet<string> = new Set(['url', 'image_url', 'document_url', 'file_data']);
/** Fields with nothing but media, signatures or encrypted reasoning. */
const OPAQUE_FIELDS: ReadonlySet<string> = wordSet(
  'data signature encrypted_content thoughtSignature thought_signature',
);

/** Of the texts of a longer prompt only so many characters are counted, in pieces from all parts of them, to keep the estimate cheap. */
const MAX_SAMPLE_CHARS = 64 * 1024;
const PIECE_CHARS = 256;

/**
 * Estimates the prompt tokens of a request.
 * @param body as the client sent it, in any protocol
 */
export function estimatePromptTokens(body: JsonObject): number {
  const texts: string[] = [];
  let chars = 0;
  // No recursion: a body may be nested deeper than the call stack allows.
  const open: unknown[] = PROMPT_FIELDS.map((field) => body[field]);
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === 'string') {
      texts.push(value);
      chars += value.length;
    } else if (Array.isArray(value)) for (const item of value) open.push(item);
    else if (isObject(value)) for (const key in value) if (!isMedia(key, value)) open.push(value[key]);
  }
  const share = Math.min(1, MAX_SAMPLE_CHARS / chars);
  let tokens = countTokenIds(body.input);
  for (const text of texts) tokens += estimateText(text, share);
  const messages = readArray(body.messages ?? body.input ?? body.contents).filter(isObject);
  return Math.ceil(tokens) + messages.length * TOKENS_A_MESSAGE;
}

/** An input of embeddings may be a list of token ids, or a list of such lists. */
function countTokenIds(input: unknown): number {
  let tokens = 0;
  for (const item of readArray(input)) {
    if (typeof item === 'number') tokens++;
    else if (typeof readArray(item)[0] === 'number') tokens += readArray(item).length;
  }
  return tokens;
}

function isMedia(key: string, { [key]: value, type }: JsonObject): boolean {
  if (typeof value !== 'string') return false;
  // The `data` of a document may be its text.
  if (OPAQUE_FIELDS.has(key)) return type !== 'text';
  return MEDIA_FIELDS.has(key) && value.startsWith('data:');
}

/** @param share of the text that is counted: the rest is extrapolated */
function estimateText(text: string, share: number): number {
  const count = new TokenCount();
  const pieces = Math.ceil((text.length * share) / PIECE_CHARS);
  if (share === 1 || pieces * PIECE_CHARS >= text.length) {
    count.add(text);
    return count.tokens;
  }
  const distance = (text.length - PIECE_CHARS) / Math.max(1, pieces - 1);
  for (let piece = 0; piece < pieces; piece++) {
    const from = Math.floor(piece * distance);
    count.add(text.slice(from, from + PIECE_CHARS));
  }
  return (count.tokens * text.length) / (pieces * PIECE_CHARS);
}
