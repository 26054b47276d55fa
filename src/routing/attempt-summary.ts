/** Tells what was tried for a request: in a header, in the message of the last error, and in the record (R8). */
import type { ApiError } from '../canonical/error.ts';
import type { Attempt } from '../metering/record.ts';
import type { SkippedTarget } from './targets.ts';

/** The summary of attempts in a header or a message. */
export const MAX_ATTEMPTS_CHARS = 1024;

/** A target that was not asked, as one of the attempts. */
export function skippedAttempt({ target, reason }: SkippedTarget): Attempt {
  const { provider, model } = target;
  return { provider: provider.id, model, status: null, error_code: reason, ms: null };
}

/** The value of `x-weir-attempts`: `deepseek/deepseek-flash 503 412ms, mistral/mistral-small-latest 200 80ms`. */
export function attemptsHeader(attempts: readonly Attempt[]): string {
  return join(attempts.map((attempt) => [tell(attempt), ...time(attempt)].join(' ')));
}

/** The last error, which says how many attempts there were and how each ended; itself where it was the only one. */
export function lastError(error: ApiError, attempts: readonly Attempt[]): ApiError {
  if (attempts.length <= 1) return error;
  const asked = attempts.filter(({ ms }) => ms !== null).length;
  const times = asked === 1 ? 'once' : `${asked} times`;
  return { ...error, message: `${error.message} (asked ${times}: ${join(attempts.map(tell))})` };
}

/** How it ended: as the upstream's HTTP status tells, or by the error within a 200. */
function tell({ provider, model, status, error_code }: Attempt): string {
  const ending = error_code === null || (status !== null && status !== OK) ? (status ?? OK) : error_code;
  return `${printable(`${provider}/${model}`)} ${ending}`;
}

function time({ ms }: Attempt): string[] {
  return ms === null ? [] : [`${ms}ms`];
}

const OK = 200;

/** As many as fit. */
function join(texts: readonly string[]): string {
  let joined = '';
  for (const text of texts) {
    const next = joined === '' ? text : `${joined}, ${text}`;
    if (next.length > MAX_ATTEMPTS_CHARS) return `${joined}, …`.replace('…', '...');
    joined = next;
  }
  return joined;
}

/** A name in a header holds printable ASCII alone, and no comma, which stands between them. */
function printable(name: string): string {
  return name.toWellFormed().replace(/[^\x21-\x2b\x2d-\x7e]/gu, encodeURIComponent);
}
