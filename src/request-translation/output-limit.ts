/** The limit of an answer's length in a request: how large it is, and under which name a provider takes it (G2). */
import { isObject, type JsonObject, omit, ownValue } from '../shared/json.ts';
import type { RequestRules } from './rules.ts';

const NAMES = ['max_tokens', 'max_completion_tokens'];

/** The caller's own limit: null where there is none, undefined where it is no whole number from 1 up. */
export function readOutputLimit(body: JsonObject): number | null | undefined {
  const values = NAMES.map((name) => body[name]).filter((value) => value !== undefined);
  if (!values.every((value) => Number.isSafeInteger(value) && Number(value) >= 1)) return undefined;
  return values.length === 0 ? null : Math.max(...values.map(Number));
}

/** The body with this limit, and no other, under the name that every provider's rules start from. */
export function withOutputLimit(body: JsonObject, tokens: number): JsonObject {
  return { ...omit(body, ...NAMES), max_tokens: tokens };
}

export interface LimitedBody {
  readonly body: JsonObject;
  /** Names of the rivals that were left out. */
  readonly dropped: readonly string[];
}

/**
 * The body, as it is sent, with this limit and no rival of it.
 * @param name under which the limit is sent
 * @param rivals names, with dots between those of nested objects, that the provider may read in its place
 */
export function withLimitAlone(
  body: JsonObject,
  name: string,
  tokens: number,
  rivals: readonly string[],
): LimitedBody {
  const dropped = rivals.filter((rival) => rival !== name && hasPath(body, rival.split('.')));
  const others = NAMES.filter((other) => other !== name);
  const kept = dropped.reduce((rest, rival) => omitPath(rest, rival.split('.')), omit(body, ...others));
  return { body: { ...kept, [name]: tokens }, dropped };
}

function hasPath(object: JsonObject, [first = '', ...rest]: readonly string[]): boolean {
  if (!Object.hasOwn(object, first)) return false;
  const value = object[first];
  return rest.length === 0 || (isObject(value) && hasPath(value, rest));
}

function omitPath(object: JsonObject, [first = '', ...rest]: readonly string[]): JsonObject {
  const value = object[first];
  if (rest.length === 0 || !isObject(value)) return omit(object, first);
  return { ...object, [first]: omitPath(value, rest) };
}

/** The name under which the provider gets it. */
export function outputLimitName({ fields }: RequestRules): string {
  const rule = ownValue(fields, 'max_tokens');
  return rule?.kind === 'renamed' ? rule.to : 'max_tokens';
}
