/** What an answer under limits says about them, in the headers that OpenAI's clients know (G5). */
import { formatAmount } from './amount.ts';
import type { Rate } from './sliding-window.ts';
import type { LimitStatus } from './status.ts';

const BUDGET_HEADER = 'x-weir-budget-remaining';

/** The headers for how a key stands, the request that is answered included. */
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
    // Below zero where a budget only warns: by so much it is overdrawn.
    headers[BUDGET_HEADER] = formatAmount(amount - budget.spent - budget.reserved, unit);
  }
  return headers;
}

/** By how much a budget that only warns is overdrawn, as `0.52 USD`; null: it is not. */
export function overdraft({ limits, budget }: LimitStatus): string | null {
  if (limits.budget === null || budget === null || budget.spent <= limits.budget.amount) return null;
  return formatAmount(budget.spent - limits.budget.amount, limits.budget.unit);
}

function addRate(
  headers: Record<string, string>,
  name: string,
  limit: number,
  { used, resetMs }: Rate,
): void {
  headers[`x-ratelimit-limit-${name}`] = String(limit);
  headers[`x-ratelimit-remaining-${name}`] = String(Math.max(0, limit - used));
  headers[`x-ratelimit-reset-${name}`] = formatDuration(resetMs);
}

/** As OpenAI writes durations: `1m1s`, `12.5s`, `820ms`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = (ms % 60_000) / 1000;
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}
