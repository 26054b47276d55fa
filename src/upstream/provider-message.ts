/**
 * Compares what a provider said with the request: what may be stored and logged of it, without the caller's prompt,
 * without secrets, bounded (E5), and which of its statements may be an echo of the prompt (Z2).
 */
import { sanitize, type Upstream } from '../canonical/upstream-error.ts';
import { fieldOf } from '../facts/fields.ts';
import { type Claim, isStockWord, type TextSpan } from '../fitting/refusal-words.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { lazyPattern } from '../shared/lazy-pattern.ts';
import { wordSet } from '../shared/words.ts';
import { CommonRuns, foldedUnit, RUN_CHARS } from './common-runs.ts';
import { ShortTexts } from './short-texts.ts';
import { UnreadTexts } from './unread-texts.ts';

/** The bound of a stored message. */
export const MAX_KEPT_CHARS = 300;

/** The part of a message of which the stored one is made. */
const MAX_MESSAGE_CHARS = 1000;

/** The texts of a request that are compared. Of a refusal of a larger one nothing is kept and nothing learned. */
const MAX_COMPARED_CHARS = 8 * 1024 * 1024;

/**
 * The characters of these that are read, each as often as it is read, as in texts that have much of the message.
 * Beyond, as of a larger request.
 */
const MAX_READ_CHARS = 6 * 1024 * 1024;

/** The depth of a request. A deeper one is as a larger one. */
const MAX_DEPTH = 64;

/** Quotations and codes of a message that are searched in the request. Further ones are hidden. */
const MAX_SEARCHED = 64;

/** A shorter text is searched as a whole word, because it is a part of some word in any long text. */
const MIN_PART_CHARS = 4;

const HIDDEN = '…';

/** What a provider's message has in common with the request that it refuses. The request is read once. */
export class MessageComparison {
  readonly #message: string;
  readonly #fields: ReadonlySet<string>;
  /** The characters of runs that occur in the request, and those of quotations and codes. */
  readonly #runs: Uint8Array;
  readonly #covered: Uint8Array;
  /** The claims whose words stand together in the request. */
  readonly #echoed = new Set<Claim>();
  #readChars = 0;
  /** The request was not read to its end. */
  readonly isCut: boolean;

  constructor(message: string, request: RequestTexts, claims: readonly Claim[]) {
    const end = claims.reduce((last, { sentence }) => Math.max(last, sentence.to), MAX_MESSAGE_CHARS);
    const compared = message.slice(0, end);
    this.#message = message;
    this.#fields = request.fields;
    this.#runs = new Uint8Array(compared.length);
    this.#covered = new Uint8Array(Math.min(compared.length, MAX_MESSAGE_CHARS));
    const decoded = decodeEscapes(compared);
    const texts = this.#findRuns(compared, decoded, request);
    this.isCut = texts === null || !this.#findShort(compared, decoded, texts, claims);
    this.#coverNames(request.names, decoded);
  }

