/** Admits requests of keys with limits: reserves their upper bound in the key's ledger object, and settles what they used. */

import { currencyOf, enforcedBudgets, enforcedCurrencies, OTHER_USERS } from '../auth/key-limits.ts';
import { type ApiError, apiError, type ErrorCode } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import type {
  Admission,
  AdmissionRequest,
  Admit,
  AdmitEarly,
  Admitted,
  EarlyAdmission,
  EarlyAdmissionRequest,
  OutputSlices,
  Refusal,
} from '../completion/admission.ts';
import type { TargetRequest } from '../completion/target-request.ts';
import { isWithinLimit, readWrittenLimit } from '../fitting/output-limit.ts';
import type { KeyCallContext, RequestContext } from '../http/context.ts';
import { highestPrice, type PricedModel } from '../metering/pricing/highest-price.ts';
import {
  assumedOutputSpeed,
  fastestOutputSpeed,
  type ShownSpeeds,
} from '../metering/pricing/output-speeds.ts';
import type { PromptHasher } from '../metering/prompt-hashes.ts';
import {
  type Charge,
  type ChargedRecord,
  NO_CHARGE,
  type UsageRecord,
  withoutCharge,
} from '../metering/record.ts';
import type { RecordWriter, StartTimer } from '../metering/record-writer.ts';
import type { AddCharge, AttemptMeter, ReceivedOutput } from '../metering/request-meter.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { type ChargeBound, chargeOf, type ReservedSlices } from './charge.ts';
import { readObjectName, teamObject, userObject } from './ledger-calls.ts';
import type { LedgerClient } from './ledger-client.ts';
import type { UpperBound } from './limits/allowance.ts';
import { limitHeaders, overdraft, refusalResponse, unifiedHeaders } from './limits/limit-responses.ts';
import {
  likelySearches,
  maxBilledSearches,
  maxOutput,
  outputNeed,
  type Reservation,
  type ReserveRequest,
  upperBoundOf,
} from './limits/reservations.ts';
import { findUsageUpperBound, MAX_PROMPT_TOKENS } from './limits/usage-upper-bound.ts';
import { type LedgerSettings, LONGEST_REQUEST_MS, reservedMs } from './settings.ts';
import { isMissing, type KnownSpreads } from './shards.ts';

/** A request with its reservation. */
interface ReservedRequest {
  readonly ledger: LimitLedger;
  readonly context: RequestContext;
  readonly keyId: string;
  /** The object that reserved: the key's, or that of the user. */
  readonly objectName: string;
  readonly request: ReserveRequest;
  /** The hash of each target's whole prompt, by the target's address. */
  readonly hashes: ReadonlyMap<string, string>;
  /** The fastest output of one choice by any model that may serve the request; null: it is not known. */
  readonly tokensPerSecond: number | null;
  /** The output limit of one choice that is sent upstream; null: none. */
  readonly outputTokens: number | null;
  /** The UTC day on which the request counts if the object could not be reached to reserve; null: it reserved. */
  readonly unreservedDay: string | null;
  /** The providers whose operator says that they end a request, and its bill, when its connection closes. */
  readonly stopping: ReadonlySet<string>;
  /** The providers that are known to go on, and to bill, when the connection closes. */
  readonly goingOn: ReadonlySet<string>;
  /** Null: the output is reserved whole. */
  readonly slices: SlicedOutput | null;
}

/** Output tokens of a choice that budgets of the mode `running` reserve at once. */
const SLICE_TOKENS = 2000;

/** The ledger objects, and the settings that apply to them. */
export interface LimitLedger {
  readonly client: LedgerClient;
  readonly settings: Pick<LedgerSettings, 'ledger' | 'budgetFail'>;
  /** Null: no key is spread. */
  readonly spreads: KnownSpreads | null;
  /** Null: no prompts are hashed. */
  readonly hasher: Pick<PromptHasher, 'beginnings'> | null;
  readonly speeds: ShownSpeeds;
}

export function createAdmit(ledger: LimitLedger): Admit {
  return async (request) => unhashedUser(request) ?? admit(ledger, request);
}

export function createAdmitEarly(ledger: LimitLedger): AdmitEarly {
  return async (request) => unhashedUser(request) ?? admitEarly(ledger, request);
}

