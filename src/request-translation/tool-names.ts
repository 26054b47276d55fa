/** Tools' names that a provider refuses: a short one stands for each on the way up, wherever a name stands, and is given back (Q1). */

import { toolCallId } from '../canonical/tool-call-id.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';

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
