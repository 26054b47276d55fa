/** Rewrites tools and their calls: definitions, names that the provider refuses, and OpenAI's functions from before tools. */
import type { Block, CanonicalRequest, ToolCallBlock, Turn } from '../canonical/conversation.ts';
import { toolCallId } from '../canonical/tool-call-id.ts';
import {
  type EmbeddedJson,
  isObject,
  type JsonObject,
  keepEntries,
  mapObjects,
  omit,
  readArray,
  readText,
} from '../shared/json.ts';
import type { TranslationReport } from './dropped-fields.ts';
import type { MessageRules } from './rules.ts';

/** The schema of a function without parameters. */
export const NO_PARAMETERS = { type: 'object', properties: {} };

/** Rewrites a tool of a chat request as the provider takes it. */
export function rewriteTool(
  tool: JsonObject,
  { closed, refused = [], needsParameters }: MessageRules,
  report: TranslationReport,
): JsonObject {
  const { type = 'function' } = tool;
  // Tools of other types have other keys, which the provider checks itself.
  if (type !== 'function' || !isObject(tool.function)) return tool;
  // Mistral does not need the type, and its SDK leaves it out.
  const typed = tool.type === undefined ? { type, ...tool } : tool;
  const kept = keepKeys(
    typed,
    (key) => closed?.tool.includes(key) ?? !refused.includes(key),
    'tools',
    report,
  );
  const definition = keepKeys(
    tool.function,
    (key) => closed?.function.includes(key) ?? true,
    'tools.function',
    report,
  );
  const parameters = needsParameters && !isObject(definition.parameters) ? { parameters: NO_PARAMETERS } : {};
  return { ...kept, function: { ...definition, ...parameters } };
}

function keepKeys(
  object: JsonObject,
  isKept: (key: string) => boolean,
  path: string,
  report: TranslationReport,
): JsonObject {
  return keepEntries(
    object,
    (key, value) => isKept(key) && value !== null,
    (key, value) => {
      if (value !== null) report.drop(`${path}.${key}`);
    },
  );
}

/** The paths of a tool's keys that are not sent on. False is the default of `strict`, `defer_loading` and others. */
export function unreadToolKeys(object: JsonObject, read: readonly string[], path: string): readonly string[] {
  const isUnread = (key: string) => !read.includes(key) && (object[key] ?? false) !== false;
  return Object.keys(object)
    .filter(isUnread)
    .map((key) => `${path}.${key}`);
}

/** Whether the client demands a tool call, of any tool or of a named one. */
export function isForcedTool(toolChoice: unknown): boolean {
  return toolChoice === 'required' || toolChoice === 'any' || isObject(toolChoice);
}

/** Converts `functions`, `function_call` and messages of role `function` to tools. A body without them is returned unchanged. */
export function convertLegacyFunctions(body: JsonObject): JsonObject {
  const isLegacy = Array.isArray(body.functions) || body.function_call !== undefined;
  if (!isLegacy && !readArray(body.messages).some(isLegacyMessage)) return body;
  const rest = isLegacy ? omit(body, 'functions', 'function_call') : body;
  const tools = readArray(body.functions).map((definition) => ({ type: 'function', function: definition }));
  return {
    ...rest,
    ...(tools.length === 0 || rest.tools !== undefined ? {} : { tools }),
    ...(body.function_call === undefined || rest.tool_choice !== undefined
      ? {}
      : { tool_choice: toolChoice(body.function_call) }),
    ...(Array.isArray(body.messages) ? { messages: convertLegacyMessages(body.messages) } : {}),
  };
}

function isLegacyMessage(message: unknown): boolean {
  return isObject(message) && (message.role === 'function' || isObject(message.function_call));
}

function toolChoice(functionCall: unknown): unknown {
  return isObject(functionCall) ? { type: 'function', function: { name: functionCall.name } } : functionCall;
}

/** A legacy call has no id. It gets one from its position, and the next message of role `function` is its result. */
function convertLegacyMessages(messages: readonly unknown[]): unknown[] {
  let lastId = toolCallId('function');
  return messages.map((message, position) => {
    if (!isObject(message)) return message;
    if (message.role === 'function') {
      return { ...omit(message, 'role', 'name'), role: 'tool', tool_call_id: lastId };
    }
    if (!isObject(message.function_call) || message.tool_calls !== undefined) return message;
    lastId = toolCallId(`function ${position} ${readText(message.function_call.name) ?? ''}`);
    const call = { id: lastId, type: 'function', function: message.function_call };
    return { ...omit(message, 'function_call'), tool_calls: [call] };
  });
}

/** The client's tool names by the short names that replace them in the provider's request. */
export type ToolNames = ReadonlyMap<string, string>;

/** The lowest limit of any provider. */
const MAX_SHORT_CHARS = 64;

/**
 * Replaces tool names that the provider refuses, wherever a request contains names. The writer of the response restores them.
 * @param accepted the names that the provider accepts; absent: all
 */
export function withShortToolNames(
  request: CanonicalRequest,
  accepted: RegExp | undefined,
): { readonly request: CanonicalRequest; readonly names: ToolNames } {
  if (accepted === undefined) return { request, names: new Map() };
  const shortener = new NameShortener(accepted);
  // This walk only visits the names: short ones must differ from all that are accepted.
  renamedTools(request.fields, (name) => shortener.reserve(name));
  const rename = (name: string) => shortener.shorten(name);
  const fields = { ...request.fields, ...renamedFields(request.fields, rename) };
  const turns = request.turns?.map((turn) => renamedTurn(turn, accepted, rename)) ?? null;
  const { names } = shortener;
  return { request: names.size === 0 ? request : { ...request, fields, turns }, names };
}

