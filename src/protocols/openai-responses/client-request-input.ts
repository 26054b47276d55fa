/** Parses the input of a Responses request into turns: the items of one step become one turn of the assistant. */

import type { Block, TextBlock, Turn } from '../../canonical/conversation.ts';
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { Media } from '../../canonical/media.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { joinAdjacentTexts } from '../../request-translation/tool-results.ts';
import { EmbeddedJson, isObject, type JsonObject, readArray, readText } from '../../shared/json.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { ModelStep } from '../shared/model-step.ts';
import { decodeReasoningStates } from '../shared/reasoning-state.ts';
import { isOwnReasoningId } from './items.ts';

export interface ReadInput {
  readonly turns: readonly Turn[];
  /** Tools that are in items of the input: Codex sends all of its tools so (0.169, 2026-11-22), and those that a search found. */
  readonly tools: readonly unknown[];
  /** The types of items and parts that are dropped, as paths. */
  readonly dropped: readonly string[];
}

/** @param input a text, or a list of items */
export function readInput(input: unknown): Result<ReadInput, ApiError> {
  if (typeof input === 'string') {
    return ok({ turns: [turnOf('user', [textBlock(input)])], tools: [], dropped: [] });
  }
  if (!Array.isArray(input)) return failure(invalidInput('input must be a text or a list of items'));
  const reader = new InputReader();
  for (const item of input) {
    const error = isObject(item) ? reader.read(item) : invalidInput('Every item of input must be an object');
    if (error !== null) return failure(error);
  }
  return ok({ turns: reader.turns(), tools: reader.tools, dropped: reader.dropped.list });
}

function invalidInput(message: string): ApiError {
  return apiError('invalid_request', message, 'input');
}

const ITEM_REFERENCE = apiError(
  'unsupported_parameter',
  "This gateway keeps no items, so it can't resolve an item_reference: send the items themselves (SDKs do with store: false)",
  'input',
);

const ROLES = ['user', 'system', 'developer'] as const;

const PARAGRAPH_BREAK = '\n\n';

class InputReader {
  readonly dropped = new ReportedFields();
  readonly tools: unknown[] = [];
  readonly #embedded = new EmbeddedJson();
  readonly #entries: (Turn | ModelStep)[] = [];
  /** The results by their call's id, in order: some models use the same id in several steps. */
  readonly #results = new Map<string, Turn[]>();
  /** The step that further items belong to. */
  #step: ModelStep | null = null;

  /** @returns why the item is invalid, or null */
  read(item: JsonObject): ApiError | null {
    switch (item.type ?? (item.role === undefined ? 'item_reference' : 'message')) {
      case 'message':
        return this.#message(item);
      case 'reasoning':
        return this.#reasoning(item);
      case 'function_call':
        return isOptionalText(item.arguments)
          ? this.#call(item, readText(item.arguments) ?? '{}')
          : invalidInput('The arguments of a function_call must be JSON text');
      case 'custom_tool_call':
        return isOptionalText(item.input)
          ? this.#call(item, JSON.stringify({ input: readText(item.input) ?? '' }))
          : invalidInput('The input of a custom_tool_call must be a text');
      case 'tool_search_call':
        return isRunByServer(item)
          ? this.#drop(item)
          : this.#call({ ...item, name: TOOL_SEARCH }, searchArguments(item.arguments));
      case 'tool_search_output':
        return isRunByServer(item) ? this.#drop(item) : this.#foundTools(item);
      case 'function_call_output':
      case 'custom_tool_call_output':
        return this.#result(item);
      case 'additional_tools':
        for (const tool of readArray(item.tools)) this.tools.push(tool);
        return null;
      case 'item_reference':
        return ITEM_REFERENCE;
      default:
        return this.#drop(item);
    }
  }

