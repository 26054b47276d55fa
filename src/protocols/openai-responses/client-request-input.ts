/** Translates the input of a Responses request into chat messages: the items of one step become one assistant message. */

import { type ApiError, apiError } from '../../canonical/error.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { joinAdjacentTexts } from '../../request-translation/tool-results.ts';
import { EmbeddedJson, isObject, type JsonObject, readArray, readText } from '../../shared/json.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { decodeReasoningStates } from '../shared/reasoning-state.ts';
import { isOwnReasoningId } from './items.ts';

export interface ReadInput {
  readonly messages: readonly JsonObject[];
  /** Tools that are items of the input: Codex sends all of its tools so (0.169, 2026-11-22). */
  readonly tools: readonly unknown[];
  /** The types of items and parts that are dropped, as paths. */
  readonly dropped: readonly string[];
}

/** @param input a text, or a list of items */
export function readInput(input: unknown): Result<ReadInput, ApiError> {
  if (typeof input === 'string') {
    return ok({ messages: [{ role: 'user', content: input }], tools: [], dropped: [] });
  }
  if (!Array.isArray(input)) return failure(invalidInput('input must be a text or a list of items'));
  const reader = new InputReader();
  for (const item of input) {
    const error = isObject(item) ? reader.read(item) : invalidInput('Every item of input must be an object');
    if (error !== null) return failure(error);
  }
  return ok({ messages: reader.messages(), tools: reader.tools, dropped: reader.dropped.list });
}

function invalidInput(message: string): ApiError {
  return apiError('invalid_request', message, 'input');
}

const ITEM_REFERENCE = apiError(
  'unsupported_parameter',
  "This gateway keeps no items, so it can't resolve an item_reference: send the items themselves (SDKs do with store: false)",
  'input',
);

/** What the model produced in one step. */
interface ModelStep {
  readonly kind: 'step';
  readonly texts: string[];
  readonly reasoning: string[];
  readonly details: JsonObject[];
  readonly calls: JsonObject[];
  /** The `extra_content` of the calls, by their id. */
  readonly extraContents: Map<string, JsonObject>;
}

/** The results of all calls with one id. */
interface Results {
  /** The message of each result. */
  readonly all: JsonObject[];
  /** How many results already follow their call. */
  taken: number;
}

type InputEntry = ModelStep | { readonly kind: 'message'; readonly message: JsonObject };

const ROLES = ['user', 'system', 'developer'];

const PARAGRAPH_BREAK = '\n\n';

class InputReader {
  readonly dropped = new ReportedFields();
  readonly tools: unknown[] = [];
  readonly #embedded = new EmbeddedJson();
  readonly #entries: InputEntry[] = [];
  /** By their call's id, in order: some models use the same id in several steps. */
  readonly #results = new Map<string, Results>();
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
      case 'function_call_output':
      case 'custom_tool_call_output':
        return this.#result(item);
      case 'additional_tools':
        for (const tool of readArray(item.tools)) this.tools.push(tool);
        return null;
      case 'item_reference':
        return ITEM_REFERENCE;
      default:
        this.dropped.add(`input.${typeName(item)}`);
        return null;
    }
  }

  messages(): readonly JsonObject[] {
    const messages = this.#entries.flatMap((entry) => {
      if (entry.kind === 'message') return [entry.message];
      return [...stepMessage(entry), ...entry.calls.flatMap(({ id }) => this.#takeResult(String(id)))];
    });
    // The provider rejects results without a call.
    const left = [...this.#results.values()].flatMap(({ all, taken }) => all.slice(taken));
    return [...messages, ...left];
  }

  #takeResult(id: string): readonly JsonObject[] {
    const results = this.#results.get(id);
    const result = results?.all[results.taken++];
    return result === undefined ? [] : [result];
  }

  #message({ role: given, content }: JsonObject): ApiError | null {
    const parts = readContent(content, this.dropped);
    if (parts.kind === 'error') return parts.error;
    if (given === 'assistant') {
      const text = joinTexts(parts.value);
      if (text !== '') this.#openStep().texts.push(text);
      return null;
    }
    const role = ROLES.find((known) => known === given);
    if (role === undefined) {
      return invalidInput(`A message's role must be one of: assistant, ${ROLES.join(', ')}`);
    }
    this.#step = null;
    this.#entries.push({ kind: 'message', message: { role, content: asContent(parts.value) } });
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
    if (text !== undefined) step.reasoning.push(text);
    for (const state of decodeReasoningStates(encrypted_content, this.#embedded)) {
      if ('detail' in state) step.details.push(state.detail);
      else step.extraContents.set(state.call, state.extra_content);
    }
    return null;
  }

  #call(item: JsonObject, args: string): ApiError | null {
    const id = readText(item.call_id);
    const name = readText(item.name);
    if (id === undefined || name === undefined) {
      return invalidInput(`A ${typeName(item)} needs its call_id and its name`);
    }
    const called = { name: functionName(name, readText(item.namespace)), arguments: args };
    this.#openStep().calls.push({ id, type: 'function', function: called });
    return null;
  }

  #result(item: JsonObject): ApiError | null {
    const id = readText(item.call_id);
    if (id === undefined) return invalidInput(`A ${typeName(item)} needs its call_id`);
    const parts = readContent(item.output, this.dropped);
    if (parts.kind === 'error') return parts.error;
    const isText = parts.value.every(({ type }) => type === 'text');
    const content = isText ? joinTexts(parts.value) : joinAdjacentTexts(parts.value, PARAGRAPH_BREAK);
    const results = this.#results.get(id) ?? { all: [], taken: 0 };
    this.#results.set(id, results);
    results.all.push({ role: 'tool', tool_call_id: id, content });
    this.#step = null;
    return null;
  }

  #openStep(): ModelStep {
    if (this.#step !== null) return this.#step;
    this.#step = { kind: 'step', texts: [], reasoning: [], details: [], calls: [], extraContents: new Map() };
    this.#entries.push(this.#step);
    return this.#step;
  }
}