/** The results of a client that is not one of chat name no tools. */
function renamedTurn(turn: Turn, accepted: RegExp, rename: Rename): Turn {
  const isRefused = (block: Block): block is ToolCallBlock =>
    block.kind === 'tool_call' && block.name !== '' && !accepted.test(block.name);
  if (!turn.blocks.some(isRefused)) return turn;
  const blocks = turn.blocks.map((one) => (isRefused(one) ? { ...one, name: rename(one.name) } : one));
  return { ...turn, blocks };
}

/**
 * The approximate size of a table of tool names in memory, in UTF-16 units. It lives as long as the response.
 * @param entries the names of each tool
 */
export function sizeOfNames(entries: Iterable<readonly string[]>): number {
  let chars = 0;
  for (const names of entries) {
    chars += ENTRY_CHARS;
    for (const name of names) chars += name.length;
  }
  return chars;
}

const ENTRY_CHARS = 32;

class NameShortener {
  readonly names = new Map<string, string>();
  readonly #accepted: RegExp;
  readonly #shortNames = new Map<string, string>();
  readonly #reserved = new Set<string>();

  constructor(accepted: RegExp) {
    this.#accepted = accepted;
  }

  /** Keeps an accepted name for its tool: no short name may equal it. */
  reserve(name: string): string {
    if (this.#accepted.test(name)) this.#reserved.add(name);
    return name;
  }

  /** The short name contains a hash, so it is the same in every request of a conversation. */
  shorten(name: string): string {
    const chosenName = this.#shortNames.get(name);
    if (chosenName !== undefined || this.#accepted.test(name)) return chosenName ?? name;
    let short = shortName(name, name);
    for (let i = 1; this.#reserved.has(short) || this.names.has(short); i++)
      short = shortName(name, `${name} ${i}`);
    this.#shortNames.set(name, short);
    this.names.set(short, name);
    return short;
  }
}

/** The beginning of the name, in characters that every provider accepts, and a hash. The first character is a letter. */
function shortName(name: string, hashed: string): string {
  const hash = toolCallId(hashed);
  const head = name.slice(0, MAX_SHORT_CHARS).replace(/[^a-zA-Z0-9_-]/g, '_');
  const prefix = /^[a-zA-Z]/.test(head) ? head : `tool_${head}`;
  return `${prefix.slice(0, MAX_SHORT_CHARS - 1 - hash.length)}_${hash}`;
}

type Rename = (name: string) => string;

/** The fields of a body that contain tool names, with renamed tools. */
function renamedFields(body: JsonObject, rename: Rename): JsonObject {
  const { tool_choice: choice, function_call: call, messages } = body;
  return {
    ...renamedTools(body, rename),
    ...(isObject(choice) ? { tool_choice: renamedChoice(choice, rename) } : {}),
    ...(isObject(call) ? { function_call: withName(call, rename) } : {}),
    ...(Array.isArray(messages)
      ? { messages: mapObjects(messages, (one) => renamedMessage(one, rename)) }
      : {}),
  };
}

function renamedTools({ tools, functions }: JsonObject, rename: Rename): JsonObject {
  return {
    ...(Array.isArray(tools) ? { tools: mapObjects(tools, (tool) => renamedTool(tool, rename)) } : {}),
    ...(Array.isArray(functions) ? { functions: mapObjects(functions, (one) => withName(one, rename)) } : {}),
  };
}

/** A tool, a call or a choice: the name is in its `function` or `custom` member. */
function renamedTool(tool: JsonObject, rename: Rename): JsonObject {
  if (isObject(tool.function)) return { ...tool, function: withName(tool.function, rename) };
  return isObject(tool.custom) ? { ...tool, custom: withName(tool.custom, rename) } : tool;
}

function renamedChoice(choice: JsonObject, rename: Rename): JsonObject {
  const { allowed_tools: allowed } = choice;
  if (isObject(allowed)) return { ...choice, allowed_tools: renamedAllowed(allowed, rename) };
  if (Array.isArray(choice.tools)) return renamedAllowed(choice, rename);
  return choice.type === 'function' && !isObject(choice.function)
    ? withName(choice, rename)
    : renamedTool(choice, rename);
}

function renamedAllowed(allowed: JsonObject, rename: Rename): JsonObject {
  return { ...allowed, tools: mapObjects(readArray(allowed.tools), (tool) => renamedTool(tool, rename)) };
}

function renamedMessage(message: JsonObject, rename: Rename): JsonObject {
  if (message.role === 'tool' || message.role === 'function') return withName(message, rename);
  const { tool_calls: calls, function_call: call } = message;
  if (!Array.isArray(calls) && !isObject(call)) return message;
  const renamedCalls = Array.isArray(calls)
    ? { tool_calls: mapObjects(calls, (one) => renamedTool(one, rename)) }
    : {};
  const renamedCall = isObject(call) ? { function_call: withName(call, rename) } : {};
  return { ...message, ...renamedCalls, ...renamedCall };
}

function withName(object: JsonObject, rename: Rename): JsonObject {
  const name = readText(object.name);
  return name === undefined ? object : { ...object, name: rename(name) };
}

/**
 * A call's arguments as an object. Blank and null arguments become `{}`. A text that is no valid object, such as truncated JSON, is
 * wrapped, because a refusal would block the conversation for good.
 */
export function argumentsObject(value: unknown, embedded: EmbeddedJson): JsonObject {
  if (isObject(value)) return value;
  const text = readText(value)?.trim() ?? '';
  if (text === '' || text === 'null') return {};
  return embedded.object(text) ?? { arguments: value };
}