  /** @returns the texts without repetitions; null: there is more to read than may be read */
  #findRuns(compared: string, decoded: Decoded, { texts, chars }: RequestTexts): readonly string[] | null {
    const runs = new CommonRuns();
    addRuns(runs, compared, decoded, this.#runs);
    const unread = new UnreadTexts(chars, BETWEEN_DIGITS);
    const read: string[] = [];
    for (const text of texts) {
      for (const part of unread.partsOf(text)) {
        runs.find(part);
        if (runs.readChars > MAX_READ_CHARS) return null;
        read.push(part);
      }
    }
    this.#readChars = runs.readChars;
    dropShortRuns(compared, this.#runs);
    for (let i = 0; i < this.#covered.length; i++) if (this.#runs[i] === 1) this.#covered[i] = 1;
    return read;
  }

  /** Finds what is too short for runs. @returns false: there is more to read than may be read */
  #findShort(
    compared: string,
    decoded: Decoded,
    texts: readonly string[],
    claims: readonly Claim[],
  ): boolean {
    const short = new ShortTexts();
    const coverNumbers = this.#search(short, decoded);
    const digits = this.#searchDigits(decoded);
    const nearby = new NearbyWords(claims, compared, short, (claim) => this.#echoed.add(claim));
    for (const text of texts) {
      const numbers = digits !== null || short.isOfNumbers ? [...text.matchAll(LONG_NUMBER)] : [];
      nearby.startText();
      if (numbers.length > 0 || !short.isOfNumbers) short.find(text);
      for (const { 0: number } of numbers) digits?.find(number);
      if (this.#readChars + short.readChars + (digits?.readChars ?? 0) > MAX_READ_CHARS) return false;
    }
    coverNumbers();
    return true;
  }

  /** Covers each word of the user's names, of any length. */
  #coverNames(names: readonly string[], decoded: Decoded): void {
    const searched = new ShortTexts();
    for (const word of wordsOfNames(names)) {
      searched.add(word, 'word', (at) => {
        this.#cover({ from: at, to: at + word.length }, decoded);
        return 'more';
      });
    }
    searched.find(decoded.text.slice(0, MAX_MESSAGE_CHARS).replaceAll('_', ' '));
  }

  /**
   * Searches quotations and codes, which are too short for runs, and covers those that are found. Those of which runs
   * cover all need no search.
   * @returns covers numbers of several groups, when all groups were searched
   */
  #search(short: ShortTexts, decoded: Decoded): () => void {
    const { text } = decoded;
    const cover = (span: TextSpan) => this.#cover(span, decoded);
    const isOpen = (span: TextSpan) => !this.#isCovered(span, decoded);
    const start = text.slice(0, MAX_MESSAGE_CHARS);
    /** What to do when a text is found, by the text: a message may have one many times. */
    const searched = new Map<string, (() => void)[]>();
    const search = (span: TextSpan, kind: 'part' | 'word', onFound: () => void) => {
      const part = start.slice(span.from, span.to);
      const key = `${kind} ${part}`;
      const known = searched.get(key);
      if (known !== undefined) {
        known.push(onFound);
        return;
      }
      const all = [onFound];
      const report = () => {
        for (const one of all) one();
        return 'done' as const;
      };
      const isSearched = searched.size < MAX_SEARCHED && short.add(part, kind, report);
      if (isSearched) searched.set(key, all);
      else onFound();
    };
    const codes = [...codesIn(start)].filter(({ 0: code }) => !SHORT_NUMBER.test(code));
    for (const span of [...quotationsIn(start), ...codes.map(spanOf)].filter(isOpen)) {
      const part = start.slice(span.from, span.to).trim();
      if (part !== '' && !isField(part, this.#fields))
        search(span, part.length < MIN_PART_CHARS ? 'word' : 'part', () => cover(span));
    }
    const numbers = [...groupsIn(start)]
      .filter(({ 0: number }) => !DECIMAL.test(number))
      .map(spanOf)
      .filter(isOpen);
    const left = numbers.map((number) => {
      const groups = [...start.slice(number.from, number.to).matchAll(/\d+/g)].map(spanOf);
      const missing = new Set(groups);
      for (const group of groups) {
        const place = { from: number.from + group.from, to: number.from + group.to };
        search(place, 'word', () => {
          missing.delete(group);
        });
      }
      return { number, missing };
    });
    return () => {
      for (const { number, missing } of left) if (missing.size === 0) cover(number);
    };
  }

  /**
   * Searches long numbers, such as those of cards and telephones, whatever stands between their digits, and covers
   * those that are found.
   */
  #searchDigits(decoded: Decoded): ShortTexts | null {
    const numbers = numbersIn(decoded.text.slice(0, MAX_MESSAGE_CHARS));
    if (numbers.length === 0) return null;
    const digits = new ShortTexts(foldDigits);
    for (const number of numbers) {
      const cover = () => {
        this.#cover(number, decoded);
        return 'done' as const;
      };
      if (!digits.add(decoded.text.slice(number.from, number.to), 'part', cover)) cover();
    }
    return digits;
  }

  #isCovered({ from: first, to: end }: TextSpan, { from, to }: Decoded): boolean {
    return !this.#covered.subarray(from[first] ?? first, to[end - 1] ?? end).includes(0);
  }

  #cover({ from: first, to: end }: TextSpan, { from, to }: Decoded): void {
    this.#covered.fill(1, from[first] ?? first, to[end - 1] ?? end);
  }

