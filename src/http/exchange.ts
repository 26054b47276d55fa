/** A completion request that may be sent on, and everything for which it can be refused before an upstream is asked. */
import { type Caller, identify, mayUse } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, type JsonObject, readArray, readCount, readText, writeJson } from '../canonical/json.ts';
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
import { readCompletionRequest } from './completion-request.ts';
import type { RequestContext } from './context.ts';
import { readRequestPolicies } from './request-policies.ts';
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

/** @param pathModel the model, where the path names it (Azure's clients) */
export async function openExchange(
  request: Request,
  route: Route,
  context: RequestContext,
  pathModel?: string,
): Promise<ExchangeResult> {
  const { settings, ports, arrivedAt } = context;
  const identified = await identify(
    settings.auth,
    settings.adminToken,
    request.headers,
    ports.store,
    new Date(arrivedAt),
  );
  if (identified.kind === 'error') return identified;
  const asked = readRequestPolicies(request.headers, settings);
  if (asked.kind === 'error') return asked;
  const read = await readCompletionRequest(request, route, context, pathModel);
  if (read.kind === 'error') return read;
  const found = findTarget(settings, route, read.body);
  if (found.kind === 'error') return found;
  const { caller } = identified;
  const { target } = found;
  const { body } = read;
  const forbidden = addressesOf(target, body).find((address) => !mayUse(caller, address));
  if (forbidden !== undefined) return refuse('model_not_allowed', `This key may not use ${forbidden}`);
  const named = { ...body, [route === 'agents' ? 'agent_id' : 'model']: target.model };
  const rewritten = rewriteRequest(named, {
    rules: target.endpoint.rules,
    model: target.model,
    provider: target.provider.name,
    unsupported: asked.unsupported,
  });
  if (rewritten.kind === 'error') return rewritten;
  const upstreamBody = writeJson(rewritten.body);
  if (upstreamBody === undefined) return refuse('invalid_json', 'The body is nested too deeply');
  return {
    kind: 'exchange',
    upstreamUrl: targetUrl(target, body),
    upstreamBody,
    exchange: {
      context,
      route,
      caller,
      target,
      policies: asked.policies,
      isStreamed: body.stream === true,
      asksUsage: asksForUsage(body),
      asksCost: asksForCost(body),
      choices: choicesAsked(body),
      dropped: rewritten.dropped,
      changed: rewritten.changed,
      promptTokens: estimatePromptTokens(body),
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
function choicesAsked({ n, prompt }: JsonObject): number {
  const prompts = readArray(prompt).filter((item) => typeof item === 'string' || Array.isArray(item)).length;
  return (readCount(n) ?? 1) * Math.max(1, prompts);
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
