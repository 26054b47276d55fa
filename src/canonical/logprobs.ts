/** Log probabilities in the chat form and in the legacy completions form: reads both, and converts one into the other. */
import { isObject, type JsonObject, readArray, readCount } from '../shared/json.ts';

interface TopLogprob {
  readonly token: string;
  readonly logprob: number | null;
  readonly bytes: readonly number[] | null;
}

interface TokenLogprob extends TopLogprob {
  readonly top_logprobs: readonly TopLogprob[];
}

export interface ChatLogprobs {
  readonly content: readonly TokenLogprob[] | null;
  readonly refusal: readonly TokenLogprob[] | null;
}

export interface TextLogprobs {
  readonly tokens: readonly string[];
  readonly token_logprobs: readonly (number | null)[];
  readonly top_logprobs: readonly (Readonly<Record<string, number>> | null)[] | null;
  readonly text_offset: readonly number[];
}

export type Logprobs = ChatLogprobs | TextLogprobs;

/** Reads either form from an upstream. Null if there are no entries (absent, empty, or lists that are null). */
export function readLogprobs(value: unknown): Logprobs | null {
  if (!isObject(value)) return null;
  if (Array.isArray(value.tokens)) return readTextLogprobs(value);
  const content = readEntries(value.content);
  const refusal = readEntries(value.refusal);
  return content === null && refusal === null ? null : { content, refusal };
}

function readEntries(value: unknown): TokenLogprob[] | null {
  const entries: TokenLogprob[] = [];
  // A single object for each entry: an event may have tens of thousands of them.
  for (const entry of readArray(value)) {
    if (!isToken(entry)) continue;
    const { token, logprob, bytes } = readToken(entry);
    entries.push({ token, logprob, bytes, top_logprobs: readTops(entry.top_logprobs) });
  }
  return entries.length === 0 ? null : entries;
}

const NO_TOPS: readonly TopLogprob[] = [];

function readTops(value: unknown): readonly TopLogprob[] {
  const tops = readArray(value);
  return tops.length === 0 ? NO_TOPS : tops.filter(isToken).map(readToken);
}

/** An entry without a token is skipped: it has no information, and would be written with sixty bytes. */
function isToken(entry: unknown): entry is JsonObject {
  return isObject(entry) && typeof entry.token === 'string';
}

function readToken(entry: { readonly [key: string]: unknown }): TopLogprob {
  return {
    token: typeof entry.token === 'string' ? entry.token : '',
    logprob: readNumber(entry.logprob),
    bytes: Array.isArray(entry.bytes) ? entry.bytes.filter((byte) => typeof byte === 'number') : null,
  };
}

function readTextLogprobs(value: { readonly [key: string]: unknown }): TextLogprobs | null {
  const tokens = readArray(value.tokens).map((token) => (typeof token === 'string' ? token : ''));
  if (tokens.length === 0) return null;
  return {
    tokens,
    token_logprobs: readArray(value.token_logprobs).map(readNumber),
    top_logprobs: Array.isArray(value.top_logprobs) ? value.top_logprobs.map(readTopRecord) : null,
    text_offset: readArray(value.text_offset).map((offset) => readCount(offset) ?? 0),
  };
}

function readTopRecord(value: unknown): Readonly<Record<string, number>> | null {
  if (!isObject(value)) return null;
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, number] => typeof pair[1] === 'number'),
  );
}

function readNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/** Approximate UTF-16 units of an entry's JSON without its token and bytes. */
const ENTRY_CHARS = 60;
const BYTE_CHARS = 4;

/** Estimates the size of logprobs as JSON, in UTF-16 units, without the memory that writing them would take. */
export function sizeOfLogprobs(logprobs: Logprobs | null): number {
  if (logprobs === null) return 0;
  if (!isTextForm(logprobs)) return sizeOfEntries(logprobs.content) + sizeOfEntries(logprobs.refusal);
  const tokens = logprobs.tokens.reduce((sum, token) => sum + token.length + ENTRY_CHARS, 0);
  return (logprobs.top_logprobs ?? []).reduce((sum, top) => sum + sizeOfTopRecord(top), tokens);
}

function sizeOfEntries(entries: readonly TokenLogprob[] | null): number {
  let sum = 0;
  for (const entry of entries ?? []) {
    sum += sizeOfToken(entry);
    for (const top of entry.top_logprobs) sum += sizeOfToken(top);
  }
  return sum;
}

function sizeOfToken({ token, bytes }: TopLogprob): number {
  return ENTRY_CHARS + token.length + BYTE_CHARS * (bytes?.length ?? 0);
}

function sizeOfTopRecord(top: Readonly<Record<string, number>> | null): number {
  return Object.keys(top ?? {}).reduce((sum, token) => sum + token.length + ENTRY_CHARS / 2, 0);
}

function isTextForm(logprobs: Logprobs): logprobs is TextLogprobs {
  return 'tokens' in logprobs;
}

/** Converts to the chat form. The legacy form has no bytes, and they do not follow from the text: a token may be half a character. */
export function toChatLogprobs(logprobs: Logprobs): ChatLogprobs {
  if (!isTextForm(logprobs)) return logprobs;
  const content = logprobs.tokens.map((token, i) => ({
    token,
    logprob: logprobs.token_logprobs[i] ?? null,
    bytes: null,
    top_logprobs: Object.entries(logprobs.top_logprobs?.[i] ?? {}).map(([top, logprob]) => ({
      token: top,
      logprob,
      bytes: null,
    })),
  }));
  return { content, refusal: null };
}

/**
 * Converts to the legacy form.
 * @param offset the UTF-16 units of the choice's earlier tokens, which the chat form does not contain
 */
export function toTextLogprobs(logprobs: Logprobs, offset: number): TextLogprobs | null {
  if (isTextForm(logprobs)) return logprobs;
  if (logprobs.content === null) return null;
  let next = offset;
  const offsets: number[] = [];
  for (const entry of logprobs.content) {
    offsets.push(next);
    next += entry.token.length;
  }
  return {
    tokens: logprobs.content.map((entry) => entry.token),
    token_logprobs: logprobs.content.map((entry) => entry.logprob),
    top_logprobs: logprobs.content.map((entry) =>
      Object.fromEntries(entry.top_logprobs.map((top) => [top.token, top.logprob ?? 0])),
    ),
    text_offset: offsets,
  };
}
