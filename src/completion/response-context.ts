/** What streamed and non-streaming responses share: the options of readers and writers, and the response's headers. */
import { deadlineExceeded } from '../canonical/upstream-error.ts';
import { headerValue, type Refused, refused } from '../http/respond.ts';
import { costOfAttempt } from '../metering/request-meter.ts';
import type { PassthroughOptions, WriterOptions } from '../protocols/shared/client-protocol.ts';
import { type OwnNameRow, ROUTE_SHAPES } from '../providers/provider.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';
import { wholeAmount } from '../shared/money.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { EventReaderOptions } from '../stream/event-reader.ts';
import type { ChunkContext, OwnName } from '../stream/types.ts';
import { pickResponseHeaders } from '../upstream/fetch.ts';
import {
  type Attempt,
  type AttemptRunner,
  type Delivery,
  httpErrorOf,
  stopped,
  upstreamErrorContext,
} from './attempt-runner.ts';
import { attemptsHeader } from './attempt-texts.ts';
import type { CompletionRequest } from './prepare.ts';

/**
 * Runs the attempts of a request whose response is not a stream, at most until its deadline.
 * @returns what the last attempt delivered, or the error, of which the request is settled
 */
export async function runToDeadline<Value>(
  runner: AttemptRunner,
  delivery: Delivery<Value>,
): Promise<Result<Value, Refused>> {
  const { context, client } = runner.request;
  const { deadline, settings } = context;
  deadline.watch(() => runner.stop());
  const outcome = await runner.run(delivery);
  deadline.stop();
  if (outcome.kind === 'done' && outcome.value !== null) return ok(outcome.value);
  const failed = outcome.kind === 'failed' ? outcome : stopped();
  const { reason } = failed;
  const error = httpErrorOf(failed);
  const end = deadline.isOver
    ? {
        kind: 'timed_out' as const,
        error: deadlineExceeded(
          upstreamErrorContext(runner.request, runner.traits.target),
          settings.timers.deadlineMs,
        ),
      }
    : { kind: reason === 'body' || reason === 'stopped' ? ('failed' as const) : ('refused' as const), error };
  runner.settle(end);
  return failure(refused(client, end.error, responseHeaders(runner)));
}

/** How an attempt's response is read. */
export function eventReaderOptions(request: CompletionRequest, attempt: Attempt): EventReaderOptions {
  const { context, route, policies } = request;
  const { target, choices, passthrough, toolNames, toolKeys, endpoint, forcedTools, documents } =
    attempt.traits;
  const { provider, model } = target;
  const { clock, random } = context.ports;
  return {
    protocol: passthrough?.protocol ?? endpoint.protocol,
    quirks: {
      ...provider.quirks,
      ...(forcedTools === undefined ? {} : { forcedTools }),
      ...(documents === undefined ? {} : { documents }),
    },
    vendorTokens: provider.vendorTokens ?? (() => null),
    policies,
    maxEventBytes: context.settings.maxEventBytes,
    context: {
      shape: ROUTE_SHAPES[route],
      upstream: attempt.upstream,
      provider: provider.id,
      model,
      reasoning: policies.reasoning,
      usageAt: usageAt(request, attempt.traits),
      choices,
      ownNames: ownNames(request, provider.ownNames),
      now: () => Math.floor(clock.now() / 1000),
      random,
      meter: attempt.meter.accumulator,
      ...(toolNames === undefined ? {} : { toolNames }),
      ...(toolKeys === undefined ? {} : { toolKeys }),
      ...(request.wantsCost ? { cost: () => costInDollars(request, attempt) } : {}),
    },
  };
}

/**
 * A non-streaming response always has the usage. In a stream, the client and the policy decide. What Weir requested for its own records
 * is no answer to the client.
 */
function usageAt(
  { policies, isStreamed, wantsUsage, headers }: CompletionRequest,
  { target, endpoint: { request } }: Attempt['traits'],
): ChunkContext['usageAt'] {
  if (!isStreamed || wantsUsage || policies.usageChunk === 'always') return 'end';
  if (policies.usageChunk !== 'finish') return 'nowhere';
  const isRequested = request.kind === 'chat' && request.rules.streamUsage === 'on_request';
  if (!(target.provider.quirks?.passesLateUsage ?? !isRequested)) return 'finish';
  return STRICT_READERS.test(userAgentOf(headers)) ? 'wait' : 'wait_or_end';
}

