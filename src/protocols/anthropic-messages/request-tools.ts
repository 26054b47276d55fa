/** Writes `tools` and `tool_choice` as Anthropic takes them, within its limits on strict tools. */

import type { NativeRequest, Tool, ToolChoice } from '../../canonical/conversation.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { isForcedTool, NO_PARAMETERS, unreadToolKeys } from '../../request-translation/tools.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import type { ClaudeFamily } from './family.ts';
import { subschemas, writeSchema } from './request-schema.ts';

/** What a request has of its tools. */
export interface SentTools {
  readonly tools?: readonly unknown[];
  readonly tool_choice?: JsonObject;
}

/** The `tools` and `tool_choice` of a Messages request; empty if no tool is offered. */
export function writeTools(
  { tools: given = [], toolChoice, settings: { format, plain } }: NativeRequest,
  family: ClaudeFamily,
  report: TranslationReport,
): SentTools {
  const allowed = toolChoice?.kind === 'allowed' ? toolChoice : null;
  const names = allowed === null ? null : new Set<unknown>(allowed.tools.map(({ name }) => name));
  const offered = given.filter((tool) => names?.has(nameOf(tool)) ?? true);
  // 400 "tool_choice may only be specified while providing tools".
  if (offered.length === 0) return given.length > 0 ? { tools: [] } : {};
  const strict = new StrictSchemas(format?.schema);
  const tools = offered.map((tool) =>
    tool.kind === 'function' ? writeTool(tool, family, strict, report) : tool.raw,
  );
  const choice = writeToolChoice(allowed === null ? toolChoice : { kind: allowed.mode });
  const type = choice?.type ?? 'auto';
  const isSerial = plain.parallel_tool_calls === false && type !== 'none';
  const nativeChoice = isSerial ? { type, ...choice, disable_parallel_tool_use: true } : choice;
  return { tools, ...(nativeChoice === undefined ? {} : { tool_choice: nativeChoice }) };
}

/** Whether a written `tool_choice` requires a call. */
export function forcesCall({ tool_choice }: SentTools): boolean {
  return isForcedTool(tool_choice?.type === 'tool' ? tool_choice : tool_choice?.type);
}

function nameOf(tool: Tool): unknown {
  return tool.kind === 'unknown' ? objectOf(tool.raw).name : tool.definition.name;
}

const DEFINITION_KEYS = ['name', 'description', 'parameters', 'strict', 'cache_control'];

function writeTool(
  { definition, extra }: Extract<Tool, { readonly kind: 'function' }>,
  family: ClaudeFamily,
  strictSchemas: StrictSchemas,
  report: TranslationReport,
): JsonObject {
  const { name, description, parameters, strict, cache_control: inner } = definition;
  for (const path of unreadToolKeys(extra, ['cache_control'], 'tools')) report.drop(path);
  for (const path of unreadToolKeys(definition, DEFINITION_KEYS, 'tools.function')) report.drop(path);
  const schema = { ...NO_PARAMETERS, ...objectOf(parameters) };
  const isStrict = strict === true && family.takesSchemas && strictSchemas.add(schema);
  if (strict === true && !isStrict) report.drop('tools.function.strict');
  const cacheControl = extra.cache_control ?? inner;
  return {
    name,
    ...(readText(description) === undefined ? {} : { description }),
    input_schema: isStrict ? writeSchema(schema, () => report.change('tools.function.parameters')) : schema,
    ...(isStrict ? { strict } : {}),
    ...(isObject(cacheControl) ? { cache_control: cacheControl } : {}),
  };
}

/** A choice that is not known may be in Anthropic's own form. */
function writeToolChoice(choice: ToolChoice | undefined): JsonObject | undefined {
  switch (choice?.kind) {
    case 'required':
      return { type: 'any' };
    case 'auto':
    case 'none':
      return { type: choice.kind };
    case 'tool':
      return { type: 'tool', name: choice.name };
    case 'unknown':
      return isObject(choice.raw) ? choice.raw : undefined;
    default:
      return undefined;
  }
}

/**
 * 400 "Too many strict tools (22). The maximum number of strict tools supported is 20", "Schemas contains too many parameters with
 * union types (24 parameters with type arrays or anyOf) … limit: 16", "too many optional parameters (25) … limit: 24"
 * (camel-ai/camel#4171, 2026-07-13; elizaOS/eliza#16499, 2026-07-16). Agents that mark every tool, as OpenAI's own do, reach them.
 */
const STRICT_LIMITS = { tools: 20, unions: 16, optional: 24 } as const;

type StrictCounts = { readonly [L in keyof typeof STRICT_LIMITS]: number };

/** Counts the strict schemas of one request. A tool beyond the limits is sent without `strict`. */
class StrictSchemas {
  #counts: StrictCounts;

  /** @param format the schema of the response format, which counts too */
  constructor(format: JsonObject = {}) {
    this.#counts = countsOf(format);
  }

  /** @returns false if the schema would exceed the limits; it is then not counted */
  add(schema: JsonObject): boolean {
    const counts = sum(this.#counts, { ...countsOf(schema), tools: 1 });
    const fits =
      counts.tools <= STRICT_LIMITS.tools &&
      counts.unions <= STRICT_LIMITS.unions &&
      counts.optional <= STRICT_LIMITS.optional;
    if (fits) this.#counts = counts;
    return fits;
  }
}

function sum(a: StrictCounts, b: StrictCounts): StrictCounts {
  return { tools: a.tools + b.tools, unions: a.unions + b.unions, optional: a.optional + b.optional };
}

function countsOf(schema: JsonObject): StrictCounts {
  const isUnion = Array.isArray(schema.anyOf) || readArray(schema.type).length > 1;
  const required = new Set(readArray(schema.required));
  const names = isObject(schema.properties) ? Object.keys(schema.properties) : [];
  const optional = names.filter((name) => !required.has(name)).length;
  return subschemas(schema)
    .map(countsOf)
    .reduce(sum, { tools: 0, unions: isUnion ? 1 : 0, optional });
}
