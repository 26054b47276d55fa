/** Judges the failure of an attempt: whether another target is tried, whether a retry may succeed, and what the circuit breaker records. */
import { type ApiError, errorRow, type FailureReason } from '../canonical/error.ts';
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

const VERDICTS = {
  /** The caller's mistake, which every target would refuse, or a failure that must not be retried. */
  mistake: { triesNext: false, isRecoverable: false, circuitEffect: 'nothing' },
  /** Another model may accept the request. */
  unsuitable: { triesNext: true, isRecoverable: false, circuitEffect: 'nothing' },
  /** The deployment's key, balance or model was refused. Waiting does not help. */
  refused: { triesNext: true, isRecoverable: false, circuitEffect: 'refusal' },
  failed: { triesNext: true, isRecoverable: true, circuitEffect: 'failure' },
  /** The rate limit of the caller's own credential, which does not concern other callers. */
  limited: { triesNext: true, isRecoverable: true, circuitEffect: 'nothing' },
  /** The target is not retried, because a retry would take as long again. */
  timed_out: { triesNext: true, isRecoverable: false, circuitEffect: 'failure' },
} as const satisfies Record<string, Verdict>;

export const TIMED_OUT: Verdict = VERDICTS.timed_out;

/** Whether a timeout of Weir's ended an attempt, after which the upstream may go on. */
export function isTimeout(reason: FailureReason): boolean {
  return reason === 'idle' || reason === 'slow';
}

/**
 * Statuses that concern the account and what it may access, such as a model. Whether the caller's or the deployment's
 * was sent decides the verdict.
 */
const ACCESS_STATUSES = [401, 402, 403, 404];

/** Statuses that concern the request. The message decides whether another model may accept it. */
const REQUEST_STATUSES = [400, 413, 422];

/**
 * @param target the target that failed
 * @param callerPays the credential is the caller's own (`AUTH=passthrough`), so refusals of it concern the caller only
 */
export function judge(failure: Failure, { aliasTarget }: Target, callerPays: boolean): Verdict {
  const { error } = failure;
  if (failure.isMade || failure.reason === 'over_budget') return VERDICTS.mistake;
  if (failure.reason === 'unsent') return VERDICTS.unsuitable;
  if (isTimeout(failure.reason)) return TIMED_OUT;
  const byCode = errorRow(error)?.verdict;
  if (byCode !== undefined) return VERDICTS[byCode];
  const kind = error.refusal?.kind ?? null;
  if (kind === 'missing_state' && error.status < 500) return VERDICTS.mistake;
  if (ACCESS_STATUSES.includes(error.status)) {
    if (callerPays) return VERDICTS.mistake;
    // A file, a thread or an id that this request names may be missing, which says nothing about the target.
    return error.status === 404 && kind !== 'missing_model' ? VERDICTS.unsuitable : VERDICTS.refused;
  }
  if (REQUEST_STATUSES.includes(error.status)) {
    if (kind === 'missing_model') return callerPays ? VERDICTS.mistake : VERDICTS.refused;
    return kind !== null && aliasTarget.on.includes(kind) ? VERDICTS.unsuitable : VERDICTS.mistake;
  }
  if (error.status === 429) return callerPays ? VERDICTS.limited : VERDICTS.failed;
  return error.status >= 500 ? VERDICTS.failed : VERDICTS.mistake;
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
