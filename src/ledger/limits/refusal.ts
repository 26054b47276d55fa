/** What a refused request is told: how the key stands, what would help, and when (G5). */
import { type ApiError, apiError } from '../../canonical/error.ts';
import { formatAmount } from './amount.ts';
import { limitHeaders } from './headers.ts';
import type { Limits } from './limits.ts';
import type { LimitRefusal } from './reserve.ts';
import type { LimitStatus } from './status.ts';

/** What the official SDKs wait for on a `retry-after`; told to wait longer they would try again at once. */
const MAX_SDK_WAIT_MS = 60_000;

export interface Refused {
  readonly error: ApiError;
  readonly headers: Readonly<Record<string, string>>;
}

export function refusedBy(refusal: LimitRefusal, standing: LimitStatus): Refused {
  const headers: Record<string, string> = { ...limitHeaders(standing) };
  const waitMs = refusal.kind === 'unpriced' ? null : refusal.waitMs;
  if (waitMs !== null) headers['retry-after'] = String(Math.ceil(waitMs / 1000));
  if (waitMs === null || waitMs > MAX_SDK_WAIT_MS) headers['x-should-retry'] = 'false';
  return { error: errorOf(refusal, standing), headers };
}

function errorOf(refusal: LimitRefusal, standing: LimitStatus): ApiError {
  const { limits } = standing;
  switch (refusal.kind) {
    case 'budget':
      return apiError('budget_exceeded', budgetMessage(refusal.needed, standing));
    case 'unpriced':
      return apiError('model_not_allowed', unpricedMessage(limits), 'model');
    case 'rpm':
      return apiError('rate_limited', `This key may send ${limits.rpm} requests a minute`);
    case 'tpm':
      return apiError('rate_limited', tokensMessage(refusal, standing));
    case 'concurrency':
      return apiError('rate_limited', `This key may have ${limits.maxConcurrent} requests running at once`);
  }
}

function budgetMessage(needed: number, { limits, budget: standing }: LimitStatus): string {
  const { budget } = limits;
  if (budget === null || standing === null) return 'The budget of this key is used up';
  const { unit, amount, per } = budget;
  const limit = `${formatAmount(amount, unit)} ${per === 'total' ? 'in total' : `a ${per}`}`;
  const { spent, reserved, resetsAt } = standing;
  const used = `${formatAmount(spent, unit)} are spent, ${formatAmount(reserved, unit)} reserved by running requests`;
  const here = `this request may use up to ${formatAmount(needed, unit)}`;
  const hint = needed > amount ? ': lower max_tokens or send less' : '';
  const reset = resetsAt === null ? '' : `; it starts again at ${new Date(resetsAt).toISOString()}`;
  return `This key has a budget of ${limit}: ${used}, and ${here}${hint}${reset}`;
}

function unpricedMessage({ budget }: Limits): string {
  return `This key has a budget in ${budget?.unit}, and no price of this model, its service_tier or the searches that it may run is known in it: an entry of PRICES can tell a model's`;
}

function tokensMessage({ needed }: { readonly needed: number }, { limits, tokens }: LimitStatus): string {
  const counted = `This key may use ${limits.tpm} tokens a minute: ${tokens?.used ?? 0} are counted, and this request`;
  const hint = needed > (limits.tpm ?? 0) ? ': lower max_tokens or send less' : '';
  return `${counted} may use about ${needed}${hint}`;
}
