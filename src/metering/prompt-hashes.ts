/**
 * Keyed hashes of a request's prompt as it is sent to a provider, from which no text can be read or guessed without the key: those of its
 * beginnings, under which budgets know what a provider counted, and those of its parts, by which a break of the prompt cache is explained.
 */
import { type Field, fieldOf, fieldsWhere } from '../facts/fields.ts';
import { encodeBase64Bytes } from '../shared/encoding.ts';
import { isObject, type JsonObject, omit, readArray } from '../shared/json.ts';

/** A request as it is sent to a provider of any protocol: Chat Completions, Messages, Responses or Gemini. */
export interface SentPrompt {
  readonly body: JsonObject;
  /** The provider, the account and everything else that tells targets with the same body apart, as one text. */
  readonly target: string;
  /** The JSON texts of the conversation's items ({@link conversationField}), which hashes are made of; null: they were not kept. */
  readonly itemTexts: readonly string[] | null;
}

/** The prompt up to the end of one of its turns. */
export interface Beginning {
  /** 16 hexadecimal digits. */
  readonly hash: string;
  /** How many bytes of the body's JSON it has at least: what is not hashed, such as cache marks, is not counted. */
  readonly bytes: number;
}

/** The hashes of a prompt's parts, of 12 hexadecimal digits each. */
export interface PromptPrefix {
  /** 2 hexadecimal digits that tell keys apart: hashes of different keys cannot be compared. */
  readonly keyId: string;
  readonly target: string;
  readonly tools: string;
  readonly system: string;
  /** Thinking, tool choice and output format. */
  readonly settings: string;
  /** The user's messages before the first output, as the client sent them: the same for every target. */
  readonly first: string;
  /** The number of the last turn, from 1 on; 0: there is none. */
  readonly turns: number;
  /**
   * The conversation, without tools and system, up to the end of each of the last turns, from the earliest on. At most
   * {@link MAX_ENDS}.
   */
  readonly ends: readonly string[];
}

/** Ends of turns in a {@link PromptPrefix}. */
export const MAX_ENDS = 8;
/** Beginnings of a request, those with the last turns. */
export const MAX_BEGINNINGS = 64;

const BEGINNING_DIGITS = 16;
const PART_DIGITS = 12;
const KEY_ID_DIGITS = 2;
const TURNS_DIGITS = 4;
const MAX_TURNS = 0xffff;

/**
 * A turn's end is a link of the chain once this many characters have gathered since the last one, so that a conversation of many short
 * turns needs few calls. Which ends are links follows from the text before them alone.
 */
const LINK_CHARS = 8192;

/** The part of a conversation up to a turn's end. */
interface TurnEnd {
  /** The digest in hexadecimal digits. */
  readonly digest: string;
  readonly bytes: number;
}

interface HashedConversation {
  readonly turns: number;
  /** The last ones. */
  readonly ends: readonly TurnEnd[];
}

/**
 * Hashes prompts under a key that is derived from a secret. Native HMAC-SHA-256 over a chain of turns costs about as much as writing the
 * body's JSON a second time; a keyed hash in JavaScript costs many times that.
 */
export class PromptHasher {
  readonly #secret: string;
  #key: Promise<CryptoKey> | null = null;
  #keyId: Promise<string> | null = null;
  /** Budgets and cache reports may hash the same conversation. It is kept as long as the body. */
  readonly #conversations = new WeakMap<JsonObject, Promise<HashedConversation>>();

  /** @param secret `USER_HASH_KEY`, or else `ADMIN_TOKEN` */
  constructor(secret: string) {
    this.#secret = secret;
  }