/** The error for a user whose spend an erasure would not find, because its name cannot be hashed now; null: it can, or need not be. */
function unhashedUser({
  context: {
    users: { hash: hashUser },
  },
  user,
}: Pick<AdmissionRequest, 'context' | 'user'>): Result<never, Refusal> | null {
  return (user?.name ?? null) !== null && isUnreadable(hashUser)
    ? failure({ error: secretUnreadable(hashUser), headers: {} })
    : null;
}

/**
 * Counts the request against the rates, and reserves the texts of its prompt and its output from the budget. The rest
 * of the upper bound follows with the same id, as that of a further attempt does.
 */
async function admitEarly(
  ledger: LimitLedger,
  early: EarlyAdmissionRequest,
): Promise<Result<EarlyAdmission, Refusal>> {
  const { context, limits, listed, targets, textBytes, outputTokens } = early;
  const longestMs = longestOf(context);
  const now = context.ports.clock.now();
  // A lower bound of the price: the whole request may name a tier or a cache with a higher one.
  const models = (targets ?? []).map(({ priceIds, model }) => ({ priceIds, model, hasDefaultCache: true }));
  const price =
    targets === null
      ? { currency: enforcedCurrencies(limits)[0] ?? '', prompt: 0, output: 0 }
      : highestPrice(await context.prices.load(), models, now, now + longestMs);
  const request: ReserveRequest = {
    id: context.requestId,
    // A token has at least one byte.
    promptTokens: targets === null ? 0 : Math.min(textBytes, MAX_PROMPT_TOKENS),
    estimatedPromptTokens: 0,
    outputTokens: targets === null ? 0 : outputTokens,
    choices: targets === null ? 0 : 1,
    price,
    expiresAfterMs: reservedMs(longestMs),
    limits: listed,
  };
  // The whole request extends this reservation, perhaps from another isolate, which knows no spread.
  context.known.admittedBy = early.keyId;
  const call = reserveFor(ledger, { ...early, affinity: null }, request);
  // Even if the client disconnects, the result is needed: what is reserved must be released.
  context.waitUntil(call);
  const { objectName, reserved } = await call;
  const releaseEarly = () => release({ ledger, context, objectName });
  if (reserved.kind === 'error') {
    const { error } = reserved;
    if (isNeverOpen(error)) return failure({ error, headers: { 'x-should-retry': 'false' } });
    // A call that failed may have reserved nevertheless.
    if (ledger.settings.budgetFail === 'open') return ok({ release: releaseEarly });
    releaseEarly();
    return failure({ error, headers: {} });
  }
  const refusal = refusalOf(reserved.value, { request, user: early.user });
  if (refusal !== null) return failure(refusal);
  if (reserved.value.kind !== 'reserved') return failure({ error: revokedError(early), headers: {} });
  return ok({ release: releaseEarly });
}

function longestOf({ settings: { timers } }: RequestContext): number {
  return timers.deadlineMs || LONGEST_REQUEST_MS;
}

