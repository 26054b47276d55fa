/** What streamed and non-streaming responses share: the options of readers and writers, and the response's headers. */
import { deadlineExceeded } from '../canonical/upstream-error.ts';
import { clientError, headerValue } from '../http/respond.ts';
import { costOfRequest } from '../metering/pricing/cost.ts';
import type { RequestEnd, RequestMeter } from '../metering/request-meter.ts';
import type { PassthroughOptions, WriterOptions } from '../protocols/shared/client-protocol.ts';
import { type OwnNameRow, ROUTE_SHAPES } from '../providers/provider.ts';
import { wholeAmount } from '../shared/money.ts';
import type { EventReaderOptions } from '../stream/event-reader.ts';
import type { ChunkContext, OwnName, ProtocolQuirks } from '../stream/types.ts';
import { pickResponseHeaders } from '../upstream/fetch.ts';
import {
  type Attempt,
  type AttemptRunner,
  attemptsHeader,
  type Delivery,
  stopped,
} from './attempt-runner.ts';
import type { PreparedCompletion } from './prepare.ts';

export interface ResponseContext {
  readonly prepared: PreparedCompletion;
  readonly meter: RequestMeter;
  readonly runner: AttemptRunner;
  /** Writes the usage record and stops the runner. Only the first call counts. */
  readonly settle: (end: RequestEnd) => void;
}

/**
 * Runs the attempts of a request whose response is not a stream, at most until its deadline.
 * @returns what the last attempt delivered, or the response with the error, of which the request is settled
 */
export async function runToDeadline<Value>(
  response: ResponseContext,
  delivery: Delivery<Value>,
): Promise<Value | Response> {
  const { prepared, runner, settle } = response;
  const { deadline, settings } = prepared.context;
  deadline.watch(() => runner.stop());
  const outcome = await runner.run(delivery);
  deadline.stop();
  if (outcome.kind === 'done' && outcome.value !== null) return outcome.value;
  const { error, reason } = outcome.kind === 'failed' ? outcome : stopped();
  const end = deadline.isOver
    ? {
        kind: 'timed_out' as const,
        error: deadlineExceeded(runner.current.upstream, settings.timers.deadlineMs),
      }
    : { kind: reason === 'body' || reason === 'stopped' ? ('failed' as const) : ('refused' as const), error };
  settle(end);
  return clientError(prepared.client, prepared.context, end.error, responseHeaders(response));
}

/** How an attempt's response is read. */
export function eventReaderOptions(prepared: PreparedCompletion, attempt: Attempt): EventReaderOptions {
  const { context, route, policies } = prepared;
  const { target, choices, passthrough, toolNames, endpoint } = attempt.facts;
  const { provider, model } = target;
  const { clock, random } = context.ports;
  return {
    protocol: passthrough?.protocol ?? endpoint.protocol,
    quirks: provider.quirks ?? {},
    vendorTokens: provider.vendorTokens ?? (() => null),
    policies,
    maxEventBytes: context.settings.maxEventBytes,
    context: {
      shape: ROUTE_SHAPES[route],
      upstream: attempt.upstream,
      provider: provider.id,
      model,
      reasoning: policies.reasoning,
      usageAt: usageAt(prepared, provider.quirks),
      choices,
      ownNames: ownNames(prepared, provider.ownNames),
      ...(toolNames === undefined ? {} : { toolNames }),
      now: () => Math.floor(clock.now() / 1000),
      random,
      meter: attempt.meter.accumulator,
      ...(prepared.wantsCost ? { cost: () => costInDollars(prepared, attempt) } : {}),
    },
  };
}

/** A non-streaming response always has the usage. In a stream, the client and the policy decide. */
function usageAt(
  { policies, isStreamed, wantsUsage, userAgent }: PreparedCompletion,
  { reportsUsageUnasked = false }: ProtocolQuirks = {},
): ChunkContext['usageAt'] {
  if (!isStreamed || wantsUsage || policies.usageChunk === 'always') return 'end';
  if (policies.usageChunk !== 'finish') return 'nowhere';
  return reportsUsageUnasked && !STRICT_READERS.test(userAgent) ? 'finish_or_end' : 'finish';
}

/** Clients that read `choices[0]` of every chunk, by their `user-agent`: @ai-sdk/mistral 3 and 4 (run on 2026-11-21). */
const STRICT_READERS = /\bai-sdk\/mistral\b/;

/** The names that this client reads. */
function ownNames(
  { client, userAgent }: PreparedCompletion,
  rows: readonly OwnNameRow[] = [],
): readonly OwnName[] {
  if (client.id !== 'chat') return [];
  const read = rows.filter(({ readers }) => readers.some((reader) => userAgent.includes(reader)));
  return read.map(({ name }) => name);
}

/** Null if the cost is unknown or in another currency, because the field has no currency. */
function costInDollars({ context }: PreparedCompletion, { facts, meter }: Attempt): number | null {
  const cost = costOfRequest(context.prices.table, {
    priceIds: facts.target.priceIds,
    model: facts.target.model,
    usage: meter.accumulator.countBilled().usage,
    upstreamCost: meter.accumulator.upstreamCost,
    endMs: context.ports.clock.now(),
  });
  return cost?.currency === 'USD' ? wholeAmount(cost.nano) : null;
}

/** What a client's writer needs of the request. */
export function writerOptions({
  context,
  policies,
  promptTokens,
  requestedModel,
}: PreparedCompletion): WriterOptions {
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
export function passthroughOptions(prepared: PreparedCompletion, { facts }: Attempt): PassthroughOptions {
  const { reasoning } = prepared.policies;
  return { ...writerOptions(prepared), provider: facts.target.provider.id, reasoning };
}

/**
 * The response's headers: the target, allowed headers of the upstream, the limits of the key, and the attempts.
 * @param isDecided whether the current target is final. A heartbeat may send the headers before; they then name no target.
 */
export function responseHeaders(
  { prepared, meter, runner }: ResponseContext,
  isDecided = true,
): Record<string, string> {
  const { admission, alias } = prepared;
  const { facts, headers: upstreamHeaders } = runner.current;
  const { target, dropped, changed, api } = facts;
  const passed = (facts.passthrough && prepared.client.passthrough?.responseHeaders) ?? [];
  const headers = isDecided ? pickResponseHeaders(upstreamHeaders, passed) : {};
  // The limits of the caller's key replace those that the deployment has at the provider.
  Object.assign(headers, admission?.headers);
  if (alias !== null) headers['x-weir-alias'] = headerValue(alias);
  if (prepared.cacheReport !== null) headers['x-weir-cache'] = prepared.cacheReport;
  if (!isDecided) return headers;
  headers['x-weir-provider'] = target.provider.id;
  headers['x-weir-model'] = headerValue(target.model);
  if (api === 'responses') headers['x-weir-api'] = api;
  setNames(headers, 'x-weir-dropped', dropped);
  setNames(headers, 'x-weir-changed', changed);
  const { attempts } = meter;
  if (attempts.length > 1) headers['x-weir-attempts'] = attemptsHeader(attempts);
  return headers;
}

const MAX_NAMES_CHARS = 512;

/** Names of fields, truncated at {@link MAX_NAMES_CHARS}. */
function setNames(headers: Record<string, string>, header: string, names: readonly string[]): void {
  if (names.length === 0) return;
  const text = headerValue(names.join(', ')).replaceAll('%20', ' ');
  headers[header] = text.slice(0, MAX_NAMES_CHARS);
}
