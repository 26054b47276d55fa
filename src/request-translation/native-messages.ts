/** What the request writers for Messages and Gemini share: leading system messages, unread keys, and data URLs. */
import { isObject, type JsonObject } from '../shared/json.ts';
import { isFromResponse, type TranslationReport } from './dropped-fields.ts';

export function isSystemMessage({ role }: JsonObject): boolean {
  return role === 'system' || role === 'developer';
}

/** Splits off the system messages at the start of a conversation: native APIs have a field for them. */
export function splitLeadingSystem(messages: readonly unknown[]): {
  readonly leading: readonly JsonObject[];
  readonly rest: readonly JsonObject[];
} {
  const all = messages.filter(isObject);
  const first = all.findIndex((message) => !isSystemMessage(message));
  const end = first < 0 ? all.length : first;
  return { leading: all.slice(0, end), rest: all.slice(end) };
}

/** Reports the keys of a message that are not sent. Keys that a response carried and a client repeats are not reported. */
export function reportUnreadKeys(
  message: JsonObject,
  read: readonly string[],
  report: TranslationReport,
): void {
  for (const key of Object.keys(message)) {
    // A message may have any number of keys.
    if (report.hasMaxDropped) return;
    const value = message[key];
    const isIgnored = value === null || value === undefined || isFromResponse(key);
    if (!isIgnored && !read.includes(key)) report.drop(`messages.${key}`);
  }
}

/** Appends in a loop: `push(...items)` with many items would exceed the engine's stack. */
export function append<Item>(list: Item[], items: readonly Item[]): void {
  for (const item of items) list.push(item);
}

/** `data:<type>[;parameters][;base64],` */
const DATA_URL_HEAD = /^data:([^;,]*)(?:;[^;,]*)*?(;base64)?,/i;

/** A head is a media type and a few parameters, so the search does not run over the data. */
const MAX_HEAD_CHARS = 256;

export interface DataUrl {
  readonly mediaType: string;
  readonly isBase64: boolean;
  readonly data: string;
}

/** @returns null if the URL is not a data URL */
export function parseDataUrl(url: string): DataUrl | null {
  const [head, mediaType = '', base64] = DATA_URL_HEAD.exec(url.slice(0, MAX_HEAD_CHARS)) ?? [];
  if (head === undefined) return null;
  return { mediaType, isBase64: base64 !== undefined, data: url.slice(head.length) };
}