async function admit(
  ledger: LimitLedger,
  admissionRequest: AdmissionRequest,
): Promise<Result<Admitted, Refusal>> {
  const { context, keyId, limits, listed, targets, replayable, first, promptTokens } = admissionRequest;
  const hasher = enforcedBudgets(limits).length > 0 ? ledger.hasher : null;
  const found = await findUsageUpperBound(targets, first, replayable, hasher);
  // The reservation below may take long: other requests may use the isolate's memory turn meanwhile.
  replayable.endWork();
  if (found.kind === 'error') return failure({ error: found.error, headers: {} });
  const { models, hashes, prompts, likelyPromptTokens, hidesOutput, ...upperBound } = found.value;
  const hasBeginnings = prompts.some(({ beginnings }) => beginnings.length > 0);
  const longestMs = longestOf(context);
  const now = context.ports.clock.now();
  const table = await context.prices.load();
  const price = highestPrice(table, models, now, now + longestMs);
  const tokensPerSecond = fastestOutputSpeed(models);
  const sliceTokens = SLICE_TOKENS * upperBound.choices;
  const mayBeSliced =
    admissionRequest.isStreamed && enforcedBudgets(limits).some(({ mode }) => mode === 'running');
  const request: ReserveRequest = {
    id: context.requestId,
    ...upperBound,
    ...(hasBeginnings && { prompts }),
    ...(mayBeSliced && { likely: { promptTokens: likelyPromptTokens, outputTokens: sliceTokens } }),
    estimatedPromptTokens: promptTokens,
    price,
    expiresAfterMs: reservedMs(longestMs),
    limits: listed,
  };
  const call = reserveFor(ledger, admissionRequest, request);
  // Even if the client disconnects, the result is needed: what is reserved must be released.
  context.waitUntil(call);
  const { objectName, reserved } = await call;
  if (reserved.kind === 'error') {
    return withoutReservation(ledger, admissionRequest, request, reserved.error, objectName, tokensPerSecond);
  }
  const reservation = reserved.value;
  const currency = reservation.kind === 'refused' ? currencyOf(reservation.standing.limits) : undefined;
  const isPriced = (model: PricedModel) =>
    highestPrice(table, [model], now, now + longestMs)?.currency === currency;
  const unpriced = models.filter((model) => !isPriced(model)).map(({ address }) => address);
  const isMessages = admissionRequest.client === 'messages';
  const refusal = refusalOf(reservation, { request, unpriced, isMessages, user: admissionRequest.user });
  if (refusal !== null) return failure(refusal);
  if (reservation.kind !== 'reserved') return failure({ error: revokedError(admissionRequest), headers: {} });
  const { outputTokens, standing: status, promptTokens: reservedPrompt } = reservation;
  const overdrawn = overdraft(status);
  if (overdrawn !== null) {
    context.ports.log({
      event: 'budget_overdrawn',
      request_id: context.requestId,
      key_id: keyId,
      by: overdrawn,
    });
  }
  // A further attempt has the same prompt.
  const again = reservedPrompt === undefined ? request : withoutPrompts(request, reservedPrompt);
  const reservedObject = { ledger, context, keyId, objectName };
  const slices =
    reservation.isSliced === true && again.likely !== undefined
      ? new SlicedOutput({
          ...{ request: again, likely: again.likely, outputTokens, sliceTokens },
          maxTokens: maxOutput(again, outputTokens),
          hiddenTokensPerSecond: hidesOutput
            ? assumedOutputSpeed(models, ledger.speeds) * upperBound.choices
            : null,
          reserve: (more) => reserveMore(reservedObject, more),
        })
      : null;
  const reservedRequest: ReservedRequest = {
    ...reservedObject,
    request: again,
    hashes,
    tokensPerSecond,
    outputTokens,
    unreservedDay: null,
    stopping: new Set(admissionRequest.isStreamed ? providersOf(targets, 'stopsOnClose') : []),
    goingOn: new Set(providersOf(targets, 'goesOnAfterClose')),
    slices,
  };
  const limited = await withOutputLimit(admissionRequest, outputTokens);
  if (limited.kind === 'error') {
    release(reservedRequest);
    return limited;
  }
  return ok({
    admission: admissionOf(reservedRequest, {
      ...limitHeaders(status),
      ...(isMessages && unifiedHeaders(status)),
    }),
    first: limited.value,
  });
}

/** The request for the first target, written again if another limit applies than the one that KV lists. */
async function withOutputLimit(
  { replayable, first }: AdmissionRequest,
  outputTokens: number | null,
): Promise<Result<TargetRequest, Refusal>> {
  replayable.limitOutput(() => outputTokens);
  const { form, body, isCut } = first;
  const isAsWritten =
    outputTokens === null
      ? !isCut
      : isWithinLimit(form, body, outputTokens) && (!isCut || readWrittenLimit(form, body) === outputTokens);
  if (isAsWritten) return ok(first);
  const limited = await replayable.writeFor(first.traits.target);
  return limited.kind === 'ok' ? limited : failure({ error: limited.error, headers: {} });
}

/** The ids of those that have the field. */
function providersOf(
  targets: AdmissionRequest['targets'],
  field: 'stopsOnClose' | 'goesOnAfterClose',
): readonly string[] {
  return targets.flatMap(({ provider }) => (provider[field] === undefined ? [] : [provider.id]));
}

