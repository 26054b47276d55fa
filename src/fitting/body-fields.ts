/** The fields that a written body has, by the names of refusals, and the keys within its messages and tools that may be removed. */
import { type FieldClass, fieldOf, fieldsBy, fieldsWhere } from '../facts/fields.ts';
import { isObject, type JsonObject, mapList, omit, readArray } from '../shared/json.ts';
import { type Path, spellingsOf, valueAt } from './paths.ts';

/** The names of the output limit in all protocols. */
export const LIMIT_FIELDS = fieldsWhere((field) => field.class === 'limit');

/** The fields that ask for reasoning: the first of those that a request has stands for all. */
export const REASONING_FIELDS = fieldsBy(({ asksToReason }) => asksToReason);

/** Where a field is in a body of Chat Completions, Messages, Responses or Gemini. */
function pathsOf(name: string): readonly Path[] {
  const known = madePaths.get(name);
  if (known !== undefined) return known;
  const { class: fieldClass, configName, elsewhere = [] } = fieldOf(name);
  const inConfig =
    configName === undefined || fieldClass === 'kept' ? [] : [`generationConfig.${configName}`];
  const paths = [name, ...inConfig, ...elsewhere].flatMap((joined) => {
    const path = joined.split('.');
    return path[0] === 'generationConfig' ? spellingsOf(path) : [path];
  });
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
export function plain(name: string): string {
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

/** The fields of a sent request by the names that its refusal gives them. */
export class SentFields {
  readonly body: JsonObject;
  /** Each name is looked up once. */
  readonly #named = new Map<string, readonly string[]>();
  /** The keys of {@link NESTED} that the body has or has not: a refusal may name one for each message. */
  readonly #nested = new Map<string, boolean>();

  constructor(body: JsonObject) {
    this.body = body;
  }

  /** The fields of the body that may be changed, or that Weir does not know. */
  named(name: string): readonly string[] {
    return this.all(name).filter((field) => isChangeable(field) || classOf(field) === 'unknown');
  }

  /** Those that Weir knows and may change. */
  changeable(name: string): readonly string[] {
    return this.all(name).filter(isChangeable);
  }

  /**
   * The fields of the body that a name stands for, by Weir's names: a path such as `body.stream_options.include_usage`,
   * `thinking.enabled.budget_tokens` or `tools.0.custom.cache_control`, or a name in another case. Empty: the request has no such field.
   * @param name at most 128 characters
   */
  all(name: string): readonly string[] {
    const fields = this.#named.get(name) ?? this.#find(name);
    this.#named.set(name, fields);
    return fields;
  }

  #find(name: string): readonly string[] {
    const segments = name.split(/[.[\]/]+/).filter((segment) => segment !== '');
    while (segments.length > 1 && PREFIXES.has(segments[0] ?? '')) segments.shift();
    const [first = ''] = segments;
    const last = segments.at(-1) ?? '';
    if (segments.includes('cache_control')) {
      return this.#present([MARK_KEYS.includes(last) ? markField(last) : 'cache_control']);
    }
    if (segments.length > 1 && LISTS.has(first)) {
      if (first === 'tools' && last === 'strict') return this.#present(['tools.strict']);
      const isReasoning = REASONING_KEYS.includes(last);
      return first === 'messages' && isReasoning ? this.#present(['messages.reasoning']) : [];
    }
    for (const candidate of [segments.join('_'), last, first]) {
      const field = byPlainName().get(plain(candidate));
      const found = this.#present(field === undefined ? (ALIASES[plain(candidate)] ?? []) : [field]);
      if (found.length > 0) return found;
      // "does not support thinking" is about whichever field asks for it.
      const isReasoning = field === 'thinking' || field === 'reasoning';
      const [inBody] = isReasoning ? this.#present(REASONING_FIELDS) : [];
      if (inBody !== undefined) return [inBody];
    }
    if (last !== 'reasoning' && REASONING_KEYS.includes(last)) return this.#present(['messages.reasoning']);
    return Object.hasOwn(this.body, first) ? [first] : [];
  }

  #present(names: readonly string[]): readonly string[] {
    return names.filter((name) =>
      NESTED.has(name) ? this.#hasNested(name) : pathOf(name, this.body) !== null,
    );
  }

  /** Whether an element of the messages, tools or system text has the key. */
  #hasNested(name: string): boolean {
    const has = this.#nested.get(name) ?? withoutNested(name, this.body) !== this.body;
    this.#nested.set(name, has);
    return has;
  }
}

/** Keys of a message with the reasoning of an earlier turn. */
const REASONING_KEYS = ['reasoning', 'reasoning_content', 'reasoning_details'];

/** Whether it is a key within messages and tools, and no field of the body. */
export function isNested(field: string): boolean {
  return NESTED.has(field);
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

/** Where a body has the field; null: it has none. */
export function pathOf(field: string, body: JsonObject): Path | null {
  return pathsOf(field).find((path) => valueAt(body, path) !== undefined) ?? null;
}

/** The body without a key within its messages and tools; the same body if it has none. */
export function withoutNested(name: string, body: JsonObject): JsonObject {
  switch (name) {
    case 'cache_control':
      return mapMarks(omit(body, 'cache_control'), () => undefined);
    case 'tools.strict':
      return mapFields(body, ['tools'], withoutStrict);
    case 'messages.reasoning':
      return mapFields(body, ['messages'], (message) => withoutKeys(message, ...REASONING_KEYS));
    default: {
      const keys = MARK_KEYS.filter((key) => markField(key) === name);
      return mapMarks(body, (mark) => withoutKeys(mark, ...keys));
    }
  }
}

/** Maps the elements of lists. The same body if nothing changes. */
export function mapFields(
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
