/** Writes tools and the choice among them as Gemini has them (A2). */

import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { isObject, type JsonObject, omit, readArray, readText } from '../../shared/json.ts';

/** OpenAI's keys that have no equal here: of the definition, and of the tool around it. */
const DEFINITION_KEYS = ['name', 'description', 'parameters'];
const TOOL_KEYS = ['type', 'function'];

/** All functions in one entry; Gemini's own tools (`{"googleSearch": {}}`, `{"codeExecution": {}}`) stay as they are (Q7). */
export function writeTools(body: JsonObject, report: TranslationReport): readonly unknown[] | undefined {
  const tools = readArray(body.tools);
  const functionDeclarations = tools.flatMap((tool) => (isFunction(tool) ? [declaration(tool, report)] : []));
  const own = tools.filter((tool) => !isFunction(tool));
  const search = isObject(body.web_search_options) ? [{ googleSearch: {} }] : [];
  const written = [...(functionDeclarations.length > 0 ? [{ functionDeclarations }] : []), ...own, ...search];
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
  reportLost(tool, TOOL_KEYS, 'tools', report);
  reportLost(definition, DEFINITION_KEYS, 'tools.function', report);
  const { name, description, parameters } = definition;
  return {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    // `parameters` takes a subset of OpenAPI and answers 400 to the rest; this takes JSON Schema, but for the word that names it.
    ...(isObject(parameters) ? { parametersJsonSchema: withoutDialect(parameters) } : {}),
  };
}

/** `$schema` is the one word of a schema that is refused (studies/dialects.md 3.6, 2026-11). */
export function withoutDialect(schema: JsonObject): JsonObject {
  return schema.$schema === undefined ? schema : omit(schema, '$schema');
}

function reportLost(
  object: JsonObject,
  known: readonly string[],
  place: string,
  report: TranslationReport,
): void {
  for (const [key, value] of Object.entries(object)) {
    // `strict: false` is the default.
    const says = value !== null && value !== undefined && value !== false;
    if (says && !known.includes(key)) report.drop(`${place}.${key}`);
  }
}

/** `toolConfig`, or undefined where the model chooses freely, which is the default. */
export function writeToolChoice({ tool_choice: choice, tools }: JsonObject): JsonObject | undefined {
  if (choice === 'none') return readArray(tools).length === 0 ? undefined : config('NONE');
  if (choice === 'required' || choice === 'any') return config('ANY');
  if (!isObject(choice)) return undefined;
  const named = isObject(choice.function) ? readText(choice.function.name) : readText(choice.name);
  if (named !== undefined) return config('ANY', [named]);
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
