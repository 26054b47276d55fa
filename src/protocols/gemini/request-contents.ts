/** Writes a conversation as Gemini's `contents` and `systemInstruction`, with thought signatures on the parts they belong to. */

import {
  type Block,
  splitLeadingSystem,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
} from '../../canonical/conversation.ts';
import { dataAsBase64, MEDIA_PARTS, type Media, parseDataUrl } from '../../canonical/media.ts';
import {
  reportedField,
  reportUnreadKeys,
  type TranslationReport,
} from '../../request-translation/dropped-fields.ts';
import { GOOGLE_FORMAT, PLACEHOLDER_SIGNATURE } from '../../request-translation/messages.ts';
import { MOVED_RESULT_NOTE, StepCalls, UniqueCallIds } from '../../request-translation/tool-results.ts';
import { argumentsObject } from '../../request-translation/tools.ts';
import { append } from '../../shared/append.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readText } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';
import type { GeminiDialect, GeminiFamily } from './family.ts';

interface Content {
  readonly role: 'user' | 'model';
  readonly parts: JsonObject[];
}

export interface Contents {
  readonly contents: readonly Content[];
  /** Undefined if no system message leads the conversation. */
  readonly systemInstruction: JsonObject | undefined;
}

/** @param providerId the id of the provider that receives the request: only its own signatures are sent */
export function writeContents(
  turns: readonly Turn[],
  family: GeminiFamily & GeminiDialect,
  providerId: string,
  report: TranslationReport,
): Contents {
  const [leading, rest] = splitLeadingSystem(turns);
  const system = leading
    .map(({ blocks }) => writeParts(blocks, report, family))
    .filter(({ length }) => length > 0);
  for (const { extra, blocks } of turns) {
    reportUnreadKeys(extra, ['role', 'content', 'tool_call_id'], report);
    for (const block of blocks) {
      // A result may name its tool; the name is also known from the call.
      if (block.kind === 'tool_result') reportUnreadKeys(block.extra ?? {}, ['name'], report);
    }
  }
  const writer = new ContentWriter(family, providerId, report);
  for (const turn of rest) writer.add(turn);
  const contents = writer.take();
  // 400 "contents is not specified", where OpenAI answers a system message (ikechan8370/chatgpt-plugin#733, 2024-12-22).
  const prompt = contents.length === 0 ? system.pop() : undefined;
  return {
    contents: prompt === undefined ? contents : [{ role: 'user', parts: prompt }],
    systemInstruction: system.length === 0 ? undefined : { parts: system.flat() },
  };
}

class ContentWriter {
  readonly #family: GeminiFamily & GeminiDialect;
  readonly #providerId: string;
  readonly #report: TranslationReport;
  readonly #contents: Content[] = [];
  readonly #embedded = new EmbeddedJson();
  /** The calls of the last step. */
  readonly #calls = new StepCalls();
  readonly #callIds = new UniqueCallIds();
  /** The tool results since the last model turn. */
  #results: CallResult[] = [];
  /** The user's parts since the last model turn. They follow the tool results, even if the client sent them before. */
  #userParts: JsonObject[] = [];

  constructor(family: GeminiFamily & GeminiDialect, providerId: string, report: TranslationReport) {
    this.#family = family;
    this.#providerId = providerId;
    this.#report = report;
  }

  add({ role, blocks, refusal }: Turn): void {
    if (role === 'assistant') {
      this.#endUserTurn();
      return this.#push('model', this.#assistant(blocks, refusal));
    }
    // Gemini has no system turns: a later system message becomes the user's.
    for (const block of blocks) {
      if (block.kind === 'tool_result') this.#addResult(block);
      else append(this.#userParts, writePart(block, this.#report, this.#family));
    }
  }

  take(): readonly Content[] {
    this.#endUserTurn();
    const [first] = this.#contents;
    // 400 "Please ensure that function call turn comes immediately after a user turn", for a history whose beginning a client removed
    // (google-gemini/gemini-cli#11814, 2025-10-23; diegosouzapw/OmniRoute#13573, 2026-09-13).
    const startsWithCall =
      first?.role === 'model' && first.parts.some(({ functionCall }) => functionCall !== undefined);
    if (startsWithCall) this.#contents.unshift({ role: 'user', parts: [{ text: ' ' }] });
    return this.#contents;
  }

  #endUserTurn(): void {
    const userParts = this.#userParts;
    this.#userParts = [];
    this.#push('user', [...this.#takeResults(), ...userParts]);
  }

