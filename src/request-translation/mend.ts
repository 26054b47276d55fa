/** Changes a written request as a provider's refusal asks: a closed list of small changes, after which the output means the same (Z3). */

import { nearestEffort } from '../facts/efforts.ts';
import { type FieldClass, fieldOf, fieldsBy, fieldsWhere } from '../facts/fields.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import {
  hasItems,
  isObject,
  type JsonObject,
  keepEntries,
  mapList,
  objectOf,
  omit,
  readArray,
  readText,
} from '../shared/json.ts';
import type { Unsupported } from './rules.ts';
import { withPlainRoot } from './schema-root.ts';
import { mapSubschemas } from './schemas.ts';

/** What a refusal says about the request. Each applies only to a request that meets its condition, so it can be remembered as it is. */
export type Finding =
  /** The model does not take the field, or the host does not know it (`isUnknown`). */
  | { readonly kind: 'unsupported'; readonly field: string; readonly isUnknown: boolean }
  /** The field has another name. */
  | { readonly kind: 'renamed'; readonly field: string; readonly to: string }
  /** The values that an effort may have: those of {@link isLevel}. */
  | { readonly kind: 'levels'; readonly field: string; readonly levels: readonly string[] }
  /** The range of a number; a single allowed value is a range of one. */
  | {
      readonly kind: 'range';
      readonly field: string;
      readonly min: number | null;
      readonly max: number | null;
    }
  /** This value is refused, and the refusal names none that is accepted. The fingerprint is that of its JSON text. */
  | { readonly kind: 'refused_value'; readonly field: string; readonly fingerprint: string }
  /** Only one of the fields may be there: the first is removed. */
  | { readonly kind: 'conflict'; readonly field: string; readonly with: string }
  /** Thinking can't be off. The levels may be empty. */
  | { readonly kind: 'thinking_required'; readonly levels: readonly string[] }
  /** A tool can't be forced while the model thinks. */
  | { readonly kind: 'forced_tool' }
  /** A keyword of JSON Schema that only validates. A value in `allowed` is accepted. */
  | { readonly kind: 'schema'; readonly keyword: string; readonly allowed: readonly number[] }
  /** The root of a tool's schema is no plain object. */
  | { readonly kind: 'schema_root' }
  /** The role `developer` is unknown. */
  | { readonly kind: 'developer_role' }
  /** An entry of the header `anthropic-beta`, by its fingerprint. */
  | { readonly kind: 'beta'; readonly fingerprint: string };

/** A body after one change. */
export interface Mended {
  readonly body: JsonObject;
  /** The name for `x-weir-dropped` or `x-weir-changed`. */
  readonly name: string;
  readonly isDropped: boolean;
}

export interface MendOptions {
  readonly unsupported: Unsupported;
  /** Thinking is turned off by `thinking: {"type": "disabled"}`, and not by an effort. */
  readonly hasThinkingSwitch: boolean;
}

type Path = readonly string[];

/** Where a field is in a body of Chat Completions, Messages, Responses or Gemini. */
function pathsOf(name: string): readonly Path[] {
  const known = madePaths.get(name);
  if (known !== undefined) return known;
  const { class: fieldClass, configName, elsewhere = [] } = fieldOf(name);
  const inConfig =
    configName === undefined || fieldClass === 'kept' ? [] : [`generationConfig.${configName}`];
  const paths = [name, ...inConfig, ...elsewhere].map((path) => path.split('.'));
  // Clients choose the names of others.
  if (fieldClass !== undefined) madePaths.set(name, paths);
  return paths;
}

const madePaths = new Map<string, readonly Path[]>();

/** Other names of fields in refusals, as {@link plain} writes them. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  effort: ['reasoning_effort'],
  thinkinglevel: ['reasoning_effort'],
  budget: ['thinking_budget'],
  budgettokens: ['thinking_budget'],
  thinkingconfig: ['thinking'],
  penalty: ['presence_penalty', 'frequency_penalty'],
  strict: ['tools.strict'],
  cachecontrol: ['cache_control'],
};

let madePlainNames: ReadonlyMap<string, string> | null = null;

/** The names of the fields of a class, by their plain form: made when an isolate first needs them, which only refusals do. */
function byPlainName(): ReadonlyMap<string, string> {
  const names = () => fieldsWhere((field) => field.class !== undefined);
  madePlainNames ??= new Map(names().map((name) => [plain(name), name]));
  return madePlainNames;
}

/** `presencePenalty` and `presence_penalty` are one name. */
function plain(name: string): string {
  return name.replace(/[_-]/g, '').toLowerCase();
}

/** Segments at the start of a path that are not keys of the body. */
const PREFIXES = new Set(['body', 'request', 'parameter', 'parameters', 'params', '$', '#', '']);

