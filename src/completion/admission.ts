/** Asks the key's ledger object whether a request may be sent on, and settles it there: part of every exchange (G2, G3, G6). */
import type { ApiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { callLedger } from '../ledger/call-ledger.ts';
import { type AttemptBound, chargeOf } from '../ledger/limits/charge.ts';
import { limitHeaders, overdraft } from '../ledger/limits/headers.ts';
import { highestPrice } from '../ledger/limits/highest-price.ts';
import { type Refused, refusedBy } from '../ledger/limits/refusal.ts';
import { mostOutput, mostSearches, type ReserveRequest } from '../ledger/limits/reserve.ts';
import { type Charge, type ChargedRecord, NO_CHARGE } from '../metering/record.ts';
import type { MeteredRecords } from '../metering/request-meter.ts';
import type { Target } from '../routing/targets.ts';
import { MAX_HELD_MS, RESERVATION_GRACE_MS } from '../shared/limits.ts';
import type { ReplayableRequest, TargetRequest } from './replayable-request.ts';
import { findUsageUpperBound } from './usage-upper-bound.ts';

/** A request that the limits of its key let pass. It lives as long as the answer, so it holds nothing of the prompt. */
export interface Admission {
  /** What the answer says of the limits (G5). */
  readonly headers: Readonly<Record<string, string>>;
  /** Where the record goes: the reservation ends with it. */
  readonly records: MeteredRecords;
  /**
   * Reserves for one more attempt beside those that are billed, or may be (G3).
   * @returns why the budget has no room for it, or null
   */
  readonly reserveAgain: (billedAttempts: number) => Promise<ApiError | null>;
  /** Ends the reservation of a request that is not sent on after all. */
  readonly release: () => void;
}

export type AdmissionResult =
  | {
      readonly kind: 'admitted';
      readonly admission: Admission;
      /** What the first target is sent: with an output limit where the key demands one. */
      readonly first: TargetRequest;
    }
  | ({ readonly kind: 'refused' } & Refused);

export interface AdmissionRequest {
  readonly context: RequestContext;
  readonly keyId: string;
  readonly targets: readonly Target[];
  /** What the first of them would be sent. */
  readonly first: TargetRequest;
  /** Learns the output limit for what they are sent. */
  readonly replayable: ReplayableRequest;
  /** Estimated. */
  readonly promptTokens: number;
}

/** Whose reservation it is, and how much one attempt was reserved for. */
interface Held extends Pick<AdmissionRequest, 'context' | 'keyId'> {
  readonly request: ReserveRequest;
  /** The limit of one choice that is sent; null: none. */
  readonly outputTokens: number | null;
  /** The UTC day on which it counts where the object could not reserve; null: it did. */
  readonly unreservedDay: string | null;
}

export async function admit(applicant: AdmissionRequest): Promise<AdmissionResult> {
  const { context, keyId, targets, replayable, first, promptTokens } = applicant;
  const found = await findUsageUpperBound(targets, first, replayable);
  // Nobody waits for the turn of a request that waits.
  replayable.endWork();
  if (found.kind === 'invalid') return { kind: 'refused', error: found.error, headers: {} };
  const { upperBound } = found;
  const { timers } = context.settings;
  const heldMs = timers.deadlineMs === 0 ? MAX_HELD_MS : timers.deadlineMs;
  const now = context.ports.clock.now();
  const price = highestPrice(await context.prices.load(), upperBound.models, now, now + heldMs);
  const request: ReserveRequest = {
    id: context.requestId,
    promptTokens: upperBound.promptTokens,
    estimatedPromptTokens: promptTokens,
    outputTokens: upperBound.outputTokens,
    searches: upperBound.searches,
    extraOutputTokens: upperBound.extraOutputTokens,
    choices: upperBound.choices,
    price,
    expiresAfterMs: heldMs + RESERVATION_GRACE_MS,
  };
  const reserved = callLedger(context, keyId, (ledger) => ledger.reserve(request));
  // Whatever becomes of the client, the answer is awaited: what is reserved must be released.
  context.waitUntil(reserved);
  const answer = await reserved;
  if (answer.kind === 'error') return whenUnreachable(applicant, request, answer.error);
  const reservation = answer.value;
  if (reservation.kind === 'refused') {
    return { kind: 'refused', ...refusedBy(reservation.refusal, reservation.standing) };
  }
  const { outputTokens, standing } = reservation;
  const overdrawn = overdraft(standing);
  if (overdrawn !== null) {
    context.ports.log({
      event: 'budget_overdrawn',
      request_id: context.requestId,
      key_id: keyId,
      by: overdrawn,
    });
  }
  const admission = admissionOf(
    { context, keyId, request, outputTokens, unreservedDay: null },
    limitHeaders(standing),
  );
  replayable.limitOutput(outputTokens);
  const limited = outputTokens === null ? null : await replayable.writeFor(first.facts.target);
  if (limited?.kind === 'error') {
    admission.release();
    return { kind: 'refused', error: limited.error, headers: {} };
  }
  return { kind: 'admitted', admission, first: limited?.value ?? first };
}

/** The setting decides (G6). A call that was lost may have reserved all the same. */
function whenUnreachable(
  { context, keyId, first }: AdmissionRequest,
  request: ReserveRequest,
  error: ApiError,
): AdmissionResult {
  if (context.settings.budgetFail === 'closed') {
    release({ context, keyId });
    return { kind: 'refused', error, headers: {} };
  }
  const day = new Date(context.arrivedAt).toISOString().slice(0, 10);
  const { outputTokens } = request;
  const held: Held = { context, keyId, request, outputTokens, unreservedDay: day };
  return { kind: 'admitted', admission: admissionOf(held, {}), first };
}

function admissionOf(held: Held, headers: Admission['headers']): Admission {
  return {
    headers,
    records: settledRecords(held),
    reserveAgain: (billedAttempts) => reserveAgain(held, billedAttempts),
    release: () => release(held),
  };
}

async function reserveAgain(
  { context, keyId, request }: Held,
  billedAttempts: number,
): Promise<ApiError | null> {
  // The first reservation is for the first billed attempt.
  if (billedAttempts === 0) return null;
  const asked = { ...request, attempts: billedAttempts + 1 };
  const answer = await callLedger(context, keyId, (ledger) => ledger.reserve(asked));
  if (answer.kind === 'error') return context.settings.budgetFail === 'closed' ? answer.error : null;
  const { value } = answer;
  return value.kind === 'refused' ? refusedBy(value.refusal, value.standing).error : null;
}

/** With LEDGER=object the record settles, with its charge; else a call of its own does. */
function settledRecords(held: Held): MeteredRecords {
  const { context, request, outputTokens, unreservedDay } = held;
  const { records, settings, prices } = context;
  const { promptTokens, price } = request;
  const mostTokens = mostOutput(request, outputTokens);
  const searches = mostSearches(request, mostTokens);
  const bound: AttemptBound = { promptTokens, outputTokens: mostTokens, searches, price };
  return {
    write: async (record, startTimer, attempts) => {
      const charge = chargeOf(record, attempts, bound, prices.table);
      if (settings.ledger === 'object') {
        const charged: ChargedRecord = charge.unreported === undefined ? record : { ...record, charge };
        return records.write(charged, startTimer);
      }
      await Promise.all([records.write(record, startTimer), settle(held, charge, unreservedDay)]);
    },
  };
}

function release(held: Pick<Held, 'context' | 'keyId'>): void {
  held.context.waitUntil(settle(held, NO_CHARGE, null));
}

/** The waits before each further try. */
const SETTLE_DELAYS_MS = [500, 2000, 5000];

/** Never rejects. What can't be settled expires, and is charged then. */
async function settle(
  { context, keyId }: Pick<Held, 'context' | 'keyId'>,
  charge: Charge,
  unreservedDay: string | null,
): Promise<void> {
  const { requestId, ports } = context;
  for (const delay of [...SETTLE_DELAYS_MS, null]) {
    const settled = await callLedger(context, keyId, (ledger) =>
      unreservedDay === null
        ? ledger.settleReservation(requestId, charge)
        : ledger.settleUnreserved(requestId, charge, unreservedDay),
    );
    if (settled.kind === 'answer' || delay === null) return;
    await new Promise<void>((resolve) => ports.clock.startTimer(delay, resolve));
  }
}
