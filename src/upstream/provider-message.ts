/** Makes of a provider's message a text that may be stored and logged: without the caller's prompt, without secrets, bounded (E5). */
import { sanitize, type Upstream } from '../canonical/upstream-error.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { CommonRuns, RUN_CHARS } from './common-runs.ts';

/** The bound of a stored message. */
const MAX_KEPT_CHARS = 300;

/** The part of a message that is compared with the request. */
const MAX_MESSAGE_CHARS = 1000;

/** The texts of a request that are compared. The message about a larger request is not kept. */
const MAX_COMPARED_CHARS = 4 * 1024 * 1024;

/** The depth of a request. The message about a deeper one is not kept. */
const MAX_DEPTH = 64;

/** Quotations and codes of a message that are searched in the request. Further ones are hidden. */
const MAX_SEARCHED = 64;

/** A shorter text is searched as a whole word, because it is a part of some word in any long text. */
const MIN_PART_CHARS = 4;

const HIDDEN = '…';

/**
 * The beginning of what the provider said. Everything that may come from the prompt becomes `…`: quotations that occur in the request,
 * runs of three words or 12 characters that occur there, and words with digits that do. Case, accents, white space and escapes make no
 * difference. Names of fields stay.
 * @param body the request as it was sent
 * @returns null: nothing is left, or the request is too large to compare
 */
export function providerMessage(message: string, body: JsonObject, upstream: Upstream): string | null {
  const request = readRequest(body);
  if (request === null) return null;
  const start = message.slice(0, MAX_MESSAGE_CHARS);
  const covered = new Uint8Array(start.length);
  coverRuns(start, request, covered);
  coverSearched(start, request, covered);
  // The cut may have divided a run, of which the rest is too short to be found.
  if (start.length < message.length) covered.fill(1, start.length - RUN_CHARS);
  coverWholeWords(start, covered);
  uncoverFields(start, request, covered);
  const kept = sanitize(hide(start, covered), upstream).slice(0, MAX_KEPT_CHARS).toWellFormed();
  return /[\p{L}\p{N}]/u.test(kept) ? kept : null;
}

interface RequestTexts {
  readonly texts: readonly string[];
  readonly fields: ReadonlySet<string>;
}

/** Fields whose texts are settings, and not the caller's own. */
const SETTINGS: ReadonlySet<string> = new Set([
  ...['model', 'reasoning', 'reasoning_effort', 'thinking', 'service_tier', 'verbosity', 'truncation'],
  ...['include', 'modalities', 'tool_choice', 'encoding_format'],
]);

/** Objects whose keys the caller chooses: schemas, arguments of tools, metadata. */
const OWN_KEYS: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'],
  ...['input', 'args', 'arguments', 'metadata', 'response', 'logit_bias'],
]);

/** Words of the API, such as `user` and `function`. */
const WORD_OF_API = /^[a-z_]{1,32}$/;
const API_WORDS: ReadonlySet<string> = new Set([
  'type',
  'role',
  'format',
  'detail',
  'effort',
  'verbosity',
  'mode',
]);

/** Reads the names of fields, and all texts in which a prompt may be; null if they exceed their bounds. */
function readRequest(body: JsonObject): RequestTexts | null {
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
    return Object.entries(value).every(([key, member]) => {
      if (hasOwnKeys) return add(key) && collect(member, depth + 1, isObject(member) && OWN_KEYS.has(key));
      fields.add(key);
      const isWord = API_WORDS.has(key) && typeof member === 'string' && WORD_OF_API.test(member);
      return isWord || collect(member, depth + 1, OWN_KEYS.has(key));
    });
  };
  for (const [key, value] of Object.entries(body)) {
    fields.add(key);
    const isSetting = SETTINGS.has(key) || typeof value === 'number';
    if (!isSetting && !collect(value, 0, OWN_KEYS.has(key))) return null;
  }
  return { texts, fields };
}

/** Covers what the message has in common with the request, in one pass over the request. */
function coverRuns(message: string, { texts }: RequestTexts, covered: Uint8Array): void {
  const runs = new CommonRuns();
  runs.add(message, (first, end) => covered.fill(1, first, end));
  const { text, from, to } = decodeEscapes(message);
  if (text !== message) runs.add(text, (first, end) => covered.fill(1, from[first] ?? 0, to[end - 1] ?? 0));
  for (const one of texts) runs.find(one);
}

const ESCAPE =
  /\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|\\([nrtbf])|&#(\d{1,5});|&#x([0-9a-f]{1,4});|%([0-7][0-9a-f])|&(quot|amp|lt|gt|apos|nbsp);/gi;
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ quot: '"', amp: '&', lt: '<', gt: '>', apos: "'", nbsp: ' ' },
};