/** Lists whose elements are never changed, but for the places of {@link NESTED}. */
const LISTS = new Set(['messages', 'tools', 'system', 'input', 'contents', 'instructions']);

/** Keys of a mark of the prompt cache without which it is still a mark. */
const MARK_KEYS = ['scope', 'ttl'];

function markField(key: string): string {
  return `cache_control.${key}`;
}

/** Keys within messages and tools that may be removed, each in all elements. */
const NESTED = new Set(['cache_control', ...MARK_KEYS.map(markField), 'tools.strict', 'messages.reasoning']);

/**
 * The fields of the body that a refusal's name stands for, by Weir's names: a path such as `body.stream_options.include_usage`,
 * `thinking.enabled.budget_tokens` or `tools.0.custom.cache_control`, or a name in another case. Empty: the request has no such field.
 * @param name at most 128 characters
 */
export function fieldsNamed(name: string, body: JsonObject): readonly string[] {
  const segments = name.split(/[.[\]/]+/).filter((segment) => segment !== '');
  while (segments.length > 1 && PREFIXES.has(segments[0] ?? '')) segments.shift();
  const [first = ''] = segments;
  const last = segments.at(-1) ?? '';
  if (segments.includes('cache_control')) {
    return present([MARK_KEYS.includes(last) ? markField(last) : 'cache_control'], body);
  }
  if (segments.length > 1 && LISTS.has(first)) {
    if (first === 'tools' && last === 'strict') return present(['tools.strict'], body);
    const isReasoning = ['reasoning', 'reasoning_content', 'reasoning_details'].includes(last);
    return first === 'messages' && isReasoning ? present(['messages.reasoning'], body) : [];
  }
  for (const candidate of [segments.join('_'), last, first]) {
    const field = byPlainName().get(plain(candidate));
    const names = field === undefined ? (ALIASES[plain(candidate)] ?? []) : [field];
    const found = present(names, body);
    if (found.length > 0) return found;
    // "does not support thinking" is about whichever field asks for it.
    const isReasoning = field === 'thinking' || field === 'reasoning';
    const [asked] = isReasoning ? present(REASONING_FIELDS, body) : [];
    if (asked !== undefined) return [asked];
  }
  if (FOREIGN_REASONING.has(last)) return present(['messages.reasoning'], body);
  return Object.hasOwn(body, first) ? [first] : [];
}

const FOREIGN_REASONING = new Set(['reasoning_content', 'reasoning_details']);

function present(names: readonly string[], body: JsonObject): readonly string[] {
  return names.filter((name) => (NESTED.has(name) ? hasNested(name, body) : pathOf(name, body) !== null));
}

/** Whether the field is one that Weir knows and may change. */
export function isChangeable(field: string): boolean {
  const fieldClass = classOf(field);
  return fieldClass !== 'kept' && fieldClass !== 'unknown';
}

/** The class of a field in the list of changes; `unknown`: the field is not on it. */
export function classOf(field: string): FieldClass | 'unknown' {
  return NESTED.has(field) ? 'removed' : (fieldOf(field).class ?? 'unknown');
}

/** The value of a field, wherever the body has it; undefined: it has none. */
export function fieldValue(field: string, body: JsonObject): unknown {
  const path = pathOf(field, body);
  return path === null ? undefined : valueAt(body, path);
}

function pathOf(field: string, body: JsonObject): Path | null {
  return pathsOf(field).find((path) => valueAt(body, path) !== undefined) ?? null;
}

function valueAt(body: JsonObject, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    body,
  );
}

