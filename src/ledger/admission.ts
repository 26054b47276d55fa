/** Admits requests of keys with limits: reserves their upper bound in the key's ledger object, and settles what they used. */
import type { ApiError } from '../canonical/error.ts';
import type { Admission, AdmissionRequest, Admit, Admitted, Refusal } from '../completion/admission.ts';
import type { KeyCallContext, RequestContext } from '../http/context.ts';
import type { PriceTable } from '../metering/pricing/price.ts';
import {
  type Charge,
  type ChargedRecord,
  chargeOfRecord,
  NO_CHARGE,
  type UsageRecord,
  withoutCharge,
} from '../metering/record.ts';
import type { RecordWriter, StartTimer } from '../metering/record-writer.ts';
import {
  type AddCharge,
  type AttemptMeter,
  costOfAttempt,
  type Unreported,
} from '../metering/request-meter.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { LedgerClient } from './ledger-client.ts';
import { limitHeaders, overdraft, refusalResponse } from './limits/limit-responses.ts';
import {
  clampAmount,
  type HighestPrice,
  maxBilledSearches,
  maxCost,
  maxOutput,
  type ReserveRequest,
} from './limits/reservations.ts';
import { findUsageUpperBound, highestPrice, MAX_PROMPT_TOKENS } from './limits/usage-upper-bound.ts';

/** A reservation that is never settled is charged this long after its request's deadline. */
const RESERVATION_GRACE_MS = 60_000;

/** Assumed for the reservation of a request without a deadline. */
const LONGEST_REQUEST_MS = 24 * 60 * 60 * 1000;

/** A request with its reservation. */
interface ReservedRequest {
  readonly ledger: LedgerClient;
  readonly context: RequestContext;
  readonly keyId: string;
  readonly request: ReserveRequest;
  /** The output limit of one choice that is sent upstream; null: none. */
  readonly outputTokens: number | null;
  /** The UTC day on which the request counts if the object could not be reached to reserve; null: it reserved. */
  readonly unreservedDay: string | null;
}

export function createAdmit(ledger: LedgerClient): Admit {
  return (request) => admit(ledger, request);
}

async function admit(
  ledger: LedgerClient,
  admissionRequest: AdmissionRequest,
): Promise<Result<Admitted, Refusal>> {
  const { context, keyId, targets, replayable, first, promptTokens } = admissionRequest;
  const found = await findUsageUpperBound(targets, first, replayable);
  // The reservation below may take long: other requests may use the isolate's memory turn meanwhile.
  replayable.endWork();
  if (found.kind === 'error') return failure({ error: found.error, headers: {} });
  const { models, ...upperBound } = found.value;
  const { timers } = context.settings;
  const longestMs = timers.deadlineMs === 0 ? LONGEST_REQUEST_MS : timers.deadlineMs;
  const now = context.ports.clock.now();
  const price = highestPrice(await context.prices.load(), models, now, now + longestMs);
  const request: ReserveRequest = {
    id: context.requestId,
    ...upperBound,
    estimatedPromptTokens: promptTokens,
    price,
    expiresAfterMs: longestMs + RESERVATION_GRACE_MS,
  };
  const call = ledger.call(context, keyId, (object) => object.reserve(request));
  // Even if the client disconnects, the result is needed: what is reserved must be released.
  context.waitUntil(call);
  const reserved = await call;
  if (reserved.kind === 'error') return withoutReservation(ledger, admissionRequest, request, reserved.error);
  const reservation = reserved.value;
  if (reservation.kind === 'refused') {
    return failure(refusalResponse(reservation.refusal, reservation.standing));
  }
  const { outputTokens, standing: status } = reservation;
  const overdrawn = overdraft(status);
  if (overdrawn !== null) {
    context.ports.log({
      event: 'budget_overdrawn',
      request_id: context.requestId,
      key_id: keyId,
      by: overdrawn,
    });
  }
  const reservedRequest: ReservedRequest = {
    ledger,
    context,
    keyId,
    request,
    outputTokens,
    unreservedDay: null,
  };
  replayable.limitOutput(outputTokens);
  const limited = outputTokens === null ? null : await replayable.writeFor(first.facts.target);
  if (limited?.kind === 'error') {
    release(reservedRequest);
    return failure({ error: limited.error, headers: {} });
  }
  return ok({
    admission: admissionOf(reservedRequest, limitHeaders(status)),
    first: limited?.value ?? first,
  });
}

