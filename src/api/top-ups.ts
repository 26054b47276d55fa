/**
 * What an admin adds to a budget of a key or a team for one period: the body of the request, its entry in the audit,
 * and how responses show it.
 */
import { invalidField, readFields } from '../auth/body-fields.ts';
import {
  type NewTopUp,
  readAmount,
  TOKENS,
  type TopUp,
  type TopUpResult,
  writeAmount,
} from '../auth/key-limits.ts';
import type { ApiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { isoTime } from '../metering/time.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { ok, type Result } from '../shared/result.ts';
import { recordTopUp } from './audit.ts';
import { TOP_UP_BODY } from './bodies.ts';
import type { AuditSubject, TopUpView } from './key-views.ts';

/** What the admin adds. The id of the request stands in for one that the body does not have. */
export function readTopUp(
  body: JsonObject,
  { requestId, known }: Pick<RequestContext, 'requestId' | 'known'>,
): Result<NewTopUp, ApiError> {
  const fields = readFields(body, TOP_UP_BODY, {
    unknown: (_, names) => `A top-up has the fields ${names.join(', ')}`,
  });
  if (fields.kind === 'error') return fields;
  const { add, per, id = requestId, note } = fields.value;
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
  return ok({ id, actor: known.actor ?? '', note, unit, amount, per });
}

/**
 * Records in the audit what was added.
 * @returns the error if nothing was, or null
 */
export async function recordAdded(
  context: RequestContext,
  subject: AuditSubject,
  added: Result<TopUpResult, ApiError>,
): Promise<ApiError | null> {
  if (added.kind === 'error') return added.error;
  const result = added.value;
  if (result.kind === 'invalid') return invalidField(result.message, result.param).error;
  const { isNew, topUp } = result;
  // A call that was repeated after a lost answer is not new any more, but has the id of this request.
  if (isNew || topUp.id === context.requestId) await recordTopUp(context, subject, writeTopUp(topUp));
  return null;
}

/** As responses and the audit show it. */
export function writeTopUp({ id, at, actor, note, unit, per, period, amount }: TopUp): TopUpView {
  return { id, time: isoTime(at), actor, add: { [unit]: writeAmount(amount, unit) }, per, period, note };
}
