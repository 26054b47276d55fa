/** How a target's answer is read and written for the client that asked. */

import { costOfRequest } from '../metering/pricing/cost.ts';
import type { UsageAccumulator } from '../metering/request-meter.ts';
import type { PassthroughOptions, WriterOptions } from '../protocols/shared/client-protocol.ts';
import { ROUTE_SHAPES } from '../providers/provider.ts';
import type { Target } from '../routing/targets.ts';
import { wholeAmount } from '../shared/money.ts';
import type { EventReaderOptions } from '../stream/event-reader.ts';
import type { ChunkContext } from '../stream/types.ts';
import type { UpstreamErrorContext } from '../upstream/errors.ts';
import type { PreparedCompletion } from './prepare.ts';
import type { TargetFacts } from './replayable-request.ts';

/** The target as its answer and its errors name it, with the credential that it gets. */
export function upstreamOf({ caller, callerPays }: PreparedCompletion, target: Target): UpstreamErrorContext {
  const { provider, apiKey, keySetting, urlSetting } = target;
  const { name, refusals } = provider;
  const secret = caller.credential ?? apiKey;
  return { name, secret, refusals, callerPays, keySetting, urlSetting };
}

/** Where usage goes depends on the client and the policy; a plain answer always has it (U2). */
export function answerOptions(
  prepared: PreparedCompletion,
  facts: TargetFacts,
  accumulator: UsageAccumulator,
): EventReaderOptions {
  const { context, route, policies } = prepared;
  const { target, choices } = facts;
  const { clock, random } = context.ports;
  return {
    protocol: facts.passthrough?.protocol ?? target.endpoint.protocol,
    quirks: target.provider.quirks ?? {},
    vendorTokens: target.provider.vendorTokens ?? (() => null),
    policies,
    maxEventBytes: context.settings.maxEventBytes,
    context: {
      shape: ROUTE_SHAPES[route],
      upstream: upstreamOf(prepared, target),
      provider: target.provider.id,
      model: target.model,
      reasoning: policies.reasoning,
      usageAt: usageAt(prepared),
      choices,
      ...(facts.toolNames === undefined ? {} : { toolNames: facts.toolNames }),
      now: () => Math.floor(clock.now() / 1000),
      random,
      meter: accumulator,
      ...(prepared.asksCost ? { cost: () => dollarsOf(prepared, target, accumulator) } : {}),
    },
  };
}

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

export function passthroughOptions(
  prepared: PreparedCompletion,
  { target }: TargetFacts,
): PassthroughOptions {
  const { reasoning } = prepared.policies;
  return { ...writerOptions(prepared), provider: target.provider.id, reasoning };
}

/** What the answer costs, or null where that is not known, or is known in another currency: the field has none (P5). */
function dollarsOf(
  { context }: PreparedCompletion,
  target: Target,
  accumulator: UsageAccumulator,
): number | null {
  const cost = costOfRequest(context.prices.table, {
    providers: target.priceIds,
    model: target.model,
    usage: accumulator.countBilled().usage,
    upstreamCost: accumulator.upstreamCost,
    endMs: context.ports.clock.now(),
  });
  return cost?.currency === 'USD' ? wholeAmount(cost.nano) : null;
}

function usageAt({ policies, isStreamed, asksUsage }: PreparedCompletion): ChunkContext['usageAt'] {
  if (!isStreamed || asksUsage || policies.usageChunk === 'always') return 'end';
  return policies.usageChunk === 'finish' ? 'finish' : 'nowhere';
}
