/** Asks the key's ledger object whether a request may be sent on, and settles it there: part of every exchange (G2, G3, G6). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type JsonObject, readCount } from '../canonical/json.ts';
import { MAX_HELD_MS, RESERVATION_GRACE_MS } from '../canonical/limits.ts';
import { limitHeaders, overdraft } from '../limits/headers.ts';
import { highestPrice } from '../limits/highest-price.ts';
import { maxPromptTokens } from '../limits/prompt-bound.ts';
import { type Refused, refusedBy } from '../limits/refusal.ts';
import type { ReserveRequest } from '../limits/reserve.ts';
import { type Charge, chargeOfRecord, NOTHING } from '../limits/settle.ts';
import type { UsageRecord } from '../metering/record.ts';
import type { RecordWriter } from '../metering/record-writer.ts';
import { outputLimitName, readOutputLimit, withOutputLimit } from '../requests/output-limit.ts';
import type { RequestContext } from './context.ts';
import { askLedger } from './limited-ledger.ts';
import type { Target } from './target.ts';

/** A request that the limits of its key let pass. It lives as long as the answer, so it holds nothing of the prompt. */
export interface Admission {
  /** What the answer says of the limits (G5). */
  readonly headers: Readonly<Record<string, string>>;
  /** Where the record goes: the reservation ends with it. */
  readonly records: Pick<RecordWriter, 'write'>;
}

export type AdmissionResult =
  | {
      readonly kind: 'admitted';
      readonly admission: Admission;
      /** The body as it is sent: with an output limit where the key demands one. */
      readonly body: JsonObject;
      /** The names of what the body has otherwise than the caller's. */
      readonly changed: readonly string[];
    }
  | ({ readonly kind: 'refused' } & Refused);

export interface Applicant {
  readonly context: RequestContext;
  readonly keyId: string;
  readonly target: Target;
  /** The addresses of all models that may serve it. */
  readonly addresses: readonly string[];
  /** As it would be sent, and its JSON text. */
  readonly body: JsonObject;
  readonly json: string;
  readonly estimatedPromptTokens: number;
  /** Prompts in the body, each of which is answered. */
  readonly prompts: number;
}

/** Whose reservation it is. */
type Held = Pick<Applicant, 'context' | 'keyId'>;

/** @param signal a client that leaves meanwhile is not admitted, and leaves no reservation */
export async function admit(applicant: Applicant, signal: AbortSignal): Promise<AdmissionResult> {
  const { context, keyId, body, target } = applicant;
  const { rules } = target.endpoint;
  const limitName = outputLimitName(rules);
  const asked = readOutputLimit(body);
  const answers = readAnswers(body);
  if (asked === undefined || answers === undefined) {
    const param = asked === undefined ? limitName : 'n';
    const error = apiError(
      'invalid_request',
      `Under limits ${param} must be a whole number from 1 up`,
      param,
    );
    return { kind: 'refused', error, headers: {} };
  }
  const request = await reserveRequest(applicant, asked, answers);
  const reserved = askLedger(context, keyId, (ledger) => ledger.reserve(request));
  // Whatever becomes of the client, the answer is awaited: what is reserved must be released.
  context.waitUntil(reserved);
  const answer = await reserved;
  if (signal.aborted) {
    context.waitUntil(release({ context, keyId }));
    const error = apiError('invalid_request', 'The client left before its request was sent on');
    return { kind: 'refused', error, headers: {} };
  }
  if (answer.kind === 'error') return whenUnreachable(applicant, answer.error);
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
  return {
    kind: 'admitted',
    admission: { headers: limitHeaders(standing), records: settledRecords({ context, keyId }, null) },
    body: outputTokens === null ? body : withOutputLimit(body, outputTokens, rules),
    changed: outputTokens === null || outputTokens === asked ? [] : [limitName],
  };
}

/** How many answers a prompt gets, all of which are paid for; undefined where that is no whole number from 1 up. */
function readAnswers({ n = 1, best_of = 1 }: JsonObject): number | undefined {
  const counts = [readCount(n) ?? 0, readCount(best_of) ?? 0];
  return Math.min(...counts) < 1 ? undefined : Math.max(...counts);
}

async function reserveRequest(
  applicant: Applicant,
  outputTokens: number | null,
  answers: number,
): Promise<ReserveRequest> {
  const { context, target, addresses, body, json, estimatedPromptTokens, prompts } = applicant;
  const { provider, priceIds: providers } = target;
  const { deadlineMs } = context.settings.pacing;
  const heldMs = deadlineMs === 0 ? MAX_HELD_MS : deadlineMs;
  const now = context.ports.clock.now();
  const models = addresses.map((address) => ({ providers, model: address.slice(provider.id.length + 1) }));
  return {
    id: context.requestId,
    promptTokens: maxPromptTokens(body, json, provider.imageTokens),
    estimatedPromptTokens,
    outputTokens,
    choices: prompts * answers,
    price: isListPrice(body) ? highestPrice(await context.prices.load(), models, now, now + heldMs) : null,
    expiresAfterMs: heldMs + RESERVATION_GRACE_MS,
  };
}

/** Tiers that cost no more than the table says (OpenAI's, Groq's and Anthropic's pages, 2026-11-22). */
const LISTED_TIERS = ['auto', 'default', 'standard', 'standard_only', 'flex', 'on_demand'];

/** Any other tier has prices that no table has (OpenAI's `priority` costs about double), and a budget in money must hold. */
function isListPrice({ service_tier: tier }: JsonObject): boolean {
  return tier === undefined || tier === null || LISTED_TIERS.some((listed) => listed === tier);
}

/** The setting decides (G6). A call that was lost may have reserved all the same. */
function whenUnreachable({ context, keyId, body }: Applicant, error: ApiError): AdmissionResult {
  if (context.settings.budgetFail === 'closed') {
    context.waitUntil(release({ context, keyId }));
    return { kind: 'refused', error, headers: {} };
  }
  const day = new Date(context.arrivedAt).toISOString().slice(0, 10);
  const admission = { headers: {}, records: settledRecords({ context, keyId }, day) };
  return { kind: 'admitted', admission, body, changed: [] };
}

/** With LEDGER=object the record itself settles; else the object is told beside it. */
function settledRecords(held: Held, unreservedDay: string | null): Admission['records'] {
  const { records, settings } = held.context;
  if (settings.ledger === 'object') return records;
  return {
    write: async (record: UsageRecord) => {
      await Promise.all([records.write(record), settle(held, chargeOfRecord(record), unreservedDay)]);
    },
  };
}

function release(held: Held): Promise<void> {
  return settle(held, NOTHING, null);
}

/** The waits before each further try. */
const SETTLE_DELAYS_MS = [500, 2000, 5000];

/** Never rejects. What can't be settled expires, and is charged then. */
async function settle({ context, keyId }: Held, charge: Charge, unreservedDay: string | null): Promise<void> {
  const { requestId, ports } = context;
  for (const delay of [...SETTLE_DELAYS_MS, null]) {
    const settled = await askLedger(context, keyId, (ledger) =>
      unreservedDay === null
        ? ledger.settleReservation(requestId, charge)
        : ledger.settleUnreserved(requestId, charge, unreservedDay),
    );
    if (settled.kind === 'answer' || delay === null) return;
    await new Promise<void>((resolve) => ports.clock.startTimer(delay, resolve));
  }
}
