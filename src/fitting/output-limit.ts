/** The output limit of a request: reads it, lowers it to the limit of a gateway key, and drops other fields that could override it (G2). */

import type { LimitPlace, RequestForm } from '../request-translation/translate.ts';
import { type JsonObject, omit, ownValue, readCount } from '../shared/json.ts';
import { valueAt, without, withValue } from './paths.ts';

/** OpenAI's two names of the limit: the old one, from which every provider's table starts, and the new one. */
const NAMES = ['max_tokens', 'max_completion_tokens'];

/** The limit in a body in OpenAI's form: null without one, undefined if it is no positive integer. A null is none. */
export function readOutputLimit(body: JsonObject): number | null | undefined {
  let limit: number | null = null;
  for (const name of NAMES) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    const count = readCount(value) ?? 0;
    if (count === 0) return undefined;
    limit = Math.max(limit ?? 0, count);
  }
  return limit;
}

/** Sets the limit of a body in OpenAI's form, before translation. */
export function withOutputLimit(body: JsonObject, tokens: number): JsonObject {
  return { ...omit(body, ...NAMES), max_tokens: tokens };
}

/** The lower of OpenAI's limit, which a gateway key may have lowered, and the provider's own, where 0 is none. Undefined without one. */
export function lowestLimit(limit: unknown, native: unknown): number | undefined {
  const limits = [limit, native].filter((value) => typeof value === 'number').filter((value) => value > 0);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/**
 * The limit in a translated body: null without one, undefined if it is no positive integer. In a native body 0 is none:
 * it bounds nothing.
 */
export function readWrittenLimit(form: RequestForm, body: JsonObject): number | null | undefined {
  if (form.kind === 'chat') return readOutputLimit(body);
  return form.limit === null ? null : readCount(valueAt(body, form.limit.path.split('.'))) || null;
}

/**
 * Limits a translated body to `atMost` tokens or to its own lower limit, and drops OpenAI's other name of the limit and every field that
 * could take precedence over it (G2).
 */
export function withWrittenLimit(
  form: RequestForm,
  body: JsonObject,
  atMost: number,
): { readonly body: JsonObject; readonly dropped: readonly string[] } {
  const place = placeOf(form);
  if (place === null) return { body, dropped: [] };
  const { path, competing } = place;
  const tokens = Math.min(readWrittenLimit(form, body) ?? atMost, atMost);
  const dropped = competing.filter(
    (field) => field !== path && valueAt(body, field.split('.')) !== undefined,
  );
  const others = NAMES.filter((other) => other !== path);
  const kept = dropped.reduce((rest, field) => without(rest, field.split('.')), omit(body, ...others));
  return { body: withValue(kept, path.split('.'), tokens), dropped };
}

/**
 * Whether a translated body is the same with a limit of `atMost` tokens: its own is as low, and no other field takes
 * precedence over it.
 */
export function isWithinLimit(form: RequestForm, body: JsonObject, atMost: number): boolean {
  const own = readWrittenLimit(form, body);
  if (typeof own !== 'number' || own > atMost) return false;
  const limited = withWrittenLimit(form, body, atMost);
  return limited.dropped.length === 0 && Object.keys(limited.body).length === Object.keys(body).length;
}

/** The client's name of the limit in a translated body. */
export function limitName(form: RequestForm): string {
  const place = placeOf(form);
  return place?.name ?? place?.path ?? 'max_tokens';
}

function placeOf(form: RequestForm): LimitPlace | null {
  if (form.kind === 'native') return form.limit;
  const { fields, competingLimits = [] } = form.rules;
  const rule = ownValue(fields, 'max_tokens');
  return { path: rule?.kind === 'renamed' ? rule.to : 'max_tokens', competing: competingLimits };
}