/** `BUDGET_FAIL` decides. A call that failed may have reserved nevertheless. */
function withoutReservation(
  ledger: LedgerClient,
  { context, keyId, first }: AdmissionRequest,
  request: ReserveRequest,
  error: ApiError,
): Result<Admitted, Refusal> {
  if (context.settings.budgetFail === 'closed') {
    release({ ledger, context, keyId });
    return failure({ error, headers: {} });
  }
  const unreservedDay = new Date(context.arrivedAt).toISOString().slice(0, 10);
  const { outputTokens } = request;
  const reserved: ReservedRequest = { ledger, context, keyId, request, outputTokens, unreservedDay };
  return ok({ admission: admissionOf(reserved, {}), first });
}

function admissionOf(reserved: ReservedRequest, headers: Admission['headers']): Admission {
  return {
    headers,
    addCharge: addCharge(reserved),
    reserveAgain: (billedAttempts) => reserveAgain(reserved, billedAttempts),
    release: () => release(reserved),
  };
}

async function reserveAgain(
  { ledger, context, keyId, request }: ReservedRequest,
  billedAttempts: number,
): Promise<ApiError | null> {
  // The first reservation is for the first billed attempt.
  if (billedAttempts === 0) return null;
  const extended = { ...request, attempts: billedAttempts + 1 };
  const reserved = await ledger.call(context, keyId, (object) => object.reserve(extended));
  if (reserved.kind === 'error') return context.settings.budgetFail === 'closed' ? reserved.error : null;
  const { value } = reserved;
  return value.kind === 'refused' ? refusalResponse(value.refusal, value.standing).error : null;
}

function release({ ledger, context, keyId }: Pick<ReservedRequest, 'ledger' | 'context' | 'keyId'>): void {
  const { startTimer } = context.ports.clock;
  context.waitUntil(settle({ ledger, context, keyId, startTimer }, NO_CHARGE));
}

function addCharge(reserved: ReservedRequest): AddCharge {
  const { context, request, outputTokens, unreservedDay } = reserved;
  const { settings, prices } = context;
  const { promptTokens, price } = request;
  const output = maxOutput(request, outputTokens);
  const searches = maxBilledSearches(request, output);
  const bound: AttemptBound = { promptTokens, outputTokens: output, searches, price };
  return (record, attempts) => {
    const charge = chargeOf(record, attempts, bound, prices.table);
    if (settings.ledger === 'object') return charge.unreported === undefined ? record : { ...record, charge };
    return { ...record, charge: unreservedDay === null ? charge : { ...charge, unreservedDay } };
  };
}

/** With LEDGER=object, storing the record settles the reservation; with LEDGER=kv a separate call does. */
export function settlingRecords(
  records: Pick<RecordWriter, 'write'>,
  ledger: LedgerClient,
  { ports }: Pick<RequestContext, 'ports'>,
): Pick<RecordWriter, 'write'> {
  return {
    write: async (record: ChargedRecord, startTimer) => {
      const { charge, request_id: requestId, key_id: keyId } = record;
      if (charge === undefined) return records.write(record, startTimer);
      const context = { ports, requestId };
      await Promise.all([
        records.write(withoutCharge(record), startTimer),
        settle({ ledger, context, keyId, startTimer }, charge),
      ]);
    },
  };
}

interface Settlement {
  readonly ledger: LedgerClient;
  readonly context: KeyCallContext;
  readonly keyId: string;
  readonly startTimer: StartTimer;
}

/** The waits before each retry. */
const SETTLE_DELAYS_MS = [500, 2000, 5000];

