/** What a request needs of the limits of a holder, its reservation there, and the settlement or expiry of the reservation. */
import {
  type Budget,
  type BudgetStatus,
  type BudgetUse,
  budgetUses,
  DEFAULT_MAX_OUTPUT_TOKENS,
  dayOf,
  enforcedAround,
  isEnforced,
  type LimitStatus,
  type Limits,
  MAX_AMOUNT,
  outputLimit,
  periodDays,
  TOKENS,
} from '../../auth/key-limits.ts';
import type { HighestPrice } from '../../metering/pricing/highest-price.ts';
import { type Charge, type ChargedRecord, chargeOfRecord } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';
import {
  type Amounts,
  type LimitRefusal,
  type OutputNeed,
  type Refused,
  type ReportedCharge,
  SOON_MS,
  type UpperBound,
} from './allowance.ts';
import { boundPrompts, keepCounted, type PromptBound } from './known-prompts.ts';
import {
  addToWindow,
  correctWindow,
  type HeldByChildren,
  hadLimits,
  msUntilExpiry,
  type Sql,
  secondOf,
  waitForRate,
} from './limit-tables.ts';
import type { Spread } from './spread.ts';
import {
  addToTeam,
  forgetTeamsOfRequests,
  keepTeamOfRequest,
  NO_TEAM,
  teamOfRequest,
} from './team-shares.ts';

export interface ReserveRequest {
  /** The request's id. A repeated call with the same id and `attempts` reserves nothing more. */
  readonly id: string;
  /** The upper bound of the prompt. */
  readonly promptTokens: number;
  /** The prompts that targets may be sent, by whose known beginnings the object finds a lower bound. Absent: there is none. */
  readonly prompts?: readonly PromptBound[];
  /** What `tpm` counts until the actual prompt is known. */
  readonly estimatedPromptTokens: number;
  /** The client's own output limit of one choice, or null. */
  readonly outputTokens: number | null;
  /** The most web searches of one choice; null: only its output limits them; absent: none. */
  readonly searches?: number | null;
  /** Tokens that are billed as output of each choice in addition to it, such as a rejected prediction; absent: none. */
  readonly extraOutputTokens?: number;
  /** What a stream is likely to use, where the budgets extend their reservation as output runs. Absent: it is reserved whole. */
  readonly likely?: LikelyUse;
  /** How many choices are requested. Each may be as long as the limit. */
  readonly choices: number;
  /** How many attempts providers may bill; absent: one. A later call with more extends the reservation. */
  readonly attempts?: number;
  /** Null where the model's price is not known. */
  readonly price: HighestPrice | null;
  /** After this time without a settlement the reservation expires and is charged in full. */
  readonly expiresAfterMs: number;
  /** The limits that KV lists for the key, for an object that never had any. Absent: the Worker is older than the object. */
  readonly limits?: JsonObject | null;
  /** Where the request comes from. The answer then says how the key is spread. Absent: it is not spread. */
  readonly region?: string;
  /** The keyed hash of the user's name, in the object of a user; absent: it is not known. */
  readonly userHash?: string;
}

interface LikelyUse {
  readonly promptTokens: number;
  /** The output of all choices and attempts that is reserved so far, within their limits. */
  readonly outputTokens: number;
}

export type Reservation =
  | {
      readonly kind: 'reserved';
      /** The tokens of the prompt that were reserved; absent: the object is older than the Worker. */
      readonly promptTokens?: number;
      /** The output is reserved as the request says it is likely, and extended by later calls. */
      readonly isSliced?: true;
      /** The output limit of one choice that must be sent upstream; null: none. */
      readonly outputTokens: number | null;
      /** The limits of the holder that reserved, and those of its parent of kinds that it has none of. */
      readonly standing: LimitStatus;
      /** As in the refusal. */
      readonly spread?: Spread | null;
    }
  /**
   * `by` is absent where the object is older than the Worker: it is the key's. `spread`: how the key is spread over
   * shards; null: it is not.
   */
  | ({ readonly kind: 'refused'; readonly spread?: Spread | null } & Omit<Refused, 'by'> &
      Partial<Pick<Refused, 'by'>>)
  /** `max_users` other users had requests on this day: the request counts against the allowance that all further users share. */
  | { readonly kind: 'shared' }
  | { readonly kind: 'revoked' };

