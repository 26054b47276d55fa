/** A usage record as responses show it. A separate file, because the dashboard's page imports it without the Worker's types. */

import type { ListedRecord } from '../metering/ledger.ts';
import type { CostParts } from '../metering/pricing/cost.ts';
import { type CacheReport, type RecordedAttempt, withinPrompt } from '../metering/record.ts';
import { wholeAmount } from '../shared/money.ts';

export type RecordView = Omit<
  ListedRecord,
  'cost_nanos' | 'cost_parts_nanos' | 'cache' | 'prefix' | 'cache_saves'
> & {
  readonly cost: number | null;
  readonly cost_parts?: CostParts;
  readonly cache?: CacheView;
};

/** Why the prompt was not read from the cache. `lost_cost`: in units of the record's currency; null: unknown. */
interface CacheView extends Omit<CacheReport, 'lost_nanos'> {
  readonly lost_cost: number | null;
}

/**
 * Writes the cost in units of its currency. Fields that a list does not have are absent. Only the admin sees upstream
 * addresses and all messages.
 */
export function viewRecord(record: ListedRecord, isAdmin: boolean): RecordView {
  const {
    cost_nanos,
    cost_parts_nanos: parts,
    currency,
    cost_source,
    price_since,
    cost_estimated,
    ...rest
  } = withinPrompt(record);
  const { attempts, dropped, changed, cache, prefix: _prefix, cache_saves: _saves, ...facts } = rest;
  const cost = cost_nanos === null ? null : wholeAmount(cost_nanos);
  const cost_parts = parts && {
    input: wholeAmount(parts.input),
    cached: wholeAmount(parts.cached),
    output: wholeAmount(parts.output),
  };
  const money = {
    cost,
    ...(cost_parts && { cost_parts }),
    currency,
    cost_source,
    price_since,
    cost_estimated,
  };
  return {
    ...facts,
    ...money,
    ...(attempts && { attempts: isAdmin ? attempts : attempts.map(callersView) }),
    ...(dropped && { dropped }),
    ...(changed && { changed }),
    ...(cache && { cache: viewCache(cache) }),
  };
}

function viewCache({ lost_nanos, ...cache }: CacheReport): CacheView {
  return { ...cache, lost_cost: lost_nanos === undefined ? null : wholeAmount(lost_nanos) };
}

/** What the callers of the key know of an attempt: no address, and the provider's message only if their own error had it. */
function callersView({ cause: _, message, ...attempt }: RecordedAttempt): RecordedAttempt {
  return message !== undefined && attempt.message_shown === true ? { ...attempt, message } : attempt;
}