  /** Turns alternate: parts of the same role as the last turn are added to it. */
  #push(role: Content['role'], parts: readonly JsonObject[]): void {
    if (parts.length === 0) return;
    const last = this.#contents.at(-1);
    if (last?.role === role) append(last.parts, parts);
    else this.#contents.push({ role, parts: [...parts] });
  }

  #assistant(blocks: readonly Block[], refusal: string | undefined): JsonObject[] {
    const signatures = readSignatures(blocks, this.#providerId);
    const content = writeParts(blocks, this.#report, this.#family);
    if (this.#contents.at(-1)?.role !== 'model') {
      this.#calls.begin();
      this.#callIds.begin();
    }
    const calls = blocks
      .filter((block) => block.kind === 'tool_call')
      .map((call) => this.#call(call, signatures.calls.get(call.id)));
    return [
      ...signatures.thoughts.map((thoughtSignature) => ({ text: '', thought: true, thoughtSignature })),
      ...withTextSignatures(content.length === 0 ? textPart(refusal ?? '') : content, signatures.texts),
      ...(this.#family.needsSignatures ? withStandIn(calls) : calls),
    ];
  }

  #call({ id, name, input }: ToolCallBlock, thoughtSignature: string | undefined): JsonObject {
    this.#calls.add(id, name);
    return {
      functionCall: {
        ...(id === '' ? {} : { id: this.#callIds.call(id) }),
        name,
        args: argumentsObject(input, this.#embedded),
      },
      ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
    };
  }

  /** The result has the name of its call. Media that cannot be within it are parts beside it. */
  #addResult({ id, content, extra = {} }: ToolResultBlock): void {
    const parts =
      typeof content === 'string' ? textPart(content) : writeParts(content, this.#report, this.#family);
    const media = parts.filter(({ text }) => text === undefined);
    const within = this.#family.mediaInResults ? media.filter(isResultMedia) : [];
    const beside = media.filter((part) => !within.includes(part));
    const text = parts.flatMap((part) => (typeof part.text === 'string' ? [part.text] : [])).join('\n');
    const functionResponse = {
      ...(id === '' ? {} : { id: this.#callIds.result(id) }),
      name: this.#calls.matchResult(id) ?? readText(extra.name) ?? id,
      response: responseObject(text === '' && beside.length > 0 ? MOVED_RESULT_NOTE : text, this.#embedded),
      ...(within.length > 0 ? { parts: within } : {}),
    };
    this.#results.push({ id, part: { functionResponse }, beside });
  }

  /** All results in one turn, in the order of their calls: Google counts them (google-gemini/gemini-cli#16543, 2026-01-13). */
  #takeResults(): JsonObject[] {
    const place = ({ id }: CallResult) => this.#calls.positionOf(id);
    const results = this.#results.toSorted((a, b) => place(a) - place(b));
    this.#results = [];
    return [...results.map(({ part }) => part), ...results.flatMap(({ beside }) => beside)];
  }
}

interface CallResult {
  readonly id: string;
  readonly part: JsonObject;
  /** Media beside the results follow all of them. */
  readonly beside: readonly JsonObject[];
}

/**
 * The media types of a result, from memory of Google's guide to function calling (2026-11-23). A URI is "not supported in Gemini API":
 * `FunctionResponsePart` of google-genai-kotlin, read 2026-11-23.
 */
const RESULT_TYPES: readonly unknown[] = words('image/png image/jpeg image/webp application/pdf text/plain');

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

/** Reads the signatures of an assistant's turn that this provider made, and untagged ones in Google's form. */
function readSignatures(blocks: readonly Block[], providerId: string): Signatures {
  const calls = new Map<string, string>();
  const texts: TextSignature[] = [];
  const thoughts: string[] = [];
  const toolCalls = blocks.filter((block) => block.kind === 'tool_call');
  const callIds = new Set(toolCalls.map(({ id }) => id));
  for (const block of blocks) {
    const signature = block.kind === 'reasoning' ? block.signature : undefined;
    if (signature?.format !== GOOGLE_FORMAT || (signature.provider ?? providerId) !== providerId) continue;
    const { value, isEncrypted, provider, id } = signature;
    const [kind = '', chars = ''] = provider === null ? [] : id.split('-');
    // In OpenRouter's form the detail has the id of its call.
    if (provider === null && id !== '' && callIds.has(id)) calls.set(id, value);
    else if (kind === 'thought' || !isEncrypted) thoughts.push(value);
    else texts.push({ signature: value, chars: Number.parseInt(chars, 10) || 0 });
  }
  for (const { id, signature } of toolCalls) {
    if (signature !== undefined && (signature.provider ?? providerId) === providerId) {
      calls.set(id, signature.value);
    }
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

/** Parts without a text, which are not sent. Thinking is not sent back, only its signatures. */
const WITHOUT_TEXT = ['text', 'refusal', 'thinking', 'redacted_thinking', 'reasoning'];

const MEDIA_HINT = 'send texts, and images, audio, videos and files as data or as a URI';

/** The parts of a content, without empty texts. */
function writeParts(
  blocks: readonly Block[],
  report: TranslationReport,
  dialect: GeminiDialect,
): JsonObject[] {
  return blocks.flatMap((block) => writePart(block, report, dialect));
}

function textPart(text: string): JsonObject[] {
  return text === '' ? [] : [{ text }];
}

function writePart(block: Block, report: TranslationReport, { fetchesMedia }: GeminiDialect): JsonObject[] {
  const marked = (block.kind === 'unknown' ? block.raw : block.extra) ?? {};
  for (const mark of CACHE_MARKS) {
    if (marked[mark] !== undefined && marked[mark] !== null) report.drop(`messages.content.${mark}`);
  }
  switch (block.kind) {
    case 'text':
      return textPart(block.text);
    case 'media': {
      const part = mediaPart(block.media);
      const isAbsent = part === undefined || (!fetchesMedia && WEB.test(textOfUri(part)));
      return isAbsent ? refusePart(MEDIA_PARTS[block.media.type], report) : [part];
    }
    case 'unknown': {
      const type = readText(block.raw.type) ?? 'text';
      return WITHOUT_TEXT.includes(type) ? [] : refusePart(type, report);
    }
    default:
      return [];
  }
}

/** An address on the web. Others are of Google's stores. */
const WEB = /^https?:/i;

function textOfUri({ fileData }: JsonObject): string {
  return readText(objectOf(fileData).fileUri) ?? '';
}

/** Without the part the output would differ, so dropping it needs the caller's consent. */
function refusePart(type: string, report: TranslationReport): JsonObject[] {
  const name = `messages.content.${type}`;
  if (report.mode === 'drop') report.dropAllowed(name);
  else report.fail('messages', `${reportedField(name)} is not supported: ${MEDIA_HINT}`);
  return [];
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

/** @returns undefined if the media is at another provider */
function mediaPart(media: Media): JsonObject | undefined {
  if (media.type === 'audio') {
    return { inlineData: { mimeType: `audio/${media.format}`, data: media.data } };
  }
  // The id of a file that was uploaded to Google is a URI. Ids of other providers are not.
  const uri = media.url ?? media.fileId ?? '';
  const inline = parseDataUrl(uri);
  if (inline !== null) {
    return { inlineData: { mimeType: inline.mediaType || 'text/plain', data: dataAsBase64(inline) } };
  }
  const extension = /\.(\w+)(?:[?#]|$)/.exec(media.name ?? uri)?.[1]?.toLowerCase() ?? '';
  const typed = Object.hasOwn(TYPES, extension) ? { mimeType: TYPES[extension] } : {};
  return uri.includes('://') ? { fileData: { ...typed, fileUri: uri } } : undefined;
}
