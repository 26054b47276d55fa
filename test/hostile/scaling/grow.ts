/** Grows a request at one place within the limits of a body: entries of a list, keys of an object, levels or characters. */
import { MAX_JSON_DEPTH, MAX_LARGE_OBJECT_MEMBERS } from '../../../src/shared/json.ts';

type Path = readonly (string | number)[];

/** A request that grows with a number: entries, keys, values of a text, or levels. */
export interface Growth {
  readonly name: string;
  readonly kind: 'list' | 'object' | 'text' | 'nesting' | 'pair';
  /** With what it grows: alike entries, a nesting of tools, a text of tokens. */
  readonly form: string;
  readonly body: (size: number) => unknown;
  /** The largest size that the limits of a body allow. */
  readonly max: number;
}

/** The maximal entries of one list, below the limit of values. */
const MAX_ENTRIES = 50_000;
const MAX_VALUES = 240_000;
/** Below the limit of members of large objects. */
const MAX_MEMBERS = MAX_LARGE_OBJECT_MEMBERS - 1000;
/** Characters of one text. */
const MAX_TEXT_CHARS = 3_000_000;
/** Quadratic work takes seconds for a text of this length, and linear work less than a millisecond. */
const MAX_RUN_CHARS = 60_000;
const LONG_INTEGER = '12345678901234567890';

/** Keys whose values select a variant. Entries of a list keep them. */
const WORDS = ['type', 'role', 'format', 'mode', 'media_type', 'pattern', 'effort'];

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function at(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (isBranch(value) ? Reflect.get(value, key) : undefined), root);
}

/** The value with another one at that path. */
function withValue(root: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(root)) return root.map((item, i) => (i === key ? withValue(item, rest, value) : item));
  return { ...(isBranch(root) ? root : {}), [key]: withValue(at(root, [key]), rest, value) };
}

/** Every path, the root's first. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (!isBranch(value)) return [path];
  const keys: Path = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [path, ...keys.flatMap((key) => pathsOf(at(value, [key]), [...path, key]))];
}

function valuesIn(value: unknown): number {
  if (!isBranch(value)) return 1;
  return Object.values(value).reduce<number>((sum, inner) => sum + valuesIn(inner), 2);
}

/** A copy with a number in each of its names. */
function numbered(value: unknown, number: number, key: string | number = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => numbered(item, number, key));
  if (isBranch(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, numbered(inner, number, name)]),
    );
  }
  if (typeof value === 'string') return WORDS.includes(String(key)) ? value : `${value}${number}`;
  return typeof value === 'number' ? number : value;
}

type Style = 'alike' | 'numbered' | 'backwards';

function entries(unit: readonly unknown[], size: number, style: Style): unknown[] {
  const list: unknown[] = [];
  for (let i = 0; list.length < size; i++) {
    if (style === 'alike') list.push(...unit);
    else list.push(...unit.map((item) => numbered(item, style === 'numbered' ? i : size - i)));
  }
  return list;
}

function nameOf(path: Path): string {
  return path.length === 0 ? 'the body' : path.join('.');
}

function maxEntries(unit: readonly unknown[]): number {
  return Math.min(MAX_ENTRIES, Math.floor((MAX_VALUES * unit.length) / valuesIn(unit)));
}

interface List {
  readonly name: string;
  readonly path: Path;
  /** The repeated entries. */
  readonly unit: readonly unknown[];
}

/** Each list, once with each single entry and once with all entries. */
function listsOf(body: unknown): List[] {
  return pathsOf(body).flatMap((path) => {
    const list: unknown = at(body, path);
    if (!Array.isArray(list)) return [];
    const units = list.map((item, i): List => ({ name: `${nameOf(path)}[${i}]`, path, unit: [item] }));
    return list.length < 2 ? units : [...units, { name: `${nameOf(path)}[*]`, path, unit: list }];
  });
}

export function growLists(body: unknown): Growth[] {
  return listsOf(body).flatMap(({ name, path, unit }) =>
    (['alike', 'numbered'] as const).map((style): Growth => {
      const list = at(body, path);
      const rest = Array.isArray(list) ? list : [];
      return {
        name: `${name} ${style}`,
        kind: 'list',
        form: style,
        max: maxEntries(unit),
        // The other entries stay, because repeated entries may refer to them.
        body: (size) => {
          const place = rest.indexOf(unit[0]);
          const grown = entries(unit, size, style);
          return withValue(body, path, [
            ...rest.slice(0, place),
            ...grown,
            ...rest.slice(place + unit.length),
          ]);
        },
      };
    }),
  );
}

/** Two lists with half of the entries each, whose entries may refer to each other. */
export function growPairs(body: unknown): Growth[] {
  const lists = listsOf(body);
  return lists.flatMap((first, i) =>
    lists.slice(i + 1).flatMap((second): Growth[] => {
      const isWithin = second.path.join('.').startsWith(first.path.join('.'));
      if (isWithin || first.unit.length > 1 || second.unit.length > 1) return [];
      return [
        {
          name: `${first.name} and ${second.name}`,
          kind: 'pair',
          form: '',
          max: Math.floor(Math.min(maxEntries(first.unit), maxEntries(second.unit)) / 2),
          body: (size) => {
            const one = withValue(body, first.path, entries(first.unit, size, 'numbered'));
            return withValue(one, second.path, entries(second.unit, size, 'backwards'));
          },
        },
      ];
    }),
  );
}

