/** Request schemas as data, and the walk that finds mismatches in a body. Each scene formats them as its provider's error text. */
import { isObject, type Json, type JsonObject, textOf } from './json.ts';

export interface Shape {
  /** All allowed keys; absent: every key is allowed. */
  readonly keys?: readonly string[];
  /** Forbidden keys, for objects that otherwise allow unknown keys. */
  readonly refused?: readonly string[];
  readonly required?: readonly string[];
  /** Members that must not be lists. */
  readonly noLists?: readonly string[];
  /** The shapes of members that are objects or lists of objects. */
  readonly inner?: Readonly<Record<string, Shape>>;
  /** Shapes that depend on the value of one key: a message's role, a part's type. */
  readonly by?: { readonly key: string; readonly shapes: Readonly<Record<string, Shape>> };
}

export type Step = string | number;

export interface Mismatch {
  readonly kind: 'extra' | 'missing' | 'variant' | 'list';
  /** The path; its last step is the key. */
  readonly path: readonly Step[];
  /** The same path with the variant's name after each union, as union validators report it. */
  readonly tagged: readonly Step[];
  readonly value: Json | undefined;
  /** For an unknown variant: the known ones. */
  readonly known: readonly string[];
}

interface Place {
  readonly path: readonly Step[];
  readonly tagged: readonly Step[];
}

const ROOT: Place = { path: [], tagged: [] };

export function* mismatches(value: Json | undefined, shape: Shape, at: Place = ROOT): Generator<Mismatch> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* mismatches(item, shape, below(at, index));
  } else if (isObject(value)) {
    yield* ofObject(value, shape, at);
  }
}

export function firstMismatch(value: Json | undefined, shape: Shape): Mismatch | undefined {
  for (const mismatch of mismatches(value, shape)) return mismatch;
  return undefined;
}

/** `messages[0].content[1].x`. */
export function bracketed(path: readonly Step[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`));
  return steps.join('').replace(/^\./, '');
}

function* ofObject(object: JsonObject, shape: Shape, at: Place): Generator<Mismatch> {
  const { keys, refused = [], required = [], noLists = [], inner = {}, by } = shape;
  const mismatch = (kind: Mismatch['kind'], key: string): Mismatch => ({
    kind,
    ...below(at, key),
    value: object[key],
    known: Object.keys(by?.shapes ?? {}),
  });
  if (by) {
    const variant = textOf(object[by.key]);
    const chosen = Object.hasOwn(by.shapes, variant) ? by.shapes[variant] : undefined;
    if (chosen) yield* ofObject(object, chosen, { path: at.path, tagged: [...at.tagged, variant] });
    else yield mismatch('variant', by.key);
  }
  for (const key of required) if (!(key in object)) yield mismatch('missing', key);
  for (const [key, member] of Object.entries(object)) {
    if (refused.includes(key) || (keys && !keys.includes(key))) yield mismatch('extra', key);
    else if (noLists.includes(key) && Array.isArray(member)) yield mismatch('list', key);
    else if (Object.hasOwn(inner, key)) yield* mismatches(member, inner[key] ?? {}, below(at, key));
  }
}

function below(at: Place, step: Step): Place {
  return { path: [...at.path, step], tagged: [...at.tagged, step] };
}

/** A message shape for each role, from its keys. Content parts and tool calls have their own shapes. */
export function roles(
  keys: Readonly<Record<string, readonly string[]>>,
  inner: Readonly<Record<string, Shape>> = {},
): Shape {
  const entries = Object.entries(keys).map(([role, known]): [string, Shape] => [
    role,
    { keys: known, inner },
  ]);
  return { by: { key: 'role', shapes: Object.fromEntries(entries) } };
}

/** A shape for each `type`, from its other keys. */
export function types(keys: Readonly<Record<string, readonly string[]>>): Shape {
  const entries = Object.entries(keys).map(([type, known]): [string, Shape] => [
    type,
    { keys: ['type', ...known] },
  ]);
  return { by: { key: 'type', shapes: Object.fromEntries(entries) } };
}

/** OpenAI's tool calls. Strict providers allow only these keys. */
export const TOOL_CALLS: Shape = {
  keys: ['id', 'type', 'function'],
  inner: { function: { keys: ['name', 'arguments'] } },
};

export const TOOLS: Shape = {
  keys: ['type', 'function'],
  inner: { function: { keys: ['name', 'description', 'parameters', 'strict'] } },
};