/** The text with the escapes of JSON, Python, HTML and URLs decoded, and where each of its characters begins and ends in the original. */
function decodeEscapes(message: string): {
  readonly text: string;
  readonly from: readonly number[];
  readonly to: readonly number[];
} {
  if (!/[\\&%]/.test(message)) return { text: message, from: [], to: [] };
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
    const [all, unicode, byte, letter, decimal, hex, percent, entity] = match;
    add(message.slice(at, match.index), at, null);
    const digits = unicode ?? byte ?? hex ?? percent;
    const code = digits === undefined ? Number(decimal ?? 0) : Number.parseInt(digits, 16);
    const decoded =
      letter === undefined ? (ENTITIES[entity?.toLowerCase() ?? ''] ?? String.fromCharCode(code)) : ' ';
    at = match.index + all.length;
    add(decoded, match.index, at);
  }
  add(message.slice(at), at, null);
  return { text, from, to };
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

// Patterns of Unicode's classes stand in functions: as constants, these two took 0.4 ms of start-up.

function isWordUnit(character: string | undefined): boolean {
  return /[\p{L}\p{N}_]/u.test(character ?? '');
}

/** Words with a digit, such as passwords and numbers of accounts. */
function codesIn(message: string) {
  return message.matchAll(
    /(?<![\p{L}\p{N}_])(?=[\p{L}_]{0,64}\p{N})(?:[\p{L}\p{N}_]{4,64})(?![\p{L}\p{N}_])/gu,
  );
}

/** Numbers of fewer digits are limits and counts. */
const SHORT_NUMBER = /^\d{1,5}$/;

/** Covers quotations and codes that are too short for runs. */
function coverSearched(message: string, request: RequestTexts, covered: Uint8Array): void {
  const found: [from: number, to: number][] = [];
  let searches = 0;
  let lower: readonly string[] | null = null;
  const search = (from: number, to: number) => {
    const text = message.slice(from, to);
    const isCovered = covered.subarray(from, to).every((bit) => bit === 1);
    if (text.trim() === '' || isCovered || isField(text, request)) return;
    if (++searches > MAX_SEARCHED) {
      found.push([from, to]);
      return;
    }
    lower ??= request.texts.map((one) => one.toLowerCase());
    const forms = new Set([text, text.replaceAll('\\', ''), decodeEscapes(text).text]);
    if ([...forms].some((form) => occurs(form.trim().toLowerCase(), lower ?? []))) found.push([from, to]);
  };
  for (const { index, 0: mark } of message.matchAll(OPENING)) {
    if (mark === "'" && isWordUnit(message[index - 1])) continue;
    let closing = index;
    for (let n = 0; n < MAX_CLOSINGS; n++) {
      closing = message.indexOf(CLOSING[mark] ?? mark, closing + 1);
      if (closing < 0) break;
      const isApostrophe = mark === "'" && isWordUnit(message[closing + 1]);
      // A longer text is a run.
      if (!isApostrophe && closing - index <= MAX_QUOTED_CHARS) search(index + 1, closing);
    }
  }
  for (const { index, 0: code } of codesIn(message))
    if (!SHORT_NUMBER.test(code)) search(index, index + code.length);
  for (const [from, to] of found) covered.fill(1, from, to);
}

/** What is longer has a run of 12 characters, also with white space and escapes. */
const MAX_QUOTED_CHARS = 6 * RUN_CHARS;

function occurs(text: string, lower: readonly string[]): boolean {
  if (text === '') return false;
  if (text.length >= MIN_PART_CHARS) return lower.some((one) => one.includes(text));
  return lower.some((one) => {
    for (let at = one.indexOf(text); at >= 0; at = one.indexOf(text, at + 1)) {
      const isWord = !isWordUnit(one[at - 1]) && !isWordUnit(one[at + text.length]);
      if (isWord) return true;
    }
    return false;
  });
}

/** A run may begin or end within a word: the rest of the word belongs to the prompt, too. */
function coverWholeWords(message: string, covered: Uint8Array): void {
  for (const { index, 0: word } of message.matchAll(/[\p{L}\p{N}_$]+/gu)) {
    const part = covered.subarray(index, index + word.length);
    if (part.includes(1)) part.fill(1);
  }
}

/** Names of fields and their paths, as providers write them: `messages[0].content`, `tools.0.custom.input_schema`. */
const PATH = /[\w$][\w$.[\]]*[\w$\]]/g;
/** Words without these are English, too. */
const CODED = /[_.[]|[a-z][A-Z]/;

function uncoverFields(message: string, request: RequestTexts, covered: Uint8Array): void {
  for (const { index, 0: path } of message.matchAll(PATH)) {
    const isAlone = covered[index - 1] !== 1 && covered[index + path.length] !== 1;
    if ((isAlone || CODED.test(path)) && isField(path, request)) covered.fill(0, index, index + path.length);
  }
}

function isField(path: string, { fields }: RequestTexts): boolean {
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
