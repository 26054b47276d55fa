/** Rewrites the definitions of tools into what the provider takes. */

import { toolCallId } from '../canonical/tool-call-id.ts';
import {
  type EmbeddedJson,
  isObject,
  type JsonObject,
  keepEntries,
  omit,
  readArray,
  readText,
} from '../shared/json.ts';
import type { TranslationReport } from './dropped-fields.ts';
import type { MessageRules } from './rules.ts';

const NO_PARAMETERS = { type: 'object', properties: {} };

export function rewriteTools(
  tools: readonly unknown[],
  rules: MessageRules,
  report: TranslationReport,
): readonly unknown[] {
  return tools.map((tool) => (isObject(tool) ? rewriteTool(tool, rules, report) : tool));
}

function rewriteTool(
  tool: JsonObject,
  { closed, refused = [], needsParameters }: MessageRules,
  report: TranslationReport,
): JsonObject {
  // A tool of another kind has other keys: the provider itself answers for those that it does not have.
  if (tool.type !== 'function' || !isObject(tool.function)) return tool;
  const kept = keep(tool, (key) => closed?.tool.includes(key) ?? !refused.includes(key), 'tools', report);
  const definition = keep(
    tool.function,
    (key) => closed?.function.includes(key) ?? true,
    'tools.function',
    report,
  );
  const parameters = needsParameters && !isObject(definition.parameters) ? { parameters: NO_PARAMETERS } : {};
  return { ...kept, function: { ...definition, ...parameters } };
}

function keep(
  object: JsonObject,
  isKept: (key: string) => boolean,
  place: string,
  report: TranslationReport,
): JsonObject {
  return keepEntries(
    object,
    (key, value) => isKept(key) && value !== null,
    (key, value) => {
      if (value !== null) report.drop(`${place}.${key}`);
    },
  );
}

/** Itself where it has none of them. */
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
    ...(Array.isArray(body.messages) ? { messages: convertMessages(body.messages) } : {}),
  };
}

function isLegacyMessage(message: unknown): boolean {
  return isObject(message) && (message.role === 'function' || isObject(message.function_call));
}

function toolChoice(functionCall: unknown): unknown {
  return isObject(functionCall) ? { type: 'function', function: { name: functionCall.name } } : functionCall;
}

/** A legacy call has no id: it gets one from its place, and the next message of the role `function` answers it. */
function convertMessages(messages: readonly unknown[]): unknown[] {
  let lastId = toolCallId('function');
  return messages.map((message, place) => {
    if (!isObject(message)) return message;
    if (message.role === 'function') {
      return { ...omit(message, 'role', 'name'), role: 'tool', tool_call_id: lastId };
    }
    if (!isObject(message.function_call) || message.tool_calls !== undefined) return message;
    lastId = toolCallId(`function ${place} ${readText(message.function_call.name) ?? ''}`);
    const call = { id: lastId, type: 'function', function: message.function_call };
    return { ...omit(message, 'function_call'), tool_calls: [call] };
  });
}

/** The names as tools have them, by those that stand for them. */
export type ToolNames = ReadonlyMap<string, string>;

/** No provider takes fewer. */
const MAX_SHORT_CHARS = 64;

/**
 * The body with names that the provider takes: itself where it takes all.
 * @param taken the form of names that it takes; absent: any
 */
export function withShortToolNames(
  body: JsonObject,
  taken: RegExp | undefined,
): { readonly body: JsonObject; readonly names: ToolNames } {
  if (taken === undefined) return { body, names: new Map() };
  const shortener = new Shortener(taken);
  shortener.keep(offeredNames(body));
  const written = renamedFields(body, (name) => shortener.shortOf(name));
  const { names } = shortener;
  return { body: names.size === 0 ? body : { ...body, ...written }, names };
}

/** What of the names lives as long as the answer, in UTF-16 units, about. */
export function charsOfNames(names: ToolNames): number {
  let chars = 0;
  for (const [short, name] of names) chars += ENTRY_CHARS + short.length + name.length;
  return chars;
}

const ENTRY_CHARS = 32;

class Shortener {
  readonly names = new Map<string, string>();
  readonly #taken: RegExp;
  readonly #shorts = new Map<string, string>();
  readonly #kept = new Set<string>();

  constructor(taken: RegExp) {
    this.#taken = taken;
  }