/** Applies a finding to a written body. Null: the body does not meet its condition, or the change is not on the list. */
export function mend(finding: Finding, body: JsonObject, options: MendOptions): Mended | null {
  const isLossless = finding.kind === 'renamed' || finding.kind === 'developer_role';
  if (options.unsupported === 'refuse' && !isLossless) return null;
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
  { unsupported }: MendOptions,
): Mended | null {
  if (NESTED.has(field)) {
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
function remove(field: string, body: JsonObject): Mended | null {
  const path = pathOf(field, body);
  return path === null ? null : dropped(without(body, path), field);
}

function dropped(body: JsonObject, name: string): Mended {
  return { body, name, isDropped: true };
}

function changed(body: JsonObject, name: string): Mended {
  return { body, name, isDropped: false };
}

/** The pairs of names between which a field may move. */
function rename(field: string, to: string, body: JsonObject): Mended | null {
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

function setLevel(field: string, levels: readonly string[], body: JsonObject): Mended | null {
  const path = pathOf(field, body);
  if (path === null) return null;
  const value = valueAt(body, path);
  // Gemini writes levels in capitals.
  const asked = typeof value === 'string' ? value.toLowerCase() : null;
  if (asked !== null && levels.includes(asked)) return null;
  const kind = classOf(field);
  const nearest = kind === 'effort' && asked !== null ? nearestEffort(asked, levels) : null;
  if (nearest !== null) {
    const isCapital = value !== asked;
    return changed(withValue(body, path, isCapital ? nearest.toUpperCase() : nearest), field);
  }
  return kind === 'effort' || kind === 'removed' ? dropped(without(body, path), field) : null;
}

function setWithin(
  { field, min, max }: Extract<Finding, { kind: 'range' }>,
  body: JsonObject,
): Mended | null {
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

/** The names of the output limit in all protocols. */
export const LIMIT_FIELDS = fieldsWhere((field) => field.class === 'limit');

/** Of two limits the lower one stays. */
function removeConflicting(field: string, other: string, body: JsonObject): Mended | null {
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

function requireThinking(levels: readonly string[], body: JsonObject): Mended | null {
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

function disableThinking(body: JsonObject, { hasThinkingSwitch }: MendOptions): Mended | null {
  const rest = withoutThinking(body);
  if (hasThinkingSwitch || isObject(body.thinking)) {
    return changed({ ...rest, thinking: { type: 'disabled' } }, 'thinking');
  }
  const thinkingSwitch = pathOf('enable_thinking', body);
  if (thinkingSwitch !== null) return changed(withValue(rest, thinkingSwitch, false), 'enable_thinking');
  const path = pathOf('reasoning_effort', body);
  return path === null ? null : changed(withValue(rest, path, 'none'), 'reasoning_effort');
}

const REASONING_FIELDS = fieldsBy(({ asksToReason }) => asksToReason);
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

function renameDeveloper(body: JsonObject): Mended | null {
  const field = Array.isArray(body.messages) ? 'messages' : 'input';
  const renamed = mapFields(body, [field], (message) =>
    isObject(message) && message.role === 'developer' ? { ...message, role: 'system' } : message,
  );
  return renamed === body ? null : changed(renamed, `${field}.role`);
}

/** The body without the value at a path, and without objects that are empty then. */
function without(body: JsonObject, [first = '', ...rest]: Path): JsonObject {
  const value = body[first];
  const inner = rest.length > 0 && isObject(value) ? without(value, rest) : {};
  return Object.keys(inner).length === 0 ? omit(body, first) : { ...body, [first]: inner };
}

function withValue(body: JsonObject, [first = '', ...rest]: Path, value: unknown): JsonObject {
  return { ...body, [first]: rest.length === 0 ? value : withValue(objectOf(body[first]), rest, value) };
}

/** The keys of {@link NESTED} that a body has or has not, by body: a refusal may name one for each message. */
const nestedIn = new WeakMap<JsonObject, Map<string, boolean>>();

/** Whether an element of the messages, tools or system text has the key. */
function hasNested(name: string, body: JsonObject): boolean {
  const known = nestedIn.get(body) ?? new Map<string, boolean>();
  const has = known.get(name) ?? withoutNested(name, body) !== body;
  nestedIn.set(body, known.set(name, has));
  return has;
}

function withoutNested(name: string, body: JsonObject): JsonObject {
  switch (name) {
    case 'cache_control':
      return mapMarks(omit(body, 'cache_control'), () => undefined);
    case 'tools.strict':
      return mapFields(body, ['tools'], withoutStrict);
    case 'messages.reasoning':
      return mapFields(body, ['messages'], (message) =>
        withoutKeys(message, 'reasoning', 'reasoning_content', 'reasoning_details'),
      );
    default: {
      const keys = MARK_KEYS.filter((key) => markField(key) === name);
      return mapMarks(body, (mark) => withoutKeys(mark, ...keys));
    }
  }
}

/** Maps the elements of lists. The same body if nothing changes. */
function mapFields(
  body: JsonObject,
  fields: readonly string[],
  map: (element: unknown) => unknown,
): JsonObject {
  let mapped = body;
  for (const field of fields) {
    const list = readArray(body[field]);
    const next = mapList(list, map);
    if (next !== list) mapped = { ...mapped, [field]: next };
  }
  return mapped;
}

function withoutKeys(value: unknown, ...keys: readonly string[]): unknown {
  return isObject(value) ? omit(value, ...keys) : value;
}

const MARKED_LISTS = ['messages', 'input', 'tools', 'system'];

/** Maps the marks of the prompt cache on a message, a tool, a block, or a block within a tool's result. Undefined removes one. */
function mapMarks(body: JsonObject, map: (mark: unknown) => unknown): JsonObject {
  const mapElement = (element: unknown): unknown => {
    if (!isObject(element)) return element;
    const { cache_control } = element;
    const mark = cache_control === undefined ? undefined : map(cache_control);
    const bare =
      mark === cache_control
        ? element
        : { ...omit(element, 'cache_control'), ...(mark === undefined ? {} : { cache_control: mark }) };
    return mapFields(bare, ['content'], mapElement);
  };
  return mapFields(body, MARKED_LISTS, mapElement);
}

function withoutStrict(tool: unknown): unknown {
  const bare = withoutKeys(tool, 'strict');
  if (!isObject(bare) || !isObject(bare.function)) return bare;
  const inner = omit(bare.function, 'strict');
  return inner === bare.function ? bare : { ...bare, function: inner };
}

/** Keywords of JSON Schema without which every valid value stays valid. */
export const VALIDATING_KEYWORDS: ReadonlySet<string> = new Set([
  ...['minLength', 'maxLength', 'pattern', 'format', 'minimum', 'maximum', 'minItems', 'maxItems'],
  ...['uniqueItems', 'multipleOf', 'default', 'title', 'examples', '$schema', 'additionalProperties'],
]);

/** Where a body has schemas: of tools in each protocol's form, and of the output. `*` is every element of a list. */
const SCHEMA_PATHS: readonly Path[] = [
  ['tools', '*', 'function', 'parameters'],
  ['tools', '*', 'parameters'],
  ['tools', '*', 'input_schema'],
  ['tools', '*', 'functionDeclarations', '*', 'parameters'],
  ['tools', '*', 'functionDeclarations', '*', 'parametersJsonSchema'],
  ['response_format', 'json_schema', 'schema'],
  ['response_format', 'schema'],
  ['text', 'format', 'schema'],
  ['output_config', 'format', 'schema'],
  ['output_format', 'schema'],
  ['generationConfig', 'responseSchema'],
  ['generationConfig', 'responseJsonSchema'],
];

function removeKeyword(keyword: string, allowed: readonly number[], body: JsonObject): Mended | null {
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

function withPlainRoots(body: JsonObject): Mended | null {
  let rest = body;
  for (const path of SCHEMA_PATHS.filter(([field]) => field === 'tools')) {
    const plain = (schema: unknown) => (isObject(schema) ? withPlainRoot(schema) : schema);
    rest = objectOf(mapAt(rest, path, plain));
  }
  return rest === body ? null : { body: rest, name: 'tools.function.parameters', isDropped: false };
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

/** The words by which a refusal would name what a finding changed, in lower case. */
export function namesOf(finding: Finding): readonly string[] {
  const fields = (field: string) =>
    [field, ...field.split('.'), plain(field)].map((name) => name.toLowerCase());
  switch (finding.kind) {
    case 'renamed':
      return [...fields(finding.field), ...fields(finding.to)];
    case 'levels':
    case 'thinking_required':
    case 'forced_tool':
      return ['effort', 'thinking', 'reasoning', 'reasoning_effort', 'output_config'];
    case 'schema':
      return [finding.keyword.toLowerCase()];
    case 'schema_root':
      return ['oneof', 'anyof', 'allof', 'input_schema', 'schema', 'parameters'];
    case 'developer_role':
      return ['role', 'system', 'developer'];
    case 'beta':
      return ['beta'];
    default:
      return fields(finding.field);
  }
}

/** A finding for the log: without fingerprints, which others could compare with a guess. */
export function shownFinding(finding: Finding): JsonObject {
  const { kind } = finding;
  if (kind === 'beta') return { kind };
  return kind === 'refused_value' ? { kind, field: finding.field } : { ...finding };
}

/** Whether all names in a finding are those of fields that Weir knows, and none is the caller's. */
export function hasKnownNames(finding: Finding): boolean {
  const names = [
    ...('field' in finding ? [finding.field] : []),
    ...(finding.kind === 'conflict' ? [finding.with] : []),
  ];
  return names.every((name) => classOf(name) !== 'unknown');
}

/** The line that a provider's table would need for a finding; null: tables have no such rows. */
export function tableLine(finding: Finding, model: string): string | null {
  switch (finding.kind) {
    case 'unsupported':
      return `fields: { ${finding.field}: REFUSED }`;
    case 'renamed':
      return `fields: { ${finding.field}: renamed('${finding.to}') }`;
    case 'levels':
      return `effort: { levels: ${JSON.stringify(finding.levels)} } // ${model}`;
    case 'thinking_required':
      return `effort: no 'none', levels: ${JSON.stringify(finding.levels)} // ${model}`;
    case 'forced_tool':
      return `adjustments: [{ field: 'thinking', value: { type: 'disabled' }, when: (body) => isForcedTool(body.tool_choice) }]`;
    case 'developer_role':
      return `messages: { roles: { developer: 'system' } }`;
    case 'schema':
      return `schemas: without ${finding.keyword}`;
    default:
      return null;
  }
}
