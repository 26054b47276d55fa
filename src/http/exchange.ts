/** A completion request that may be sent on, and everything for which it can be refused before an upstream is asked. */
import { type Caller, identify, mayUse } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, writeJson } from '../canonical/json.ts';
import { type Policies, parseVendorEvents } from '../canonical/policies.ts';
import type { Upstream } from '../canonical/upstream-error.ts';
import { estimatePromptTokens } from '../metering/estimate.ts';
import type { Tally } from '../metering/tally.ts';
import { ROUTE_SHAPES, type Route } from '../providers/provider.ts';
import type { AnswerOptions } from '../stream/answer-reader.ts';
import { readCompletionRequest } from './completion-request.ts';
import type { RequestContext } from './context.ts';
import { findTarget, type Target } from './target.ts';

/** It lives as long as its answer streams, so it holds nothing of the prompt, which may be a thousand times its size. */
export interface Exchange {
  readonly context: RequestContext;
  readonly route: Route;
  readonly caller: Caller;
  readonly target: Target;
  readonly policies: Policies;
  readonly isStreamed: boolean;
  /** The client asked for a usage chunk (U2). */
  readonly asksUsage: boolean;
  /** Estimated (M3). */
  readonly promptTokens: number;
  readonly upstream: Upstream;
  /** The credential is the caller's own (AUTH=passthrough), and so are refusals of it. */
  readonly callerPays: boolean;
}

export type ExchangeResult =
  | {
      readonly kind: 'exchange';
      readonly exchange: Exchange;
      readonly upstreamUrl: string;
      /** The JSON text that the upstream gets. */
      readonly upstreamBody: string;
    }
  | { readonly kind: 'error'; readonly error: ApiError };

export async function openExchange(
  request: Request,
  route: Route,
  context: RequestContext,
): Promise<ExchangeResult> {
  const { settings, ports, arrivedAt } = context;
  const identified = await identify(settings.auth, request.headers, ports.store, new Date(arrivedAt));
  if (identified.kind === 'error') return identified;
  const policies = requestPolicies(request.headers, settings.policies);
  if (policies === null) {
    return refuse(
      'invalid_request',
      'x-weir-vendor-events must be strip, pass, or globs such as x_research.*',
    );
  }
  const read = await readCompletionRequest(request, route, settings.maxRequestBytes);
  if (read.kind === 'error') return read;
  const found = findTarget(settings, route, read.body);
  if (found.kind === 'error') return found;
  const { caller } = identified;
  const { target } = found;
  if (!mayUse(caller, target.address))
    return refuse('model_not_allowed', `This key may not use ${target.address}`);
  const { body } = read;
  const named = { ...body, [route === 'agents' ? 'agent_id' : 'model']: target.model };
  const upstreamBody = writeJson(target.endpoint.body(named));
  if (upstreamBody === undefined) return refuse('invalid_json', 'The body is nested too deeply');
  return {
    kind: 'exchange',
    upstreamUrl: target.baseUrl + target.endpoint.path(body),
    upstreamBody,
    exchange: {
      context,
      route,
      caller,
      target,
      policies,
      isStreamed: body.stream === true,
      asksUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
      promptTokens: estimatePromptTokens(body),
      upstream: { name: target.provider.name, secret: caller.credential ?? target.apiKey },
      callerPays: caller.credential !== null,
    },
  };
}

/** The deployment's policies, with this request's header for vendor events (V2); null where the header is invalid. */
function requestPolicies(headers: Headers, policies: Policies): Policies | null {
  const requested = headers.get('x-weir-vendor-events');
  if (requested === null) return policies;
  const vendorEvents = parseVendorEvents(requested);
  return vendorEvents === null ? null : { ...policies, vendorEvents };
}

function refuse(
  code: 'invalid_json' | 'invalid_request' | 'model_not_allowed',
  message: string,
): ExchangeResult {
  return { kind: 'error', error: apiError(code, message) };
}

/** How the upstream's answer is read. A plain answer always holds its usage; a stream, where the client or the policy asks (U2). */
export function answerOptions(exchange: Exchange, tally: Tally): AnswerOptions {
  const { context, route, target, policies, isStreamed, asksUsage, upstream } = exchange;
  const { clock, random } = context.ports;
  return {
    dialect: target.endpoint.dialect,
    quirks: target.provider.quirks,
    vendorTokens: target.provider.vendorTokens,
    policies,
    usageChunk: !isStreamed || asksUsage || policies.usageChunk === 'always',
    maxEventBytes: context.settings.maxEventBytes,
    context: {
      shape: ROUTE_SHAPES[route],
      upstream,
      provider: target.provider.id,
      model: target.model,
      reasoning: policies.reasoning,
      now: () => Math.floor(clock.now() / 1000),
      random,
      meter: tally,
    },
  };
}