  /** Names that stand for themselves alone. */
  keep(names: readonly string[]): void {
    for (const name of names) if (this.#taken.test(name)) this.#kept.add(name);
  }

  /** By a hash of the name: the same in every request of a conversation. */
  shortOf(name: string): string {
    const known = this.#shorts.get(name);
    if (known !== undefined || this.#taken.test(name)) return known ?? name;
    let short = shortName(name, name);
    for (let i = 1; this.#kept.has(short) || this.names.has(short); i++)
      short = shortName(name, `${name} ${i}`);
    this.#shorts.set(name, short);
    this.names.set(short, name);
    return short;
  }
}

/** The beginning of the name, in letters that every provider takes and from a letter on, and a hash. */
function shortName(name: string, hashed: string): string {
  const hash = toolCallId(hashed);
  const head = name.slice(0, MAX_SHORT_CHARS).replace(/[^a-zA-Z0-9_-]/g, '_');
  const lettered = /^[a-zA-Z]/.test(head) ? head : `tool_${head}`;
  return `${lettered.slice(0, MAX_SHORT_CHARS - 1 - hash.length)}_${hash}`;
}

type Rename = (name: string) => string;

function offeredNames(body: JsonObject): readonly string[] {
  const names: string[] = [];
  renamedTools(body, (name) => {
    names.push(name);
    return name;
  });
  return names;
}

/** The fields in which names stand, with their short ones. */
function renamedFields(body: JsonObject, rename: Rename): JsonObject {
  const { tool_choice: choice, function_call: call, messages } = body;
  return {
    ...renamedTools(body, rename),
    ...(isObject(choice) ? { tool_choice: renamedChoice(choice, rename) } : {}),
    ...(isObject(call) ? { function_call: named(call, rename) } : {}),
    ...(Array.isArray(messages)
      ? { messages: mapObjects(messages, (one) => renamedMessage(one, rename)) }
      : {}),
  };
}

function renamedTools({ tools, functions }: JsonObject, rename: Rename): JsonObject {
  return {
    ...(Array.isArray(tools) ? { tools: mapObjects(tools, (tool) => renamedTool(tool, rename)) } : {}),
    ...(Array.isArray(functions) ? { functions: mapObjects(functions, (one) => named(one, rename)) } : {}),
  };
}

/** A tool, a call or a choice: its name stands in its function, or in its custom tool. */
function renamedTool(tool: JsonObject, rename: Rename): JsonObject {
  if (isObject(tool.function)) return { ...tool, function: named(tool.function, rename) };
  return isObject(tool.custom) ? { ...tool, custom: named(tool.custom, rename) } : tool;
}

function renamedChoice(choice: JsonObject, rename: Rename): JsonObject {
  const { allowed_tools: allowed } = choice;
  if (isObject(allowed)) return { ...choice, allowed_tools: renamedAllowed(allowed, rename) };
  if (Array.isArray(choice.tools)) return renamedAllowed(choice, rename);
  return choice.type === 'function' && !isObject(choice.function)
    ? named(choice, rename)
    : renamedTool(choice, rename);
}

function renamedAllowed(allowed: JsonObject, rename: Rename): JsonObject {
  return { ...allowed, tools: mapObjects(readArray(allowed.tools), (tool) => renamedTool(tool, rename)) };
}

function renamedMessage(message: JsonObject, rename: Rename): JsonObject {
  if (message.role === 'tool' || message.role === 'function') return named(message, rename);
  const { tool_calls: calls, function_call: call } = message;
  if (!Array.isArray(calls) && !isObject(call)) return message;
  const renamedCalls = Array.isArray(calls)
    ? { tool_calls: mapObjects(calls, (one) => renamedTool(one, rename)) }
    : {};
  const renamedCall = isObject(call) ? { function_call: named(call, rename) } : {};
  return { ...message, ...renamedCalls, ...renamedCall };
}

function named(object: JsonObject, rename: Rename): JsonObject {
  const name = readText(object.name);
  return name === undefined ? object : { ...object, name: rename(name) };
}

function mapObjects(items: readonly unknown[], map: (item: JsonObject) => JsonObject): readonly unknown[] {
  return items.map((item) => (isObject(item) ? map(item) : item));
}

interface Calls {
  /** How many other ids came before. */
  readonly place: number;
  /** What the calls of this id are known by, in their order. */
  readonly names: string[];
  answered: number;
}

/** By the ids that their client gave them, which several may have between them. */
export class StepCalls {
  readonly #calls = new Map<string, Calls>();

  /** A step begins: what was called before is answered by now, or never. */
  begin(): void {
    this.#calls.clear();
  }

  add(id: string, name: string): void {
    const known = this.#calls.get(id);
    if (known !== undefined) known.names.push(name);
    else this.#calls.set(id, { place: this.#calls.size, names: [name], answered: 0 });
  }

  /** The name of the call that a result is of: of calls with one id the first result is the first one's. */
  answer(id: string): string | undefined {
    const known = this.#calls.get(id);
    return known?.names[Math.min(known.answered++, known.names.length - 1)];
  }

  /** Where the calls of this id stand; behind all others where there is none. */
  placeOf(id: string): number {
    return this.#calls.get(id)?.place ?? this.#calls.size;
  }
}

/**
 * A call's arguments as an object: none where they are blank or null; a text that is no object (cut by a limit, or beyond the bounds)
 * is kept as one of them, as it must not block the conversation for ever.
 */
export function argumentsObject(value: unknown, embedded: EmbeddedJson): JsonObject {
  if (isObject(value)) return value;
  const text = readText(value)?.trim() ?? '';
  if (text === '' || text === 'null') return {};
  return embedded.object(text) ?? { arguments: value };
}