  /**
   * The beginnings of a prompt that end with one of its last {@link MAX_BEGINNINGS} turns, from the shortest on. Each hash covers the
   * target, the headers and every field of the body except {@link UNCOUNTED_FIELDS}, with the conversation up to there.
   * @param headers the client's headers that are sent on and may change how the prompt is counted, as one text
   */
  async beginnings(prompt: SentPrompt, headers: string): Promise<readonly Beginning[]> {
    const { body, target } = prompt;
    const conversation = this.#hashConversation(prompt, MAX_BEGINNINGS);
    this.#conversations.set(body, conversation);
    const { ends } = await conversation;
    const [rest, ...system] = restOf(body);
    const all = [rest, ...system].join('\n');
    const base = await this.#digest('request', JSON.stringify([target, headers]), all);
    const bytes = encoder.encode(all).length;
    const beginnings: Beginning[] = [];
    for (const end of ends) {
      const hash = await this.#digest('beginning', base, end.digest);
      beginnings.push({ hash: hash.slice(0, BEGINNING_DIGITS), bytes: bytes + end.bytes });
    }
    return beginnings;
  }

  /** @param clientBody the body as the client sent it */
  async prefix(prompt: SentPrompt, clientBody: JsonObject): Promise<PromptPrefix> {
    const { body, target } = prompt;
    const conversation = this.#conversations.get(body);
    const { turns, ends } = await (conversation ?? this.#hashConversation(prompt, MAX_ENDS));
    const part = async (kind: string, text: string) => (await this.#digest(kind, text)).slice(0, PART_DIGITS);
    this.#keyId ??= this.#digest('key');
    return {
      keyId: (await this.#keyId).slice(0, KEY_ID_DIGITS),
      target: await part('target', target),
      tools: await part('tools', toolsOf(body)),
      system: await part('system', systemOf(body)),
      settings: await part('settings', settingsOf(body)),
      first: await part('first', firstOf(clientBody)),
      turns,
      ends: ends.slice(-MAX_ENDS).map(({ digest }) => digest.slice(0, PART_DIGITS)),
    };
  }

  async #hashConversation(
    { body, itemTexts }: Pick<SentPrompt, 'body' | 'itemTexts'>,
    maxEnds: number,
  ): Promise<HashedConversation> {
    const { system, items, extraBytes } = conversationOf(body);
    const turns = items.filter((_, i) => isTurnEnd(items, i)).length;
    const ends: TurnEnd[] = [];
    let link = '';
    let pending = '';
    let bytes = -extraBytes;
    let turn = 0;
    for (const [i, item] of items.entries()) {
      pending += `${itemText(item, itemTexts?.[system.length + i])}\n`;
      if (!isTurnEnd(items, i)) continue;
      turn++;
      const isLink = pending.length >= LINK_CHARS;
      const isWanted = turn > turns - maxEnds;
      if (!isLink && !isWanted) continue;
      const encoded = encoder.encode(`turn\n${link}\n${pending}`);
      const digest = await this.#sign(encoded);
      const endBytes = bytes + encoded.length - `turn\n${link}\n`.length;
      if (isWanted) ends.push({ digest, bytes: Math.max(0, endBytes) });
      if (isLink) {
        link = digest;
        pending = '';
        bytes = endBytes;
      }
    }
    return { turns, ends };
  }

  /** The kinds have no line break, so that no two kinds hash the same text. */
  #digest(...texts: readonly string[]): Promise<string> {
    return this.#sign(encoder.encode(texts.join('\n')));
  }

  async #sign(bytes: Uint8Array): Promise<string> {
    this.#key ??= deriveKey(this.#secret);
    return new Uint8Array(await crypto.subtle.sign('HMAC', await this.#key, bytes)).toHex();
  }
}

const encoder = new TextEncoder();
const HMAC = { name: 'HMAC', hash: 'SHA-256' };

/** Another key than that of the names of users. */
async function deriveKey(secret: string): Promise<CryptoKey> {
  const hmacKey = await crypto.subtle.importKey('raw', encoder.encode(secret), HMAC, false, ['sign']);
  const derived = await crypto.subtle.sign('HMAC', hmacKey, encoder.encode('weir prompt hashes'));
  return crypto.subtle.importKey('raw', derived, HMAC, false, ['sign']);
}

/** The text of a prefix: at most 108 characters. */
export function encodePrefix(prefix: PromptPrefix): string {
  const { keyId, target, tools, system, settings, first, turns, ends } = prefix;
  const number = Math.min(turns, MAX_TURNS).toString(16).padStart(TURNS_DIGITS, '0');
  const digits = [keyId, target, tools, system, settings, first, number, ...ends].join('');
  const bytes = (digits.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
  return encodeBase64Bytes(new Uint8Array(bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

const PARTS = 5;
const MIN_DIGITS = KEY_ID_DIGITS + PARTS * PART_DIGITS + TURNS_DIGITS;
const PREFIX_TEXT = /^[\w-]{44,108}$/;

/** Null if the text is not the one of a prefix. */
export function decodePrefix(text: string): PromptPrefix | null {
  if (!PREFIX_TEXT.test(text)) return null;
  // `atob` refuses a length that no text of bytes has.
  if (text.length % 4 === 1) return null;
  const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  const digits = Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  const count = (digits.length - MIN_DIGITS) / PART_DIGITS;
  if (!Number.isInteger(count) || count < 0 || count > MAX_ENDS) return null;
  const part = (at: number) => digits.slice(KEY_ID_DIGITS + at * PART_DIGITS).slice(0, PART_DIGITS);
  const ends = Array.from({ length: count }, (_, i) =>
    digits.slice(MIN_DIGITS + i * PART_DIGITS).slice(0, PART_DIGITS),
  );
  return {
    keyId: digits.slice(0, KEY_ID_DIGITS),
    target: part(0),
    tools: part(1),
    system: part(2),
    settings: part(3),
    first: part(4),
    turns: Number.parseInt(digits.slice(MIN_DIGITS - TURNS_DIGITS, MIN_DIGITS), 16),
    ends,
  };
}

// The fields of the four protocols.

const hashedAs = (part: Field['hashed']) => fieldsWhere(({ hashed }) => hashed === part);

/** The lists of messages, items or contents. A body has one of them. */
const CONVERSATIONS = hashedAs('conversation');
const SYSTEM_FIELDS = hashedAs('system');
const TOOL_FIELDS = hashedAs('tools');
const SETTING_FIELDS = hashedAs('setting');
/** Settings of Gemini that are settings of the prompt. The others are limits and sampling. */
const GEMINI_SETTINGS = ['thinkingConfig', 'responseMimeType', 'responseSchema', 'responseJsonSchema'];

/** Fields that cannot change how a prompt is counted: output limits, sampling, streaming, names of users. */
const UNCOUNTED_FIELDS = hashedAs('uncounted');
const UNCOUNTED_GEMINI = UNCOUNTED_FIELDS.flatMap((field) => fieldOf(field).configName ?? []);

/** Marks where a provider is to cache. Clients move them with each step. */
const MARKS = ['cache_control', 'prompt_cache_breakpoint'];

const SYSTEM_ROLES: readonly unknown[] = ['system', 'developer'];

interface Conversation {
  /** System messages before the first other one. */
  readonly system: readonly unknown[];
  /** All others. */
  readonly items: readonly unknown[];
  /** Bytes that the texts of the items have in addition to the body. */
  readonly extraBytes: number;
}

/** The field with the list of messages, items or contents; null: the body has none. */
export function conversationField(body: JsonObject): string | null {
  return CONVERSATIONS.find((field) => Array.isArray(body[field])) ?? null;
}

function conversationOf(body: JsonObject): Conversation {
  const { input } = body;
  if (typeof input === 'string') {
    const extraBytes = JSON.stringify({ role: 'user', content: '' }).length;
    return { system: [], items: [{ role: 'user', content: input }], extraBytes };
  }
  const field = conversationField(body);
  const list = field === null ? [] : readArray(body[field]);
  const start = list.findIndex((item) => !isSystem(item));
  const length = start < 0 ? list.length : start;
  return { system: list.slice(0, length), items: list.slice(length), extraBytes: 0 };
}

function isSystem(item: unknown): boolean {
  return isObject(item) && SYSTEM_ROLES.includes(item.role);
}

/** Items of Responses without a role are output of the model, except for results of tools and answers to its requests. */
const INPUT_TYPE = /_(?:output|response)$/;

function isOutput(item: unknown): boolean {
  if (!isObject(item)) return false;
  const { role, type } = item;
  if (role === undefined) return typeof type === 'string' && !INPUT_TYPE.test(type);
  return role === 'assistant' || role === 'model';
}

/** A turn ends before the next output of the model, and at the end of the conversation. */
function isTurnEnd(items: readonly unknown[], i: number): boolean {
  return i === items.length - 1 || (!isOutput(items[i]) && isOutput(items[i + 1]));
}

/**
 * The JSON of a message without cache marks. A content of one plain text has the form of a text: clients send either, and Claude Code
 * changes a message from one to the other when its mark moves on (2.1.330, recorded 2026-11-23).
 * @param json the message's text in the body, if it is known
 */
function itemText(item: unknown, json?: string): string {
  if (!isObject(item) || !Array.isArray(item.content))
    return json === undefined || hasMark(item) ? jsonOf(withoutMarks(item)) : json;
  const { content } = item;
  const [only] = content;
  if (content.length === 1 && isPlainText(only))
    return jsonOf({ ...omit(item, ...MARKS), content: only.text });
  if (!hasMark(item) && !content.some(hasMark)) return json ?? jsonOf(item);
  return jsonOf({ ...omit(item, ...MARKS), content: content.map(withoutMarks) });
}

function isPlainText(part: unknown): part is { readonly text: string } {
  if (!isObject(part) || part.type !== 'text' || typeof part.text !== 'string') return false;
  return Object.keys(part).every((key) => key === 'type' || key === 'text' || MARKS.includes(key));
}

function hasMark(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { content } = value;
  const hasOwn = MARKS.some((mark) => value[mark] !== undefined);
  // The results of tools have parts of their own.
  return (
    hasOwn ||
    (Array.isArray(content) &&
      content.some((part) => isObject(part) && MARKS.some((mark) => part[mark] !== undefined)))
  );
}

function withoutMarks(value: unknown): unknown {
  if (!hasMark(value) || !isObject(value)) return value;
  const { content } = value;
  const unmarked = omit(value, ...MARKS);
  return Array.isArray(content)
    ? { ...unmarked, content: content.map((part) => (isObject(part) ? omit(part, ...MARKS) : part)) }
    : unmarked;
}

function pick(body: JsonObject, fields: readonly string[]): readonly (readonly [string, unknown])[] {
  return fields
    .filter((field) => body[field] !== undefined)
    .map((field) => [field, unmarkedList(body[field])]);
}

function unmarkedList(value: unknown): unknown {
  return Array.isArray(value) ? value.map(withoutMarks) : value;
}

function toolsOf(body: JsonObject): string {
  return jsonOf(pick(body, TOOL_FIELDS));
}

function systemOf(body: JsonObject): string {
  return [
    jsonOf(pick(body, SYSTEM_FIELDS)),
    ...conversationOf(body).system.map((item) => itemText(item)),
  ].join('\n');
}

function settingsOf(body: JsonObject): string {
  const { generationConfig } = body;
  const gemini = isObject(generationConfig) ? pick(generationConfig, GEMINI_SETTINGS) : [];
  return jsonOf([...pick(body, SETTING_FIELDS), ...gemini]);
}

/**
 * The user's messages before the first output: Codex sends one with the environment before the user's own (0.169.0,
 * recorded 2026-11-23).
 */
function firstOf(clientBody: JsonObject): string {
  const { items } = conversationOf(clientBody);
  const end = items.findIndex(isOutput);
  const first = end < 0 ? items : items.slice(0, end);
  return first
    .filter((item) => isObject(item) && item.role === 'user')
    .map((item) => itemText(item))
    .join('\n');
}

/** The texts of all that is counted besides the conversation. */
function restOf(body: JsonObject): readonly string[] {
  const { generationConfig } = body;
  const rest = omit(body, ...UNCOUNTED_FIELDS, ...CONVERSATIONS);
  const entries = Object.entries(rest).map(([field, value]) => [field, unmarkedList(value)] as const);
  const plain = Object.fromEntries(entries);
  const config = isObject(generationConfig)
    ? { generationConfig: omit(generationConfig, ...UNCOUNTED_GEMINI) }
    : {};
  return [jsonOf({ ...plain, ...config }), ...conversationOf(body).system.map((item) => itemText(item))];
}

/** A request's body is within the bounds of depth, so that it has a text. */
function jsonOf(value: unknown): string {
  return JSON.stringify(value) ?? '';
}