/** Clients that read `choices[0]` of every chunk, by their `user-agent`: @ai-sdk/mistral 3 and 4 (run on 2026-11-21). */
const STRICT_READERS = /\bai-sdk\/mistral\b/;

/** The names that this client reads. */
function ownNames(
  { client, headers }: CompletionRequest,
  rows: readonly OwnNameRow[] = [],
): readonly OwnName[] {
  if (client.id !== 'chat' || rows.length === 0) return [];
  const userAgent = userAgentOf(headers);
  const matchingRows = rows.filter(({ readers }) => readers.some((reader) => userAgent.includes(reader)));
  return matchingRows.map(({ name }) => name);
}

/** The names by which the client's software calls itself. */
function userAgentOf(headers: Headers): string {
  return (headers.get('user-agent') ?? '').slice(0, MAX_NAME_CHARS);
}

/** Null if the cost is unknown or in another currency, because the field has no currency. */
function costInDollars({ context }: CompletionRequest, { meter }: Attempt): number | null {
  const { usage } = meter.accumulator.countBilled();
  const cost = costOfAttempt(meter, usage, context.prices.table, context.ports.clock.now());
  return cost?.currency === 'USD' ? wholeAmount(cost.nano) : null;
}

/** What a client's writer needs of the request. */
export function writerOptions({
  context,
  policies,
  promptTokens,
  requestedModel,
}: CompletionRequest): WriterOptions {
  const { settings, requestId, ports } = context;
  return {
    now: () => Math.floor(ports.clock.now() / 1000),
    errorFrames: policies.errorFrames,
    maxEventBytes: settings.maxEventBytes,
    requestId,
    promptTokens,
    model: requestedModel,
  };
}

/** What a writer of passthrough needs of the request and of its attempt. */
export function passthroughOptions(
  request: CompletionRequest,
  { traits }: Attempt,
  mayEnd = false,
): PassthroughOptions {
  const { reasoning } = request.policies;
  return { ...writerOptions(request), provider: traits.target.provider.id, reasoning, mayEnd };
}

/**
 * The response's headers: the target, allowed headers of the upstream, the limits of the key, and the attempts.
 * @param isDecided whether the current target is final. A heartbeat may send the headers before; they then name no target.
 */
export function responseHeaders(
  { request, meter, admission, cacheReport, traits, upstreamHeaders }: AttemptRunner,
  isDecided = true,
): Record<string, string> {
  const { alias, client } = request;
  const { target, dropped, changed, api } = traits;
  const passed = (traits.passthrough && client.passthrough?.responseHeaders) ?? [];
  const headers = isDecided ? pickResponseHeaders(upstreamHeaders, passed) : {};
  // The limits of the caller's key replace those that the deployment has at the provider.
  Object.assign(headers, admission?.headers);
  if (alias !== null) headers['x-weir-alias'] = headerValue(alias);
  if (cacheReport !== null) headers['x-weir-cache'] = cacheReport;
  if (!isDecided) return headers;
  headers['x-weir-provider'] = target.provider.id;
  headers['x-weir-model'] = headerValue(target.model);
  if (api === 'responses') headers['x-weir-api'] = api;
  setNames(headers, 'x-weir-dropped', dropped);
  setNames(headers, 'x-weir-changed', changed);
  if (meter.hasSeveral) headers['x-weir-attempts'] = attemptsHeader(meter.attempts);
  return headers;
}

const MAX_NAMES_CHARS = 512;

/** Names of fields, truncated at {@link MAX_NAMES_CHARS}. */
function setNames(headers: Record<string, string>, header: string, names: readonly string[]): void {
  if (names.length === 0) return;
  const text = headerValue(names.join(', ')).replaceAll('%20', ' ');
  headers[header] = text.slice(0, MAX_NAMES_CHARS);
}
