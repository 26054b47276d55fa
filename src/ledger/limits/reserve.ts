/** Admits a request or refuses it, in one transaction for all of its key's limits (G2). */
import { MAX_AMOUNT, TOKENS } from './amount.ts';
import { DEFAULT_MAX_OUTPUT_TOKENS, type Limits, NO_LIMITS } from './limits.ts';
import { dayOf } from './period.ts';
import { addToWindow, resetAfter, secondOf, Window } from './sliding-window.ts';
import { type LimitStatus, readLimitStatus } from './status.ts';
import type { Sql } from './tables.ts';

/** The highest prices that a request's tokens may have, as integers of 10^-12 of the currency a token. */
export interface HighestPrice {
  readonly currency: string;
  readonly prompt: number;
  readonly output: number;
  /** Of one web search; absent: none is billed. */
  readonly search?: number;
}

export interface ReserveRequest {
  /** The request's id: asked twice with the same one and as many attempts, it is reserved once. */
  readonly id: string;
  /** The prompt has at most so many tokens. */
  readonly promptTokens: number;
  /** And about so many: what `tpm` counts until the truth is known. */
  readonly estimatedPromptTokens: number;
  /** The caller's own limit of one choice's output, or null. */
  readonly outputTokens: number | null;
  /** The most web searches of one choice; null: as many as its output has room for; absent: none. */
  readonly searches?: number | null;
  /** What is billed as the output of each choice beside it, such as a prediction that was wrong; absent: none. */
  readonly extraOutputTokens?: number;
  /** How many choices it asks for: each may be as long as the limit. */
  readonly choices: number;
  /** How many attempts at it a provider may bill; absent: one. Asked again with more, the reservation grows. */
  readonly attempts?: number;
  /** Null where the model's price is not known. */
  readonly price: HighestPrice | null;
  /** After so many ms without a settlement it is taken to be lost, and charged (G3). */
  readonly expiresAfterMs: number;
}

/** Why a request is refused; `waitMs`: after which time alone it would pass; null: no time alone helps. */
export type LimitRefusal =
  | { readonly kind: 'budget'; readonly needed: number; readonly waitMs: number | null }
  /** The budget is in money, and what the request would cost is not known. */
  | { readonly kind: 'unpriced' }
  | { readonly kind: 'rpm' | 'tpm' | 'concurrency'; readonly needed: number; readonly waitMs: number | null };

export type Reservation =
  | {
      readonly kind: 'reserved';
      /** The limit of one choice's output that must be sent upstream; null: none. */
      readonly outputTokens: number | null;
      readonly standing: LimitStatus;
    }
  | { readonly kind: 'refused'; readonly refusal: LimitRefusal; readonly standing: LimitStatus };

/** A wait of which no more is known than that others end soon. */
const SOON_MS = 1000;

/** What a request may use at most, and what it is taken to use where only a rate is limited. */
interface Ceiling {
  readonly tokens: number;
  readonly expectedTokens: number;
  readonly currency: string;
  /** Integer of 10^-9 of the currency. */
  readonly cost: number;
}

/** @param now in ms since the epoch */
export function reserve(sql: Sql, request: ReserveRequest, now: number): Reservation {
  const known = sql
    .exec<KnownReservation>('SELECT output_tokens, tokens, cost FROM reservations WHERE id = ?', request.id)
    .toArray()[0];
  const before = readLimitStatus(sql, now);
  // KV may still tell of limits of which the object does not know.
  if (before.limits === NO_LIMITS) return { kind: 'reserved', outputTokens: null, standing: before };
  if (known !== undefined) return extend(sql, request, known, before, now);
  const outputTokens = outputLimit(before.limits, request.outputTokens);
  const upperBound = ceilingOf(request, outputTokens);
  const refusal =
    refusedByBudget(before, request, upperBound, now) ?? refusedByRates(sql, before, upperBound, now);
  if (refusal !== null) return { kind: 'refused', refusal, standing: before };
  const { id, expiresAfterMs } = request;
  const { tokens, expectedTokens, currency, cost } = upperBound;
  const second = secondOf(now);
  sql.exec(
    'INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ...[id, dayOf(now), second, now + expiresAfterMs, tokens, expectedTokens, currency, cost, outputTokens],
  );
  if (before.requests !== null || before.tokens !== null) addToWindow(sql, second, expectedTokens);
  return { kind: 'reserved', outputTokens, standing: withReservation(before, upperBound, now) };
}

type KnownReservation = {
  readonly output_tokens: number | null;
  readonly tokens: number;
  readonly cost: number;
};

/** Reserves for further attempts, which are the same request: no rate counts them. */
function extend(
  sql: Sql,
  request: ReserveRequest,
  known: KnownReservation,
  before: LimitStatus,
  now: number,
): Reservation {
  const outputTokens = known.output_tokens;
  const all = ceilingOf(request, outputTokens);
  const more = {
    ...all,
    tokens: Math.max(0, all.tokens - known.tokens),
    cost: Math.max(0, all.cost - known.cost),
  };
  if (more.tokens === 0 && more.cost === 0) return { kind: 'reserved', outputTokens, standing: before };
  const refusal = refusedByBudget(before, request, more, now);
  if (refusal !== null) return { kind: 'refused', refusal, standing: before };
  const { tokens, cost } = all;
  sql.exec('UPDATE reservations SET tokens = ?, cost = ? WHERE id = ?', ...[tokens, cost, request.id]);
  return { kind: 'reserved', outputTokens, standing: withReserved(before, more) };
}

