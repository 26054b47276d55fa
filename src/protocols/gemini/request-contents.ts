/** Writes a chat conversation as Gemini's `contents` and `systemInstruction`, with thought signatures on the parts they belong to. */

import { readProviderTag } from '../../canonical/reasoning-details.ts';
import { reportedField, type TranslationReport } from '../../request-translation/dropped-fields.ts';
import { PLACEHOLDER_SIGNATURE, providerOfExtra } from '../../request-translation/messages.ts';
import {
  append,
  parseDataUrl,
  reportUnreadKeys,
  splitLeadingSystem,
} from '../../request-translation/native-messages.ts';
import { MOVED_RESULT_NOTE } from '../../request-translation/tool-results.ts';
import { argumentsObject, StepCalls } from '../../request-translation/tools.ts';
import { decodePercent, encodeBase64 } from '../../shared/encoding.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import type { GeminiFamily } from './family.ts';

interface Turn {
  readonly role: 'user' | 'model';
  readonly parts: JsonObject[];
}

export interface Conversation {
  readonly contents: readonly JsonObject[];
  /** Undefined if no system message leads the conversation. */
  readonly systemInstruction: JsonObject | undefined;
}

const MESSAGE_KEYS = ['role', 'content', 'tool_calls', 'tool_call_id'];
/** A tool message may name its tool; the name is also known from the call. */
const TOOL_MESSAGE_KEYS = [...MESSAGE_KEYS, 'name'];

/** @param providerId the id of the provider that receives the request: only its own signatures are sent */
export function writeContents(
  messages: readonly unknown[],
  family: GeminiFamily,
  providerId: string,
  report: TranslationReport,
): Conversation {
  const { leading, rest } = splitLeadingSystem(messages);
  const system = leading.map(({ content }) => writeParts(content, report)).filter(({ length }) => length > 0);
  const writer = new ContentWriter(family, providerId, report);
  for (const message of [...leading, ...rest]) {
    reportUnreadKeys(message, message.role === 'tool' ? TOOL_MESSAGE_KEYS : MESSAGE_KEYS, report);
  }
  for (const message of rest) writer.add(message);
  const turns = writer.take();
  // 400 "contents is not specified", where OpenAI answers a system message (ikechan8370/chatgpt-plugin#733, 2024-12-22).
  const prompt = turns.length === 0 ? system.pop() : undefined;
  return {
    contents: prompt === undefined ? turns : [{ role: 'user', parts: prompt }],
    systemInstruction: system.length === 0 ? undefined : { parts: system.flat() },
  };
}

class ContentWriter {
  readonly #family: GeminiFamily;
  readonly #providerId: string;
  readonly #report: TranslationReport;
  readonly #turns: Turn[] = [];
  readonly #embedded = new EmbeddedJson();
  readonly #results = new StepResults(this.#embedded);
  /** The user's parts since the last model turn. They follow the tool results, even if the client sent them before. */
  #userParts: JsonObject[] = [];

  constructor(family: GeminiFamily, providerId: string, report: TranslationReport) {
    this.#family = family;
    this.#providerId = providerId;
    this.#report = report;
  }

  add(message: JsonObject): void {
    if (message.role === 'tool') return this.#addResult(message);
    if (message.role === 'assistant') {
      this.#endUserTurn();
      return this.#push('model', this.#assistant(message));
    }
    // Gemini has no system turns: a later system message becomes the user's.
    append(this.#userParts, writeParts(message.content, this.#report));
  }

  take(): readonly JsonObject[] {
    this.#endUserTurn();
    const [first] = this.#turns;
    // 400 "Please ensure that function call turn comes immediately after a user turn", for a history whose beginning a client removed
    // (google-gemini/gemini-cli#11814, 2025-10-23; diegosouzapw/OmniRoute#13573, 2026-09-13).
    const startsWithCall =
      first?.role === 'model' && first.parts.some(({ functionCall }) => functionCall !== undefined);
    const before = startsWithCall ? [{ role: 'user', parts: [{ text: ' ' }] }] : [];
    return [...before, ...this.#turns.map(({ role, parts }) => ({ role, parts }))];
  }

  #endUserTurn(): void {
    const userParts = this.#userParts;
    this.#userParts = [];
    this.#push('user', [...this.#results.take(), ...userParts]);
  }

  /** Turns alternate: parts of the same role as the last turn are added to it. */
  #push(role: Turn['role'], parts: readonly JsonObject[]): void {
    if (parts.length === 0) return;
    const last = this.#turns.at(-1);
    if (last?.role === role) append(last.parts, parts);
    else this.#turns.push({ role, parts: [...parts] });
  }

