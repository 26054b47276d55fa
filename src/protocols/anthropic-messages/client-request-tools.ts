/** Reads Anthropic's tools and their choice into chat's; tools that Anthropic itself runs have no equal (5.3). */
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { ReportedFields } from '../../canonical/reported-fields.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';

interface ReadTools {
  readonly fields: JsonObject;
  /** The choice demands a tool that nobody but Anthropic has; or null. */
  readonly refusal: ApiError | null;
}

/** `tools`, `tool_choice` and `parallel_tool_calls`, as far as the request has them. */
export function readTools({ tools, tool_choice }: JsonObject, dropped: ReportedFields): ReadTools {
  const all = readArray(tools).filter(isObject);
  const own = all.filter(isOwn);
  for (const tool of all) if (!isOwn(tool)) dropped.add(`tools.${readText(tool.type) ?? 'unknown'}`);
  const choice = objectOf(tool_choice);
  const isHosted = choice.type === 'tool' && all.some((tool) => tool.name === choice.name && !isOwn(tool));
  if (isHosted)
    return refused(`names ${String(choice.name)}, which only Anthropic runs: it is not to be had here`);
  if (own.length === 0) {
    const isForced = choice.type === 'any' || choice.type === 'tool';
    return isForced ? refused('demands a call, and tools has none that your client runs') : NO_TOOLS;
  }
  const asked = choiceOf(choice);
  return {
    refusal: null,
    fields: {
      tools: own.map(readTool),
      ...(asked === undefined ? {} : { tool_choice: asked }),
      ...(choice.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}),
    },
  };
}

const NO_TOOLS: ReadTools = { fields: {}, refusal: null };

/** Without what it demands the answer would be another one (Q6). */
function refused(why: string): ReadTools {
  return { fields: {}, refusal: apiError('unsupported_parameter', `tool_choice ${why}`, 'tool_choice') };
}

/** A tool of the client's own: without a type, or `custom`. */
function isOwn({ type }: JsonObject): boolean {
  return type === undefined || type === null || type === 'custom';
}

function readTool({ name, description, input_schema, strict, cache_control }: JsonObject): JsonObject {
  return {
    type: 'function',
    function: {
      name,
      ...(readText(description) === undefined ? {} : { description }),
      parameters: isObject(input_schema) ? input_schema : { type: 'object', properties: {} },
      ...(typeof strict === 'boolean' ? { strict } : {}),
    },
    ...(isObject(cache_control) ? { cache_control } : {}),
  };
}

function choiceOf({ type, name }: JsonObject): unknown {
  if (type === 'any') return 'required';
  if (type === 'tool') return { type: 'function', function: { name } };
  return type === 'auto' || type === 'none' ? type : undefined;
}