function withoutPrompts(
  { prompts: _, likely, ...request }: ReserveRequest,
  promptTokens: number,
): ReserveRequest {
  return { ...request, promptTokens, ...(likely !== undefined && { likely: { ...likely, promptTokens } }) };
}

interface SlicedOutputOptions {
  /** Without prompts. */
  readonly request: ReserveRequest;
  readonly likely: NonNullable<ReserveRequest['likely']>;
  /** The output limit of one choice that is sent upstream; null: none. */
  readonly outputTokens: number | null;
  readonly sliceTokens: number;
  /** Of one attempt. */
  readonly maxTokens: number;
  readonly hiddenTokensPerSecond: number | null;
  readonly reserve: (request: ReserveRequest) => Promise<ApiError | null>;
}

/** Each call names all that is to be reserved, so that a repeated one reserves nothing more. */
class SlicedOutput implements OutputSlices, ReservedSlices {
  readonly #options: SlicedOutputOptions;
  #attempts = 1;
  #reserved: number;
  hiddenTokens = 0;

  constructor(options: SlicedOutputOptions) {
    this.#options = options;
    this.#reserved = Math.min(options.sliceTokens, options.maxTokens);
  }

  get sliceTokens(): number {
    return this.#options.sliceTokens;
  }

  get hiddenTokensPerSecond(): number | null {
    return this.#options.hiddenTokensPerSecond;
  }

  get reserved(): number {
    return this.#reserved;
  }

  get isWhole(): boolean {
    return this.#reserved >= this.#options.maxTokens * this.#attempts;
  }

