/** Judges the failure of an attempt: whether another target is tried, whether a retry may succeed, and what the circuit breaker records. */
import type { ApiError, FailureReason } from '../canonical/error.ts';
import type { Target } from './targets.ts';

/** Why an attempt has no output. */
export interface Failure {
  readonly error: ApiError;
  readonly reason: FailureReason;
  /** The upstream has made an output and bills it: no further attempt is allowed. */
  readonly isMade: boolean;
  /** The upstream may bill the attempt. */
  readonly isBilled: boolean;
  /** How long the upstream wants clients to wait; null if it did not say. */
  readonly retryAfterMs: number | null;
}

export interface Verdict {
  /** Another target is tried. */
  readonly triesNext: boolean;
  /** A retry of this target may succeed. */
  readonly isRecoverable: boolean;
  /** What the circuit breaker records: a failure, a refusal of this deployment, or nothing. */
  readonly circuitEffect: 'failure' | 'refusal' | 'nothing';
}

/** The caller's mistake, which every target would refuse, or a failure that must not be retried. */
const MISTAKE: Verdict = { triesNext: false, isRecoverable: false, circuitEffect: 'nothing' };
/** Another model may accept the request. */
const UNSUITABLE: Verdict = { triesNext: true, isRecoverable: false, circuitEffect: 'nothing' };
/** The deployment's key, balance or model was refused. Waiting does not help. */
const REFUSED: Verdict = { triesNext: true, isRecoverable: false, circuitEffect: 'refusal' };
const FAILED: Verdict = { triesNext: true, isRecoverable: true, circuitEffect: 'failure' };
/** The rate limit of the caller's own credential, which does not concern other callers. */
const LIMITED: Verdict = { triesNext: true, isRecoverable: true, circuitEffect: 'nothing' };
/** Timed out. The target is not retried, because a retry would take as long again. */
export const TIMED_OUT: Verdict = { triesNext: true, isRecoverable: false, circuitEffect: 'failure' };

/** Whether a timeout of Weir's ended an attempt, after which the upstream may go on. */
export function isTimeout(reason: FailureReason): boolean {
  return reason === 'idle' || reason === 'slow';
}

/** Weir's own error codes that decide without any other condition. */
const VERDICT_BY_CODE: ReadonlyMap<string, Verdict> = new Map([
  ['upstream_credential', REFUSED],
  ['upstream_balance', REFUSED],
  ['upstream_refused', UNSUITABLE],
  ['upstream_event_too_large', TIMED_OUT],
  // Weir itself is out of memory: another target would not help.
  ['overloaded', MISTAKE],
  ['internal_error', MISTAKE],
]);

/** Statuses that concern the credential and what it may access. Whether the caller's or the deployment's was sent decides the verdict. */
const CREDENTIAL_STATUSES = [401, 402, 403, 404];

/** Statuses that concern the request. The message decides whether another model may accept it. */
const REQUEST_STATUSES = [400, 413, 422];

/**
 * @param target the target that failed
 * @param callerPays the credential is the caller's own (`AUTH=passthrough`), so refusals of it concern the caller only
 */
export function judge(failure: Failure, { aliasTarget }: Target, callerPays: boolean): Verdict {
  const { error } = failure;
  if (failure.isMade || failure.reason === 'over_budget') return MISTAKE;
  if (failure.reason === 'unsent') return UNSUITABLE;
  if (isTimeout(failure.reason)) return TIMED_OUT;
  const byCode = VERDICT_BY_CODE.get(error.code);
  if (byCode !== undefined) return byCode;
  const kind = error.refusal?.kind ?? null;
  if (kind === 'missing_state' && error.status < 500) return MISTAKE;
  if (CREDENTIAL_STATUSES.includes(error.status)) {
    if (callerPays) return MISTAKE;
    // A file, a thread or an id that this request names may be missing, which says nothing about the target.
    return error.status === 404 && kind !== 'missing_model' ? UNSUITABLE : REFUSED;
  }
  if (REQUEST_STATUSES.includes(error.status)) {
    if (kind === 'missing_model') return callerPays ? MISTAKE : REFUSED;
    return kind !== null && aliasTarget.on.includes(kind) ? UNSUITABLE : MISTAKE;
  }
  if (error.status === 429) return callerPays ? LIMITED : FAILED;
  return error.status >= 500 ? FAILED : MISTAKE;
}

/** The wait that a response's headers state, in ms, or null: `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function readRetryAfter(headers: Headers, now: number): number | null {
  const ms = readNumber(headers.get('retry-after-ms'));
  if (ms !== null) return ms;
  const text = headers.get('retry-after');
  const seconds = readNumber(text);
  if (seconds !== null) return seconds * 1000;
  const date = text !== null && TIME_OF_DAY.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

/** Every HTTP date contains one. Without this check `Date.parse` reads `-5` and `soon 5` as days in 2001. */
const TIME_OF_DAY = /\d{2}:\d{2}:\d{2}/;

function readNumber(text: string | null): number | null {
  return text !== null && /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : null;
}
