/** Writes `tools`, `tool_choice` and JSON schemas as Gemini takes them. */

import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { isObject, type JsonObject, omit, readArray, readText } from '../../shared/json.ts';

/** The keys of a function definition and of the tool around it that have an equivalent. */
const DEFINITION_KEYS = ['name', 'description', 'parameters'];
const TOOL_KEYS = ['type', 'function'];

/** All functions go into one entry. Gemini's own tools (`{"googleSearch": {}}`, `{"codeExecution": {}}`) stay unchanged. */
export function writeTools(body: JsonObject, report: TranslationReport): readonly unknown[] | undefined {
  const tools = readArray(body.tools);
  const functionDeclarations = tools.flatMap((tool) => (isFunction(tool) ? [declaration(tool, report)] : []));
  const native = tools.filter((tool) => !isFunction(tool));
  const search = isObject(body.web_search_options) ? [{ googleSearch: {} }] : [];
  const written = [
    ...(functionDeclarations.length > 0 ? [{ functionDeclarations }] : []),
    ...native,
    ...search,
  ];
  return written.length === 0 ? undefined : written;
}

function isFunction(tool: unknown): tool is JsonObject & { readonly function: JsonObject } {
  return isObject(tool) && isObject(tool.function) && (tool.type === undefined || tool.type === 'function');
}

function declaration(
  tool: JsonObject & { readonly function: JsonObject },
  report: TranslationReport,
): JsonObject {
  const definition = tool.function;
  reportUnread(tool, TOOL_KEYS, 'tools', report);
  reportUnread(definition, DEFINITION_KEYS, 'tools.function', report);
  const { name, description, parameters } = definition;
  return {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    // `parameters` takes a subset of OpenAPI and answers 400 to the rest; `parametersJsonSchema` takes JSON Schema.
    ...(isObject(parameters) ? { parametersJsonSchema: withoutSchemaKey(parameters) } : {}),
  };
}

/** `$schema` is the only keyword of a schema that Gemini refuses (2026-11). */
export function withoutSchemaKey(schema: JsonObject): JsonObject {
  return schema.$schema === undefined ? schema : omit(schema, '$schema');
}

function reportUnread(
  object: JsonObject,
  read: readonly string[],
  path: string,
  report: TranslationReport,
): void {
  for (const [key, value] of Object.entries(object)) {
    // `strict: false` is the default.
    const isSet = value !== null && value !== undefined && value !== false;
    if (isSet && !read.includes(key)) report.drop(`${path}.${key}`);
  }
}

/** `toolConfig`, or undefined if the model chooses freely, which is the default. */
export function writeToolChoice({ tool_choice: choice, tools }: JsonObject): JsonObject | undefined {
  if (choice === 'none') return readArray(tools).length === 0 ? undefined : config('NONE');
  if (choice === 'required' || choice === 'any') return config('ANY');
  if (!isObject(choice)) return undefined;
  const name = isObject(choice.function) ? readText(choice.function.name) : readText(choice.name);
  if (name !== undefined) return config('ANY', [name]);
  const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : choice;
  const names = readArray(allowed.tools)
    .filter(isFunction)
    .map((tool) => tool.function.name);
  // Only these two modes take names.
  return names.length === 0 ? undefined : config(allowed.mode === 'required' ? 'ANY' : 'VALIDATED', names);
}

function config(mode: string, names?: readonly unknown[]): JsonObject {
  const allowed = names === undefined ? {} : { allowedFunctionNames: names };
  return { functionCallingConfig: { mode, ...allowed } };
}
