/** Fields of the bodies of admin routes: a field is declared once, and its reader, its type and its schema follow. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../shared/json.ts';
import { lazyPattern } from '../shared/lazy-pattern.ts';
import { MAX_TAGS, TAG_NAME } from '../shared/limits.ts';
import { unknownName } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';

const MAX_TEXT_CHARS = 100;

/** A field of a body. */
export interface BodyField<Value> {
  /** By which openapi.json has its schema. */
  readonly kind:
    | 'name'
    | 'text'
    | 'note'
    | 'globs'
    | 'list'
    | 'time'
    | 'tags'
    | 'flag'
    | 'number'
    | 'word'
    | 'own';
  /** Of a list. */
  readonly maxItems?: number;
  /** Of a number. */
  readonly range?: readonly [from: number, to: number];
  readonly words?: readonly string[];
  /** @param param its name */
  readonly read: (value: unknown, param: string, nowMs: number) => Result<Value, ApiError>;
}

/** A field that is also stored. */
export interface StoredField<Value> extends BodyField<Value | undefined> {
  /** Whether a stored value has the field's form. In another form, it would be left out. */
  readonly isReadable: (stored: unknown) => boolean;
  readonly decode: (stored: unknown) => Value | undefined;
}

type BodyFields = Readonly<Record<string, BodyField<unknown>>>;

export type ValuesOf<F extends BodyFields> = {
  readonly [Name in keyof F]: F[Name] extends BodyField<infer Value> ? Value : never;
};

/** The error about a field of a body, or a parameter of a query. */
export function invalidField(message: string, param: string) {
  return failure(apiError('invalid_request', message, param.slice(0, MAX_TEXT_CHARS)));
}

/** The message about a field that a body does not have. @param owner such as `A key has` */
export function unknownFieldOf(owner: string) {
  return (name: string, names: readonly string[]) => unknownName(owner, 'field', name, names);
}

interface FieldOptions {
  /** The message about a field of another name. */
  readonly unknown: (name: string, names: readonly string[]) => string;
  readonly nowMs?: number;
  /** Names of fields that are read elsewhere. */
  readonly others?: readonly string[];
}

/** Reads the fields of a body, in their order. */
export function readFields<F extends BodyFields>(
  body: JsonObject,
  fields: F,
  { unknown, nowMs = 0, others = [] }: FieldOptions,
): Result<ValuesOf<F>, ApiError> {
  const names = [...Object.keys(fields), ...others];
  const other = Object.keys(body)
    .find((name) => !names.includes(name))
    ?.slice(0, MAX_TEXT_CHARS);
  if (other !== undefined) return invalidField(unknown(other, names), other);
  const values: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = field.read(body[name], name, nowMs);
    if (value.kind === 'error') return value;
    values[name] = value.value;
  }
  return ok(values as ValuesOf<F>); // decode
}

/** A text that must be there. */
export function nameField(maxChars = MAX_TEXT_CHARS): BodyField<string> {
  return {
    kind: 'name',
    read: (value, param) => {
      const text = readText(value);
      return text === undefined || text.length > maxChars
        ? invalidField(`${param} must be a text of at most ${maxChars} characters`, param)
        : ok(text);
    },
  };
}

/** A text that may be absent. */
export function textField(maxChars = MAX_TEXT_CHARS): StoredField<string> {
  return {
    kind: 'text',
    read: (value, param) => {
      if (isAbsent(value)) return ok(undefined);
      return typeof value === 'string' && value.trim() !== '' && value.length <= maxChars
        ? ok(value.trim())
        : invalidField(`${param} must be a text of at most ${maxChars} characters, or null`, param);
    },
    isReadable: isText,
    decode: (stored) => (typeof stored === 'string' ? stored : undefined),
  };
}

/** Globs; null for every model. An empty list is invalid: its key could use no model. */
export function globsField(): BodyField<readonly string[] | null> {
  return {
    kind: 'globs',
    read: (value, param) => {
      if (isAbsent(value)) return ok(null);
      const globs = readArray(value).filter((glob) => typeof glob === 'string' && glob !== '');
      return globs.length > 0 && globs.length === readArray(value).length
        ? ok(globs.map(String))
        : invalidField(`${param} must be a list of globs, as ["deepseek/*"]`, param);
    },
  };
}

