/** The output limit of a request: reads it, lowers it to the limit of a gateway key, and drops other fields that could override it (G2). */
import { isObject, type JsonObject, omit, ownValue } from '../shared/json.ts';
import type { LimitedBody, RequestForm } from './translate.ts';

/** OpenAI's two names of the limit: the old one, from which every provider's table starts, and the new one. */
const NAMES = ['max_tokens', 'max_completion_tokens'];

/** The limit in a body in OpenAI's form: null without one, undefined if it is no positive integer. */
export function readOutputLimit(body: JsonObject): number | null | undefined {
  const values = NAMES.map((name) => body[name]).filter((value) => value !== undefined);
  if (!values.every((value) => Number.isSafeInteger(value) && Number(value) >= 1)) return undefined;
  return values.length === 0 ? null : Math.max(...values.map(Number));
}

/** Sets the limit of a body in OpenAI's form, before translation. */
export function withOutputLimit(body: JsonObject, tokens: number): JsonObject {
  return { ...omit(body, ...NAMES), max_tokens: tokens };
}

/** The limit in a translated body: null without one, undefined if it is no positive integer. */
export function readWrittenLimit(form: RequestForm, body: JsonObject): number | null | undefined {
  return form.kind === 'native' ? form.outputLimit(body) : readOutputLimit(body);
}

/** Limits a translated body, as its last change, to `atMost` tokens or to its own lower limit. */
export function withWrittenLimit(form: RequestForm, body: JsonObject, atMost: number): LimitedBody {
  const tokens = Math.min(readWrittenLimit(form, body) ?? atMost, atMost);
  if (form.kind === 'native') return form.withLimit(body, tokens);
  return withOnlyLimit(body, limitName(form), tokens, form.rules.competingLimits ?? []);
}

/** The name of the limit in a translated body. */
export function limitName(form: RequestForm): string {
  if (form.kind === 'native') return form.limitName ?? 'max_tokens';
  const rule = ownValue(form.rules.fields, 'max_tokens');
  return rule?.kind === 'renamed' ? rule.to : 'max_tokens';
}

/**
 * Sets the limit under this name, and drops OpenAI's other name and the competing fields.
 * @param competing names of fields, with dots for nested ones, that the provider may read as a limit
 */
export function withOnlyLimit(
  body: JsonObject,
  name: string,
  tokens: number,
  competing: readonly string[],
): LimitedBody {
  const dropped = competing.filter((field) => field !== name && hasPath(body, field.split('.')));
  const others = NAMES.filter((other) => other !== name);
  const kept = dropped.reduce((rest, field) => omitPath(rest, field.split('.')), omit(body, ...others));
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