  #drop(item: JsonObject): null {
    this.dropped.add(`input.${typeName(item)}`);
    return null;
  }

  /** The found tools can be called from now on. */
  #foundTools(item: JsonObject): ApiError | null {
    const found = readArray(item.tools).filter(isObject);
    for (const tool of found) this.tools.push(tool);
    const names = found.flatMap(functionNames);
    const output = names.map((name) => `Found the tool ${name}: it can be called now.`).join('\n');
    return this.#result({ ...item, output: output === '' ? 'No tool was found.' : output });
  }

  /** A result follows its call. One without a call stays in its place, so that the next request begins with the same turns (Q16). */
  turns(): readonly Turn[] {
    const waiting = new Map([...this.#results].map(([id, turns]) => [id, turns.values()]));
    const moved = new Set<Turn>();
    const entries = this.#entries.map((entry) => {
      if (!(entry instanceof ModelStep)) return entry;
      const { texts, calls } = entry;
      // No provider accepts a step with only reasoning.
      if (texts.length === 0 && calls.length === 0) return [];
      const results = calls.flatMap(({ id }) => waiting.get(id)?.next().value ?? []);
      for (const result of results) moved.add(result);
      return [entry.turn(PARAGRAPH_BREAK), ...results];
    });
    return entries.flatMap((entry) => (Array.isArray(entry) || !moved.has(entry) ? entry : []));
  }

  #message({ role: given, content }: JsonObject): ApiError | null {
    const blocks = readContent(content, this.dropped);
    if (blocks.kind === 'error') return blocks.error;
    if (given === 'assistant') {
      const text = joinTexts(blocks.value);
      if (text !== '') this.#openStep().texts.push(textBlock(text));
      return null;
    }
    const role = ROLES.find((known) => known === given);
    if (role === undefined) {
      return invalidInput(`A message's role must be one of: assistant, ${ROLES.join(', ')}`);
    }
    this.#step = null;
    this.#entries.push(turnOf(role, blocks.value.length === 0 ? [textBlock('')] : blocks.value));
    return null;
  }

  #reasoning({ id, summary, content, encrypted_content }: JsonObject): null {
    const step = this.#openStep();
    // Some providers keep the reasoning themselves, and the item only refers to it.
    const isReference = readText(encrypted_content) === undefined && readReasoning(content) === '';
    if (isReference && readText(id) !== undefined && !isOwnReasoningId(id)) {
      this.dropped.add('input.reasoning');
    }
    // If the item has the full reasoning, the summary only repeats it.
    const text = readText(readReasoning(content)) ?? readText(readReasoning(summary));
    if (text !== undefined) step.thoughts.push(text);
    for (const state of decodeReasoningStates(encrypted_content, this.#embedded)) step.addState(state);
    return null;
  }

  #call(item: JsonObject, input: string): ApiError | null {
    const id = readText(item.call_id);
    const name = readText(item.name);
    if (id === undefined || name === undefined) {
      return invalidInput(`A ${typeName(item)} needs its call_id and its name`);
    }
    const called = functionName(name, readText(item.namespace));
    this.#openStep().calls.push({ kind: 'tool_call', id, name: called, input });
    return null;
  }

  #result(item: JsonObject): ApiError | null {
    const id = readText(item.call_id);
    if (id === undefined) return invalidInput(`A ${typeName(item)} needs its call_id`);
    const blocks = readContent(item.output, this.dropped);
    if (blocks.kind === 'error') return blocks.error;
    const isText = blocks.value.every(({ kind }) => kind === 'text');
    const content = isText ? joinTexts(blocks.value) : joinAdjacentTexts(blocks.value, PARAGRAPH_BREAK);
    const turn = turnOf('user', [{ kind: 'tool_result', id, content }]);
    const results = this.#results.get(id) ?? [];
    results.push(turn);
    this.#results.set(id, results);
    this.#entries.push(turn);
    this.#step = null;
    return null;
  }

  #openStep(): ModelStep {
    if (this.#step !== null) return this.#step;
    this.#step = new ModelStep();
    this.#entries.push(this.#step);
    return this.#step;
  }
}

/** Codex's search for its deferred tools, which it runs itself (openai/codex, 2026-09). */
export const TOOL_SEARCH = 'tool_search';

/** Whether the client runs a search for tools, and not the provider. */
export function isClientSearch({ type, execution }: JsonObject): boolean {
  return type === TOOL_SEARCH && execution === 'client';
}

/** OpenAI's own searches have no call's id. */
function isRunByServer({ execution, call_id }: JsonObject): boolean {
  return execution === 'server' || (execution !== 'client' && readText(call_id) === undefined);
}

/** An object; some clients send its text. */
function searchArguments(given: unknown): string {
  return typeof given === 'string' ? given : JSON.stringify(given ?? {});
}

/** The functions that stand for a tool, or for those of a namespace. */
function functionNames(tool: JsonObject): readonly string[] {
  const name = readText(tool.name);
  if (tool.type !== 'namespace') return name === undefined ? [] : [functionName(name, undefined)];
  return readArray(tool.tools)
    .filter(isObject)
    .flatMap((inner) => readText(inner.name) ?? [])
    .map((inner) => functionName(inner, name));
}

/** A turn without further fields. */
export function turnOf(role: Turn['role'], blocks: readonly Block[]): Turn {
  return { role, blocks, extra: {} };
}

