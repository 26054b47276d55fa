/** Writes tools and their choice as Anthropic has them (A2). */

import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { isForcedTool } from '../../request-translation/rules.ts';
import { isObject, type JsonObject, objectOf, omit, readArray, readText } from '../../shared/json.ts';
import type { ClaudeFamily } from './family.ts';
import { claudeSchema } from './request-schema.ts';
import { StrictSchemas } from './request-strict-tools.ts';

const NO_PARAMETERS = { type: 'object', properties: {} };

/** `tools` and `tool_choice` of a body in OpenAI's form, as far as it has them. */
export function claudeTools(body: JsonObject, family: ClaudeFamily, report: TranslationReport): JsonObject {
  const choice = objectOf(body.tool_choice);
  const allowed =
    choice.type === 'allowed_tools' && isObject(choice.allowed_tools) ? choice.allowed_tools : null;
  const names = allowed === null ? null : new Set(readArray(allowed.tools).map(nameOf));
  const offered = readArray(body.tools).filter((tool) => names?.has(nameOf(tool)) ?? true);
  // 400 "tool_choice may only be specified while providing tools": a choice among no tools says nothing.
  if (offered.length === 0) return Array.isArray(body.tools) && body.tools.length > 0 ? { tools: [] } : {};
  const { schema } = objectOf(objectOf(body.response_format).json_schema);
  const strict = new StrictSchemas(objectOf(schema));
  const tools = offered.map((tool) => (isObject(tool) ? claudeTool(tool, family, strict, report) : tool));
  const toolChoice = claudeChoice(allowed === null ? body.tool_choice : (allowed.mode ?? 'auto'));
  const type = toolChoice?.type ?? 'auto';
  const isSerial = body.parallel_tool_calls === false && type !== 'none';
  const choosing = isSerial ? { type, ...toolChoice, disable_parallel_tool_use: true } : toolChoice;
  return { tools, ...(choosing === undefined ? {} : { tool_choice: choosing }) };
}

/** Whether a choice that was so written demands a call. */
export function forcesCall({ tool_choice }: JsonObject): boolean {
  return isObject(tool_choice) && isForcedTool(tool_choice.type === 'tool' ? tool_choice : tool_choice.type);
}

function nameOf(tool: unknown): unknown {
  if (!isObject(tool)) return undefined;
  return isObject(tool.function) ? tool.function.name : tool.name;
}

function claudeTool(
  tool: JsonObject,
  family: ClaudeFamily,
  schemas: StrictSchemas,
  report: TranslationReport,
): JsonObject {
  // A tool of another kind is Anthropic's own, or its answer says what it does not know.
  if (!isObject(tool.function)) return tool;
  const { name, description, parameters, strict, cache_control: inner } = tool.function;
  const schema = { ...NO_PARAMETERS, ...objectOf(parameters) };
  const isStrict = strict === true && family.takesSchemas && schemas.takes(schema);
  if (strict === true && !isStrict) report.drop('tools.function.strict');
  const cacheControl = tool.cache_control ?? inner;
  return {
    name,
    ...(readText(description) === undefined ? {} : { description }),
    input_schema: isStrict ? claudeSchema(schema, () => report.change('tools.function.parameters')) : schema,
    ...(isStrict ? { strict } : {}),
    ...(isObject(cacheControl) ? { cache_control: cacheControl } : {}),
  };
}

function claudeChoice(choice: unknown): JsonObject | undefined {
  if (choice === 'required' || choice === 'any') return { type: 'any' };
  if (choice === 'auto' || choice === 'none') return { type: choice };
  if (!isObject(choice)) return undefined;
  if (isObject(choice.function)) return { type: 'tool', name: choice.function.name };
  if (choice.type === 'function') return { ...omit(choice, 'type'), type: 'tool' };
  return choice;
}
