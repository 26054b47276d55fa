/** A span for each request and one below it for each target that is asked, where the runtime has tracing; else nothing (W4). */

import type { AttemptFacts } from '../metering/attempt-meter.ts';
import type { Attempt, UsageRecord } from '../metering/record.ts';
import type { Route } from '../providers/provider.ts';
import { wholeAmount } from '../shared/money.ts';
import * as names from './attributes.ts';

/** An undefined one is not there. */
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** What Weir uses of the runtime's spans. */
export interface Span {
  /** Whether anybody gets to see it. */
  readonly isTraced: boolean;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { readonly code: 'error'; readonly message?: string }): unknown;
  end(): void;
}

/** What Weir uses of the runtime's tracing. */
export interface Tracing {
  /** The span is open until its `end`; those that begin in the callback, or later in what it began, stand below it. */
  startActiveSpan<T>(name: string, callback: (span: Span) => T): T;
}

export interface SpannedRequest {
  readonly route: Route;
  /** The model or agent as the caller named it. */
  readonly asked: string;
  readonly isStreamed: boolean;
}

/** @param run gets null where nobody sees a span */
export function inRequestSpan<T>(
  tracing: Tracing | null,
  { route, asked, isStreamed }: SpannedRequest,
  run: (span: Span | null) => T,
): T {
  const operation = names.operationOf(route);
  return inSpan(tracing, `${operation} ${asked}`, run, () => ({
    [names.OPERATION]: operation,
    [names.REQUEST_MODEL]: asked,
    // It is told where it is true alone, as the conventions want it.
    [names.REQUEST_STREAM]: isStreamed || undefined,
  }));
}

/**
 * Tokens and cost stand here alone, so that a sum over all spans counts them once.
 * @param served who answered, or was asked last
 */
export function endRequestSpan(span: Span, record: UsageRecord, served: AttemptFacts): void {
  span.setAttributes({
    [names.PROVIDER]: names.providerName(served.priceIds),
    [names.RESPONSE_MODEL]: record.model,
    [names.FINISH_REASONS]: record.finish_reason ?? undefined,
    [names.FIRST_CHUNK]: record.first_token_ms === null ? undefined : record.first_token_ms / 1000,
    [names.INPUT_TOKENS]: record.prompt_tokens,
    [names.CACHED_TOKENS]: record.cached_tokens ?? undefined,
    [names.OUTPUT_TOKENS]: record.completion_tokens,
    [names.REASONING_TOKENS]: record.reasoning_tokens ?? undefined,
    [names.ERROR_TYPE]: record.error_code ?? undefined,
    [names.REQUEST_ID]: record.request_id,
    [names.KEY_ID]: record.key_id,
    [names.STATUS]: record.status,
    [names.ATTEMPTS]: record.attempts.length,
    [names.ESTIMATED]: record.estimated,
    [names.COST]: record.cost_nanos === null ? undefined : wholeAmount(record.cost_nanos),
    [names.CURRENCY]: record.currency ?? undefined,
  });
  end(span, record.error_code);
}

/** @param run gets null where nobody sees a span */
export function inAttemptSpan<T>(
  tracing: Tracing | null,
  route: Route,
  { priceIds, model }: AttemptFacts,
  run: (span: Span | null) => T,
): T {
  const operation = names.operationOf(route);
  return inSpan(tracing, `${operation} ${model}`, run, () => ({
    [names.OPERATION]: operation,
    [names.PROVIDER]: names.providerName(priceIds),
    [names.REQUEST_MODEL]: model,
  }));
}

export function endAttemptSpan(span: Span, { status, error_code }: Attempt): void {
  span.setAttributes({
    [names.HTTP_STATUS]: status ?? undefined,
    [names.ERROR_TYPE]: error_code ?? undefined,
  });
  end(span, error_code);
}

function inSpan<T>(
  tracing: Tracing | null,
  name: string,
  run: (span: Span | null) => T,
  attributes: () => Attributes,
): T {
  if (tracing === null) return run(null);
  return tracing.startActiveSpan(name, (span) => {
    if (!span.isTraced) return run(null);
    span.setAttributes(attributes());
    return run(span);
  });
}

function end(span: Span, errorCode: string | null): void {
  if (errorCode !== null) span.setStatus({ code: 'error', message: errorCode });
  span.end();
}
