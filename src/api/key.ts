/** `GET /v1/key`: the caller's own key, its limits and how it stands against them (G8). */
import type { Caller } from '../auth/caller.ts';
import {
  type LimitStatus,
  periodName,
  type RateStatus,
  writeAmount,
  writeLimits,
} from '../auth/key-limits.ts';
import type { RequestContext } from '../http/context.ts';
import { identifyCaller } from '../http/identify.ts';
import { errorResponse, jsonResponse } from '../http/respond.ts';
import type { JsonObject } from '../shared/json.ts';

export async function handleKey(request: Request, context: RequestContext): Promise<Response> {
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return errorResponse(identified.error);
  const { key, keyId, models } = identified.value;
  const unknown = { name: null, expires_at: null, created_at: null, limits: null };
  return showKey({ ...(key ?? unknown), id: keyId, models }, context);
}

type ShownKey = Pick<Caller, 'models'> &
  Readonly<Record<'name' | 'expires_at' | 'created_at', string | null>> & {
    readonly id: string;
    readonly limits: JsonObject | null;
  };

/** A key, and how it stands against its limits. */
export async function showKey(shown: ShownKey, context: RequestContext): Promise<Response> {
  const { id, name, models, expires_at, created_at } = shown;
  const key = { object: 'key', id, name, models, expires_at, created_at };
  if (shown.limits === null) return jsonResponse({ ...key, limits: null });
  const status = await context.keyObjects.readLimitStatus(context, id);
  if (status.kind === 'error') return errorResponse(status.error);
  return jsonResponse({ ...key, ...writeStatus(status.value, context.arrivedAt) });
}

/** What has no limit is null. Amounts are in the budget's own unit. */
function writeStatus(status: LimitStatus, now: number): JsonObject {
  const { limits, requests, tokens, running } = status;
  return {
    limits: writeLimits(limits),
    budget: writeBudget(status, now),
    requests: writeRate(limits.rpm, requests),
    tokens: writeRate(limits.tpm, tokens),
    concurrent: limits.maxConcurrent === null ? null : { limit: limits.maxConcurrent, running },
  };
}

function writeBudget({ limits, budget: status }: LimitStatus, now: number): JsonObject | null {
  const { budget } = limits;
  if (budget === null || status === null) return null;
  const { unit, amount, per } = budget;
  const { spent, reserved, estimated, unreported, resetsAt } = status;
  return {
    unit,
    period: periodName(per, now),
    limit: writeAmount(amount, unit),
    spent: writeAmount(spent, unit),
    reserved: writeAmount(reserved, unit),
    remaining: writeAmount(amount - spent - reserved, unit),
    // Of what is spent: charged for requests that were never settled (G3).
    estimated: writeAmount(estimated, unit),
    // Charged at its bound, because no provider reported it (G3).
    unreported: writeAmount(unreported, unit),
    resets_at: resetsAt === null ? null : new Date(resetsAt).toISOString(),
  };
}

function writeRate(limit: number | null, rate: RateStatus | null): JsonObject | null {
  if (limit === null || rate === null) return null;
  return { limit, remaining: Math.max(0, limit - rate.used), resets_in_ms: rate.resetMs };
}