/** The step's message. None for a step with only reasoning, because no provider accepts that. */
function stepMessage({ texts, reasoning, details, calls, extraContents }: ModelStep): readonly JsonObject[] {
  if (texts.length === 0 && calls.length === 0) return [];
  const tool_calls = calls.map((call) => {
    const extra_content = extraContents.get(String(call.id));
    return extra_content === undefined ? call : { ...call, extra_content };
  });
  return [
    {
      role: 'assistant',
      content: texts.length === 0 ? null : texts.join(PARAGRAPH_BREAK),
      ...(reasoning.length === 0 ? {} : { reasoning_content: reasoning.join(PARAGRAPH_BREAK) }),
      ...(details.length === 0 ? {} : { reasoning_details: details }),
      ...(calls.length === 0 ? {} : { tool_calls }),
    },
  ];
}

function readReasoning(parts: unknown): string {
  const texts = readArray(parts).map((part) => (isObject(part) ? readText(part.text) : undefined));
  return texts.filter((text) => text !== undefined).join(PARAGRAPH_BREAK);
}

function isOptionalText(value: unknown): boolean {
  return typeof value === 'string' || value === undefined || value === null;
}

/** The value's type, if it is short and plain enough for a message or a header. */
export function typeName(value: JsonObject): string {
  const type = readText(value.type) ?? 'untyped';
  return /^[\w.-]{1,64}$/.test(type) ? type : 'unknown';
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
 * Chat's content parts.
 * @param content empty if it is absent or null
 * @param dropped receives the paths of parts of unknown types
 */
function readContent(content: unknown, dropped: ReportedFields): Result<readonly JsonObject[], ApiError> {
  if (typeof content === 'string') return ok([textPart(content)]);
  const given = content ?? [];
  if (!Array.isArray(given) || !given.every(isObject)) return failure(NO_CONTENT);
  const parts: JsonObject[] = [];
  for (const value of given) {
    const part = readPart(value);
    if (part.kind === 'error') return part;
    if (part.value === null) dropped.add(`input.content.${typeName(value)}`);
    else parts.push(part.value);
  }
  return ok(parts);
}

const NO_CONTENT = invalidInput(
  'A content or an output must be a text or a list of parts: send any other value as JSON text',
);

/** Null for a part of an unknown type. */
function readPart(part: JsonObject): Result<JsonObject | null, ApiError> {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'summary_text':
    case 'reasoning_text':
    case 'text':
      return ok(typeof part.text === 'string' ? textPart(part.text) : null);
    case 'refusal':
      return ok(typeof part.refusal === 'string' ? textPart(part.refusal) : null);
    case 'input_image':
      return readImage(part);
    case 'input_file':
      return readFile(part);
    case 'input_audio':
      return ok(isObject(part.input_audio) ? { type: 'input_audio', input_audio: part.input_audio } : null);
    default:
      return ok(null);
  }
}

function textPart(text: string): JsonObject {
  return { type: 'text', text };
}

function readImage({ image_url, file_id, detail }: JsonObject): Result<JsonObject, ApiError> {
  const url = readText(image_url);
  if (url !== undefined) {
    const wanted = readText(detail);
    return ok({ type: 'image_url', image_url: { url, ...(wanted === undefined ? {} : { detail: wanted }) } });
  }
  return failure(file_id === undefined ? NO_IMAGE_URL : IMAGE_FILE_ID);
}

const NO_IMAGE_URL = invalidInput('An input_image needs its image_url');
const IMAGE_FILE_ID = invalidInput(
  "This gateway can't read an image by its file_id: send image_url, a URL or a data: URL",
);

function readFile({ file_data, filename, file_id, file_url }: JsonObject): Result<JsonObject, ApiError> {
  const file = Object.fromEntries(
    Object.entries({ file_data, filename, file_id }).filter(([, value]) => readText(value) !== undefined),
  );
  if (file.file_data !== undefined || file.file_id !== undefined) return ok({ type: 'file', file });
  return failure(file_url === undefined ? NO_FILE_DATA : FILE_URL);
}

const NO_FILE_DATA = invalidInput('An input_file needs its file_data');
const FILE_URL = invalidInput(
  'This gateway does not fetch a file by its file_url: send file_data, a data: URL',
);

/** A single text becomes a string, which every provider accepts. */
function asContent(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const [first, ...others] = parts;
  if (first === undefined) return '';
  return others.length === 0 && typeof first.text === 'string' ? first.text : parts;
}

function joinTexts(parts: readonly JsonObject[]): string {
  return parts
    .map(({ text }) => readText(text))
    .filter((text) => text !== undefined)
    .join(PARAGRAPH_BREAK);
}
