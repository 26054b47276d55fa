/** What an admin adds to a budget of a key for one period: the request's body, and how responses show it. */
import { invalidField, readFields } from '../auth/body-fields.ts';
import { type NewTopUp, readAmount, TOKENS, type TopUp, writeAmount } from '../auth/key-limits.ts';
import type { ApiError } from '../canonical/error.ts';
import { isoTime } from '../metering/time.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { ok, type Result } from '../shared/result.ts';
import { TOP_UP_BODY } from './bodies.ts';
import type { TopUpView } from './key-views.ts';

/** @param by the admin, and the id of the request, which stands in for the id that the body does not have */
export function readTopUp(
  body: JsonObject,
  by: { readonly actor: string; readonly requestId: string },
): Result<NewTopUp, ApiError> {
  const fields = readFields(body, TOP_UP_BODY, {
    unknown: (_, names) => `A top-up has the fields ${names.join(', ')}`,
  });
  if (fields.kind === 'error') return fields;
  const { add, per, id = by.requestId, note } = fields.value;
  const [first, ...others] = isObject(add) ? Object.entries(add) : [];
  const [unit, value] = first ?? ['', null];
  const amount = readAmount(value, unit);
  if (others.length > 0 || amount === undefined || amount === 0) {
    const form = unit === TOKENS ? 'a whole number above 0' : 'above 0, with at most 9 decimals';
    return invalidField(
      `add must be {"USD": 10}: one amount, ${form}, in the unit of a budget of the key`,
      'add',
    );
  }
  return ok({ id, actor: by.actor, note, unit, amount, per });
}

/** As responses and the audit show it. */
export function writeTopUp({ id, at, actor, note, unit, per, period, amount }: TopUp): TopUpView {
  return { id, time: isoTime(at), actor, add: { [unit]: writeAmount(amount, unit) }, per, period, note };
}
