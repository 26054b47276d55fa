/** Fits tools to a provider that checks the whole list: one tool of each name, schemas with a plain root, and keys that it accepts. */
import type { Tool } from '../canonical/conversation.ts';
import { isObject, objectOf } from '../shared/json.ts';
import { withAcceptedKeys } from './property-keys.ts';
import { withPlainRoot } from './schema-root.ts';
import { NO_PARAMETERS, sizeOfNames } from './tools.ts';
import type { ToolRules } from './translate.ts';

/** By the name of a tool: keys of its arguments by keys of the other side. */
export type ToolKeys = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface FittedTools {
  readonly tools: readonly Tool[];
  /** The keys that are sent, by the client's. */
  readonly toolKeys: ToolKeys;
  /** A tool was left out, because a later one has its name. */
  readonly isOneReplaced: boolean;
  /** The schema of a tool was changed. */
  readonly isOneChanged: boolean;
}

/** Fits the tools of a request. */
export function fitTools(given: readonly Tool[], { keys: accepted, plainRoots }: ToolRules): FittedTools {
  const { tools, isOneReplaced } = lastOfEachName(given);
  const toolKeys = new Map<string, ReadonlyMap<string, string>>();
  let isOneChanged = false;
  const fitted = tools.map((tool) => {
    const { parameters, name } = tool.kind === 'function' ? tool.definition : {};
    if (tool.kind !== 'function' || !isObject(parameters)) return tool;
    const { schema: renamed, keys } = withAcceptedKeys(parameters, accepted);
    // Without a type it is an object.
    const typed = { ...NO_PARAMETERS, ...renamed };
    const schema = plainRoots ? withPlainRoot(typed) : typed;
    if (keys.size === 0 && schema === typed) return tool;
    // A provider refuses any other name.
    if (keys.size > 0 && typeof name === 'string') toolKeys.set(name, keys);
    isOneChanged = true;
    return { ...tool, definition: { ...tool.definition, parameters: schema } };
  });
  return { tools: fitted, toolKeys, isOneReplaced, isOneChanged };
}

/** Of several tools with one name the last counts, in the place of the first. Equal ones are one tool. */
function lastOfEachName(given: readonly Tool[]): {
  readonly tools: readonly Tool[];
  readonly isOneReplaced: boolean;
} {
  const byName = new Map<unknown, Tool>();
  let isOneReplaced = false;
  for (const tool of given) {
    const name = nameOf(tool) ?? tool;
    const before = byName.get(name);
    isOneReplaced ||= before !== undefined && JSON.stringify(before) !== JSON.stringify(tool);
    byName.set(name, tool);
  }
  return { tools: byName.size === given.length ? given : [...byName.values()], isOneReplaced };
}

function nameOf(tool: Tool): unknown {
  return tool.kind === 'unknown' ? objectOf(tool.raw).name : tool.definition.name;
}

/** The client's keys by those that are sent. */
export function restoringKeys(toolKeys: ToolKeys): ToolKeys {
  return new Map(
    Array.from(toolKeys, ([name, keys]) => [
      name,
      new Map(Array.from(keys, ([given, sent]) => [sent, given])),
    ]),
  );
}

/** The approximate size of these keys in memory, in UTF-16 units. They live as long as the response. */
export function sizeOfKeys(toolKeys: ToolKeys): number {
  return sizeOfNames([...toolKeys].flatMap(([name, keys]) => [[name], ...keys]));
}
