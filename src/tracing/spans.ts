/** OpenTelemetry spans: one for each request and one below it for each attempt, if the runtime supports tracing. */

import type { RecordedAttempt, UsageRecord } from '../metering/record.ts';
import type { AttemptTraits } from '../metering/request-meter.ts';
import type { Route } from '../providers/provider.ts';
import { wholeAmount } from '../shared/money.ts';

/** Attributes that are undefined are not set. */
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** The part of the runtime's spans that is used. */
export interface Span {
  /** Whether the span is recorded. */
  readonly isTraced: boolean;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { readonly code: 'error'; readonly message?: string }): unknown;
  end(): void;
}

/** The part of the runtime's tracing that is used. */
export interface Tracing {
  /** The span stays open until its `end`. Spans that begin in the callback, or in work that it started, are its children. */
  startActiveSpan<T>(name: string, callback: (span: Span) => T): T;
}

interface SpannedRequest {
  readonly route: Route;
  /** The requested model or agent. */
  readonly requestedModel: string;
  readonly isStreamed: boolean;
}

/** The request's span as the core sees it: `RequestSpan` of `completion/admission.ts`. */
interface RecordedSpan {
  readonly inAttemptSpan: <Value>(
    attempt: AttemptTraits,
    run: (end: ((attempt: RecordedAttempt) => void) | null) => Value,
  ) => Value;
  readonly end: (record: UsageRecord, served: AttemptTraits) => void;
}

type InRequestSpan = <Value>(request: SpannedRequest, run: (span: RecordedSpan | null) => Value) => Value;

/** Implements `RequestTracing` of `completion/admission.ts`. `run` gets null if no span is recorded. */
export function requestTracing(tracing: Tracing | null): { readonly inRequestSpan: InRequestSpan } {
  if (tracing === null) return { inRequestSpan: (_, run) => run(null) };
  return {
    inRequestSpan: (request, run) =>
      inRequestSpan(tracing, request, (span) => {
        if (span === null) return run(null);
        return run({
          inAttemptSpan: (attempt, runAttempt) =>
            inAttemptSpan(tracing, request.route, attempt, (attemptSpan) =>
              runAttempt(attemptSpan && ((ended) => endAttemptSpan(attemptSpan, ended))),
            ),
          end: (record, served) => endRequestSpan(span, record, served),
        });
      }),
  };
}

/** @param run gets null if no span is recorded */
function inRequestSpan<T>(
  tracing: Tracing,
  { route, requestedModel, isStreamed }: SpannedRequest,
  run: (span: Span | null) => T,
): T {
  const operation = OPERATIONS[route];
  return inSpan(tracing, `${operation} ${requestedModel}`, run, () => ({
    'gen_ai.operation.name': operation,
    'gen_ai.request.model': requestedModel,
    // The conventions set it only if it is true.
    'gen_ai.request.stream': isStreamed || undefined,
  }));
}

/**
 * Sets tokens and cost on the request's span only, so that a sum over all spans counts them once.
 * @param served the attempt that served the request or was the last one
 */
function endRequestSpan(span: Span, record: UsageRecord, served: AttemptTraits): void {
  span.setAttributes({
    'gen_ai.provider.name': providerName(served.target.priceIds),
    'gen_ai.response.model': record.model,
    'gen_ai.response.finish_reasons': record.finish_reason ?? undefined,
    // In seconds.
    'gen_ai.response.time_to_first_chunk':
      record.first_token_ms === null ? undefined : record.first_token_ms / 1000,
    'gen_ai.usage.input_tokens': record.prompt_tokens,
    'gen_ai.usage.cache_read.input_tokens': record.cached_tokens ?? undefined,
    'gen_ai.usage.output_tokens': record.completion_tokens,
    'gen_ai.usage.reasoning.output_tokens': record.reasoning_tokens ?? undefined,
    'error.type': record.error_code ?? undefined,
    // `user.id` and `session.id` are names of the general conventions, in development:
    // https://opentelemetry.io/docs/specs/semconv/registry/attributes/user/ and …/session/, read 2026-11-22.
    'user.id': record.user ?? undefined,
    'session.id': record.session ?? undefined,
    ...Object.fromEntries(Object.entries(record.tags).map(([name, value]) => [`weir.tag.${name}`, value])),
    'weir.request_id': record.request_id,
    'weir.key_id': record.key_id,
    'weir.app': record.app ?? undefined,
    'weir.status': record.status,
    'weir.attempts': record.attempts.length,
    'weir.estimated': record.estimated,
    'weir.cost': record.cost_nanos === null ? undefined : wholeAmount(record.cost_nanos),
    'weir.currency': record.currency ?? undefined,
  });
  end(span, record.error_code);
}

/** @param run gets null if no span is recorded */
function inAttemptSpan<T>(
  tracing: Tracing,
  route: Route,
  { target: { priceIds, model } }: AttemptTraits,
  run: (span: Span | null) => T,
): T {
  const operation = OPERATIONS[route];
  return inSpan(tracing, `${operation} ${model}`, run, () => ({
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': providerName(priceIds),
    'gen_ai.request.model': model,
  }));
}

function endAttemptSpan(span: Span, { status, error_code }: RecordedAttempt): void {
  span.setAttributes({
    'http.response.status_code': status ?? undefined,
    'error.type': error_code ?? undefined,
  });
  end(span, error_code);
}

function inSpan<T>(
  tracing: Tracing,
  name: string,
  run: (span: Span | null) => T,
  attributes: () => Attributes,
): T {
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

// Names of attributes follow OpenTelemetry's conventions for generative AI, which are in development:
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md, schema gen-ai/1.42.0, read
// 2026-11-22. `http.*` and `error.type` are stable: https://opentelemetry.io/docs/specs/semconv/http/http-spans/, read 2026-11-22. The
// conventions have no names for cost and gateways; `weir.*` are Weir's own.

/** Values of `gen_ai.operation.name`. */
const OPERATIONS: Readonly<Record<Route, string>> = {
  chat: 'chat',
  completions: 'text_completion',
  fim: 'text_completion',
  agents: 'invoke_agent',
  embeddings: 'embeddings',
};

/** Values of `gen_ai.provider.name` that differ from Weir's ids. */
const PROVIDER_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    codestral: 'mistral_ai',
    gemini: 'gcp.gemini',
    mistral: 'mistral_ai',
    moonshot: 'moonshot_ai',
    xai: 'x_ai',
  }),
);

/** @param ids the provider's own id, and the ids of the known provider that its host belongs to */
function providerName(ids: readonly string[]): string {
  const listedProvider = ids.find((id) => PROVIDER_NAMES.has(id)) ?? '';
  return PROVIDER_NAMES.get(listedProvider) ?? ids[0] ?? '';
}
