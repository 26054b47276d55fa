/**
 * The engine that fits a body to its model: it applies the rows of a provider's table, of a key's limit, and of
 * refusals, which name a closed list of small changes after which the output means the same (Z3).
 */
import { nearestEffort } from '../facts/efforts.ts';
import { fieldOf, fieldsWhere } from '../facts/fields.ts';
import type { Unsupported } from '../request-translation/rules.ts';
import { withPlainRoot } from '../request-translation/schema-root.ts';
import { mapSubschemas } from '../request-translation/schemas.ts';
import type { RequestForm } from '../request-translation/translate.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import {
  hasItems,
  isObject,
  type JsonObject,
  keepEntries,
  mapList,
  objectOf,
  readArray,
  readText,
} from '../shared/json.ts';
import { wordSet } from '../shared/words.ts';
import {
  classOf,
  fieldValue,
  isNested,
  LIMIT_FIELDS,
  mapFields,
  pathOf,
  REASONING_FIELDS,
  withoutNested,
} from './body-fields.ts';
import { isWithinLimit, readWrittenLimit, withWrittenLimit } from './output-limit.ts';
import { type Path, spellingsOf, valueAt, without, withValue } from './paths.ts';
import type { Finding, FitRow, KeyLimit } from './rows.ts';
import { applyToChat, applyToNative, type TableOptions } from './table.ts';

/** A body after one row. */
export interface Change {
  readonly body: JsonObject;
  /** The names for `x-weir-dropped` and `x-weir-changed`. */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
}

/** How a change of one row is made. */
interface ChangeOptions {
  /** The form in which the body was written. */
  readonly form: RequestForm;
  readonly unsupported: Unsupported;
}

export interface FitOptions extends TableOptions {
  readonly form: RequestForm;
}

/** What was made of a body. */
interface Fitted {
  readonly body: JsonObject;
  /** The rows that changed it, in their order. */
  readonly applied: readonly FitRow[];
}

/** Applies rows to a body, one after the other, and reports what they change. */
export function fitBody(body: JsonObject, rows: readonly FitRow[], options: FitOptions): Fitted {
  let fitted = body;
  const applied: FitRow[] = [];
  for (const row of rows) {
    const next = applyRow(row, fitted, options);
    if (next === fitted) continue;
    fitted = next;
    applied.push(row);
  }
  return { body: fitted, applied };
}

function applyRow(row: FitRow, body: JsonObject, options: FitOptions): JsonObject {
  const { form, report } = options;
  switch (row.kind) {
    case 'effort':
    case 'adjustment':
    case 'fields':
    case 'words':
    case 'family':
      return form.kind === 'chat' ? applyToChat(row, body, options) : applyToNative(row, body, options);
    default: {
      const change = changeOf(row, body, { form, unsupported: report.mode });
      for (const name of change?.dropped ?? []) report.dropAllowed(name);
      for (const name of change?.changed ?? []) report.change(name);
      return change?.body ?? body;
    }
  }
}

/**
 * What one row of a refusal, or a key's limit, makes of a body. Null: the body does not meet its condition, the change is not on the list,
 * or it would raise what the request can cost.
 */
export function changeOf(row: Finding | KeyLimit, body: JsonObject, options: ChangeOptions): Change | null {
  const { form, unsupported } = options;
  if (row.kind === 'key_limit') {
    if (isWithinLimit(form, body, row.tokens)) return null;
    return { ...withWrittenLimit(form, body, row.tokens), changed: [] };
  }
  const isLossless = row.kind === 'renamed' || row.kind === 'developer_role';
  if (unsupported === 'refuse' && !isLossless) return null;
  const change = applyFinding(row, body, options);
  if (change === null) return null;
  const before = readWrittenLimit(form, body) ?? Number.POSITIVE_INFINITY;
  const after = readWrittenLimit(form, change.body) ?? Number.POSITIVE_INFINITY;
  return after <= before ? change : null;
}