/** Never rejects. A reservation that can't be settled expires and is charged in full. */
async function settle(
  { ledger, context, keyId, startTimer }: Settlement,
  { unreservedDay, ...charge }: Charge,
): Promise<void> {
  const { requestId } = context;
  for (const delay of [...SETTLE_DELAYS_MS, null]) {
    const settled = await ledger.call(context, keyId, (object) =>
      unreservedDay === undefined
        ? object.settleReservation(requestId, charge)
        : object.settleUnreserved(requestId, charge, unreservedDay),
    );
    if (settled.kind === 'ok' || delay === null) return;
    await new Promise<void>((resolve) => void startTimer(delay, resolve));
  }
}

/** The upper bound of one attempt, as it was reserved. */
interface AttemptBound {
  readonly promptTokens: number;
  /** Of all choices. */
  readonly outputTokens: number;
  readonly searches: number;
  readonly price: HighestPrice | null;
}

/**
 * The charge of a request: what its providers reported, and the upper bound of what they did not report.
 * @param attempts the attempts that the record sums up
 */
function chargeOf(
  record: UsageRecord,
  attempts: readonly AttemptMeter[],
  bound: AttemptBound,
  table: PriceTable,
): Charge {
  const ofRecord = chargeOfRecord(record);
  if (attempts.every(({ unreported }) => unreported === null)) return ofRecord;
  const endMs = Date.parse(record.ended);
  const charges = attempts.map((attempt) => attemptCharge(attempt, bound, table, endMs));
  const unreported = charges.filter(({ isUnreported }) => isUnreported);
  const currency = bound.price?.currency ?? null;
  const isPriced = currency !== null && charges.every((charge) => charge.currency === currency);
  return {
    tokens: sumOf(charges.map(({ tokens }) => tokens)),
    cost: isPriced ? { currency, nano: sumOf(charges.map(({ nano }) => nano)) } : ofRecord.cost,
    unreported: {
      tokens: sumOf(unreported.map(({ tokens }) => tokens)),
      nano: isPriced ? sumOf(unreported.map(({ nano }) => nano)) : (ofRecord.cost?.nano ?? 0),
    },
    recordedTokens: record.total_tokens,
  };
}

interface AttemptCharge {
  readonly tokens: number;
  readonly nano: number;
  /** Null where the price is not known. */
  readonly currency: string | null;
  readonly isUnreported: boolean;
}

function attemptCharge(
  attempt: AttemptMeter,
  bound: AttemptBound,
  table: PriceTable,
  endMs: number,
): AttemptCharge {
  const { unreported } = attempt;
  const { price } = bound;
  if (unreported === null) {
    const { usage } = attempt.countUsage();
    const cost = costOfAttempt(attempt, table, endMs);
    const isUsed = usage.total_tokens > 0 || cost !== null;
    const currency = (isUsed ? cost : price)?.currency ?? null;
    return { tokens: usage.total_tokens, nano: cost?.nano ?? 0, currency, isUnreported: false };
  }
  const prompt = promptOf(unreported, bound);
  const output = outputOf(unreported, bound);
  return {
    tokens: prompt + output,
    nano: maxCost(price, prompt, output, bound.searches),
    currency: price?.currency ?? null,
    isUnreported: true,
  };
}

/** A reported prompt is final, except where the provider may read more into it during the response. */
function promptOf({ promptTokens }: Unreported, bound: AttemptBound): number {
  if (promptTokens === null) return bound.promptTokens;
  return bound.promptTokens < MAX_PROMPT_TOKENS ? promptTokens : Math.max(promptTokens, bound.promptTokens);
}

function outputOf(unreported: Unreported, bound: AttemptBound): number {
  const { outputTokens, maxOutputTokens, minOutputTokens } = unreported;
  if (outputTokens !== null) return outputTokens;
  return Math.max(minOutputTokens, Math.min(maxOutputTokens ?? bound.outputTokens, bound.outputTokens));
}

function sumOf(amounts: readonly number[]): number {
  return clampAmount(amounts.reduce((sum, amount) => sum + amount, 0));
}
