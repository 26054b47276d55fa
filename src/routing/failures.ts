/** What the failure of an attempt means: whether the next target is asked, this one again, and what its circuit learns (R4, R6, R7). */
import type { ApiError } from '../canonical/error.ts';
import { type RefusalKind, refusalKind } from '../providers/refusals.ts';
import type { Target } from './targets.ts';

/** Why an attempt gave no output. */
export interface Failure {
  readonly error: ApiError;
  /** Its provider does not take the request, which was not sent. */
  readonly isUnsent: boolean;
  /** It took longer than it had. */
  readonly isTimeout: boolean;
  /** No other attempt follows: its upstream has made an answer and bills it, or the key's budget has no room for another. */
  readonly isFinal: boolean;
  /** For how long the upstream does not want to be asked again; null: it did not say. */
  readonly retryAfterMs: number | null;
}

export interface Verdict {
  /** Another target is asked. */
  readonly triesNext: boolean;
  /** In a later pass it may succeed. */
  readonly isRecoverable: boolean;
  /** What it says of the target: that it failed, that it refuses this deployment, or nothing. */
  readonly circuitEffect: 'failure' | 'refusal' | 'nothing';
}

/** The caller's own mistake, which is the same everywhere, or a failure that must not be tried again. */
const MISTAKE: Verdict = { triesNext: false, isRecoverable: false, circuitEffect: 'nothing' };
/** Another model may take what this one can't. */
const UNSUITABLE: Verdict = { triesNext: true, isRecoverable: false, circuitEffect: 'nothing' };
/** The deployment's key, balance or model: no waiting mends it. */
const REFUSED: Verdict = { triesNext: true, isRecoverable: false, circuitEffect: 'refusal' };
const FAILED: Verdict = { triesNext: true, isRecoverable: true, circuitEffect: 'failure' };
/** The rate limit of the caller's own key: it says nothing about the target to others. */
const LIMITED: Verdict = { triesNext: true, isRecoverable: true, circuitEffect: 'nothing' };
/** What has taken all of its time once is not given as much again. */
const LATE: Verdict = { triesNext: true, isRecoverable: false, circuitEffect: 'failure' };

/** Codes of Weir's own that decide alone. */
const BY_CODE: ReadonlyMap<string, Verdict> = new Map([
  ['upstream_credential', REFUSED],
  ['upstream_balance', REFUSED],
  ['upstream_refused', UNSUITABLE],
  ['upstream_event_too_large', LATE],
  // Weir's own memory: another upstream would find no more of it.
  ['overloaded', MISTAKE],
  ['internal_error', MISTAKE],
]);

/** Statuses that are about a credential and what it may reach: whose it is decides whose mistake that is. */
const ABOUT_CREDENTIAL = [401, 402, 403, 404];

/** Statuses of which the words tell whether another model might do. */
const ABOUT_REQUEST = [400, 413, 422];

/**
 * @param target who failed
 * @param callerPays the credential is the caller's own (AUTH=passthrough), and so are refusals of it
 */
export function judge(failure: Failure, { provider, aliasTarget }: Target, callerPays: boolean): Verdict {
  const { error } = failure;
  if (failure.isFinal) return MISTAKE;
  if (failure.isUnsent) return UNSUITABLE;
  if (failure.isTimeout) return LATE;
  const byCode = BY_CODE.get(error.code);
  if (byCode !== undefined) return byCode;
  const kind = refusalKind({ code: error.code, message: ownWords(error, provider) }, provider.refusals);
  if (kind === 'missing_state' && error.status < 500) return MISTAKE;
  if (ABOUT_CREDENTIAL.includes(error.status)) {
    if (callerPays) return MISTAKE;
    // A file, a thread or an id that one request names may be what is missing: that says nothing about the target.
    return error.status === 404 && kind !== 'missing_model' ? UNSUITABLE : REFUSED;
  }
  if (ABOUT_REQUEST.includes(error.status)) {
    if (kind === 'missing_model') return callerPays ? MISTAKE : REFUSED;
    return movesOnAt(aliasTarget.on, kind) ? UNSUITABLE : MISTAKE;
  }
  if (error.status === 429) return callerPays ? LIMITED : FAILED;
  return error.status >= 500 ? FAILED : MISTAKE;
}

/** The upstream's own message, without the name that it has in front for clients. */
function ownWords({ message }: ApiError, { name }: Target['provider']): string {
  return message.startsWith(`${name}: `) ? message.slice(`${name}: `.length) : message;
}

function movesOnAt(on: readonly RefusalKind[], kind: RefusalKind | null): boolean {
  return kind !== null && on.includes(kind);
}

/** The wait that an answer's headers ask for, in ms, or null: `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function readRetryAfter(headers: Headers, now: number): number | null {
  const ms = readNumber(headers.get('retry-after-ms'));
  if (ms !== null) return ms;
  const text = headers.get('retry-after');
  const seconds = readNumber(text);
  if (seconds !== null) return seconds * 1000;
  const date = text !== null && TIME_OF_DAY.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

/** Every form of date has one. Without it `Date.parse` takes `-5` and `soon 5` for days in 2001: over, and so no wait at all. */
const TIME_OF_DAY = /\d{2}:\d{2}:\d{2}/;

function readNumber(text: string | null): number | null {
  return text !== null && /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : null;
}