export function growObjects(body: unknown): Growth[] {
  return pathsOf(body).flatMap((path): Growth[] => {
    const object: unknown = at(body, path);
    if (!isBranch(object) || Array.isArray(object)) return [];
    const [first] = Object.values(object);
    const growth = (form: string, value: unknown): Growth => ({
      name: `${nameOf(path)}.${form}`,
      kind: 'object',
      form,
      max: Math.min(MAX_MEMBERS, maxEntries([value])),
      body: (size) => {
        const keys = Array.from({ length: size }, (_, i) => [`k${i}`, value]);
        return withValue(body, path, { ...object, ...Object.fromEntries(keys) });
      },
    });
    return [growth('k* = 1', 1), ...(isBranch(first) ? [growth('k* alike', first)] : [])];
  });
}

/** Keys whose texts may be parsed. All other texts only grow. */
const READ_KEYS = [
  ...['arguments', 'input', 'content', 'text', 'output', 'data', 'signature', 'id', 'call_id', 'thinking'],
  ...['encrypted_content', 'tool_use_id', 'url', 'file_data', 'image_url'],
];
const PLAIN_TEXTS = ['x', 'escapes'];

/** Texts that may be parsed: JSON with many values or levels, reasoning state that Weir encoded, escapes. */
const TEXTS: Readonly<Record<string, (chars: number) => string>> = {
  x: (chars) => 'x'.repeat(chars),
  escapes: (chars) => '\\'.repeat(chars / 4),
  'JSON of values': (chars) => `{"a":[${'0,'.repeat(chars / 2)}0]}`,
  'JSON of values and a long integer': (chars) => `{"a":[${'0,'.repeat(chars / 2)}${LONG_INTEGER}]}`,
  'JSON of lists in lists': (chars) => `{"a":${'['.repeat(chars / 2)}${']'.repeat(chars / 2)}}`,
  'a token': (chars) =>
    tokenOf(`{"detail":{"signature":"s","a":${'['.repeat(chars / 3)}${']'.repeat(chars / 3)}}}`),
  tokens: (chars) => tokenOf(`[${'{"detail":{"signature":"s"}},'.repeat(chars / 40)}0]`),
  'dots and colons': (chars) => `data:${'.:;,'.repeat(chars / 4)}`,
};

function tokenOf(json: string): string {
  return `weir1:anthropic:${Buffer.from(json).toString('base64url')}`;
}

export function growTexts(body: unknown): Growth[] {
  return pathsOf(body).flatMap((path) => {
    const key = path.findLast((part) => typeof part === 'string');
    if (typeof at(body, path) !== 'string') return [];
    const isRead = READ_KEYS.includes(String(key));
    const texts = Object.entries(TEXTS).filter(([name]) => isRead || PLAIN_TEXTS.includes(name));
    return texts.map(
      ([name, text]): Growth => ({
        name: `${nameOf(path)} = ${name}`,
        kind: 'text',
        form: name,
        max: MAX_TEXT_CHARS,
        body: (size) => withValue(body, path, text(size)),
      }),
    );
  });
}

/** Texts over which a backtracking pattern takes quadratic time or more: runs of what patterns repeat, with an end that does not match. */
const RUNS: Readonly<Record<string, string>> = {
  letters: 'a',
  underscores: '_a',
  digits: '0',
  spaces: ' ',
  slashes: '/',
  dots: 'a.',
  dashes: 'a-',
  colons: 'a:',
  'escaped quotes': '\\"',
  brackets: '{"a":[',
  'data URLs': 'data:a;base64,',
  'users of sessions': 'user_0_account__session_',
};

/** Each text of the body, with each of twelve runs in its place. */
export function growRuns(body: unknown): Growth[] {
  return pathsOf(body).flatMap((path) => {
    if (typeof at(body, path) !== 'string') return [];
    return Object.entries(RUNS).map(
      ([name, unit]): Growth => ({
        name: `${nameOf(path)} = ${name}`,
        kind: 'text',
        form: name,
        max: MAX_RUN_CHARS,
        body: (size) => withValue(body, path, `${unit.repeat(Math.ceil(size / unit.length))}!`),
      }),
    );
  });
}

/** Wraps a value in one level. */
const LEVELS: Readonly<Record<string, (inner: unknown) => unknown>> = {
  lists: (inner) => [inner],
  objects: (inner) => ({ a: inner }),
  properties: (inner) => ({ type: 'object', properties: { a: inner }, minProperties: 1 }),
  'anyOf and oneOf': (inner) => ({ anyOf: [{ type: 'string' }], oneOf: [inner] }),
  'items under bounds': (inner) => ({
    type: 'array',
    items: inner,
    maxItems: 2,
    contains: { minimum: 1 },
    description: 'd',
  }),
  not: (inner) => ({ not: inner }),
  content: (inner) => ({ type: 'tool_result', content: [inner] }),
  tools: (inner) => ({ type: 'namespace', name: 'n', tools: [inner] }),
};

export function growNestings(body: unknown): Growth[] {
  return pathsOf(body).flatMap((path) => {
    const value: unknown = at(body, path);
    if (path.length === 0 || !isBranch(value)) return [];
    return Object.entries(LEVELS).map(([name, level]): Growth => {
      const own = pathsOf(level({})).reduce((most, { length }) => Math.max(most, length), 1);
      return {
        name: `${nameOf(path)} = ${name}`,
        kind: 'nesting',
        form: name,
        max: Math.floor((MAX_JSON_DEPTH - path.length - 4) / own),
        body: (size) => {
          let inner: unknown = { type: 'string' };
          for (let i = 0; i < size; i++) inner = level(inner);
          return withValue(body, path, Array.isArray(value) ? [inner] : inner);
        },
      };
    });
  });
}
