/** What clients read of a request's attempts: the header with all of them, and what is added to the message of the last error. */
import { mayUse } from '../auth/caller.ts';
import type { ApiError } from '../canonical/error.ts';
import { pricedModels } from '../metering/pricing/cost.ts';
import type { RecordedAttempt } from '../metering/record.ts';
import type { SkippedTarget, Target } from '../routing/targets.ts';
import { didYouMean } from '../shared/nearest.ts';
import type { CompletionRequest } from './prepare.ts';

/** A skipped target in the list of attempts. */
export function skippedAttempt({ target, reason }: SkippedTarget): RecordedAttempt {
  const { provider, model } = target;
  return { provider: provider.id, model, status: null, error_code: reason, ms: null };
}

/** The value of `x-weir-attempts`: `deepseek/deepseek-flash 503 412ms, mistral/mistral-small-latest 200 80ms`. */
export function attemptsHeader(attempts: readonly RecordedAttempt[]): string {
  return joinBounded(
    attempts.map((attempt) => {
      const summary = summarize(attempt);
      return attempt.ms === null ? summary : `${summary} ${attempt.ms}ms`;
    }),
  );
}

/** Adds a summary of all attempts to the message of the last error, if there were several. */
export function withAttempts(error: ApiError, attempts: readonly RecordedAttempt[]): ApiError {
  if (attempts.length <= 1) return error;
  const called = attempts.filter(({ ms }) => ms !== null).length;
  const times = called === 1 ? 'once' : `${called} times`;
  return { ...error, message: `${error.message} (tried ${times}: ${joinBounded(attempts.map(summarize))})` };
}

/** The target with the upstream's HTTP status, or with the error's code if that came within a 200. */
function summarize({ provider, model, status, error_code }: RecordedAttempt): string {
  const result = error_code === null || (status !== null && status !== 200) ? (status ?? 200) : error_code;
  return `${encodeName(`${provider}/${model}`)} ${result}`;
}

/** The bound on the summary of attempts in a header or a message. */
export const MAX_ATTEMPTS_CHARS = 1024;

function joinBounded(texts: readonly string[]): string {
  let joined = '';
  for (const text of texts) {
    const next = joined === '' ? text : `${joined}, ${text}`;
    if (next.length > MAX_ATTEMPTS_CHARS) return `${joined}, ...`;
    joined = next;
  }
  return joined;
}

/** A header may contain only printable ASCII. Commas separate the attempts. */
function encodeName(name: string): string {
  return name.toWellFormed().replace(/[^\x21-\x2b\x2d-\x7e]/gu, encodeURIComponent);
}

/** Adds to a refusal with 404 the nearest name of a model among those that the provider listed recently or that have a price. */
export function withNearestModel(
  error: ApiError,
  refusal: ApiError,
  target: Target,
  { caller, callerPays, context }: CompletionRequest,
): ApiError {
  if (refusal.status !== 404) return error;
  const { priceIds, provider, model } = target;
  // Lists are fetched with the deployment's credential.
  const listed = callerPays ? [] : context.upstreams.modelLists.cachedNames(provider.id);
  const names = [...listed, ...pricedModels(context.prices.table, priceIds)];
  const usable = names.filter((name) => name !== model && mayUse(caller, `${provider.id}/${name}`));
  const hint = didYouMean(model, usable);
  return hint === '' ? error : { ...error, message: error.message.replace(/\.$/, '') + hint };
}
