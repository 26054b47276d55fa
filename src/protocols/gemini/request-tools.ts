/** Writes `tools`, `tool_choice` and JSON schemas as Gemini takes them. */

import type { NativeRequest, RequestSettings, Tool } from '../../canonical/conversation.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { unreadToolKeys } from '../../request-translation/tools.ts';
import { isObject, type JsonObject, objectOf, omit, readText } from '../../shared/json.ts';

/** The keys of a function definition that have an equivalent. */
const DEFINITION_KEYS = ['name', 'description', 'parameters'];

/**
 * All functions go into one entry. Gemini's own tools (`{"googleSearch": {}}`, `{"codeExecution": {}}`) stay unchanged.
 * @param search OpenAI's `web_search_options`
 */
export function writeTools(
  tools: readonly Tool[],
  search: RequestSettings['search'],
  report: TranslationReport,
): readonly unknown[] | undefined {
  const functions = tools.filter((tool) => tool.kind === 'function');
  const functionDeclarations = functions.map((tool) => declaration(tool, report));
  const requestTools = [
    ...(functions.length > 0 ? [{ functionDeclarations }] : []),
    ...tools.flatMap((tool) => (tool.kind === 'function' ? [] : [tool.raw])),
    ...(search === undefined ? [] : [{ googleSearch: {} }]),
  ];
  return requestTools.length === 0 ? undefined : requestTools;
}

function declaration(
  { definition, extra }: Extract<Tool, { readonly kind: 'function' }>,
  report: TranslationReport,
): JsonObject {
  for (const path of unreadToolKeys(extra, [], 'tools')) report.drop(path);
  for (const path of unreadToolKeys(definition, DEFINITION_KEYS, 'tools.function')) report.drop(path);
  const { name, description, parameters } = definition;
  return {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    // `parameters` takes a subset of OpenAPI and answers 400 to the rest; `parametersJsonSchema` takes JSON Schema.
    ...(isObject(parameters) ? { parametersJsonSchema: withoutSchemaKey(parameters) } : {}),
  };
}

/** `$schema` says nothing to the model. */
export function withoutSchemaKey(schema: JsonObject): JsonObject {
  return schema.$schema === undefined ? schema : omit(schema, '$schema');
}

type ToolMode = 'NONE' | 'ANY' | 'VALIDATED';

interface ToolConfig {
  readonly functionCallingConfig: {
    readonly mode: ToolMode;
    readonly allowedFunctionNames?: readonly string[];
  };
}

/** `toolConfig`, or undefined if the model chooses freely, which is the default. */
export function writeToolChoice({ toolChoice, tools = [] }: NativeRequest): ToolConfig | undefined {
  switch (toolChoice?.kind) {
    case 'none':
      return tools.length === 0 ? undefined : config('NONE');
    case 'required':
      return config('ANY');
    case 'tool':
      return toolChoice.type === 'function' ? config('ANY', [toolChoice.name]) : undefined;
    case 'allowed': {
      const names = toolChoice.tools.filter(({ type }) => type === 'function').map(({ name }) => name);
      // Only these two modes take names.
      const mode = toolChoice.mode === 'required' ? 'ANY' : 'VALIDATED';
      return names.length === 0 ? undefined : config(mode, names);
    }
    case 'unknown': {
      // Anthropic's form has the name beside the type.
      const name = readText(objectOf(toolChoice.raw).name);
      return name === undefined ? undefined : config('ANY', [name]);
    }
    default:
      return undefined;
  }
}

function config(mode: ToolMode, names?: readonly string[]): ToolConfig {
  const allowed = names === undefined ? {} : { allowedFunctionNames: names };
  return { functionCallingConfig: { mode, ...allowed } };
}