  #assistant(message: JsonObject): JsonObject[] {
    const signatures = readSignatures(message, this.#providerId);
    const content = writeParts(message.content, this.#report);
    const refusal = content.length === 0 ? writeParts(message.refusal, this.#report) : [];
    if (this.#turns.at(-1)?.role !== 'model') this.#results.begin();
    const calls = readArray(message.tool_calls)
      .filter(isObject)
      .map((call) => this.#call(call, signatures.calls.get(readText(call.id) ?? '')));
    return [
      ...signatures.thoughts.map((thoughtSignature) => ({ text: '', thought: true, thoughtSignature })),
      ...withTextSignatures([...content, ...refusal], signatures.texts),
      ...(this.#family.needsSignatures ? withStandIn(calls) : calls),
    ];
  }

  #call(call: JsonObject, thoughtSignature: string | undefined): JsonObject {
    const called = objectOf(call.function, call.custom);
    const id = readText(call.id);
    const name = readText(called.name) ?? '';
    this.#results.addCall(id ?? '', name);
    return {
      functionCall: {
        ...(id === undefined ? {} : { id }),
        name,
        args: argumentsObject(called.arguments ?? called.input, this.#embedded),
      },
      ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
    };
  }

  #addResult(message: JsonObject): void {
    const id = readText(message.tool_call_id) ?? '';
    const parts = writeParts(message.content, this.#report);
    this.#results.add(id, parts, readText(message.name) ?? id, this.#family.mediaInResults);
  }
}

interface Result {
  readonly id: string;
  /** The result, and media beside it. */
  readonly parts: readonly JsonObject[];
}

/** Collects the tool results of a step: each has the name of its call, and they are sent in the order of the calls. */
class StepResults {
  readonly #calls = new StepCalls();
  readonly #embedded: EmbeddedJson;
  #results: Result[] = [];

  constructor(embedded: EmbeddedJson) {
    this.#embedded = embedded;
  }

  begin(): void {
    this.#calls.begin();
  }

  addCall(id: string, name: string): void {
    this.#calls.add(id, name);
  }

  /**
   * @param parts the result's content: texts and media
   * @param fallbackName the name if the result's call is missing
   * @param mediaWithin whether media that a result may have are part of it, or parts beside it
   */
  add(id: string, parts: readonly JsonObject[], fallbackName: string, mediaWithin: boolean): void {
    const media = parts.filter(({ text }) => text === undefined);
    const within = mediaWithin ? media.filter(isResultMedia) : [];
    const beside = media.filter((part) => !within.includes(part));
    const text = parts.flatMap((part) => (typeof part.text === 'string' ? [part.text] : [])).join('\n');
    const functionResponse = {
      ...(id === '' ? {} : { id }),
      name: this.#calls.matchResult(id) ?? fallbackName,
      response: responseObject(text === '' && beside.length > 0 ? MOVED_RESULT_NOTE : text, this.#embedded),
      ...(within.length > 0 ? { parts: within } : {}),
    };
    this.#results.push({ id, parts: [{ functionResponse }, ...beside] });
  }

  /** All results in one turn, in the order of their calls: Google counts them (google-gemini/gemini-cli#16543, 2026-01-13). */
  take(): JsonObject[] {
    const place = ({ id }: Result) => this.#calls.positionOf(id);
    const results = this.#results.toSorted((a, b) => place(a) - place(b)).map(({ parts }) => parts);
    this.#results = [];
    // Media beside the results follow all of them.
    return [...results.flatMap((parts) => parts.slice(0, 1)), ...results.flatMap((parts) => parts.slice(1))];
  }
}

/**
 * The media types of a result, from memory of Google's guide to function calling (2026-11-23). A URI is "not supported in Gemini API":
 * `FunctionResponsePart` of google-genai-kotlin, read 2026-11-23.
 */
const RESULT_TYPES: readonly unknown[] = [
  ...['image/png', 'image/jpeg', 'image/webp', 'application/pdf', 'text/plain'],
];

function isResultMedia({ inlineData }: JsonObject): boolean {
  return isObject(inlineData) && RESULT_TYPES.includes(inlineData.mimeType);
}

/**
 * A result must be an object: other text becomes `output`. So does an object with a `$ref`, which Google takes for the name of a file
 * beside it: 400 "The referenced name … does not match to a display_name" (vercel/ai#14369, reproduced 2026-07-02).
 */
function responseObject(text: string, embedded: EmbeddedJson): JsonObject {
  const result = text.includes('"$ref"') ? undefined : embedded.object(text);
  return result ?? { output: text };
}

/** OpenRouter's name for the form of Google's signatures. */
const SIGNATURE_FORMAT = 'google-gemini-v1';

interface TextSignature {
  readonly signature: string;
  /** The length of the signed text; 0 for an empty part. */
  readonly chars: number;
}

interface Signatures {
  /** By the id of the call. */
  readonly calls: ReadonlyMap<string, string>;
  readonly texts: readonly TextSignature[];
  readonly thoughts: readonly string[];
}

/** Reads the signatures of an assistant message that this provider made, and untagged ones in Google's form. */
function readSignatures(message: JsonObject, providerId: string): Signatures {
  const calls = new Map<string, string>();
  const texts: TextSignature[] = [];
  const thoughts: string[] = [];
  const toolCalls = readArray(message.tool_calls).filter(isObject);
  const callIds = new Set(toolCalls.map(({ id }) => id));
  for (const detail of readArray(message.reasoning_details).filter(isObject)) {
    const signature = readText(detail.data) ?? readText(detail.signature);
    const tag = readProviderTag(detail.id);
    const isOwn = (tag?.provider ?? providerId) === providerId;
    if (signature === undefined || detail.format !== SIGNATURE_FORMAT || !isOwn) continue;
    const [kind = '', chars = ''] = tag?.payload.split('-') ?? [];
    // In OpenRouter's form the detail has the id of its call.
    const isOfCall = detail.id !== undefined && callIds.has(detail.id);
    if (isOfCall) calls.set(readText(detail.id) ?? '', signature);
    else if (kind === 'thought' || detail.type === 'reasoning.text') thoughts.push(signature);
    else texts.push({ signature, chars: Number.parseInt(chars, 10) || 0 });
  }
  for (const { id, extra_content: extra } of toolCalls) {
    const google = isObject(extra) ? extra.google : undefined;
    const signature = isObject(google) ? readText(google.thought_signature) : undefined;
    const isOwn = (providerOfExtra(extra) ?? providerId) === providerId;
    if (signature !== undefined && isOwn) calls.set(readText(id) ?? '', signature);
  }
  return { calls, texts, thoughts };
}

/** The first call of a step needs a signature: https://ai.google.dev/gemini-api/docs/thought-signatures (read 2026-11-21). */
function withStandIn(calls: readonly JsonObject[]): readonly JsonObject[] {
  const [first, ...others] = calls;
  const isUnsigned = calls.every(({ thoughtSignature }) => thoughtSignature === undefined);
  return first !== undefined && isUnsigned
    ? [{ ...first, thoughtSignature: PLACEHOLDER_SIGNATURE }, ...others]
    : calls;
}

/** Splits the text so that each signature is on a part with the text it was made for. Signatures of empty parts follow. */
function withTextSignatures(
  content: readonly JsonObject[],
  signatures: readonly TextSignature[],
): JsonObject[] {
  const parts: JsonObject[] = [];
  const empty: JsonObject[] = [];
  /** The index of the current text, and how many of its characters are signed. */
  let at = 0;
  let signedChars = 0;
  for (const { signature: thoughtSignature, chars } of signatures) {
    while (at < content.length && readText(content[at]?.text) === undefined) parts.push(content[at++] ?? {});
    const text = readText(content[at]?.text) ?? '';
    if (chars === 0 || text.length - signedChars < chars) {
      empty.push({ text: '', thoughtSignature });
      continue;
    }
    parts.push({ text: text.slice(signedChars, signedChars + chars), thoughtSignature });
    signedChars += chars;
    if (signedChars < text.length) continue;
    at++;
    signedChars = 0;
  }
  if (signedChars > 0) parts.push({ text: readText(content[at++]?.text)?.slice(signedChars) });
  return [...parts, ...content.slice(at), ...empty];
}

/** Cache marks of Anthropic and of OpenAI: Gemini has none on parts. */
const CACHE_MARKS = ['cache_control', 'prompt_cache_breakpoint'];

/** Thinking parts are not sent back, only their signatures. */
const THINKING_PARTS = ['thinking', 'redacted_thinking', 'reasoning'];

const MEDIA_HINT = 'send texts, and images, audio, videos and files as data or as a URI';

/** The parts of a message's content, without empty texts. */
function writeParts(content: unknown, report: TranslationReport): JsonObject[] {
  if (typeof content === 'string') return textPart(content);
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown) => {
    if (typeof part === 'string') return textPart(part);
    return isObject(part) ? writePart(part, report) : [];
  });
}

function textPart(text: unknown): JsonObject[] {
  return readText(text) === undefined ? [] : [{ text }];
}

function writePart(part: JsonObject, report: TranslationReport): JsonObject[] {
  const type = readText(part.type) ?? 'text';
  for (const mark of CACHE_MARKS) {
    if (part[mark] !== undefined && part[mark] !== null) report.drop(`messages.content.${mark}`);
  }
  if (type === 'text') return textPart(part.text);
  if (type === 'refusal') return textPart(part.refusal);
  if (THINKING_PARTS.includes(type)) return [];
  const media = readMedia(type, part);
  if (media !== undefined) return [media];
  // Without the part the output would differ, so dropping it needs the caller's consent.
  const name = `messages.content.${type}`;
  if (report.mode === 'drop') report.dropAllowed(name);
  else report.fail('messages', `${reportedField(name)} is not supported: ${MEDIA_HINT}`);
  return [];
}

/** OpenAI's media parts, and OpenRouter's `video_url`. */
function readMedia(type: string, part: JsonObject): JsonObject | undefined {
  if (type === 'image_url' || type === 'video_url') {
    const { [type]: value } = part;
    return mediaPart(readText(isObject(value) ? value.url : value));
  }
  if (type === 'input_audio' && isObject(part.input_audio)) {
    const { data, format } = part.input_audio;
    return { inlineData: { mimeType: `audio/${readText(format) ?? 'wav'}`, data } };
  }
  if (type === 'file' && isObject(part.file)) {
    const { file_data, file_id, filename } = part.file;
    return mediaPart(readText(file_data) ?? uploadedFileUri(readText(file_id)), readText(filename));
  }
  return undefined;
}

/** The id of a file that was uploaded to Google is a URI. Ids of other providers are not. */
function uploadedFileUri(id: string | undefined): string | undefined {
  return id?.includes('://') ? id : undefined;
}

/** The media type is optional for a URI. It is set if the file name shows one that Gemini takes by URI (vercel/ai#16757, 2026-07-06). */
const TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  mp4: 'video/mp4',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
};

function mediaPart(url: string | undefined, name = url): JsonObject | undefined {
  if (url === undefined) return undefined;
  const inline = parseDataUrl(url);
  if (inline !== null) {
    const { mediaType, isBase64, data } = inline;
    return { inlineData: { mimeType: inlineType(mediaType), data: isBase64 ? data : toBase64(data) } };
  }
  const extension = /\.(\w+)(?:[?#]|$)/.exec(name ?? '')?.[1]?.toLowerCase() ?? '';
  const typed = Object.hasOwn(TYPES, extension) ? { mimeType: TYPES[extension] } : {};
  return url.includes('://') ? { fileData: { ...typed, fileUri: url } } : undefined;
}

/** Google answers "Unsupported MIME type: image/jpg" to a spelling that browsers and clients use. */
function inlineType(mediaType: string): string {
  return /^image\/jpg$/i.test(mediaType) ? 'image/jpeg' : mediaType || 'text/plain';
}

/** Inline data must be base64. Data with an invalid percent-encoding is sent as it is. */
function toBase64(data: string): string {
  const text = decodePercent(data);
  return text === null ? data : encodeBase64(text);
}
