/** A completion request that may be sent on, and everything for which it can be refused before an upstream is asked. */
import { type Caller, isLimited, mayUse } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, type JsonObject, readArray, readCount, readText } from '../canonical/json.ts';
import { wholeAmount } from '../canonical/money.ts';
import type { Policies } from '../canonical/policies.ts';
import type { Upstream } from '../canonical/upstream-error.ts';
import type { Usage } from '../canonical/usage.ts';
import { estimatePromptTokens } from '../metering/estimate.ts';
import { priceRecord } from '../metering/prices/price-record.ts';
import type { Tally } from '../metering/tally.ts';
import { ROUTE_SHAPES, type Route } from '../providers/provider.ts';
import { asksForCost, rewriteRequest } from '../requests/rewrite.ts';
import type { AnswerContext } from '../stream/answer-context.ts';
import type { AnswerOptions } from '../stream/answer-reader.ts';
import type { Lease } from '../stream/memory.ts';
import { type Admission, type Applicant, admit } from './admission.ts';
import { readCompletionRequest } from './completion-request.ts';
import type { RequestContext } from './context.ts';
import { identifyCaller } from './identify.ts';
import { type RequestPolicies, readRequestPolicies } from './request-policies.ts';
import { findTarget, type Target, targetUrl } from './target.ts';

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
  /** It asked for the cost, which stands in the usage (P5). */
  readonly asksCost: boolean;
  /** How many choices it asked for. */
  readonly choices: number;
  /** Names of what the upstream's request lacks of the caller's, or has otherwise (Q5, Q6). */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  /** Estimated (M3). */
  readonly promptTokens: number;
  readonly upstream: Upstream;
  /** The credential is the caller's own (AUTH=passthrough), and so are refusals of it. */
  readonly callerPays: boolean;
  /** What the limits of its key say; null: it has none (G2). */
  readonly admission: Admission | null;
}