interface ListOptions {
  readonly maxItems: number;
  readonly maxChars: number;
  /** In which form a trimmed entry is kept. */
  readonly form?: (entry: string) => string;
  /** What is wrong with an entry, or null. */
  readonly problem?: (entry: string) => string | null;
}

/** Texts, each once; null or an empty list: none. */
export function listField({
  maxItems,
  maxChars,
  form = (entry) => entry,
  problem = () => null,
}: ListOptions): BodyField<readonly string[] | undefined> {
  return {
    kind: 'list',
    maxItems,
    read: (value, param) => {
      if (isAbsent(value)) return ok(undefined);
      const entries = readArray(value).map((entry) => (isText(entry) ? form(entry.trim()) : ''));
      if (!Array.isArray(value) || entries.length > maxItems)
        return invalidField(`${param} must be a list of at most ${maxItems} texts, or null`, param);
      const isEntry = (entry: string) => entry !== '' && entry.length <= maxChars && !CONTROL().test(entry);
      const wrongAt = entries.findIndex((entry) => !isEntry(entry) || problem(entry) !== null);
      if (wrongAt < 0) return ok(entries.length === 0 ? undefined : [...new Set(entries)]);
      const entry = entries[wrongAt] ?? '';
      const own = isEntry(entry) ? problem(entry) : null;
      return invalidField(
        `${param}[${wrongAt}] ${own ?? `must be a text of 1 to ${maxChars} characters`}`,
        param,
      );
    },
  };
}

const CONTROL = lazyPattern('\\p{Cc}', 'u');

/** Names with texts; null: none. */
export function tagsField(): StoredField<Readonly<Record<string, string>>> {
  const isTag = ([name, value]: [string, unknown]) =>
    TAG_NAME.test(name) && isText(value) && value.trim() !== '' && value.length <= MAX_TEXT_CHARS;
  return {
    kind: 'tags',
    read: (value, param) => {
      if (isAbsent(value)) return ok(undefined);
      const entries = Object.entries(objectOf(value));
      if (!isObject(value) || entries.length > MAX_TAGS || !entries.every(isTag))
        return invalidField(
          `${param} must be an object as {"team": "search"}, of at most ${MAX_TAGS} names of a-z, 0-9, _ . - and at most 32 characters`,
          param,
        );
      return ok(tagsOf(entries));
    },
    isReadable: (stored) => isObject(stored) && Object.values(stored).every(isText),
    decode: (stored) => tagsOf(Object.entries(objectOf(stored)).filter(([, value]) => isText(value))),
  };
}

function tagsOf(entries: readonly (readonly [string, unknown])[]) {
  return entries.length === 0
    ? undefined
    : Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** A flag of which only `true` is kept. */
export function flagField(): StoredField<true> {
  return {
    kind: 'flag',
    read: (value, param) => {
      if (!isAbsent(value) && typeof value !== 'boolean')
        return invalidField(`${param} must be true or false`, param);
      return ok(value === true ? true : undefined);
    },
    isReadable: (stored) => typeof stored === 'boolean',
    decode: (stored) => (stored === true ? true : undefined),
  };
}

/** A number within a range. */
export function numberField(from: number, to: number, byDefault: number): BodyField<number> {
  return {
    kind: 'number',
    range: [from, to],
    read: (value = byDefault, param) =>
      typeof value === 'number' && value >= from && value <= to
        ? ok(value)
        : invalidField(`${param} must be a number from ${from} to ${to}`, param),
  };
}

/** A text that may be empty. */
export function noteField(maxChars: number): BodyField<string> {
  return {
    kind: 'note',
    read: (value = '', param) =>
      isText(value) && value.length <= maxChars
        ? ok(value)
        : invalidField(`${param} must be a text of at most ${maxChars} characters`, param),
  };
}

/** One of some words, or null. */
export function wordField<Word extends string>(words: readonly Word[]): BodyField<Word | null> {
  return {
    kind: 'word',
    words,
    read: (value, param) => {
      const word = words.find((known) => known === value) ?? null;
      return word === null && !isAbsent(value)
        ? invalidField(`${param} must be one of: ${words.join(', ')}`, param)
        : ok(word);
    },
  };
}

/** A field with a form of its own. */
export function ownField<Value>(read: BodyField<Value>['read']): BodyField<Value> {
  return { kind: 'own', read };
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