  get searches(): number {
    const { request, maxTokens } = this.#options;
    return likelySearches(maxBilledSearches(request, maxTokens) * this.#attempts, this.#reserved);
  }

  get all(): UpperBound {
    return upperBoundOf(this.#requestOf(this.#attempts, this.#reserved), this.#options.outputTokens);
  }

  async extend(): Promise<boolean> {
    return (await this.#reserveSlice(this.#attempts)) === null;
  }

  /** Reserves the prompt and the first slice of a further attempt. @returns why the budget has no room, or null */
  begin(attempts: number): Promise<ApiError | null> {
    return this.#reserveSlice(attempts);
  }

  async #reserveSlice(attempts: number): Promise<ApiError | null> {
    const { sliceTokens, maxTokens, reserve } = this.#options;
    const outputTokens = Math.min(this.#reserved + sliceTokens, maxTokens * attempts);
    const error = await reserve(this.#requestOf(attempts, outputTokens));
    if (error !== null) return error;
    this.#attempts = attempts;
    this.#reserved = Math.max(this.#reserved, outputTokens);
    return null;
  }

  #requestOf(attempts: number, outputTokens: number): ReserveRequest {
    const { request, likely } = this.#options;
    return { ...request, attempts, likely: { ...likely, outputTokens } };
  }
}

const NO_HASHES: ReadonlyMap<string, string> = new Map();

const KEY_REVOKED = apiError('invalid_api_key', 'This key is unknown, revoked, disabled or expired');
/** The isolate learns within a minute which team the person has now. */
const TEAM_DELETED = apiError(
  'ledger_unreachable',
  'The team of this caller was just deleted: try again in a minute',
);

function revokedError({ user }: Pick<AdmissionRequest, 'user'>): ApiError {
  return user?.team === undefined ? KEY_REVOKED : TEAM_DELETED;
}

interface ReserveResult {
  readonly objectName: string;
  readonly reserved: Result<Reservation, ApiError>;
}

/** Reserves in the object of the key, or in that of its user or of a person, which reserves in that of the key or the team. */
async function reserveFor(
  ledger: LimitLedger,
  admissionRequest: Pick<AdmissionRequest, 'context' | 'keyId' | 'user' | 'affinity'>,
  request: ReserveRequest,
): Promise<ReserveResult> {
  const { context, keyId, user } = admissionRequest;
  if (user === null) return reserveInShard(ledger, admissionRequest, request);
  const reserve = async (objectName: string, one: ReserveRequest) => ({
    objectName,
    reserved: await ledger.client.call(context, objectName, (object) => object.reserveForUser(one)),
  });
  const { hash: hashUser } = context.users;
  const isHashed = user.name !== null && hashUser !== null && !isUnreadable(hashUser);
  const hashed = isHashed ? { ...request, userHash: await hashUser(user.name) } : request;
  const parent = user.team === undefined ? keyId : teamObject(user.team);
  const userAdmission = await reserve(userObject(parent, user.name), hashed);
  const isShared = userAdmission.reserved.kind === 'ok' && userAdmission.reserved.value.kind === 'shared';
  return isShared ? reserve(userObject(parent, OTHER_USERS), request) : userAdmission;
}

/** Reserves in the object of the key, or in that of one of its shards. */
async function reserveInShard(
  { client, spreads }: LimitLedger,
  { context, keyId, affinity }: Pick<AdmissionRequest, 'context' | 'keyId' | 'affinity'>,
  request: ReserveRequest,
): Promise<ReserveResult> {
  const reserve = async (one: ReserveRequest) => {
    const reserved = await client.call(context, keyId, (object) => object.reserve(one));
    return { objectName: keyId, reserved };
  };
  const isAdmitted = context.known.admittedBy !== undefined;
  const region = isAdmitted ? null : (spreads?.regionOf(context.continent) ?? null);
  if (spreads === null || region === null) return reserve(request);
  const { clock } = context.ports;
  const caller = { keyId, region, affinity: affinity ?? request.id };
  const [first, second] = spreads.shardsFor(caller, clock.now());
  const spreadRequest = { ...request, region };
  /** Null: the object is of an earlier version, and has done nothing. */
  const reserveAt = async (objectName: string): Promise<ReserveResult | null> => {
    const reserved = await client.call(context, objectName, (object) =>
      object.reserveInShard(spreadRequest).catch((error: unknown) => {
        if (isMissing(error, 'reserveInShard')) return null;
        throw error;
      }),
    );
    if (reserved.kind === 'error') return { objectName, reserved };
    return reserved.value === null ? null : { objectName, reserved: ok(reserved.value) };
  };
  let answer = first === undefined ? null : await reserveAt(first);
  const reserved = answer?.reserved;
  // The overloaded object is not called again at once.
  if (second !== undefined && reserved?.kind === 'error' && reserved.error.code === 'ledger_overloaded')
    answer = await reserveAt(second);
  answer ??= await reserve(spreadRequest);
  if (answer.reserved.kind === 'ok' && 'standing' in answer.reserved.value)
    spreads.learn(keyId, answer.reserved.value.spread, clock.now());
  context.known.admittedBy = answer.objectName;
  return answer;
}

/**
 * Null where the reservation is not refused.
 * @param request absent: it extends what an earlier one reserved
 * @param unpriced models without a price in the unit of the budget
 */
function refusalOf(
  reservation: Reservation,
  {
    request,
    unpriced = [],
    isMessages = false,
    user = null,
  }: {
    readonly request?: ReserveRequest;
    readonly unpriced?: readonly string[];
    readonly isMessages?: boolean;
    readonly user?: AdmissionRequest['user'];
  } = {},
): Refusal | null {
  if (reservation.kind !== 'refused') return null;
  const { refusal, standing, by = 'key' } = reservation;
  const output = request === undefined ? null : outputNeed(request, standing.limits);
  const isPerson = user?.team !== undefined;
  return refusalResponse(refusal, standing, by, unpriced, isMessages, output, isPerson);
}

/** `BUDGET_FAIL` decides. A call that failed may have reserved nevertheless. */
async function withoutReservation(
  ledger: LimitLedger,
  admissionRequest: AdmissionRequest,
  request: ReserveRequest,
  error: ApiError,
  objectName: string,
  tokensPerSecond: number | null,
): Promise<Result<Admitted, Refusal>> {
  const { context, keyId } = admissionRequest;
  // Limits that cannot be read are not the same as an object that does not answer: no setting opens them.
  if (isNeverOpen(error)) return failure({ error, headers: { 'x-should-retry': 'false' } });
  if (ledger.settings.budgetFail === 'closed') {
    release({ ledger, context, objectName });
    return failure({ error, headers: {} });
  }
  const unreservedDay = new Date(context.arrivedAt).toISOString().slice(0, 10);
  const { outputTokens } = request;
  const reserved: ReservedRequest = {
    hashes: NO_HASHES,
    ledger,
    context,
    keyId,
    objectName,
    request,
    tokensPerSecond,
    outputTokens,
    unreservedDay,
    stopping: new Set(),
    goingOn: new Set(),
    slices: null,
  };
  const unlimited = await withOutputLimit(admissionRequest, null);
  return unlimited.kind === 'error'
    ? unlimited
    : ok({ admission: admissionOf(reserved, {}), first: unlimited.value });
}

/** Errors after which `BUDGET_FAIL=open` opens nothing: the limits are there, and are not known. */
const NEVER_OPEN: readonly ErrorCode[] = ['ledger_unreadable', 'misconfigured'];

function isNeverOpen({ code }: ApiError): boolean {
  return NEVER_OPEN.some((known) => known === code);
}

function admissionOf(reserved: ReservedRequest, headers: Admission['headers']): Admission {
  return {
    headers,
    addCharge: addCharge(reserved),
    reserveAgain: (billedAttempts) => reserveAgain(reserved, billedAttempts),
    slices: reserved.slices,
    release: () => release(reserved),
  };
}

async function reserveAgain(reserved: ReservedRequest, billedAttempts: number): Promise<ApiError | null> {
  // The first reservation is for the first billed attempt.
  if (billedAttempts === 0) return null;
  const attempts = billedAttempts + 1;
  return reserved.slices?.begin(attempts) ?? reserveMore(reserved, { ...reserved.request, attempts });
}

function isShardObject(objectName: string): boolean {
  return readObjectName(objectName).shard !== null;
}

/** Extends a reservation. @returns why there is no room, or null */
async function reserveMore(
  { ledger, context, objectName }: Pick<ReservedRequest, 'ledger' | 'context' | 'objectName'>,
  extended: ReserveRequest,
): Promise<ApiError | null> {
  const { user, shard } = readObjectName(objectName);
  const reserved = await ledger.client.call(context, objectName, (object) => {
    if (user !== null) return object.reserveForUser(extended);
    return shard === null ? object.reserve(extended) : object.reserveInShard(extended);
  });
  if (reserved.kind === 'error') {
    const isRefused = ledger.settings.budgetFail === 'closed' || isUnreadable(reserved.error);
    return isRefused ? reserved.error : null;
  }
  return refusalOf(reserved.value)?.error ?? null;
}

function release({
  ledger,
  context,
  objectName,
}: Pick<ReservedRequest, 'ledger' | 'context' | 'objectName'>): void {
  const { startTimer } = context.ports.clock;
  context.waitUntil(settle({ ledger, context, objectName, startTimer }, NO_CHARGE));
}

function addCharge(reserved: ReservedRequest): AddCharge {
  const {
    ledger,
    context,
    keyId,
    objectName,
    request,
    hashes,
    tokensPerSecond,
    outputTokens,
    unreservedDay,
    stopping,
    goingOn,
    slices,
  } = reserved;
  const { prices } = context;
  const { promptTokens, price, choices, extraOutputTokens = 0 } = request;
  const output = maxOutput(request, outputTokens);
  const maxOutputAfter = (ms: number) =>
    tokensPerSecond === null
      ? output
      : Math.min(output, (Math.ceil((tokensPerSecond * ms) / 1000) + extraOutputTokens) * choices);
  const maxOutputOf = (provider: string, received: ReceivedOutput) => {
    // The speed of all that it may have written includes what was received.
    if (!received.isClosed || !stopping.has(provider) || tokensPerSecond === null) return output;
    const maxHidden = received.showsAll ? 0 : (tokensPerSecond * received.ms * choices) / 1000;
    return Math.min(output, Math.ceil(received.maxTokens + maxHidden + tokensPerSecond * choices));
  };
  const bound: ChargeBound = {
    ...{ promptTokens, outputTokens: output, maxOutputAfter, maxOutputOf, price, slices, goingOn },
    searches: maxBilledSearches(request, output),
  };
  return (asCounted, attempts) => {
    for (const attempt of attempts) showSpeed(attempt, ledger.speeds);
    const counted = countedPrompt(asCounted, attempts, hashes);
    const charge = {
      ...chargeOf(asCounted, attempts, bound, prices.table),
      ...(counted !== null && { counted }),
    };
    const record = slices === null || charge.unreported === undefined ? asCounted : asEstimate(asCounted);
    const unreserved = unreservedDay === null ? {} : { unreservedDay };
    const isObject = ledger.settings.ledger === 'object';
    if (objectName !== keyId && !(isObject && isShardObject(objectName)))
      return { ...record, charge: { ...charge, ...unreserved, userObject: objectName } };
    if (objectName !== keyId) return { ...record, charge: { ...charge, shard: objectName } };
    if (isObject) return charge.unreported === undefined && counted === null ? record : { ...record, charge };
    return { ...record, charge: { ...charge, ...unreserved } };
  };
}

/** The record of a stream that was charged by what was received, although its provider may have reported a part of its output. */
function asEstimate(record: UsageRecord): UsageRecord {
  const isCostEstimated = record.cost_estimated || record.cost_source === 'table';
  return { ...record, estimated: true, cost_estimated: isCostEstimated };
}

function showSpeed({ accumulator, attempt, unreported }: AttemptMeter, speeds: ShownSpeeds): void {
  const { output } = accumulator.reported;
  const { provider, model, ms } = attempt;
  if (unreported === null && output !== null && ms !== null) speeds.add(`${provider}/${model}`, output, ms);
}

/** The prompt as its provider counted it. Null: it was not reported, or the request was changed after a refusal. */
function countedPrompt(
  { provider, model, cached_tokens: cached }: UsageRecord,
  attempts: readonly AttemptMeter[],
  hashes: ReadonlyMap<string, string>,
): NonNullable<Charge['counted']> | null {
  const hash = hashes.get(`${provider}/${model}`);
  const prompt = attempts[0]?.accumulator.reported.prompt ?? null;
  if (hash === undefined || attempts.length !== 1 || prompt === null || prompt === 0) return null;
  return { hash, tokens: Math.max(prompt, cached ?? 0) };
}

/**
 * With LEDGER=object, storing the record settles the reservation of a key. With LEDGER=kv a separate call does, and always for a
 * reservation in the object of a user.
 */
export function settlingRecords(
  records: Pick<RecordWriter, 'write'>,
  ledger: LimitLedger,
  { ports }: Pick<RequestContext, 'ports'>,
): Pick<RecordWriter, 'write'> {
  return {
    write: async (record: ChargedRecord, startTimer) => {
      const { charge, request_id: requestId, key_id: keyId } = record;
      const isObject = ledger.settings.ledger === 'object';
      const isSettledByRecord = isObject && charge?.userObject === undefined;
      if (charge === undefined || isSettledByRecord) return records.write(record, startTimer);
      const context = { ports, requestId };
      const objectName = charge.userObject ?? keyId;
      await Promise.all([
        // The object of the key reads from the charge that it must not charge the record.
        records.write(isObject ? record : withoutCharge(record), startTimer),
        settle({ ledger, context, objectName, startTimer }, charge),
      ]);
    },
  };
}

interface Settlement {
  readonly ledger: LimitLedger;
  readonly context: KeyCallContext;
  readonly objectName: string;
  readonly startTimer: StartTimer;
}

/** The waits before each retry. */
const SETTLE_DELAYS_MS = [500, 2000, 5000];

/** Never rejects. A reservation that can't be settled expires and is charged in full. */
async function settle(
  { ledger, context, objectName, startTimer }: Settlement,
  { unreservedDay, userObject: _, ...charge }: Charge,
): Promise<void> {
  const { requestId } = context;
  for (const delay of [...SETTLE_DELAYS_MS, null]) {
    const settled = await ledger.client.call(context, objectName, (object) =>
      unreservedDay === undefined
        ? object.settleReservation(requestId, charge)
        : object.settleUnreserved(requestId, charge, unreservedDay),
    );
    if (settled.kind === 'ok' || delay === null) return;
    await new Promise<void>((resolve) => void startTimer(delay, resolve));
  }
}