function applyFinding(finding: Finding, body: JsonObject, options: ChangeOptions): Change | null {
  switch (finding.kind) {
    case 'unsupported':
      return removeUnsupported(finding.field, finding.isUnknown, body, options);
    case 'renamed':
      return rename(finding.field, finding.to, body);
    case 'levels':
      return setLevel(finding.field, finding.levels, body);
    case 'range':
      return setWithin(finding, body);
    case 'refused_value':
      return valueFingerprint(finding.field, body) === finding.fingerprint
        ? removeUnsupported(finding.field, false, body, options)
        : null;
    case 'conflict':
      return removeConflicting(finding.field, finding.with, body);
    case 'thinking_required':
      return requireThinking(finding.levels, body);
    case 'forced_tool':
      return forcesTool(body) && !turnsThinkingOff(body) ? disableThinking(body, options) : null;
    case 'schema':
      return removeKeyword(finding.keyword, finding.allowed, body);
    case 'schema_root':
      return withPlainRoots(body);
    case 'developer_role':
      return renameDeveloper(body);
    // The header is not part of the body.
    case 'beta':
      return null;
  }
}

/** The fingerprint of a field's value; null: the body has none. */
export function valueFingerprint(field: string, body: JsonObject): string | null {
  const value = fieldValue(field, body);
  return value === undefined ? null : fingerprint(JSON.stringify(value));
}