/** How long a charge for an expired reservation waits for a late settlement: the default of `RECORD_DAYS`. */
const LATE_SETTLEMENT_MS = 35 * 24 * 60 * 60 * 1000;

/** How long a settled request is remembered, so that a repeated call reserves nothing for it. Calls take at most 5 s. */
const LATE_RESERVATION_MS = 10 * 60 * 1000;

/** What was reserved. @param request of {@link estimateRequest} */
export function reservedFor(
  { promptTokens, likely }: ReserveRequest,
  outputTokens: number | null,
  standing: LimitStatus,
): Extract<Reservation, { kind: 'reserved' }> {
  const prompt = likely?.promptTokens ?? promptTokens;
  return {
    ...{ kind: 'reserved', promptTokens: prompt, outputTokens, standing },
    ...(likely !== undefined && { isSliced: true }),
  };
}

/**
 * The request with its prompt by what providers counted of its beginnings, and without what is likely where it is reserved whole.
 * @param limits of the key
 * @param now in ms since the epoch
 */
export function estimateRequest(
  sql: Sql,
  { prompts, likely, ...request }: ReserveRequest,
  limits: Limits,
  now: number,
): ReserveRequest {
  const reservedTokens = {
    tokens: request.promptTokens,
    likelyTokens: likely?.promptTokens ?? request.promptTokens,
  };
  const { tokens, likelyTokens } = prompts === undefined ? reservedTokens : boundPrompts(sql, prompts, now);
  const isLikely = likely !== undefined && isSliced(limits);
  return {
    ...{ ...request, promptTokens: tokens },
    ...(isLikely && { likely: { ...likely, promptTokens: likelyTokens } }),
  };
}

/** Whether each budget that reserves, of the key, of each of its users and of its team, extends its reservation as output runs. */
function isSliced(limits: Limits): boolean {
  const budgets = enforcedAround(limits);
  return budgets.length > 0 && budgets.every(({ mode }) => mode === 'running');
}

/** A call that was repeated after a timeout may arrive after its request has ended: nothing would ever settle what it reserves. */
export function isSettled(sql: Sql, id: string): boolean {
  return sql.exec('SELECT 1 AS one FROM unreserved WHERE id = ?', id).toArray().length > 0;
}

/** What a request needs beyond its reservation, if it has one. */
export interface Needed {
  /** The output limit of one choice that must be sent upstream; null: none. */
  readonly outputTokens: number | null;
  /** Null: nothing more. */
  readonly need: UpperBound | null;
  /** All that is reserved with it. */
  readonly all: UpperBound;
}

type KnownReservation = {
  readonly day: string;
  readonly output_tokens: number | null;
  readonly tokens: number;
  readonly cost: number;
};

export function readNeed(
  sql: Sql,
  request: ReserveRequest,
  limits: Pick<Limits, 'budget' | 'maxOutputTokens'>,
): Needed {
  const [known] = sql
    .exec<KnownReservation>(
      'SELECT day, output_tokens, tokens, cost FROM reservations WHERE id = ?',
      request.id,
    )
    .toArray();
  const outputTokens = known === undefined ? outputLimit(limits, request.outputTokens) : known.output_tokens;
  const all = upperBoundOf(request, outputTokens);
  if (known === undefined) return { outputTokens, need: all, all };
  // Further attempts belong to the same request, so no rate counts them, and they count in its day.
  const tokens = Math.max(0, all.tokens - known.tokens);
  const cost = Math.max(0, all.cost - known.cost);
  const need = { ...all, requests: 0, expectedTokens: 0, tokens, cost, day: known.day } as const;
  return { outputTokens, need: tokens === 0 && cost === 0 ? null : need, all };
}

