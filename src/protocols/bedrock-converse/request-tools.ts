/** Writes `toolConfig` as Converse takes it. */
import type { NativeRequest, Tool } from '../../canonical/conversation.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { mapSubschemas } from '../../request-translation/schemas.ts';
import { NO_PARAMETERS, unreadToolKeys } from '../../request-translation/tools.ts';
import { isObject, type JsonObject, objectOf, omit, ownValue, readText } from '../../shared/json.ts';
import type { ConverseFamily } from './family.ts';
import { type ConverseConversation, cachePoint } from './request-messages.ts';

/** Of a conversation with results whose calls are gone. */
const PLACEHOLDER_TOOL = 'unavailable_tool';

const DEFINITION_KEYS = ['name', 'description', 'parameters', 'strict', 'cache_control'];

/** `toolConfig`, or undefined if no tool is offered, and none was called. */
export function writeToolConfig(
  { tools: given = [], toolChoice, settings: { search } }: NativeRequest,
  { calledTools, hasResults }: Pick<ConverseConversation, 'calledTools' | 'hasResults'>,
  family: ConverseFamily,
  report: TranslationReport,
): JsonObject | undefined {
  const isNone = toolChoice?.kind === 'none';
  const needsTools = calledTools.length > 0 || hasResults;
  const named = toolChoice?.kind === 'tool' ? toolChoice.name : undefined;
  const allowed = toolChoice?.kind === 'allowed' ? toolChoice.tools.map(({ name }) => name) : undefined;
  const isOneOnly = named !== undefined && family.lacksNamedChoice === true;
  const names = isOneOnly ? [named] : allowed;
  const offered = given.filter((tool) => names === undefined || names.includes(nameOf(tool)));
  // Converse has no such choice: without tools none is called.
  const own = isNone && !needsTools ? [] : offered;
  if (isNone && needsTools && given.length > 0) report.change('tool_choice');
  const tools = [
    ...own.flatMap((tool) => writeTool(tool, family, report)),
    ...searchTool(search, family, report),
  ];
  if (tools.length === 0) return needsTools ? toolsOfHistory(calledTools, report) : undefined;
  const choice = writeChoice(toolChoice, isOneOnly);
  return { tools, ...(choice === undefined ? {} : { toolChoice: choice }) };
}

/**
 * "The toolConfig field must be defined when using toolUse and toolResult content blocks": a conversation with calls that comes without
 * tools, such as for a summary, has those that it called.
 */
function toolsOfHistory(called: readonly string[], report: TranslationReport): JsonObject {
  report.change('tools');
  const names = called.length === 0 ? [PLACEHOLDER_TOOL] : called;
  return { tools: names.map((name) => ({ toolSpec: { name, inputSchema: { json: NO_PARAMETERS } } })) };
}

function nameOf(tool: Tool): string {
  const { name } = tool.kind === 'unknown' ? objectOf(tool.raw) : tool.definition;
  return readText(name) ?? '';
}

function writeTool(tool: Tool, family: ConverseFamily, report: TranslationReport): JsonObject[] {
  // Converse's own tools: `{"systemTool":{"name":"nova_grounding"}}`.
  if (tool.kind === 'unknown') return isOwnTool(tool.raw) ? [tool.raw] : refusedTool(tool.raw, report);
  if (tool.kind === 'custom') return refusedTool(tool.raw, report);
  const { definition, extra } = tool;
  const { name, description, parameters, strict, cache_control: inner } = definition;
  for (const path of unreadToolKeys(extra, ['cache_control'], 'tools')) report.drop(path);
  for (const path of unreadToolKeys(definition, DEFINITION_KEYS, 'tools.function')) report.drop(path);
  const schema = writeToolSchema({ ...NO_PARAMETERS, ...objectOf(parameters) }, family, report);
  const text = readText(description);
  const toolSpec = {
    name,
    ...(text === undefined || text.trim() === '' ? {} : { description: text }),
    inputSchema: { json: schema },
    ...(strict === true && family.effort === 'claude' ? { strict } : {}),
  };
  const mark = extra.cache_control ?? inner;
  if (!isObject(mark)) return [{ toolSpec }];
  const point = family.cachePoints?.inTools === true ? cachePoint(mark, family) : null;
  if (point === null) report.drop('tools.cache_control');
  return [{ toolSpec }, ...(point === null ? [] : [point])];
}

function isOwnTool(raw: unknown): raw is JsonObject {
  return isObject(raw) && ['toolSpec', 'systemTool', 'cachePoint'].some((name) => isObject(raw[name]));
}

function refusedTool(raw: unknown, report: TranslationReport): JsonObject[] {
  report.refuse(`tools.${readText(objectOf(raw).type) ?? 'unknown'}`);
  return [];
}

function searchTool(
  search: JsonObject | undefined,
  { searchTool: name }: ConverseFamily,
  report: TranslationReport,
): JsonObject[] {
  if (search === undefined) return [];
  if (name === undefined) report.refuse('web_search_options');
  return name === undefined ? [] : [{ systemTool: { name } }];
}

/** `any`: the model has to call a tool. */
const ANY_CALL: JsonObject = Object.fromEntries([['any', {}]]);

function writeChoice(choice: NativeRequest['toolChoice'], isOneOnly: boolean): JsonObject | undefined {
  switch (choice?.kind) {
    case 'required':
      return ANY_CALL;
    case 'tool':
      return isOneOnly ? ANY_CALL : { tool: { name: choice.name } };
    case 'allowed':
      return choice.mode === 'required' ? ANY_CALL : undefined;
    case 'unknown':
      return ['auto', 'any', 'tool'].some((name) => isObject(objectOf(choice.raw)[name]))
        ? objectOf(choice.raw)
        : undefined;
    default:
      return undefined;
  }
}

/** References within one schema that are written out, and its levels. */
const MAX_REFERENCES = 256;
const MAX_LEVELS = 64;

/** The schema without the keywords that the family refuses, and with references to definitions written out. */
function writeToolSchema(
  schema: JsonObject,
  { refusedKeywords = [] }: ConverseFamily,
  report: TranslationReport,
): JsonObject {
  const refused = refusedKeywords.filter((keyword) => schema[keyword] !== undefined);
  if (refused.length === 0) return schema;
  const definitions = { ...objectOf(schema.definitions), ...objectOf(schema.$defs) };
  let left = MAX_REFERENCES;
  const expand = (one: JsonObject, path: readonly string[]): JsonObject => {
    const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(readText(one.$ref) ?? '')?.[1];
    const target = name === undefined ? undefined : ownValue(definitions, name);
    if (name === undefined || !isObject(target))
      return path.length > MAX_LEVELS ? one : mapSubschemas(one, (inner) => expand(inner, path));
    // One that contains itself has no end: what is in it stays open.
    if (path.includes(name) || left-- <= 0) return { type: 'object' };
    return { ...expand(target, [...path, name]), ...omit(one, '$ref') };
  };
  const written = expand(omit(schema, ...refused), []);
  if (refused.some((keyword) => keyword !== '$schema')) report.change('tools.function.parameters');
  return written;
}
