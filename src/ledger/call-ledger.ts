/** Calls to a key's ledger object: bounded in time, and errors of the table where it can't be reached (G6). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { KeyObject, RequestContext } from '../http/context.ts';
import type { JsonObject } from '../shared/json.ts';
import { LEDGER_TIMEOUT_MS } from '../shared/limits.ts';
import { LIMIT_FIELDS, writeLimits } from './limits/limits.ts';

export type LedgerAnswer<Value> =
  | { readonly kind: 'answer'; readonly value: Value }
  | { readonly kind: 'error'; readonly error: ApiError };

/** @param call what is asked; it is asked again once, so it must be such that a repetition changes nothing */
export async function callLedger<Value>(
  { ports, requestId }: Pick<RequestContext, 'ports' | 'requestId'>,
  keyId: string,
  call: (ledger: KeyObject) => Promise<Value>,
): Promise<LedgerAnswer<Value>> {
  const { ledgers, clock, log } = ports;
  const late = Promise.withResolvers<never>();
  const cancelTimer = clock.startTimer(LEDGER_TIMEOUT_MS, () =>
    late.reject(new Error(`No answer within ${LEDGER_TIMEOUT_MS} ms`)),
  );
  try {
    if (ledgers === null) throw new Error('WEIR_LEDGER is not bound');
    // A stub that has thrown may be of no more use: the second try has one of its own.
    const tries = async () => {
      try {
        return await call(ledgers.getByName(keyId));
      } catch (error) {
        if (isOverloaded(error)) throw error;
        return await call(ledgers.getByName(keyId));
      }
    };
    return { kind: 'answer', value: await Promise.race([tries(), late.promise]) };
  } catch (error) {
    log({ event: 'ledger_unreachable', request_id: requestId, key_id: keyId, reason: String(error) });
    const message = "This key's ledger object (WEIR_LEDGER) can't be reached: try again";
    return { kind: 'error', error: apiError('ledger_unreachable', message) };
  } finally {
    cancelTimer();
  }
}

/** Whoever asks an overloaded object again makes it worse. */
function isOverloaded(error: unknown): boolean {
  return error instanceof Error && 'overloaded' in error && error.overloaded === true;
}

/** Sets a new key's limits, in the form in which requests have them. */
export async function changeLimits(
  context: RequestContext,
  keyId: string,
  fields: JsonObject,
): Promise<{ readonly limits: JsonObject | null } | { readonly error: ApiError }> {
  if (context.ports.ledgers === null) return { error: unboundLimits(fields) };
  const changed = await callLedger(context, keyId, (ledger) => ledger.changeLimits(fields));
  if (changed.kind === 'error') return changed;
  const { value } = changed;
  if (value.kind === 'limits') return { limits: writeLimits(value.limits) };
  return { error: apiError('invalid_request', value.message, value.param) };
}

/** The error for limits of a deployment without ledger objects. */
export function unboundLimits(fields: JsonObject): ApiError {
  const message =
    'Limits need the ledger object: bind WEIR_LEDGER to the class LedgerObject ([[durable_objects.bindings]] in wrangler.toml)';
  return apiError('invalid_request', message, LIMIT_FIELDS.find((field) => field in fields) ?? null);
}
