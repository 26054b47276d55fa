/** What an admin adds to a budget of a key for one period: the request's body, and how responses show it. */
import { type NewTopUp, PERIODS, readAmount, TOKENS, type TopUp, writeAmount } from '../auth/key-limits.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isoTime } from '../metering/time.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';

const FIELDS = ['add', 'per', 'id', 'note'];
const ID = /^[\w.:-]{1,64}$/;
const MAX_NOTE_CHARS = 200;

/** @param by the admin, and the id of the request, which stands in for the id that the body does not have */
export function readTopUp(
  body: JsonObject,
  by: { readonly actor: string; readonly requestId: string },
): Result<NewTopUp, ApiError> {
  const unknown = Object.keys(body).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) return invalid(`A top-up has the fields ${FIELDS.join(', ')}`, unknown);
  const { add, per: period = null, id = by.requestId, note = '' } = body;
  const [first, ...others] = isObject(add) ? Object.entries(add) : [];
  const [unit, value] = first ?? ['', null];
  const amount = readAmount(value, unit);
  if (others.length > 0 || amount === undefined || amount === 0) {
    const form = unit === TOKENS ? 'a whole number above 0' : 'above 0, with at most 9 decimals';
    return invalid(`add must be {"USD": 10}: one amount, ${form}, in the unit of a budget of the key`, 'add');
  }
  const per = PERIODS.find((known) => known === period) ?? null;
  if (per === null && period !== null) return invalid(`per must be one of: ${PERIODS.join(', ')}`, 'per');
  if (typeof id !== 'string' || !ID.test(id))
    return invalid('id must be a text of 1 to 64 letters, digits and _ . : -', 'id');
  if (typeof note !== 'string' || note.length > MAX_NOTE_CHARS)
    return invalid(`note must be a text of at most ${MAX_NOTE_CHARS} characters`, 'note');
  return ok({ id, actor: by.actor, note, unit, amount, per });
}

/** As responses and the audit show it. */
export function writeTopUp({ id, at, actor, note, unit, per, period, amount }: TopUp): JsonObject {
  return { id, time: isoTime(at), actor, add: { [unit]: writeAmount(amount, unit) }, per, period, note };
}

function invalid(message: string, param: string): Result<never, ApiError> {
  return failure(apiError('invalid_request', message, param.slice(0, 100)));
}
