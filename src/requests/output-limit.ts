/** The limit of an answer's length in a request: how large it is, and under which name a provider takes it (G2). */
import type { JsonObject } from '../canonical/json.ts';
import { omit, ownValue } from './objects.ts';
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

/** The name under which the provider gets it. */
export function outputLimitName({ fields }: RequestRules): string {
  const rule = ownValue(fields, 'max_tokens');
  return rule?.kind === 'renamed' ? rule.to : 'max_tokens';
}