/** Stores what {@link readNeed} read. @param day the UTC day in which a new request counts */
export function insertReservation(
  sql: Sql,
  { id, expiresAfterMs }: ReserveRequest,
  { need, all, outputTokens }: Needed,
  { requests, tokens: rate }: LimitStatus,
  now: number,
  day: string = dayOf(now),
): void {
  const { tokens, expectedTokens, currency, cost } = all;
  if (need?.requests !== 1) {
    sql.exec('UPDATE reservations SET tokens = ?, cost = ? WHERE id = ?', ...[tokens, cost, id]);
    return;
  }
  const second = secondOf(now);
  sql.exec(
    'INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ...[id, day, second, now + expiresAfterMs, tokens, expectedTokens, currency, cost, outputTokens],
  );
  if (requests !== null || rate !== null) addToWindow(sql, second, expectedTokens);
}

/** Why a need is refused; null: it has room. */
export function refuse(
  sql: Sql,
  status: LimitStatus,
  need: UpperBound,
  now: number,
  held?: HeldByChildren,
): LimitRefusal | null {
  const refusal = refusedByBudget(status, need, now);
  return refusal === null && need.requests === 1 ? refusedByRates(sql, status, need, now, held) : refusal;
}

/** The status after the reservation, without reading it again. @param day of the status; absent: that of the reservation */
export function withReservation(
  before: LimitStatus,
  upperBound: UpperBound,
  now: number,
  day?: string,
): LimitStatus {
  if (upperBound.requests === 0) return withReserved(before, upperBound, day);
  const { requests, tokens, running } = before;
  const resetMs = msUntilExpiry(secondOf(now), now);
  return {
    ...withReserved(before, upperBound, day),
    requests: requests === null ? null : { used: requests.used + 1, resetMs },
    tokens: tokens === null ? null : { used: tokens.used + upperBound.expectedTokens, resetMs },
    running: running === null ? null : running + 1,
  };
}

function withReserved(before: LimitStatus, upperBound: UpperBound, day?: string): LimitStatus {
  const reservedIn = ({ budget, use }: BudgetUse): BudgetStatus =>
    isEnforced(budget) && isInPeriod(budget, upperBound.day, day)
      ? { ...use, reserved: use.reserved + amountIn(budget, upperBound) }
      : use;
  const [budget = null, ...windows] = budgetUses(before).map(reservedIn);
  return { ...before, budget, ...(before.windows !== undefined && { windows }) };
}

/** Whether a need of one day counts in the period of the budget that another day is in. */
function isInPeriod({ per }: Budget, ofNeed: string | undefined, day: string | undefined): boolean {
  if (ofNeed === undefined || day === undefined || ofNeed === day) return true;
  const { first, last } = periodDays(per, Date.parse(day));
  return ofNeed >= first && ofNeed <= last;
}

/** What a need takes of a budget, in the budget's unit. */
function amountIn({ unit }: Budget, { tokens, cost }: UpperBound): number {
  return unit === TOKENS ? tokens : cost;
}

/** A search is a call that the model writes: at least its name and a word in a JSON object. */
const MIN_TOKENS_PER_SEARCH = 8;
/** With the text that a model usually writes about what it has found. */
const LIKELY_TOKENS_PER_SEARCH = 500;

/** All that is reserved for a request. @param outputTokens the output limit of one choice that is sent upstream; null: none */
export function upperBoundOf(request: ReserveRequest, outputTokens: number | null): UpperBound {
  const { promptTokens, estimatedPromptTokens, price, attempts = 1, likely } = request;
  const output = maxOutput(request, outputTokens);
  const searches = maxBilledSearches(request, output);
  if (likely !== undefined) {
    const prompt = likely.promptTokens * attempts;
    const soFar = Math.min(likely.outputTokens, output * attempts);
    return {
      requests: 1,
      tokens: clampAmount(prompt + soFar),
      expectedTokens: clampAmount(estimatedPromptTokens + soFar),
      currency: price?.currency ?? '',
      cost: maxCost(price, prompt, soFar, likelySearches(searches * attempts, soFar)),
    };
  }
  return {
    requests: 1,
    tokens: clampAmount((promptTokens + output) * attempts),
    expectedTokens: clampAmount(estimatedPromptTokens + output),
    currency: price?.currency ?? '',
    cost: clampAmount(maxCost(price, promptTokens, output, searches) * attempts),
  };
}

/** How many web searches are reserved with an output. @param most of all attempts */
export function likelySearches(most: number, outputTokens: number): number {
  return Math.min(most, Math.ceil(outputTokens / LIKELY_TOKENS_PER_SEARCH));
}

