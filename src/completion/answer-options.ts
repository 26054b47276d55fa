/** How a target's answer is read and written for the client that asked. */

import { priceRecord } from '../metering/pricing/price-record.ts';
import type { Tally } from '../metering/usage-accumulator.ts';
import type { LaneOptions, WriterOptions } from '../protocols/shared/client-protocol.ts';
import { ROUTE_SHAPES } from '../providers/provider.ts';
import type { Target } from '../routing/targets.ts';
import { wholeAmount } from '../shared/money.ts';
import type { AnswerContext } from '../stream/chunk-context.ts';
import type { AnswerOptions } from '../stream/event-reader.ts';
import type { Refuser } from '../upstream/errors.ts';
import type { Exchange } from './prepare.ts';
import type { TargetFacts } from './replayable-request.ts';

/** The target as its answer and its errors name it, with the credential that it gets. */
export function upstreamOf({ caller, callerPays }: Exchange, target: Target): Refuser {
  const { provider, apiKey, keySetting, urlSetting } = target;
  const { name, refusals } = provider;
  const secret = caller.credential ?? apiKey;
  return { name, secret, refusals, callerPays, keySetting, urlSetting };
}

/** Where usage goes depends on the client and the policy; a plain answer always has it (U2). */
export function answerOptions(exchange: Exchange, facts: TargetFacts, tally: Tally): AnswerOptions {
  const { context, route, policies } = exchange;
  const { target, choices } = facts;
  const { clock, random } = context.ports;
  return {
    dialect: facts.lane?.dialect ?? target.endpoint.dialect,
    quirks: target.provider.quirks,
    vendorTokens: target.provider.vendorTokens,
    policies,
    maxEventBytes: context.settings.maxEventBytes,
    context: {
      shape: ROUTE_SHAPES[route],
      upstream: upstreamOf(exchange, target),
      provider: target.provider.id,
      model: target.model,
      reasoning: policies.reasoning,
      usageAt: usageAt(exchange),
      choices,
      ...(facts.toolNames === undefined ? {} : { toolNames: facts.toolNames }),
      now: () => Math.floor(clock.now() / 1000),
      random,
      meter: tally,
      ...(exchange.asksCost ? { cost: () => dollarsOf(exchange, target, tally) } : {}),
    },
  };
}

export function writerOptions({ context, policies, promptTokens, asked }: Exchange): WriterOptions {
  const { settings, requestId, ports } = context;
  return {
    now: () => Math.floor(ports.clock.now() / 1000),
    errorFrames: policies.errorFrames,
    maxEventBytes: settings.maxEventBytes,
    requestId,
    promptTokens,
    model: asked,
  };
}

export function laneOptions(exchange: Exchange, { target }: TargetFacts): LaneOptions {
  const { reasoning } = exchange.policies;
  return { ...writerOptions(exchange), provider: target.provider.id, reasoning };
}

/** What the answer costs, or null where that is not known, or is known in another currency: the field has none (P5). */
function dollarsOf({ context }: Exchange, target: Target, tally: Tally): number | null {
  const { cost, currency } = priceRecord(context.prices.table, {
    providers: target.priceIds,
    model: target.model,
    usage: tally.countBilled().usage,
    upstreamCost: tally.upstreamCost,
    endMs: context.ports.clock.now(),
  });
  return cost !== null && currency === 'USD' ? wholeAmount(cost) : null;
}

function usageAt({ policies, isStreamed, asksUsage }: Exchange): AnswerContext['usageAt'] {
  if (!isStreamed || asksUsage || policies.usageChunk === 'always') return 'end';
  return policies.usageChunk === 'finish' ? 'finish' : 'nowhere';
}