  /**
   * The beginning of what the provider said. Everything that may come from the prompt becomes `…`: quotations that occur in the request,
   * runs of three words or 11 characters that occur there, and words with digits that do. Case, accents, white space and escapes make no
   * difference. Names of fields stay.
   * @returns null: nothing is left
   */
  keep(upstream: Upstream): string | null {
    const start = this.#message.slice(0, MAX_MESSAGE_CHARS);
    const covered = this.#covered.slice();
    // The cut may have divided a run, of which the rest is too short to be found.
    if (start.length < this.#message.length) covered.fill(1, start.length - CUT_CHARS);
    coverWholeWords(start, covered);
    uncoverFields(start, this.#fields, covered);
    const kept = sanitize(hide(start, covered), upstream).slice(0, MAX_KEPT_CHARS).toWellFormed();
    return LETTER_OR_DIGIT().test(kept) ? kept : null;
  }

  /**
   * Whether a claim may be the caller's own text, which the provider repeats: its sentence has a part of the prompt, or its words stand
   * together there. A field's name alone, and words that many refusals have, are no part of a prompt.
   */
  isEcho(claim: Claim): boolean {
    return this.#echoed.has(claim) || hasPartOfPrompt(claim, this.#message, this.#runs);
  }
}

/** The rest of a run behind the cut, with white space. */
const CUT_CHARS = 2 * RUN_CHARS;

/**
 * @param names of the user that the body does not have
 * @returns null: the request is too large to compare
 */
export function compareWithRequest(
  message: string,
  body: JsonObject,
  claims: readonly Claim[] = [],
  names: readonly string[] = [],
): MessageComparison | null {
  const request = readRequest(body);
  if (request === null) return null;
  const all = { ...request, names: [...namesIn(body), ...names] };
  const comparison = new MessageComparison(message, all, claims);
  return comparison.isCut ? null : comparison;
}

interface RequestTexts {
  /** Of the user: not a word of them stays. */
  readonly names: readonly string[];
  readonly texts: readonly string[];
  /** The length of all texts. */
  readonly chars: number;
  readonly fields: ReadonlySet<string>;
}

/** Objects whose keys the caller chooses: schemas, arguments of tools, metadata. */
const OWN_KEYS: ReadonlySet<string> = wordSet(`
  properties patternProperties $defs definitions dependentSchemas input args arguments metadata response
  logit_bias
`);

/** Words of the API, such as `user` and `function`. */
const WORD_OF_API = /^[a-z_]{1,32}$/;
const API_WORDS: ReadonlySet<string> = wordSet('type role format detail effort verbosity mode');

/** Reads the names of fields, and all texts in which a prompt may be; null if they exceed their bounds. */
function readRequest(body: JsonObject): Omit<RequestTexts, 'names'> | null {
  const texts: string[] = [];
  const fields = new Set<string>();
  let chars = 0;
  const add = (text: string) => {
    texts.push(text);
    chars += text.length;
    return chars <= MAX_COMPARED_CHARS;
  };
  const collect = (value: unknown, depth: number, hasOwnKeys: boolean): boolean => {
    if (typeof value === 'string') return add(value);
    if (typeof value === 'number') return add(String(value));
    if (depth > MAX_DEPTH) return false;
    if (Array.isArray(value)) return value.every((element) => collect(element, depth + 1, false));
    if (!isObject(value)) return true;
    for (const key of Object.keys(value)) {
      const member = value[key];
      const isOwn = OWN_KEYS.has(key);
      if (hasOwnKeys) {
        if (!add(key) || !collect(member, depth + 1, isOwn && isObject(member))) return false;
        continue;
      }
      fields.add(key);
      const isWord = typeof member === 'string' && API_WORDS.has(key) && WORD_OF_API.test(member);
      if (!isWord && !collect(member, depth + 1, isOwn)) return false;
    }
    return true;
  };
  for (const [key, value] of Object.entries(body)) {
    fields.add(key);
    const isSetting = fieldOf(key).hasApiWords === true || typeof value === 'number';
    if (!isSetting && !collect(value, 0, OWN_KEYS.has(key))) return null;
  }
  return { texts, chars, fields };
}

/** The names of the user in a body of any protocol. */
function namesIn({ user, safety_identifier, metadata }: JsonObject): readonly string[] {
  const { user_id } = isObject(metadata) ? metadata : {};
  return [user, safety_identifier, user_id].filter((name) => typeof name === 'string');
}

/** Characters of a name, and its words. */
const MAX_NAME_CHARS = 1024;
const MAX_NAME_WORDS = 64;

/** The words of names by which a person may be known: words that many refusals have are none. */
function wordsOfNames(names: readonly string[]): ReadonlySet<string> {
  const words = names.flatMap((name) => name.slice(0, MAX_NAME_CHARS).match(NAME_WORDS()) ?? []);
  return new Set(words.filter((word) => !isStockWord(word.toLowerCase())).slice(0, MAX_NAME_WORDS));
}

function addRuns(runs: CommonRuns, message: string, decoded: Decoded, covered: Uint8Array): void {
  runs.add(message, (first, end) => covered.fill(1, first, end));
  const { text, from, to } = decoded;
  if (text !== message) runs.add(text, (first, end) => covered.fill(1, from[first] ?? 0, to[end - 1] ?? 0));
}

/** A single word of a prompt counts from this many characters on. */
const MIN_WORD_CHARS = 12;

/** Uncovers runs of {@link RUN_CHARS} characters that are one word: it may be any. */
function dropShortRuns(message: string, covered: Uint8Array): void {
  for (let at = covered.indexOf(1); at >= 0; at = covered.indexOf(1, at)) {
    const next = covered.indexOf(0, at);
    const end = next < 0 ? covered.length : next;
    const part = message.slice(at, end);
    if (part.length < MIN_WORD_CHARS && LETTERS_AND_DIGITS().test(part)) covered.fill(0, at, end);
    at = end;
  }
}

interface Decoded {
  readonly text: string;
  /** Where each of its characters begins and ends in the original. Empty: it is the original. */
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/** Escapes of JSON, Python, JavaScript, C, HTML and URLs, with the backslashes of texts within texts. */
const ESCAPE =
  /\\{1,4}u\{([\da-fA-F]{1,6})\}|\\{1,4}u([\da-fA-F]{4})|\\{1,4}U([\da-fA-F]{8})|&#[xX]([\da-fA-F]{1,8});|&#(\d{1,8});|((?:\\{1,4}x[\da-fA-F]{2}){1,64}|(?:%[\da-fA-F]{2}){1,64})|((?:\\{1,4}[0-3][0-7]{2}){1,64})|\\{1,4}([nrtbf])|&(quot|amp|lt|gt|apos|nbsp);/g;
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ quot: '"', amp: '&', lt: '<', gt: '>', apos: "'", nbsp: ' ' },
};

/** Escapes within escapes that are decoded, such as `%2541`. */
const MAX_DECODED_LEVELS = 3;

/** The text with its escapes decoded, and where each of its characters begins and ends in the original. */
function decodeEscapes(message: string): Decoded {
  let decoded: Decoded = { text: message, from: [], to: [] };
  for (let level = 0; level < MAX_DECODED_LEVELS && /[\\&%]/.test(decoded.text); level++) {
    const { text, from, to } = decodeOnce(decoded.text);
    if (text === decoded.text) break;
    const outer = decoded;
    decoded = {
      text,
      from: from.map((at) => outer.from[at] ?? at),
      to: to.map((at) => outer.to[at - 1] ?? at),
    };
  }
  return decoded;
}

function decodeOnce(message: string): Decoded {
  const from: number[] = [];
  const to: number[] = [];
  let text = '';
  const add = (piece: string, start: number, end: number | null) => {
    for (let i = 0; i < piece.length; i++) {
      from.push(end === null ? start + i : start);
      to.push(end ?? start + i + 1);
    }
    text += piece;
  };
  let at = 0;
  for (const match of message.matchAll(ESCAPE)) {
    const [all, braced, unit, long, hex, decimal, bytes, octal, letter, entity] = match;
    add(message.slice(at, match.index), at, null);
    const digits = braced ?? unit ?? long ?? hex;
    at = match.index + all.length;
    let decoded = letter === undefined ? (ENTITIES[entity ?? ''] ?? '') : ' ';
    if (digits !== undefined) decoded = characterOf(Number.parseInt(digits, 16));
    else if (decimal !== undefined) decoded = characterOf(Number(decimal));
    else if (bytes !== undefined) decoded = textOfBytes(bytes.match(/[\da-fA-F]{2}/g) ?? [], 16);
    else if (octal !== undefined) decoded = textOfBytes(octal.match(/[0-7]{3}/g) ?? [], 8);
    add(decoded, match.index, at);
  }
  add(message.slice(at), at, null);
  return { text, from, to };
}

const MAX_CODE_POINT = 0x10ffff;

function characterOf(code: number): string {
  return code <= MAX_CODE_POINT ? String.fromCodePoint(code) : '\ufffd';
}

/** Bytes are UTF-8, or one character each where they are not. */
function textOfBytes(bytes: readonly string[], radix: number): string {
  const codes = bytes.map((byte) => Number.parseInt(byte, radix));
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(codes));
  } catch {
    return String.fromCharCode(...codes);
  }
}