function readReasoning(parts: unknown): string {
  const texts = readArray(parts).map((part) => (isObject(part) ? readText(part.text) : undefined));
  return texts.filter((text) => text !== undefined).join(PARAGRAPH_BREAK);
}

function isOptionalText(value: unknown): boolean {
  return typeof value === 'string' || value === undefined || value === null;
}

/** The value's type, if it is short and plain enough for a message or a header. */
export function typeName({ type }: { readonly type?: unknown }): string {
  const name = readText(type) ?? 'untyped';
  return /^[\w.-]{1,64}$/.test(name) ? name : 'unknown';
}

/** OpenAI's bound on a function's name: https://platform.openai.com/docs/api-reference/chat/create (2026-11-22). */
export const MAX_FUNCTION_NAME_CHARS = 64;

/** The function that stands for a tool, in the definitions and in the calls of the history. */
export function functionName(tool: string, namespace: string | undefined): string {
  if (namespace === undefined) return tool;
  const name = namespace.endsWith('__') ? `${namespace}${tool}` : `${namespace}__${tool}`;
  if (name.length <= MAX_FUNCTION_NAME_CHARS) return name;
  const hash = toolCallId(name);
  return `${name.slice(0, MAX_FUNCTION_NAME_CHARS - hash.length - 1)}_${hash}`;
}

/**
 * @param content empty if it is absent or null
 * @param dropped receives the paths of parts of unknown types
 */
function readContent(content: unknown, dropped: ReportedFields): Result<readonly Block[], ApiError> {
  if (typeof content === 'string') return ok([textBlock(content)]);
  const items = content ?? [];
  if (!Array.isArray(items) || !items.every(isObject)) return failure(NO_CONTENT);
  const blocks: Block[] = [];
  for (const part of items) {
    const block = readPart(part);
    if (block.kind === 'error') return block;
    if (block.value === null) dropped.add(`input.content.${typeName(part)}`);
    else blocks.push(block.value);
  }
  return ok(blocks);
}

const NO_CONTENT = invalidInput(
  'A content or an output must be a text or a list of parts: send any other value as JSON text',
);

/** Null for a part of an unknown type. */
function readPart(part: JsonObject): Result<Block | null, ApiError> {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'summary_text':
    case 'reasoning_text':
    case 'text':
      return ok(typeof part.text === 'string' ? textBlock(part.text) : null);
    case 'refusal':
      return ok(typeof part.refusal === 'string' ? textBlock(part.refusal) : null);
    case 'input_image':
      return readImage(part);
    case 'input_file':
      return readFile(part);
    case 'input_audio':
      return ok(isObject(part.input_audio) ? readAudio(part.input_audio) : null);
    default:
      return ok(null);
  }
}

/** A text without a mark: Responses has none. */
export function textBlock(text: string): TextBlock {
  return { kind: 'text', text };
}

function mediaBlock(media: Media): Result<Block, never> {
  return ok({ kind: 'media', media });
}

function readImage({ image_url, file_id, detail }: JsonObject): Result<Block, ApiError> {
  const url = readText(image_url);
  if (url === undefined) return failure(file_id === undefined ? NO_IMAGE_URL : IMAGE_FILE_ID);
  return mediaBlock({ type: 'image', url, detail: readText(detail) });
}

const NO_IMAGE_URL = invalidInput('An input_image needs its image_url');
const IMAGE_FILE_ID = invalidInput(
  "This gateway can't read an image by its file_id: send image_url, a URL or a data: URL",
);

function readFile({ file_data, filename, file_id, file_url }: JsonObject): Result<Block, ApiError> {
  const [url, fileId, name] = [file_data, file_id, filename].map(readText);
  if (url === undefined && fileId === undefined) {
    return failure(file_url === undefined ? NO_FILE_DATA : FILE_URL);
  }
  return mediaBlock({ type: 'file', url, fileId, name });
}

const NO_FILE_DATA = invalidInput('An input_file needs its file_data');
const FILE_URL = invalidInput(
  'This gateway does not fetch a file by its file_url: send file_data, a data: URL',
);

/** Audio without data is the provider's to refuse. */
function readAudio(input_audio: JsonObject): Block {
  const { data, format } = input_audio;
  return typeof data === 'string'
    ? { kind: 'media', media: { type: 'audio', data, format: readText(format) ?? 'wav' } }
    : { kind: 'unknown', raw: { type: 'input_audio', input_audio } };
}

function joinTexts(blocks: readonly Block[]): string {
  return blocks
    .map((block) => (block.kind === 'text' ? readText(block.text) : undefined))
    .filter((text) => text !== undefined)
    .join(PARAGRAPH_BREAK);
}
