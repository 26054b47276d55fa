/** A completion request that may be sent on, and everything for which it can be refused before an upstream is asked. */
import { type Caller, identify, mayUse } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, type JsonObject, writeJson } from '../canonical/json.ts';
import { type Policies, parseVendorEvents } from '../canonical/policies.ts';
import type { Upstream } from '../canonical/upstream-error.ts';
import type { Tally } from '../metering/tally.ts';
import { ROUTE_SHAPES, type Route } from '../providers/provider.ts';
import type { AnswerOptions } from '../stream/answer-reader.ts';
import { readCompletionRequest } from './completion-request.ts';
import type { RequestContext } from './context.ts';
import { findTarget, type Target } from './target.ts';

export interface Exchange {
  readonly context: RequestContext;
  readonly request: Request;
  readonly route: Route;
  readonly caller: Caller;
  readonly target: Target;
  readonly policies: Policies;
  /** The body as the client sent it. */
  readonly body: JsonObject;
  readonly upstreamUrl: string;
  /** The JSON text that the upstream gets. */
  readonly upstreamBody: string;
  readonly isStreamed: boolean;
  readonly upstream: Upstream;
  /** The credential is the caller's own (AUTH=passthrough), and so are refusals of it. */
  readonly callerPays: boolean;
}

export type ExchangeResult =
  | { readonly kind: 'exchange'; readonly exchange: Exchange }
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
  const named = { ...read.body, [route === 'agents' ? 'agent_id' : 'model']: target.model };
  const upstreamBody = writeJson(target.endpoint.body(named));
  if (upstreamBody === undefined) return refuse('invalid_json', 'The body is nested too deeply');
  return {
    kind: 'exchange',
    exchange: {
      context,
      request,
      route,
      caller,
      target,
      policies,
      body: read.body,
      upstreamUrl: target.baseUrl + target.endpoint.path(read.body),
      upstreamBody,
      isStreamed: read.body.stream === true,
      upstream: { name: target.provider.name, secret: caller.credential ?? target.apiKey },
      callerPays: caller.credential !== null,
    },
  };
}

/** The deployment's policies, with what this request's header says of vendor events (V2); null where it says nonsense. */
function requestPolicies(headers: Headers, policies: Policies): Policies | null {
  const said = headers.get('x-weir-vendor-events');
  if (said === null) return policies;
  const vendorEvents = parseVendorEvents(said);
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
  const { context, route, target, policies, body, isStreamed, upstream } = exchange;
  const { clock, random } = context.ports;
  const asked = isObject(body.stream_options) && body.stream_options.include_usage === true;
  return {
    dialect: target.endpoint.dialect,
    quirks: target.provider.quirks,
    vendorTokens: target.provider.vendorTokens,
    policies,
    usageChunk: !isStreamed || asked || policies.usageChunk === 'always',
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
