/**
 * Parses `systemInstruction` and `contents` of a Gemini request into turns, with thoughts, their signatures, and calls
 * with their results.
 */

import type { Block, ToolCallBlock, ToolResultBlock, Turn } from '../../canonical/conversation.ts';
import { dataAsText, type Media, parseDataUrl } from '../../canonical/media.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import type { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { append } from '../../shared/append.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { ModelStep } from '../shared/model-step.ts';
import { decodeStateBytes, hasReasoningState } from '../shared/reasoning-state.ts';
import { enumName, inCamelCase } from './enums.ts';

/** What a conversation has that only Google can read: the path of the first of it. */
export interface ReadContents {
  readonly turns: readonly Turn[];
  readonly googleOnly: string | null;
}

/** @param dropped gets the names of parts that have no counterpart */
export function readContents(
  systemInstruction: unknown,
  contents: readonly unknown[],
  dropped: ReportedFields,
): ReadContents {
  const reader = new ContentReader(dropped);
  reader.addSystem(partsOf(systemInstruction));
  for (const { role, parts } of joinResults(contents)) {
    if (MODEL_ROLES.includes(role)) reader.addModel(parts);
    else if (role === 'system') reader.addSystem(parts);
    else reader.addUser(parts);
  }
  return reader;
}

/** The second one is OpenAI's, which some clients send. */
const MODEL_ROLES: readonly unknown[] = ['model', 'assistant'];

interface ClientContent {
  readonly role: unknown;
  readonly parts: JsonObject[];
}

/**
 * Joins contents of the model in a row, which SDKs make of the elements of a stream, and of the user if the later one
 * has results, which must follow their calls directly.
 */
function joinResults(contents: readonly unknown[]): readonly ClientContent[] {
  const joined: ClientContent[] = [];
  for (const content of contents) {
    const parts = partsOf(content);
    const role = isObject(content) ? content.role : undefined;
    const before = joined.at(-1);
    const isModel = MODEL_ROLES.includes(role);
    const isSameRole = before !== undefined && isModel === MODEL_ROLES.includes(before.role);
    const isJoined = isSameRole && (isModel || parts.some(hasResult));
    if (isJoined) append(before.parts, parts);
    else joined.push({ role, parts });
  }
  return joined;
}

/** The parts of a content, which may also be a text, one part, or a list of them. Their keys are in camel case. */
function partsOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return [{ text: content }];
  if (Array.isArray(content)) return content.flatMap(partsOf);
  if (!isObject(content)) return [];
  const { parts } = content;
  if (parts === undefined) return content.role === undefined ? [inCamelCase(content)] : [];
  const list = Array.isArray(parts) ? parts : [parts];
  return list.flatMap((part) => {
    if (typeof part === 'string') return [{ text: part }];
    return isObject(part) ? [inCamelCase(part)] : [];
  });
}

function hasResult({ functionResponse }: JsonObject): boolean {
  return isObject(functionResponse);
}

interface UnansweredCall {
  readonly id: string;
  readonly givenId: string | undefined;
  readonly name: string;
}

class ContentReader implements ReadContents {
  readonly turns: Turn[] = [];
  googleOnly: string | null = null;
  readonly #dropped: ReportedFields;
  readonly #embedded = new EmbeddedJson();
  /** The calls of the last step that have no result yet. */
  #open: UnansweredCall[] = [];
  /** All calls so far: an id that Weir makes depends on the calls before it alone, so a longer conversation begins with the same bytes. */
  #calls = 0;

  constructor(dropped: ReportedFields) {
    this.#dropped = dropped;
  }