export type ExchangeResult =
  | {
      readonly kind: 'exchange';
      readonly exchange: Exchange;
      readonly upstreamUrl: string;
      /** The JSON text that the upstream gets. */
      readonly upstreamBody: string;
      /** The request's share of the isolate's memory: the work on it ends when the upstream is asked. */
      readonly lease: Lease;
    }
  | {
      readonly kind: 'error';
      readonly error: ApiError;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** @param pathModel the model, where the path names it (Azure's clients) */
export async function openExchange(
  request: Request,
  route: Route,
  context: RequestContext,
  pathModel?: string,
): Promise<ExchangeResult> {
  const { settings } = context;
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return identified;
  const asked = readRequestPolicies(request.headers, settings);
  if (asked.kind === 'error') return asked;
  const read = await readCompletionRequest(request, route, context, pathModel);
  if (read.kind === 'error') return read;
  const { lease } = read;
  let result: ExchangeResult | undefined;
  try {
    result = await prepare(read, route, context, identified.caller, asked, request.signal);
    return result;
  } finally {
    if (result?.kind !== 'exchange') lease.release();
  }
}

/** Finds the request's target, and writes what its upstream gets. */
async function prepare(
  { body, lease }: { readonly body: JsonObject; readonly lease: Lease },
  route: Route,
  context: RequestContext,
  caller: Caller,
  { policies, unsupported }: RequestPolicies,
  signal: AbortSignal,
): Promise<ExchangeResult> {
  const found = findTarget(context.settings, route, body);
  if (found.kind === 'error') return found;
  const { target } = found;
  const addresses = addressesOf(target, body);
  const forbidden = addresses.find((address) => !mayUse(caller, address));
  if (forbidden !== undefined) return refuse('model_not_allowed', `This key may not use ${forbidden}`);
  await lease.pause();
  const named = { ...body, [route === 'agents' ? 'agent_id' : 'model']: target.model };
  const rewritten = rewriteRequest(named, {
    rules: target.endpoint.rules,
    model: target.model,
    provider: target.provider.name,
    unsupported,
  });
  if (rewritten.kind === 'error') return rewritten;
  await lease.pause();
  const json = JSON.stringify(rewritten.body);
  await lease.pause();
  const promptTokens = estimatePromptTokens(body);
  const prompts = promptsIn(body);
  const applicant: Applicant = {
    context,
    keyId: caller.keyId,
    target,
    addresses,
    body: rewritten.body,
    json,
    estimatedPromptTokens: promptTokens,
    prompts,
  };
  // A key without limits waits for nothing (G1), and nobody waits for the turn of one that does.
  if (isLimited(caller)) lease.end();
  const admitted = isLimited(caller) ? await admit(applicant, signal) : null;
  if (admitted?.kind === 'refused') {
    return { kind: 'error', error: admitted.error, headers: admitted.headers };
  }
  return {
    kind: 'exchange',
    upstreamUrl: targetUrl(target, body),
    upstreamBody:
      admitted === null || admitted.body === rewritten.body ? json : JSON.stringify(admitted.body),
    lease,
    exchange: {
      context,
      route,
      caller,
      target,
      policies,
      isStreamed: body.stream === true,
      asksUsage: asksForUsage(body),
      asksCost: asksForCost(body),
      choices: prompts * (readCount(body.n) ?? 1),
      dropped: rewritten.dropped,
      changed: admitted === null ? rewritten.changed : [...rewritten.changed, ...admitted.changed],
      promptTokens,
      admission: admitted?.admission ?? null,
      upstream: { name: target.provider.name, secret: caller.credential ?? target.apiKey },
      callerPays: caller.credential !== null,
    },
  };
}

function asksForUsage(body: JsonObject): boolean {
  const { stream_options } = body;
  return (isObject(stream_options) && stream_options.include_usage === true) || asksForCost(body);
}

/** A list of prompts is answered with choices for each. */
function promptsIn({ prompt }: JsonObject): number {
  const prompts = readArray(prompt).filter((item) => typeof item === 'string' || Array.isArray(item)).length;
  return Math.max(1, prompts);
}

/** Every model that the request may reach: a router behind one address reads more of them from the body (OpenRouter's fields). */
function addressesOf({ address, provider }: Target, body: JsonObject): readonly string[] {
  const others = [...readArray(body.models), ...readArray(body.fallbacks)].flatMap((entry) => {
    const model = isObject(entry) ? readText(entry.model) : readText(entry);
    return model === undefined ? [] : [`${provider.id}/${model}`];
  });
  return [address, ...others];
}

function refuse(code: 'invalid_json' | 'model_not_allowed', message: string): ExchangeResult {
  return { kind: 'error', error: apiError(code, message) };
}

/** How the upstream's answer is read. Where usage goes depends on the client and the policy; a plain answer always has it (U2). */
export function answerOptions(exchange: Exchange, tally: Tally): AnswerOptions {
  const { context, route, target, policies, upstream } = exchange;
  const { clock, random } = context.ports;
  return {
    dialect: target.endpoint.dialect,
    quirks: target.provider.quirks,
    vendorTokens: target.provider.vendorTokens,
    policies,
    maxEventBytes: context.settings.maxEventBytes,
    context: {
      shape: ROUTE_SHAPES[route],
      upstream,
      provider: target.provider.id,
      model: target.model,
      reasoning: policies.reasoning,
      usageAt: usageAt(exchange),
      ...(exchange.asksCost ? { costOf: (usage: Usage) => dollarsOf(exchange, tally, usage) } : {}),
      choices: exchange.choices,
      now: () => Math.floor(clock.now() / 1000),
      random,
      meter: tally,
    },
  };
}

/** What the answer costs, or null where that is not known, or is known in another currency: the field has none (P5). */
function dollarsOf({ context, target }: Exchange, tally: Tally, usage: Usage): number | null {
  const { cost, currency } = priceRecord(context.prices.table, {
    providers: target.priceIds,
    model: target.model,
    usage,
    upstreamCost: tally.upstreamCost,
    endMs: context.ports.clock.now(),
  });
  return cost !== null && currency === 'USD' ? wholeAmount(cost) : null;
}

function usageAt({ policies, isStreamed, asksUsage }: Exchange): AnswerContext['usageAt'] {
  if (!isStreamed || asksUsage || policies.usageChunk === 'always') return 'end';
  return policies.usageChunk === 'finish' ? 'finish' : 'nowhere';
}
