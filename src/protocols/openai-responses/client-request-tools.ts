/** Reads a Responses request's tools and their choice into chat's functions (I2). */
import { type ApiError, apiError } from '../../canonical/error.ts';
import { ReportedFields } from '../../canonical/reported-fields.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { isObject, type JsonObject, readArray, readText } from '../../shared/json.ts';
import type { ToolOrigin } from './session.ts';

/** OpenAI's bound on a function's name: https://platform.openai.com/docs/api-reference/chat/create (2026-11-22). */
const MAX_FUNCTION_NAME_CHARS = 64;

export interface ReadTools {
  /** Chat's functions. */
  readonly tools: readonly JsonObject[];
  /** By the function's name, where the tool is no plain function of that name. */
  readonly origins: ReadonlyMap<string, ToolOrigin>;
  /** The tools that are served, as a response object repeats them. */
  readonly echo: readonly JsonObject[];
  /** Kinds that only their own maker can run. */
  readonly dropped: readonly string[];
}

/** Functions, custom tools and namespaces of both; what the provider would have to run itself is left out. */
export function readTools(given: readonly unknown[]): ReadTools {
  // By name: of two with one name the later counts.
  const tools = new Map<string, JsonObject>();
  const origins = new Map<string, ToolOrigin>();
  const echo: JsonObject[] = [];
  const dropped = new ReportedFields();
  const add = (tool: JsonObject, namespace?: string, about?: string): boolean => {
    const name = readText(tool.name);
    const kind = tool.type === 'function' || tool.type === 'custom' ? tool.type : null;
    if (name === undefined || kind === null) return false;
    const functionName = flatName(name, namespace);
    tools.set(functionName, { type: 'function', function: functionOf(tool, functionName, about) });
    if (kind === 'function' && namespace === undefined) origins.delete(functionName);
    else origins.set(functionName, { kind, name, namespace });
    return true;
  };
  for (const tool of given.filter(isObject)) {
    if (tool.type === 'namespace') {
      const [first, ...others] = readArray(tool.tools).filter(isObject);
      const namespace = readText(tool.name);
      // What the namespace is about is told once, with its first tool.
      const isAdded = first !== undefined && add(first, namespace, readText(tool.description));
      for (const other of others) add(other, namespace);
      if (isAdded) echo.push(tool);
    } else if (add(tool)) echo.push(tool.type === 'function' ? echoOf(tool) : tool);
    else dropped.add(`tools.${typeOf(tool)}`);
  }
  return { tools: [...tools.values()], origins, echo, dropped: dropped.list };
}

/** What of the tools lives as long as the answer, in UTF-16 units, about. */
export function charsOfOrigins(origins: ReadonlyMap<string, ToolOrigin>): number {
  let chars = 0;
  for (const [flat, { name, namespace = '' }] of origins) {
    chars += ENTRY_CHARS + flat.length + name.length + namespace.length;
  }
  return chars;
}

const ENTRY_CHARS = 32;

/** The function's name for a tool, which a call in the history has too. */
export function flatName(name: string, namespace: string | undefined): string {
  if (namespace === undefined) return name;
  const flat = namespace.endsWith('__') ? `${namespace}${name}` : `${namespace}__${name}`;
  if (flat.length <= MAX_FUNCTION_NAME_CHARS) return flat;
  const hash = toolCallId(flat);
  return `${flat.slice(0, MAX_FUNCTION_NAME_CHARS - hash.length - 1)}_${hash}`;
}

function functionOf(tool: JsonObject, name: string, about: string | undefined): JsonObject {
  const own = [about, readText(tool.description)];
  if (tool.type === 'custom') {
    const description = [...own, grammarOf(tool.format)].filter(Boolean).join('\n\n');
    return { name, ...(description === '' ? {} : { description }), parameters: INPUT_PARAMETERS };
  }
  const description = own.filter(Boolean).join('\n\n');
  return {
    name,
    ...(description === '' ? {} : { description }),
    ...(isObject(tool.parameters) ? { parameters: tool.parameters } : {}),
    ...(typeof tool.strict === 'boolean' ? { strict: tool.strict } : {}),
  };
}

/** A custom tool takes one text. */
const INPUT_PARAMETERS = {
  type: 'object',
  properties: { input: { type: 'string', description: 'All of the input: plain text' } },
  required: ['input'],
  additionalProperties: false,
};

function grammarOf(format: unknown): string | undefined {
  if (!isObject(format)) return undefined;
  const grammar = isObject(format.grammar) ? format.grammar : format;
  const definition = readText(grammar.definition);
  if (definition === undefined) return undefined;
  return `The input must follow this ${readText(grammar.syntax) ?? ''} grammar:\n${definition}`;
}

/** All keys are there, as Open Responses has it. */
function echoOf(tool: JsonObject): JsonObject {
  const { name, description, parameters, strict } = tool;
  return {
    type: 'function',
    name,
    description: readText(description) ?? null,
    parameters: isObject(parameters) ? parameters : null,
    strict: typeof strict === 'boolean' ? strict : null,
  };
}

function typeOf(tool: JsonObject): string {
  const type = readText(tool.type) ?? 'untyped';
  return /^[\w.-]{1,64}$/.test(type) ? type : 'unknown';
}

export type ReadChoice =
  | {
      readonly kind: 'choice';
      /** Chat's `tool_choice`, or undefined where there is nothing to choose from. */
      readonly choice: unknown;
      /** The tools that are allowed. */
      readonly tools: readonly JsonObject[];
    }
  | { readonly kind: 'error'; readonly error: ApiError };

/** A choice that demands what only its own maker can run is refused by name: without it the answer would be another one. */
export function readToolChoice(value: unknown, { tools }: ReadTools): ReadChoice {
  if (value === undefined || value === null || value === 'auto' || value === 'none') {
    return { kind: 'choice', choice: tools.length === 0 ? undefined : (value ?? undefined), tools };
  }
  if (value === 'required')
    return tools.length > 0 ? { kind: 'choice', choice: value, tools } : refused(value);
  if (!isObject(value)) return refused('unknown');
  if (value.type === 'allowed_tools') return allowedTools(value, tools);
  const name = nameIn(value);
  return name !== undefined && tools.some((tool) => isNamed(tool, name))
    ? { kind: 'choice', choice: { type: 'function', function: { name } }, tools }
    : refused(readText(value.name) ?? typeOf(value));
}

function allowedTools(choice: JsonObject, tools: readonly JsonObject[]): ReadChoice {
  const names = new Set<unknown>(readArray(choice.tools).filter(isObject).map(nameIn));
  names.delete(undefined);
  const allowed = tools.filter(({ function: called }) => isObject(called) && names.has(called.name));
  const mode = readText(choice.mode) ?? 'auto';
  if (allowed.length === 0 && mode === 'required') return refused('allowed_tools');
  return { kind: 'choice', choice: allowed.length === 0 ? undefined : mode, tools: allowed };
}

/** The function's name that a choice means. */
function nameIn({ type, name, namespace }: JsonObject): string | undefined {
  const text = readText(name);
  const isOurs = type === 'function' || type === 'custom';
  return isOurs && text !== undefined ? flatName(text, readText(namespace)) : undefined;
}

function isNamed(tool: JsonObject, name: string): boolean {
  return isObject(tool.function) && tool.function.name === name;
}

function refused(named: string): ReadChoice {
  const message = `tool_choice asks for ${named.slice(0, MAX_FUNCTION_NAME_CHARS)}, which is not among the tools served here: functions and custom tools, whose calls your client runs`;
  return { kind: 'error', error: apiError('unsupported_parameter', message, 'tool_choice') };
}