/** What of a request's need is its output, where a limit refuses it. @param limits of the key or the user that refused */
export function outputNeed(
  request: ReserveRequest,
  limits: Pick<Limits, 'budget' | 'maxOutputTokens'>,
): OutputNeed {
  const { outputTokens, price, likely } = request;
  const limit = outputLimit(limits, outputTokens);
  const most = maxOutput(request, limit);
  const isLikely = likely !== undefined && limits.budget?.mode === 'running';
  const tokens = isLikely ? Math.min(likely.outputTokens, most) : most;
  const searches = maxBilledSearches(request, most);
  const cost = maxCost(price, 0, tokens, isLikely ? likelySearches(searches, tokens) : searches);
  return { tokens, cost, assumed: outputTokens === null ? (limit ?? DEFAULT_MAX_OUTPUT_TOKENS) : null };
}

/** The most output tokens of all choices of one attempt. */
export function maxOutput(
  { extraOutputTokens = 0, choices }: Pick<ReserveRequest, 'extraOutputTokens' | 'choices'>,
  outputTokens: number | null,
): number {
  return clampAmount(((outputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS) + extraOutputTokens) * choices);
}

/** The most web searches of all choices, whose output has at most `outputTokens`. */
export function maxBilledSearches(
  { searches = 0, choices }: Pick<ReserveRequest, 'searches' | 'choices'>,
  outputTokens: number,
): number {
  const byOutput = Math.ceil(outputTokens / MIN_TOKENS_PER_SEARCH);
  return searches === null ? byOutput : Math.min(byOutput, searches * choices);
}

/** An integer of 10^-9 of the currency; 0 where no price is known. */
export function maxCost(
  price: HighestPrice | null,
  promptTokens: number,
  outputTokens: number,
  searches: number,
): number {
  const pico =
    BigInt(promptTokens) * BigInt(price?.prompt ?? 0) +
    BigInt(outputTokens) * BigInt(price?.output ?? 0) +
    BigInt(searches) * BigInt(price?.search ?? 0);
  return clampAmount(Number((pico + 999n) / 1000n));
}

/** Twice the largest budget exceeds every budget and is still an exact integer. */
export function clampAmount(amount: number): number {
  return Math.min(amount, 2 * MAX_AMOUNT);
}

/** Of several budgets without room, the one that has room last. */
function refusedByBudget(status: LimitStatus, upperBound: UpperBound, now: number): LimitRefusal | null {
  let refusal: Extract<LimitRefusal, { kind: 'budget' }> | null = null;
  for (const [window, one] of budgetUses(status).entries()) {
    if (!isEnforced(one.budget)) continue;
    const { unit } = one.budget;
    if (unit !== TOKENS && unit !== upperBound.currency) return { kind: 'unpriced' };
    const needed = amountIn(one.budget, upperBound);
    const waitMs = waitForBudget(one, needed, now);
    if (waitMs === 0 || (refusal !== null && isSooner(waitMs, refusal.waitMs))) continue;
    refusal = { kind: 'budget', needed, waitMs, ...(window > 0 && { window }) };
  }
  return refusal;
}

/** ms until a need fits; 0: it does; null: never. */
function waitForBudget({ budget, use }: BudgetUse, needed: number, now: number): number | null {
  const { spent, reserved, resetsAt } = use;
  if (spent + reserved + needed <= budget.amount) return 0;
  if (needed > budget.amount) return null;
  // Only the running requests are in the way, and most of them use less than they reserve.
  if (spent + needed <= budget.amount) return SOON_MS;
  // The period of a grant may have ended by this clock.
  return resetsAt === null ? null : Math.max(SOON_MS, resetsAt - now);
}

function isSooner(waitMs: number | null, than: number | null): boolean {
  return than === null || (waitMs !== null && waitMs <= than);
}

