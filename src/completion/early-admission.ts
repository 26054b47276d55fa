/** Admits a request of a key with limits before what it continues, or the count of its tokens, is read: a refused one causes no reads. */
import { type Caller, isLimited, limitedUser, limitsOf, listedLimits } from '../auth/caller.ts';
import { readRequestedModels } from '../routing/targets.ts';
import { type JsonObject, readCount } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { CompletionContext, EarlyAdmission, Refusal } from './admission.ts';
import { findUnpricedIn, targetsOf } from './prepare.ts';

interface EarlyRequest {
  /** As the client sent it. */
  readonly body: JsonObject;
  /** The size of the texts of the whole prompt that every provider reads, in bytes of UTF-8. */
  readonly textBytes: number;
  /** Its tokens are counted, and no model runs. */
  readonly isCounted: boolean;
}

/** The admission of a request of a key without limits. */
const UNLIMITED: EarlyAdmission = { release: () => {} };

/**
 * Reserves what is known of a request: that it runs, the texts of its prompt, and its output. The admission of the
 * whole request extends the reservation.
 */
export async function admitEarly(
  { headers }: Request,
  context: CompletionContext,
  caller: Caller,
  { body, textBytes, isCounted }: EarlyRequest,
): Promise<Result<EarlyAdmission, Refusal>> {
  if (!isLimited(caller)) return ok(UNLIMITED);
  const attributed = await context.attribute({ headers, body, caller });
  // A key that requires a user does so for its records, and counting has none.
  if (attributed.kind === 'error' && !isCounted) return failure({ error: attributed.error, headers: {} });
  const named = readRequestedModels(body, 'chat');
  if (named.kind === 'error') return failure({ error: named.error, headers: {} });
  const request = { clientBody: body, fields: body, turns: null, requestedModels: named.value };
  const unpricedIn = isCounted ? undefined : await findUnpricedIn(caller, context);
  const found = targetsOf(request, null, { route: 'chat', context, caller }, unpricedIn);
  // Counting needs no target.
  const isRefused = found.kind === 'error' && !(isCounted && found.error.code !== 'model_not_allowed');
  if (isRefused) return failure({ error: found.error, headers: {} });
  const user = attributed.kind === 'ok' ? attributed.value.attribution.user : null;
  return context.admission.admitEarly({
    context,
    keyId: caller.keyId,
    limits: limitsOf(caller) ?? {},
    listed: listedLimits(caller),
    user: limitedUser(caller, user),
    targets: isCounted || found.kind === 'error' ? null : found.value.targets,
    textBytes,
    outputTokens: readCount(body.max_output_tokens) ?? null,
  });
}