const CLOSING: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '“': '”',
  '‘': '’',
  '«': '»',
  '„': '“',
  '「': '」',
};
/** The keys of {@link CLOSING}. */
const OPENING = /["'`\u201c\u2018\xab\u201e\u300c]/g;

/** Quotations that may begin at one mark: a quoted text may contain marks itself. */
const MAX_CLOSINGS = 4;

function isWordUnit(character: string | undefined): boolean {
  return WORD_UNIT().test(character ?? '');
}

/** Words with a digit, such as passwords and numbers of accounts. */
function codesIn(message: string) {
  return message.matchAll(CODES());
}

/** Numbers of fewer digits are limits and counts, if they stand alone. */
const SHORT_NUMBER = /^\d{1,5}$/;

/** Groups of digits, as numbers of cards and telephones have them: no limits. */
function groupsIn(message: string) {
  return message.matchAll(DIGIT_GROUPS());
}

const DECIMAL = /^\d+\.\d+$/;

/** A number of a card or a telephone has at least this many digits. */
const MIN_NUMBER_DIGITS = 6;

/** Of a class of characters: digits, and signs with one. */
const DIGITS = String.raw`\d\xb2-\xbe\u2070-\u209f\u2150-\u218b\u2460-\u24ff\u3200-\u33ff\uff10-\uff19`;

/** Numbers of {@link MIN_NUMBER_DIGITS} digits, with what people write between them. */
function numbersIn(message: string): readonly TextSpan[] {
  const numbers = message.matchAll(NUMBERS());
  return [...numbers]
    .filter(({ 0: number }) => (number.match(DIGIT())?.length ?? 0) >= MIN_NUMBER_DIGITS)
    .map(spanOf);
}

/**
 * Where a text may have such a number: no letter of ASCII stands between its digits. Some signs are compared as the
 * digit in them, such as `²`.
 */
const LONG_NUMBER = new RegExp(`[${DIGITS}](?:[^a-zA-Z${DIGITS}]*[${DIGITS}]){5,}`, 'g');

/** Digits as they are compared: nothing counts that may stand between those of one number. */
function foldDigits(text: string, at: number): number {
  const unit = foldedUnit(text, at);
  return BETWEEN_DIGITS.has(unit) ? 0 : unit;
}

const BETWEEN_DIGITS: ReadonlySet<number> = new Set(
  [...' ,./()+_-\u2010\u2011\u2012\u2013\u2014\u2015\u2212'].map((sign) => sign.charCodeAt(0)),
);

function spanOf({ index, 0: text }: RegExpMatchArray & { readonly index: number }): TextSpan {
  return { from: index, to: index + text.length };
}

/** Where the quotations of a text are, without their marks. Quoted text may contain marks itself. */
function quotationsIn(message: string): readonly TextSpan[] {
  const spans: TextSpan[] = [];
  for (const { index, 0: mark } of message.matchAll(OPENING)) {
    if (mark === "'" && isWordUnit(message[index - 1])) continue;
    let closing = index;
    for (let n = 0; n < MAX_CLOSINGS; n++) {
      closing = message.indexOf(CLOSING[mark] ?? mark, closing + 1);
      if (closing < 0) break;
      const isApostrophe = mark === "'" && isWordUnit(message[closing + 1]);
      // A longer text is a run.
      if (!isApostrophe && closing - index <= MAX_QUOTED_CHARS) spans.push({ from: index + 1, to: closing });
    }
  }
  return spans;
}

/** What is longer has a run, also with white space and escapes. */
const MAX_QUOTED_CHARS = 72;

/** A run may begin or end within a word: the rest of the word belongs to the prompt, too. */
function coverWholeWords(message: string, covered: Uint8Array): void {
  for (const { index, 0: word } of message.matchAll(WORDS())) {
    const part = covered.subarray(index, index + word.length);
    if (part.includes(1)) part.fill(1);
  }
}

/** Names of fields and their paths, as providers write them: `messages[0].content`, `tools.0.custom.input_schema`. */
const PATH = /[\w$][\w$.[\]]*[\w$\]]/g;
/** Words without these are English, too. */
const CODED = /[_.[]|[a-z][A-Z]/;

function uncoverFields(message: string, fields: ReadonlySet<string>, covered: Uint8Array): void {
  for (const { index, 0: path } of message.matchAll(PATH)) {
    const isAlone = covered[index - 1] !== 1 && covered[index + path.length] !== 1;
    if ((isAlone || CODED.test(path)) && isField(path, fields)) covered.fill(0, index, index + path.length);
  }
}

function isField(path: string, fields: ReadonlySet<string>): boolean {
  const steps = path
    .trim()
    .split(/[.[\]]+/)
    .filter((step) => step !== '');
  const isName = (step: string) => fields.has(step);
  return steps.some(isName) && steps.every((step) => isName(step) || /^\d{1,4}$/.test(step));
}

/** Replaces each covered part by `…`. Parts with nothing but signs between them are one. */
function hide(message: string, covered: Uint8Array): string {
  let text = '';
  for (let at = 0; at < message.length; ) {
    const next = covered.indexOf(1, at);
    const from = next < 0 ? message.length : next;
    const kept = message.slice(at, from);
    const isBetween = next >= 0 && at > 0 && /^[\s,.:;!?-]*$/.test(kept);
    if (!isBetween) text += next < 0 ? kept : kept + HIDDEN;
    const end = covered.indexOf(0, from);
    at = end < 0 || next < 0 ? message.length : end;
  }
  return text;
}

/** Words that stand this close to each other in a prompt stand together. */
const MIN_NEAR_CHARS = 160;
const MAX_NEAR_CHARS = 400;
/** Words of a claim that are searched. */
const MAX_CORE_WORDS = 12;
/** Comparisons of places. Beyond them, every claim counts as an echo. */
const MAX_NEAR_CHECKS = 100_000;

interface SearchedClaim {
  readonly claim: Claim;
  readonly words: readonly number[];
  readonly near: number;
}

/** Finds the claims whose words stand together in a text, in any order. */
class NearbyWords {
  /** By word, where it was last seen. */
  readonly #seen: number[] = [];
  readonly #claimsOf: SearchedClaim[][] = [];
  readonly #claims: readonly Claim[];
  readonly #onEcho: (claim: Claim) => void;
  #checks = 0;

  constructor(claims: readonly Claim[], message: string, short: ShortTexts, onEcho: (claim: Claim) => void) {
    this.#claims = claims;
    this.#onEcho = onEcho;
    const ids = new Map<string, number>();
    for (const claim of claims) {
      const words = coreWords(claim, message)
        .filter((word) => word.length > 2 || /\d/.test(word))
        .slice(0, MAX_CORE_WORDS);
      if (words.length < 2) continue;
      short.addGroup(words);
      const near = Math.max(
        MIN_NEAR_CHARS,
        Math.min(claim.sentence.to - claim.sentence.from, MAX_NEAR_CHARS),
      );
      const searched: SearchedClaim = {
        claim,
        near,
        words: words.map((word) => {
          const known = ids.get(word);
          if (known !== undefined) return known;
          const id = ids.size;
          ids.set(word, id);
          this.#claimsOf.push([]);
          if (!short.add(word, 'word', (from) => this.#see(id, from), false)) this.#giveUp();
          return id;
        }),
      };
      for (const id of searched.words) this.#claimsOf[id]?.push(searched);
    }
  }

  /** The next places are those of another text. */
  startText(): void {
    if (this.#seen.length > 0) this.#seen.length = 0;
  }

  #see(id: number, at: number): 'more' | 'done' {
    this.#seen[id] = at;
    const left = (this.#claimsOf[id] ?? []).filter(({ claim, words, near }) => {
      const isTogether = words.every((word) => {
        this.#checks += 1;
        const seen = this.#seen[word];
        return seen !== undefined && at - seen <= near;
      });
      if (isTogether) this.#onEcho(claim);
      return !isTogether;
    });
    this.#claimsOf[id] = left;
    if (left.length === 0) return 'done';
    if (this.#checks <= MAX_NEAR_CHECKS) return 'more';
    this.#giveUp();
    return 'done';
  }

  #giveUp(): void {
    for (const claim of this.#claims) this.#onEcho(claim);
  }
}

function wordsIn(text: string) {
  return text.matchAll(WORDS());
}

/** The words of a claim's core, each once, in lower case. */
function coreWords({ core }: Claim, message: string): readonly string[] {
  const words = core.flatMap(({ from, to }) =>
    [...wordsIn(message.slice(from, to))].map(({ 0: word }) => word.toLowerCase()),
  );
  return [...new Set(words)];
}

/**
 * Whether the sentence has several words of the prompt in a row: with one that is neither a word of the claim nor of
 * many refusals, or with all words of the claim.
 */
function hasPartOfPrompt(claim: Claim, message: string, runs: Uint8Array): boolean {
  const core = new Set(coreWords(claim, message));
  const { from, to } = claim.sentence;
  let end = -1;
  let row: string[] = [];
  const isForeign = () =>
    row.length > 1 &&
    (row.some((word) => !core.has(word) && !isStockWord(word)) || core.isSubsetOf(new Set(row)));
  for (const { index, 0: word } of wordsIn(message.slice(from, to))) {
    const at = from + index;
    if (!runs.subarray(at, at + word.length).includes(1)) continue;
    if (end < 0 || runs.subarray(end, at).includes(0)) {
      if (isForeign()) return true;
      row = [];
    }
    row.push(word.toLowerCase());
    end = at + word.length;
  }
  return isForeign();
}

const LETTER_OR_DIGIT = lazyPattern('[\\p{L}\\p{N}]', 'u');
const LETTERS_AND_DIGITS = lazyPattern('^[\\p{L}\\p{N}]*$', 'u');
const NAME_WORDS = lazyPattern('[\\p{L}\\p{N}]{2,128}', 'gu');
const WORD_UNIT = lazyPattern('[\\p{L}\\p{N}_]', 'u');
const WORDS = lazyPattern('[\\p{L}\\p{N}_$]+', 'gu');
const CODES = lazyPattern(
  '(?<![\\p{L}\\p{N}_])(?=[\\p{L}_]{0,64}\\p{N})(?:[\\p{L}\\p{N}_]{4,64})(?![\\p{L}\\p{N}_])',
  'gu',
);
const DIGIT_GROUPS = lazyPattern(
  '(?<![\\p{L}\\p{N}_.])\\d{1,5}(?:[ ./()-]{1,3}\\d{1,5}){1,12}(?![\\p{L}\\p{N}_])',
  'gu',
);
const NUMBERS = lazyPattern(
  '\\p{Nd}{1,64}(?:[\\s,./()+_\\u2010-\\u2015\\u2212-]{1,3}\\p{Nd}{1,64}){0,64}',
  'gu',
);
const DIGIT = lazyPattern('\\p{Nd}', 'gu');