function refusedByRates(
  sql: Sql,
  status: LimitStatus,
  upperBound: UpperBound,
  now: number,
  held?: HeldByChildren,
): LimitRefusal | null {
  const { rpm, tpm, maxConcurrent } = status.limits;
  const { requests, tokens, running } = status;
  if (rpm !== null && requests !== null && requests.used + 1 > rpm) {
    return {
      kind: 'rpm',
      needed: 1,
      waitMs: waitForRate(sql, now, 'requests', rpm - 1, held),
    };
  }
  const needed = upperBound.expectedTokens;
  if (tpm !== null && tokens !== null && tokens.used + needed > tpm) {
    const waitMs = needed > tpm ? null : waitForRate(sql, now, 'tokens', tpm - needed, held);
    return { kind: 'tpm', needed, waitMs };
  }
  if (maxConcurrent !== null && running !== null && running >= maxConcurrent) {
    return { kind: 'concurrency', needed: 1, waitMs: SOON_MS };
  }
  return null;
}

/** What a settlement corrects in the minute: the second of the request, null if its reservation had expired. */
export interface Settled {
  readonly second: number | null;
  readonly moreTokens: number;
  /** The team that the request belongs to; null: the current one. */
  readonly team: string | null;
}

type ReservationRow = Amounts & { readonly second: number; readonly expected_tokens: number };

/**
 * Charges what a request used, on the day of its reservation, and deletes the reservation. Replaces the charge if the reservation
 * has expired. A repeated call changes nothing.
 * @param now in ms since the epoch
 * @returns null where there is no reservation, running or expired
 */
export function settle(sql: Sql, id: string, charge: Charge, now: number): Settled | null {
  const team = teamOfRequest(sql, id);
  const [reserved] = sql
    .exec<ReservationRow>('DELETE FROM reservations WHERE id = ? RETURNING *', id)
    .toArray();
  if (reserved !== undefined) {
    addCharge(sql, charge, reserved, team);
    if (charge.counted !== undefined) keepCounted(sql, charge.counted, now);
    const insert = 'INSERT OR IGNORE INTO unreserved VALUES (?, ?)';
    sql.exec(insert, id, now - LATE_SETTLEMENT_MS + LATE_RESERVATION_MS);
    const { recordedTokens = charge.tokens } = charge;
    const moreTokens = recordedTokens - reserved.expected_tokens;
    correctWindow(sql, reserved.second, moreTokens);
    return { second: reserved.second, moreTokens, team };
  }
  const [expired] = sql.exec<Amounts>('DELETE FROM expired WHERE id = ? RETURNING *', id).toArray();
  if (expired === undefined) return null;
  addTo(sql, 'spent', { ...expired, tokens: -expired.tokens, cost: -expired.cost }, team);
  addCharge(sql, charge, expired, team);
  return { second: null, moreTokens: 0, team };
}

/**
 * Settles requests by their newly stored records. Those without a reservation are charged as well.
 * @param now in ms since the epoch
 */
export function settleRecords(sql: Sql, records: readonly ChargedRecord[], now: number): readonly Settled[] {
  // A key that never had limits has nothing to settle: its records cost only this query.
  if (!hadLimits(sql)) return [];
  return records.flatMap((record) => {
    if (record.charge?.userObject !== undefined) return [];
    const charge = record.charge ?? chargeOfRecord(record);
    return [settleNew(sql, record.request_id, charge, record.time.slice(0, 10), now)];
  });
}

/**
 * Settles a request that may have no reservation. A repeated call changes nothing.
 * @param day the UTC day on which it counts if it has none
 * @param now in ms since the epoch
 */
export function settleUnreserved(sql: Sql, id: string, charge: Charge, day: string, now: number): void {
  const insert = 'INSERT OR IGNORE INTO unreserved VALUES (?, ?) RETURNING id';
  const isFirst = sql.exec(insert, id, now).toArray().length > 0;
  if (isFirst) settleNew(sql, id, charge, day, now);
}

function settleNew(sql: Sql, id: string, charge: Charge, day: string, now: number): Settled {
  const settled = settle(sql, id, charge, now);
  if (settled !== null) return settled;
  addCharge(sql, charge, { day, tokens: 0, currency: '', cost: 0 }, null);
  return { second: null, moreTokens: 0, team: null };
}

/**
 * @param reserved charged in place of an unknown cost of used tokens, so that a budget in money holds
 * @param team that the charge belongs to; null: the current one
 */