function removeUnsupported(
  field: string,
  isUnknown: boolean,
  body: JsonObject,
  { unsupported }: ChangeOptions,
): Change | null {
  if (isNested(field)) {
    const bare = withoutNested(field, body);
    return bare === body ? null : dropped(bare, field);
  }
  const value = fieldValue(field, body);
  if (value === undefined) return null;
  switch (classOf(field)) {
    case 'kept':
      return null;
    case 'limit':
      // A host that does not know one name of the output limit knows the other: the limit itself is never removed.
      return isUnknown
        ? rename(field, field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens', body)
        : null;
    case 'unknown':
      return unsupported === 'drop' ? remove(field, body) : null;
    case 'effort':
    case 'reasoning':
      return field === 'thinking' || field === 'reasoning'
        ? dropped(withoutThinking(body), field)
        : remove(field, body);
    case 'removed':
      return (fieldOf(field).isRemovable?.(value, isUnknown) ?? true) ? remove(field, body) : null;
  }
}

/** Null: the body has no such field. */
function remove(field: string, body: JsonObject): Change | null {
  const path = pathOf(field, body);
  return path === null ? null : dropped(without(body, path), field);
}

function dropped(body: JsonObject, name: string): Change {
  return { body, dropped: [name], changed: [] };
}

function changed(body: JsonObject, name: string): Change {
  return { body, dropped: [], changed: [name] };
}

/** The pairs of names between which a field may move. */
function rename(field: string, to: string, body: JsonObject): Change | null {
  const path = pathOf(field, body);
  const target = to.split('.');
  const isPair =
    classOf(field) === 'limit'
      ? classOf(to) === 'limit'
      : field === 'reasoning_effort' && ['reasoning_effort', 'reasoning.effort'].includes(to);
  if (path === null || !isPair || path.join('.') === target.join('.')) return null;
  const value = valueAt(body, path);
  const other = valueAt(body, target);
  const lowest = typeof other === 'number' && typeof value === 'number' ? Math.min(other, value) : value;
  return changed(withValue(without(body, path), target, lowest), field);
}

function setLevel(field: string, levels: readonly string[], body: JsonObject): Change | null {
  const path = pathOf(field, body);
  if (path === null) return null;
  const value = valueAt(body, path);
  // Gemini writes levels in capitals.
  const level = typeof value === 'string' ? value.toLowerCase() : null;
  if (level !== null && levels.includes(level)) return null;
  const kind = classOf(field);
  const nearest = kind === 'effort' && level !== null ? nearestEffort(level, levels) : null;
  if (nearest !== null) {
    const isCapital = value !== level;
    return changed(withValue(body, path, isCapital ? nearest.toUpperCase() : nearest), field);
  }
  return kind === 'effort' || kind === 'removed' ? dropped(without(body, path), field) : null;
}

function setWithin(
  { field, min, max }: Extract<Finding, { kind: 'range' }>,
  body: JsonObject,
): Change | null {
  const path = pathOf(field, body);
  const value = path === null ? undefined : valueAt(body, path);
  if (path === null || typeof value !== 'number') return null;
  const nearest = Math.min(Math.max(value, min ?? -Infinity), max ?? Infinity);
  if (nearest === value) return null;
  const fieldClass = classOf(field);
  // A change never raises the output limit.
  if (fieldClass === 'limit') {
    return nearest < value && nearest >= 1 ? changed(withValue(body, path, nearest), field) : null;
  }
  if (field === 'thinking_budget') {
    const limit = outputLimit(body);
    if (limit !== null && nearest >= limit) return dropped(withoutThinking(body), 'thinking');
  } else if (fieldClass !== 'removed') return null;
  return changed(withValue(body, path, nearest), field);
}

function outputLimit(body: JsonObject): number | null {
  const values = LIMIT_FIELDS.map((name) => fieldValue(name, body));
  return values.find((value) => typeof value === 'number') ?? null;
}

/** Of two limits the lower one stays. */
function removeConflicting(field: string, other: string, body: JsonObject): Change | null {
  if (pathOf(other, body) === null) return null;
  const kind = classOf(field);
  if (kind === 'limit') return classOf(other) === 'limit' ? rename(field, other, body) : null;
  return kind === 'kept' || kind === 'unknown' ? null : remove(field, body);
}

/** Whether the request turns thinking off in words. */
export function turnsThinkingOff(body: JsonObject): boolean {
  return (
    objectOf(body.thinking).type === 'disabled' ||
    fieldValue('reasoning_effort', body) === 'none' ||
    objectOf(body.reasoning).enabled === false ||
    fieldValue('enable_thinking', body) === false ||
    fieldValue('thinking_budget', body) === 0
  );
}

/** Whether the request asks for thinking. */
export function asksForThinking(body: JsonObject): boolean {
  const effort = fieldValue('reasoning_effort', body);
  const { type } = objectOf(body.thinking);
  return (
    (effort !== undefined && effort !== 'none') ||
    type === 'enabled' ||
    type === 'adaptive' ||
    fieldValue('enable_thinking', body) === true ||
    Number(fieldValue('thinking_budget', body) ?? 0) > 0
  );
}

function requireThinking(levels: readonly string[], body: JsonObject): Change | null {
  if (!turnsThinkingOff(body)) return null;
  const lowest = nearestEffort(
    'none',
    levels.filter((level) => level !== 'none'),
  );
  const rest = withoutThinking(body);
  if (lowest === null) return dropped(rest, 'thinking');
  const effortPath =
    pathOf('reasoning_effort', body) ??
    (isMessages(body) ? ['output_config', 'effort'] : ['reasoning_effort']);
  return changed(
    withValue(rest, effortPath, lowest),
    pathOf('thinking', body) === null ? 'reasoning_effort' : 'thinking',
  );
}

/** Messages has its system text at the top level, and no other form has a `max_tokens` with such a `tool_choice` or `thinking`. */
function isMessages(body: JsonObject): boolean {
  return body.system !== undefined || isObject(body.output_config);
}

/** Whether the request forces the model to call a tool. */
export function forcesTool({ tool_choice: choice }: JsonObject): boolean {
  return choice === 'required' || (isObject(choice) && choice.type !== 'auto' && choice.type !== 'none');
}

function disableThinking(body: JsonObject, { form }: ChangeOptions): Change | null {
  const hasThinkingSwitch = form.kind === 'chat' && form.rules.effort?.none === 'thinking_disabled';
  const rest = withoutThinking(body);
  if (hasThinkingSwitch || isObject(body.thinking)) {
    return changed({ ...rest, thinking: { type: 'disabled' } }, 'thinking');
  }
  const thinkingSwitch = pathOf('enable_thinking', body);
  if (thinkingSwitch !== null) return changed(withValue(rest, thinkingSwitch, false), 'enable_thinking');
  const path = pathOf('reasoning_effort', body);
  return path === null ? null : changed(withValue(rest, path, 'none'), 'reasoning_effort');
}

const FOLLOWING_FIELDS = fieldsWhere(({ followsReasoning }) => followsReasoning === true);

function withoutThinking(body: JsonObject): JsonObject {
  let rest = body;
  for (const field of [...REASONING_FIELDS, ...FOLLOWING_FIELDS]) {
    for (let path = pathOf(field, rest); path !== null; path = pathOf(field, rest))
      rest = without(rest, path);
  }
  const include = readArray(rest.include).filter((entry) => !readText(entry)?.startsWith('reasoning.'));
  if (rest.include === undefined || include.length === readArray(rest.include).length) return rest;
  return include.length === 0 ? without(rest, ['include']) : { ...rest, include };
}

function renameDeveloper(body: JsonObject): Change | null {
  const field = Array.isArray(body.messages) ? 'messages' : 'input';
  const renamed = mapFields(body, [field], (message) =>
    isObject(message) && message.role === 'developer' ? { ...message, role: 'system' } : message,
  );
  return renamed === body ? null : changed(renamed, `${field}.role`);
}

/** Keywords of JSON Schema without which every valid value stays valid. */
export const VALIDATING_KEYWORDS: ReadonlySet<string> = wordSet(`
  minLength maxLength pattern format minimum maximum minItems maxItems uniqueItems multipleOf default
  title examples $schema additionalProperties
`);

/** Where a body has schemas: of tools in each protocol's form, and of the output. `*` is every element of a list. */
const SCHEMA_PATHS: readonly Path[] = [
  ['tools', '*', 'function', 'parameters'],
  ['tools', '*', 'parameters'],
  ['tools', '*', 'input_schema'],
  ...spellingsOf(['tools', '*', 'functionDeclarations', '*', 'parameters']),
  ...spellingsOf(['tools', '*', 'functionDeclarations', '*', 'parametersJsonSchema']),
  ['response_format', 'json_schema', 'schema'],
  ['response_format', 'schema'],
  ['text', 'format', 'schema'],
  ['output_config', 'format', 'schema'],
  ['output_format', 'schema'],
  ...spellingsOf(['generationConfig', 'responseSchema']),
  ...spellingsOf(['generationConfig', 'responseJsonSchema']),
];

function removeKeyword(keyword: string, allowed: readonly number[], body: JsonObject): Change | null {
  let rest = body;
  for (const path of SCHEMA_PATHS) {
    rest = objectOf(
      mapAt(rest, path, (schema, isStrict) =>
        !isObject(schema) || (keyword === 'additionalProperties' && isStrict)
          ? schema
          : withoutKeyword(schema, keyword, allowed, 0),
      ),
    );
  }
  return rest === body ? null : dropped(rest, keyword);
}

/** Maps the value at a path. `isStrict`: an object on the way says `strict: true`. The same value if nothing changes. */
function mapAt(
  value: unknown,
  [first, ...rest]: Path,
  map: (value: unknown, isStrict: boolean) => unknown,
  isStrict = false,
): unknown {
  if (first === undefined) return map(value, isStrict);
  if (first === '*') {
    return Array.isArray(value) ? mapList(value, (element) => mapAt(element, rest, map, isStrict)) : value;
  }
  if (!isObject(value) || !Object.hasOwn(value, first)) return value;
  const next = mapAt(value[first], rest, map, isStrict || value.strict === true);
  return next === value[first] ? value : { ...value, [first]: next };
}

function withPlainRoots(body: JsonObject): Change | null {
  let rest = body;
  for (const path of SCHEMA_PATHS.filter(([field]) => field === 'tools')) {
    const plain = (schema: unknown) => (isObject(schema) ? withPlainRoot(schema) : schema);
    rest = objectOf(mapAt(rest, path, plain));
  }
  return rest === body ? null : changed(rest, 'tools.function.parameters');
}

/** Schemas are searched to this depth. Requests are bounded, but a schema may be as deep as JSON. */
const MAX_SCHEMA_DEPTH = 64;

function withoutKeyword(
  schema: JsonObject,
  keyword: string,
  allowed: readonly number[],
  depth: number,
): JsonObject {
  if (depth > MAX_SCHEMA_DEPTH) return schema;
  const isAllowed = (value: unknown) => typeof value === 'number' && allowed.includes(value);
  const kept = keepEntries(schema, (key, value) => key !== keyword || isAllowed(value));
  return mapSubschemas(kept, (inner) => withoutKeyword(inner, keyword, allowed, depth + 1));
}

/** Parts of the request on which a refusal may depend besides its field. */
const CONDITIONS = {
  thinking: asksForThinking,
  thinking_off: turnsThinkingOff,
  tools: ({ tools }) => hasItems(tools),
  no_tools: ({ tools }) => !hasItems(tools),
  forced_tool: forcesTool,
  stream: ({ stream }) => stream === true,
  no_stream: ({ stream }) => stream !== true,
} as const satisfies Record<string, (body: JsonObject) => boolean>;

export type Condition = keyof typeof CONDITIONS;

/** Whether a written body meets the condition of a refusal. */
export function meets(condition: Condition, body: JsonObject): boolean {
  return CONDITIONS[condition](body);
}