/** As {@link readLimitStatus} would read it again. */
function withReservation(before: LimitStatus, upperBound: Ceiling, now: number): LimitStatus {
  const { requests, tokens, running } = before;
  const resetMs = resetAfter(secondOf(now), now);
  return {
    ...withReserved(before, upperBound),
    requests: requests === null ? null : { used: requests.used + 1, resetMs },
    tokens: tokens === null ? null : { used: tokens.used + upperBound.expectedTokens, resetMs },
    running: running === null ? null : running + 1,
  };
}

function withReserved(before: LimitStatus, upperBound: Ceiling): LimitStatus {
  const { limits, budget } = before;
  if (budget === null || limits.budget?.mode !== 'hard') return before;
  const needed = limits.budget.unit === TOKENS ? upperBound.tokens : upperBound.cost;
  return { ...before, budget: { ...budget, reserved: budget.reserved + needed } };
}

/** The caller's, but never above the key's; under a hard budget there is always one. */
function outputLimit({ budget, maxOutputTokens }: Limits, asked: number | null): number | null {
  if (asked !== null) return Math.min(asked, maxOutputTokens ?? asked);
  return maxOutputTokens ?? (budget?.mode === 'hard' ? DEFAULT_MAX_OUTPUT_TOKENS : null);
}

/** A search is a call that the model writes: at least its name and a word in a JSON object. */
const TOKENS_A_SEARCH = 8;

function ceilingOf(request: ReserveRequest, outputTokens: number | null): Ceiling {
  const { promptTokens, estimatedPromptTokens, price, attempts = 1 } = request;
  const output = mostOutput(request, outputTokens);
  const searches = mostSearches(request, output);
  return {
    tokens: atMost((promptTokens + output) * attempts),
    expectedTokens: atMost(estimatedPromptTokens + output),
    currency: price?.currency ?? '',
    cost: atMost(mostCost(price, promptTokens, output, searches) * attempts),
  };
}

/** The most tokens that all choices of one attempt may have. */
export function mostOutput(
  { extraOutputTokens = 0, choices }: Pick<ReserveRequest, 'extraOutputTokens' | 'choices'>,
  outputTokens: number | null,
): number {
  return atMost(((outputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS) + extraOutputTokens) * choices);
}

/** The most web searches of all choices, whose output has at most so many tokens. */
export function mostSearches(
  { searches = 0, choices }: Pick<ReserveRequest, 'searches' | 'choices'>,
  outputTokens: number,
): number {
  const most = Math.ceil(outputTokens / TOKENS_A_SEARCH);
  return searches === null ? most : Math.min(most, searches * choices);
}

/** An integer of 10^-9 of the currency; 0 where no price is known. */
export function mostCost(
  price: HighestPrice | null,
  promptTokens: number,
  outputTokens: number,
  searches: number,
): number {
  const pico =
    BigInt(promptTokens) * BigInt(price?.prompt ?? 0) +
    BigInt(outputTokens) * BigInt(price?.output ?? 0) +
    BigInt(searches) * BigInt(price?.search ?? 0);
  return atMost(Number((pico + 999n) / 1000n));
}

/** Beyond every budget that there can be: more makes no difference, and would leave the exact integers. */
export function atMost(amount: number): number {
  return Math.min(amount, 2 * MAX_AMOUNT);
}

function refusedByBudget(
  { limits, budget: standing }: LimitStatus,
  { price }: ReserveRequest,
  upperBound: Ceiling,
  now: number,
): LimitRefusal | null {
  const { budget } = limits;
  if (budget === null || standing === null || budget.mode === 'warn') return null;
  if (budget.unit !== TOKENS && budget.unit !== price?.currency) return { kind: 'unpriced' };
  const needed = budget.unit === TOKENS ? upperBound.tokens : upperBound.cost;
  const { spent, reserved, resetsAt } = standing;
  if (spent + reserved + needed <= budget.amount) return null;
  if (needed > budget.amount) return { kind: 'budget', needed, waitMs: null };
  // Without the requests that run it would pass: most of them use less than they may.
  if (spent + needed <= budget.amount) return { kind: 'budget', needed, waitMs: SOON_MS };
  return { kind: 'budget', needed, waitMs: resetsAt === null ? null : resetsAt - now };
}

function refusedByRates(
  sql: Sql,
  standing: LimitStatus,
  upperBound: Ceiling,
  now: number,
): LimitRefusal | null {
  const { rpm, tpm, maxConcurrent } = standing.limits;
  const { requests, tokens, running } = standing;
  if (rpm !== null && requests !== null && requests.used + 1 > rpm) {
    return { kind: 'rpm', needed: 1, waitMs: Window.read(sql, now).waitFor('requests', rpm - 1) };
  }
  const needed = upperBound.expectedTokens;
  if (tpm !== null && tokens !== null && tokens.used + needed > tpm) {
    const waitMs = needed > tpm ? null : Window.read(sql, now).waitFor('tokens', tpm - needed);
    return { kind: 'tpm', needed, waitMs };
  }
  if (maxConcurrent !== null && running !== null && running >= maxConcurrent) {
    return { kind: 'concurrency', needed: 1, waitMs: SOON_MS };
  }
  return null;
}
