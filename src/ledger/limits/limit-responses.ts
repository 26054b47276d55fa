/** What responses report about the limits of a key: rate limit headers, the remaining budget, and the errors of refused requests. */
import {
  type BudgetPeriod,
  type BudgetUnit,
  type BudgetUse,
  budgetUses,
  currencyOf,
  formatAmount,
  type LimitStatus,
  type Limits,
  type RateStatus,
  remainingOf,
  TOKENS,
  tightestUse,
} from '../../auth/key-limits.ts';
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { Refusal } from '../../completion/admission.ts';
import { type Level, type LimitRefusal, type OutputNeed, SOON_MS } from './allowance.ts';

const BUDGET_HEADER = 'x-weir-budget-remaining';
/** Whose limit refused the request: `team`, `key`, or `user` for the allowance of one of its users. */
const LIMIT_HEADER = 'x-weir-limit';

/** The rate limit headers are OpenAI's. The status includes the request itself. */
export function limitHeaders(status: LimitStatus): Readonly<Record<string, string>> {
  const { limits, requests, tokens } = status;
  const headers: Record<string, string> = {};
  if (limits.rpm !== null && requests !== null) addRate(headers, 'requests', limits.rpm, requests);
  if (limits.tpm !== null && tokens !== null) addRate(headers, 'tokens', limits.tpm, tokens);
  const tightest = tightestUse(status);
  if (tightest !== null) headers[BUDGET_HEADER] = formatAmount(remainingOf(tightest), tightest.budget.unit);
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

/**
 * The headers by which Claude Code warns of a used up budget, where it is signed in to a gateway: the section
 * "Usage-limit headers" of the gateway's protocol in claude 2.1.330, and the code that reads them there (npm,
 * 2026-11-23). `overage` is the claim without a window of its own.
 */
const UNIFIED = 'anthropic-ratelimit-unified';
const WARNED_SHARES = [0.95, 0.75];
/** Shown while requests still pass. */
const MAX_SHARE = 0.99;

/** The client's words. It has none for a week. */
const OVERAGE_PERIODS: Readonly<Partial<Record<BudgetPeriod, string>>> = { day: 'daily', month: 'monthly' };

/** How much of the budget is spent, in the headers that Claude Code reads. Without a budget there are none. */
export function unifiedHeaders(status: LimitStatus): Readonly<Record<string, string>> {
  const shares = budgetUses(status).map(({ budget, use }) => ({
    used: budget.amount === 0 ? MAX_SHARE : Math.min(MAX_SHARE, use.spent / budget.amount),
    resetsAt: use.resetsAt,
  }));
  const [highest] = shares.sort((a, b) => b.used - a.used);
  if (highest === undefined) return {};
  const { used, resetsAt } = highest;
  const surpassed = WARNED_SHARES.find((share) => used >= share);
  const word = surpassed === undefined ? 'allowed' : 'allowed_warning';
  return {
    [`${UNIFIED}-status`]: word,
    [`${UNIFIED}-representative-claim`]: 'overage',
    [`${UNIFIED}-overage-status`]: word,
    [`${UNIFIED}-overage-utilization`]: String(Math.floor(used * 100) / 100),
    ...(surpassed !== undefined && { [`${UNIFIED}-overage-surpassed-threshold`]: String(surpassed) }),
    ...resetHeaders(resetsAt),
  };
}

/** Of a refusal because the budget is spent. Others, which a retry helps, have none. */
function unifiedRefusal(refusal: LimitRefusal, status: LimitStatus): Record<string, string> {
  if (refusal.kind !== 'budget' || refusal.waitMs === SOON_MS) return {};
  const refused = refusedUse(refusal, status);
  if (refused === null || refusal.needed > refused.budget.amount) return {};
  const { per } = refused.budget;
  return {
    [`${UNIFIED}-status`]: 'rejected',
    [`${UNIFIED}-overage-utilization`]: '1',
    [`${UNIFIED}-overage-surpassed-threshold`]: '1',
    [`${UNIFIED}-overage-disabled-reason`]: 'org_spend_cap_reached',
    ...(per in OVERAGE_PERIODS && { [`${UNIFIED}-overage-period`]: OVERAGE_PERIODS[per] }),
    ...resetHeaders(refused.use.resetsAt),
  };
}

/** The budget that has no room. */
function refusedUse(
  { window = 0 }: Extract<LimitRefusal, { kind: 'budget' }>,
  status: LimitStatus,
): BudgetUse | null {
  return budgetUses(status)[window] ?? null;
}

function resetHeaders(resetsAt: number | null): Record<string, string> {
  if (resetsAt === null) return {};
  const seconds = String(Math.ceil(resetsAt / 1000));
  return { [`${UNIFIED}-reset`]: seconds, [`${UNIFIED}-overage-reset`]: seconds };
}

/** In OpenAI's format: `1m1s`, `12.5s`, `820ms`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = (ms % 60_000) / 1000;
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}

/** By how much a budget that only warns is overdrawn, such as `0.52 USD`; null: it is not. */
export function overdraft(status: LimitStatus): string | null {
  const overdrawn = budgetUses(status).find(({ budget, use }) => use.spent > budget.amount);
  if (overdrawn === undefined) return null;
  const { budget, use } = overdrawn;
  return formatAmount(use.spent - budget.amount, budget.unit);
}

const OWNERS: Readonly<Record<Level, string>> = {
  team: 'The team of this key',
  key: 'This key',
  user: 'Each user of this key',
};
const OWNERS_OF_PERSON: Readonly<Record<Level, string>> = {
  ...OWNERS,
  team: 'The team of this caller',
  user: 'Each person of this team',
};

/** The official SDKs ignore a longer `retry-after` and retry at once. */
const MAX_SDK_WAIT_MS = 60_000;

/**
 * @param by whose limit it is
 * @param models without a price
 * @param isMessages the client's protocol is Messages
 * @param output null: the parts of the need are not known
 * @param isPerson the caller is a person of a team, without a key
 */
export function refusalResponse(
  refusal: LimitRefusal,
  status: LimitStatus,
  by: Level = 'key',
  models: readonly string[] = [],
  isMessages = false,
  output: OutputNeed | null = null,
  isPerson = false,
): Refusal {
  const unified = isMessages ? unifiedRefusal(refusal, status) : {};
  const headers: Record<string, string> = { ...limitHeaders(status), ...unified, [LIMIT_HEADER]: by };
  const waitMs = refusal.kind === 'unpriced' ? null : refusal.waitMs;
  if (waitMs !== null) headers['retry-after'] = String(Math.ceil(waitMs / 1000));
  if (waitMs === null || waitMs > MAX_SDK_WAIT_MS) headers['x-should-retry'] = 'false';
  const owners = isPerson ? OWNERS_OF_PERSON : OWNERS;
  return { error: errorOf(refusal, status, owners[by], models, output), headers };
}

function errorOf(
  refusal: LimitRefusal,
  status: LimitStatus,
  owner: string,
  models: readonly string[],
  output: OutputNeed | null,
): ApiError {
  const { limits } = status;
  switch (refusal.kind) {
    case 'budget':
      return apiError('budget_exceeded', budgetMessage(refusal, status, owner, output));
    case 'unpriced':
      return apiError('model_not_allowed', unpricedMessage(limits, owner, models), 'model');
    case 'rpm':
      return apiError(
        'rate_limited',
        `${owner} may send ${limits.rpm} request${limits.rpm === 1 ? '' : 's'} a minute`,
      );
    case 'tpm':
      return apiError('rate_limited', tokensMessage(refusal.needed, status, owner, output));
    case 'concurrency':
      return apiError(
        'rate_limited',
        `${owner} may have ${limits.maxConcurrent} request${limits.maxConcurrent === 1 ? '' : 's'} running at once`,
      );
  }
}

function budgetMessage(
  refusal: Extract<LimitRefusal, { kind: 'budget' }>,
  status: LimitStatus,
  owner: string,
  output: OutputNeed | null,
): string {
  const refused = refusedUse(refusal, status);
  if (refused === null) return 'The budget is used up';
  const { needed } = refusal;
  const { budget, use } = refused;
  const { unit, amount, per } = budget;
  const limit = `${formatAmount(amount, unit)} ${per === 'total' ? 'in total' : `a ${per}`}`;
  const { spent, reserved, resetsAt } = use;
  const used = `${formatAmount(spent, unit)} are spent, ${formatAmount(reserved, unit)} reserved by running requests`;
  const here = `this request may use up to ${formatAmount(needed, unit)}`;
  const hint = needHint(needed, amount, spent + reserved, output === null ? null : { ...output, unit });
  const start = output === null ? '; it starts' : '. The budget starts';
  const reset = resetsAt === null ? '' : `${start} again at ${new Date(resetsAt).toISOString()}`;
  return `${owner} has a budget of ${limit}: ${used}, and ${here}${hint}${reset}`;
}

function unpricedMessage(limits: Limits, owner: string, models: readonly string[]): string {
  const unit = currencyOf(limits);
  const named = models.length === 0 ? 'this model' : models.join(', ');
  return `${owner} has a budget in ${unit}, and no price in ${unit} is known for ${named} with the service_tier and the searches of this request: add one to PRICES, of 0 for a server of your own`;
}

function tokensMessage(
  needed: number,
  { limits, tokens }: LimitStatus,
  owner: string,
  output: OutputNeed | null,
): string {
  const counted = `${owner} may use ${limits.tpm} tokens a minute: ${tokens?.used ?? 0} are counted, and this request`;
  const limit = limits.tpm ?? 0;
  const hint = needed > limit ? needHint(needed, limit, 0, output && { ...output, unit: TOKENS }) : '';
  return `${counted} may use about ${needed}${hint}`;
}

/** The parts of a need, which of them is larger, and what helps. @param used what others have of the limit for some time */
function needHint(
  needed: number,
  limit: number,
  used: number,
  output: (OutputNeed & { readonly unit: BudgetUnit }) | null,
): string {
  if (output === null) return needed > limit ? ': lower max_tokens or send less' : '';
  const left = needed > limit ? limit : limit - used;
  const { unit, assumed } = output;
  const ofOutput = Math.min(needed, unit === TOKENS ? output.tokens : output.cost);
  const ofPrompt = needed - ofOutput;
  const parts = `, ${formatAmount(ofPrompt, unit)} for the prompt and ${formatAmount(ofOutput, unit)} for the output`;
  const setLimit =
    assumed === null
      ? 'lower max_tokens'
      : `set max_tokens, without which ${assumed} tokens of output are reserved`;
  if (ofOutput > ofPrompt) {
    const alone = ofPrompt > left ? ', and send less: the prompt alone does not fit' : '';
    return `${parts}. The output limit is the larger part: ${setLimit}${alone}`;
  }
  const only = ofPrompt > left ? '; a lower max_tokens does not help' : ` or ${setLimit}`;
  return `${parts}. The prompt is the larger part: send less${only}`;
}