  addSystem(parts: readonly JsonObject[]): void {
    const blocks = parts.flatMap((part) => this.#content(part));
    if (blocks.length > 0) this.turns.push({ role: 'system', blocks, extra: {} });
  }

  addUser(parts: readonly JsonObject[]): void {
    const results = parts
      .filter(hasResult)
      .map((part) => this.#result(inCamelCase(objectOf(part.functionResponse))));
    const others = parts.filter((part) => !hasResult(part)).flatMap((part) => this.#content(part));
    const blocks = [...results, ...others];
    this.turns.push({
      role: 'user',
      blocks: blocks.length === 0 ? [{ kind: 'text', text: '' }] : blocks,
      extra: {},
    });
  }

  addModel(parts: readonly JsonObject[]): void {
    const step = new ModelStep();
    /** The thoughts within signatures, for clients that send no thoughts back. */
    const kept: string[] = [];
    this.#open = this.turns.at(-1)?.role === 'assistant' ? this.#open : [];
    for (const part of parts) {
      const { text, thought } = part;
      if (isObject(part.functionCall)) {
        step.calls.push(this.#call(inCamelCase(part.functionCall), part, step, kept));
        continue;
      }
      // Google needs its signature of a call alone.
      const signature = readText(part.thoughtSignature);
      if (signature !== undefined) this.#states(signature, step, kept);
      if (thought === true) step.thoughts.push(readText(text) ?? '');
      else for (const block of this.#content(part)) if (block.kind === 'text') step.texts.push(block);
    }
    const hasThoughts = step.thoughts.some((thought) => thought !== '');
    if (!hasThoughts) step.thoughts.splice(0, step.thoughts.length, ...kept);
    // Google sends a text in pieces, which clients keep as parts.
    this.turns.push(step.turn(''));
  }

  #call(call: JsonObject, part: JsonObject, step: ModelStep, kept: string[]): ToolCallBlock {
    const givenId = readText(call.id);
    const name = readText(call.name) ?? '';
    const id = givenId ?? toolCallId(`gemini ${this.#calls} ${name}`);
    this.#calls++;
    this.#open.push({ id, givenId, name });
    const { args } = call;
    const block: ToolCallBlock = {
      kind: 'tool_call',
      id,
      name,
      input: typeof args === 'string' ? args : JSON.stringify(args ?? argumentsOf(call.partialArgs)),
    };
    const value = readText(part.thoughtSignature);
    if (value === undefined || this.#states(value, step, kept, id)) return block;
    const google = { thought_signature: value };
    return { ...block, signature: { value, provider: null }, extra: { extra_content: { google } } };
  }

  /**
   * Reads the states that Weir encoded as a signature.
   * @param callId the id of the call that has the signature: a client may have changed it
   * @returns false: it is Google's own
   */
  #states(signature: string, step: ModelStep, kept: string[], callId?: string): boolean {
    const states = decodeStateBytes(signature, this.#embedded);
    for (const state of states ?? []) {
      if ('call' in state) step.addState({ ...state, call: callId ?? state.call });
      else {
        const text = readText(state.detail.text);
        if (text !== undefined) kept.push(text);
        if (hasReasoningState(state.detail)) step.addState(state);
      }
    }
    return states !== null;
  }

  /** A result belongs to the call with its id, else to the first open one with its name, else to the first open one. */
  #result({ id: givenId, name: givenName, response, parts }: JsonObject): ToolResultBlock {
    const name = readText(givenName) ?? '';
    const open = this.#open;
    const found = [
      open.findIndex((call) => call.givenId !== undefined && call.givenId === givenId),
      open.findIndex(
        (call) => call.name === name && (call.givenId === undefined || readText(givenId) === undefined),
      ),
    ].find((at) => at >= 0);
    const [call] = found === undefined ? [] : open.splice(found, 1);
    const text = resultText(response);
    const media = (Array.isArray(parts) ? partsOf({ parts }) : []).flatMap((part) => this.#content(part));
    const texts: readonly Block[] = text === '' && media.length > 0 ? [] : [{ kind: 'text', text }];
    return {
      kind: 'tool_result',
      id: call?.id ?? readText(givenId) ?? toolCallId(`gemini ${name}`),
      content: media.length === 0 ? text : [...texts, ...media],
    };
  }

  /** The text or the media of a part. What the model ran at Google becomes a text. */
  #content(part: JsonObject): readonly Extract<Block, { readonly kind: 'text' | 'media' }>[] {
    const { text, inlineData, fileData, executableCode, codeExecutionResult } = part;
    if (typeof text === 'string') return text === '' ? [] : [{ kind: 'text', text }];
    if (isObject(inlineData)) return this.#inline(inCamelCase(inlineData));
    if (isObject(fileData)) return this.#file(inCamelCase(fileData));
    if (isObject(executableCode)) {
      const language = enumName('language', executableCode.language)?.toLowerCase() ?? '';
      return [{ kind: 'text', text: `\`\`\`${language}\n${readText(executableCode.code) ?? ''}\n\`\`\`\n` }];
    }
    if (isObject(codeExecutionResult)) {
      return [{ kind: 'text', text: readText(codeExecutionResult.output) ?? '' }].filter(
        (block): block is { kind: 'text'; text: string } => block.text !== '',
      );
    }
    const [key] = Object.keys(part).filter((name) => !MARKS.includes(name));
    if (key !== undefined) this.#dropped.add(`contents.parts.${key}`);
    return [];
  }

  #inline({ mimeType, data, displayName }: JsonObject) {
    const url = `data:${readText(mimeType) ?? ''};base64,${plainBase64(readText(data) ?? '')}`;
    return mediaBlocks(readText(mimeType) ?? '', url, readText(displayName));
  }

  #file({ mimeType, fileUri, displayName }: JsonObject) {
    const url = readText(fileUri) ?? '';
    if (!isPublic(url)) {
      this.googleOnly ??= 'contents.parts.fileData';
      return [];
    }
    return mediaBlocks(readText(mimeType) ?? typeOfName(url), url, readText(displayName));
  }
}

/** What a part has beside its content. */
const MARKS = ['thought', 'thoughtSignature', 'text', 'videoMetadata', 'mediaResolution', 'partMetadata'];

/** Vertex streams arguments by path, and its clients send them back so. Only plain members are read. */
function argumentsOf(partialArgs: unknown): JsonObject {
  const entries = readArray(partialArgs)
    .filter(isObject)
    .map((one) => {
      const { jsonPath, stringValue, numberValue, boolValue = null } = inCamelCase(one);
      return [String(jsonPath).replace(/^\$\.?/, ''), stringValue ?? numberValue ?? boolValue] as const;
    });
  return Object.fromEntries(entries);
}

/** `output` alone stands for a text: Google's clients write it for one, as Weir does. */
function resultText(response: unknown): string {
  if (!isObject(response)) return typeof response === 'string' ? response : JSON.stringify(response ?? {});
  const [key, ...others] = Object.keys(response);
  const { output } = response;
  return key === 'output' && others.length === 0 && typeof output === 'string'
    ? output
    : JSON.stringify(response);
}

/** Clients in Python write base64url. */
function plainBase64(data: string): string {
  return /[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data;
}

function mediaBlocks(mimeType: string, url: string, name: string | undefined) {
  const [type = '', subtype = ''] = mimeType.toLowerCase().split(';', 1)[0]?.split('/') ?? [];
  const inline = parseDataUrl(url);
  if (inline !== null && (type === 'text' || subtype === 'json')) {
    return [{ kind: 'text', text: dataAsText(inline) } as const];
  }
  if (inline !== null && type === 'audio') {
    return [mediaBlock({ type, data: inline.data, format: AUDIO_FORMATS.get(subtype) ?? subtype })];
  }
  if (type === 'image' || type === 'video') return [mediaBlock({ type, url })];
  return [mediaBlock({ type: 'file', url, name: name ?? `document.${subtype === '' ? 'pdf' : subtype}` })];
}

/** The names of formats in chat. */
const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map([
  ['mpeg', 'mp3'],
  ['x-wav', 'wav'],
  ['wave', 'wav'],
]);

function mediaBlock(media: Media) {
  return { kind: 'media', media } as const;
}

/** Files that were uploaded to Google, in its storage or at YouTube are Google's alone. */
const GOOGLES = ['googleapis.com', 'youtube.com', 'youtu.be'];

function isPublic(url: string): boolean {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return !GOOGLES.some((host) => hostname === host || hostname.endsWith(`.${host}`));
}

const TYPES_BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ...['png', 'jpeg', 'webp', 'gif'].map((name) => [name, `image/${name}`] as const),
  ['jpg', 'image/jpeg'],
  ['mp4', 'video/mp4'],
]);

function typeOfName(url: string): string {
  const extension = /\.(\w{1,5})(?:[?#]|$)/.exec(url)?.[1]?.toLowerCase() ?? '';
  return TYPES_BY_EXTENSION.get(extension) ?? 'application/pdf';
}