function addCharge(sql: Sql, charge: Charge, reserved: Amounts, team: string | null): void {
  const { tokens, cost, unreported } = charge;
  const { day } = reserved;
  const isUnpriced = cost === null && tokens > 0;
  const currency = isUnpriced ? reserved.currency : (cost?.currency ?? '');
  addTo(sql, 'spent', { day, currency, tokens, cost: isUnpriced ? reserved.cost : (cost?.nano ?? 0) }, team);
  if (unreported === undefined) return;
  const unreportedCost = isUnpriced ? reserved.cost : unreported.nano;
  addTo(sql, 'unreported', { day, currency, tokens: unreported.tokens, cost: unreportedCost }, team);
}

function addTo(sql: Sql, table: 'spent' | 'unreported', amounts: Amounts, team: string | null): void {
  const { day, currency, tokens, cost } = amounts;
  if (tokens === 0 && cost === 0) return;
  if (team !== null) addToTeam(sql, team, table, amounts);
  sql.exec(
    `INSERT INTO ${table} VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost`,
    ...[day, currency, tokens, cost],
  );
}

/** Adds what a child charged. @param current the current team */
export function addReported(
  sql: Sql,
  { kind, team = NO_TEAM, ...amounts }: ReportedCharge,
  current: string,
  now: number,
): void {
  const other = team === current ? null : team;
  if (kind !== 'expired') return addTo(sql, kind, amounts, other);
  const { day, tokens, currency, cost } = amounts;
  const id = ['users', day, currency, ...(team === NO_TEAM ? [] : [team])].join(' ');
  if (other !== null) keepTeamOfRequest(sql, id, other);
  sql.exec(
    `INSERT INTO expired VALUES (?1, ?2, max(0, ?3), ?4, max(0, ?5), ?6)
      ON CONFLICT DO UPDATE SET tokens = max(0, tokens + ?3), cost = max(0, cost + ?5), expired_at = ?6`,
    ...[id, day, tokens, currency, cost, now],
  );
}

export type ExpiredReservation = Amounts & { readonly id: string };

/** How long rows that are no longer needed may stay, so that one alarm deletes many of them. */
const FORGET_EVERY_MS = 10 * 60 * 1000;

/**
 * Charges every overdue reservation in full: its upstream may have used all of it, and a hard budget must hold.
 * @param now in ms since the epoch
 */
export function expire(sql: Sql, now: number): readonly ExpiredReservation[] {
  const overdue = sql
    .exec<ExpiredReservation>(
      'DELETE FROM reservations WHERE expires_at <= ? RETURNING id, day, tokens, currency, cost',
      now,
    )
    .toArray();
  for (const { id, day, tokens, currency, cost } of overdue) {
    addTo(sql, 'spent', { day, tokens, currency, cost }, teamOfRequest(sql, id));
    sql.exec('INSERT INTO expired VALUES (?, ?, ?, ?, ?, ?)', ...[id, day, tokens, currency, cost, now]);
  }
  return overdue;
}

/**
 * Deletes charges and ids whose settlement can no longer come. It reads all of them, so only alarms call it.
 * @param now in ms since the epoch
 */
export function forgetSettled(sql: Sql, now: number): void {
  sql.exec('DELETE FROM expired WHERE expired_at <= ?', now - LATE_SETTLEMENT_MS);
  sql.exec('DELETE FROM unreserved WHERE settled_at <= ?', now - LATE_SETTLEMENT_MS);
  forgetTeamsOfRequests(sql);
}

/** When {@link expire} or {@link forgetSettled} has work next, in ms since the epoch; null: there is none. */
export function nextExpiry(sql: Sql): number | null {
  const query = `SELECT min(at) AS at FROM (
    SELECT min(expires_at) AS at FROM reservations
    UNION ALL SELECT min(expired_at) + ?1 FROM expired
    UNION ALL SELECT min(settled_at) + ?1 FROM unreserved
  )`;
  const forgottenAfterMs = LATE_SETTLEMENT_MS + FORGET_EVERY_MS;
  return sql.exec<{ at: number | null }>(query, forgottenAfterMs).toArray()[0]?.at ?? null;
}
