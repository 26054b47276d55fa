/** What responses report about the limits of a key: rate limit headers, the remaining budget, and the errors of refused requests. */
import { formatAmount, type LimitStatus, type Limits, type RateStatus } from '../../auth/key-limits.ts';
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { Refusal } from '../../completion/admission.ts';
import type { LimitRefusal } from './reservations.ts';

const BUDGET_HEADER = 'x-weir-budget-remaining';
/** Whose limit refused the request: `key`, or `user` for the allowance of one of its users. */
const LIMIT_HEADER = 'x-weir-limit';

/** The rate limit headers are OpenAI's. The status includes the request itself. */
export function limitHeaders({
  limits,
  budget,
  requests,
  tokens,
}: LimitStatus): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  if (limits.rpm !== null && requests !== null) addRate(headers, 'requests', limits.rpm, requests);
  if (limits.tpm !== null && tokens !== null) addRate(headers, 'tokens', limits.tpm, tokens);
  if (limits.budget !== null && budget !== null) {
    const { amount, unit } = limits.budget;
    // Negative where a budget that only warns is overdrawn.
    headers[BUDGET_HEADER] = formatAmount(amount - budget.spent - budget.reserved, unit);
  }
  return headers;
}

function addRate(
  headers: Record<string, string>,
  name: string,
  limit: number,
  { used, resetMs }: RateStatus,
): void {
  headers[`x-ratelimit-limit-${name}`] = String(limit);
  headers[`x-ratelimit-remaining-${name}`] = String(Math.max(0, limit - used));
  headers[`x-ratelimit-reset-${name}`] = formatDuration(resetMs);
}

/** In OpenAI's format: `1m1s`, `12.5s`, `820ms`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = (ms % 60_000) / 1000;
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}

/** By how much a budget that only warns is overdrawn, such as `0.52 USD`; null: it is not. */
export function overdraft({ limits, budget }: LimitStatus): string | null {
  if (limits.budget === null || budget === null || budget.spent <= limits.budget.amount) return null;
  return formatAmount(budget.spent - limits.budget.amount, limits.budget.unit);
}

/** The official SDKs ignore a longer `retry-after` and retry at once. */
const MAX_SDK_WAIT_MS = 60_000;

/** @param by whose limit it is */
export function refusalResponse(
  refusal: LimitRefusal,
  status: LimitStatus,
  by: 'key' | 'user' = 'key',
): Refusal {
  const headers: Record<string, string> = { ...limitHeaders(status), [LIMIT_HEADER]: by };
  const waitMs = refusal.kind === 'unpriced' ? null : refusal.waitMs;
  if (waitMs !== null) headers['retry-after'] = String(Math.ceil(waitMs / 1000));
  if (waitMs === null || waitMs > MAX_SDK_WAIT_MS) headers['x-should-retry'] = 'false';
  const owner = by === 'key' ? 'This key' : 'Each user of this key';
  return { error: errorOf(refusal, status, owner), headers };
}

function errorOf(refusal: LimitRefusal, status: LimitStatus, owner: string): ApiError {
  const { limits } = status;
  switch (refusal.kind) {
    case 'budget':
      return apiError('budget_exceeded', budgetMessage(refusal.needed, status, owner));
    case 'unpriced':
      return apiError('model_not_allowed', unpricedMessage(limits, owner), 'model');
    case 'rpm':
      return apiError(
        'rate_limited',
        `${owner} may send ${limits.rpm} request${limits.rpm === 1 ? '' : 's'} a minute`,
      );
    case 'tpm':
      return apiError('rate_limited', tokensMessage(refusal.needed, status, owner));
    case 'concurrency':
      return apiError(
        'rate_limited',
        `${owner} may have ${limits.maxConcurrent} request${limits.maxConcurrent === 1 ? '' : 's'} running at once`,
      );
  }
}

function budgetMessage(needed: number, { limits, budget: status }: LimitStatus, owner: string): string {
  const { budget } = limits;
  if (budget === null || status === null) return 'The budget is used up';
  const { unit, amount, per } = budget;
  const limit = `${formatAmount(amount, unit)} ${per === 'total' ? 'in total' : `a ${per}`}`;
  const { spent, reserved, resetsAt } = status;
  const used = `${formatAmount(spent, unit)} are spent, ${formatAmount(reserved, unit)} reserved by running requests`;
  const here = `this request may use up to ${formatAmount(needed, unit)}`;
  const hint = needed > amount ? ': lower max_tokens or send less' : '';
  const reset = resetsAt === null ? '' : `; it starts again at ${new Date(resetsAt).toISOString()}`;
  return `${owner} has a budget of ${limit}: ${used}, and ${here}${hint}${reset}`;
}

function unpricedMessage({ budget }: Limits, owner: string): string {
  const unit = budget?.unit;
  return `${owner} has a budget in ${unit}, and no price in ${unit} is known for this model, its service_tier or the searches that it may run: add one to PRICES`;
}

function tokensMessage(needed: number, { limits, tokens }: LimitStatus, owner: string): string {
  const counted = `${owner} may use ${limits.tpm} tokens a minute: ${tokens?.used ?? 0} are counted, and this request`;
  const hint = needed > (limits.tpm ?? 0) ? ': lower max_tokens or send less' : '';
  return `${counted} may use about ${needed}${hint}`;
}
