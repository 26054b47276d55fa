/** The limit of an answer's length in a request that is about to be sent: how large it is, and under which name a provider takes it (G2). */
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

/** The body with this limit, and no other, under the name that the provider knows. */
export function withOutputLimit(body: JsonObject, tokens: number, rules: RequestRules): JsonObject {
  return { ...omit(body, ...NAMES), [outputLimitName(rules)]: tokens };
}

export function outputLimitName({ fields }: RequestRules): string {
  const rule = ownValue(fields, 'max_tokens');
  return rule?.kind === 'renamed' ? rule.to : 'max_tokens';
}
