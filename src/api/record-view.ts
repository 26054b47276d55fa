/** A usage record as responses show it. A separate file, because the dashboard's page imports it without the Worker's types. */

import type { ListedRecord } from '../metering/ledger.ts';
import { type Attempt, withinPrompt } from '../metering/record.ts';
import { wholeAmount } from '../shared/money.ts';

export type RecordView = Omit<ListedRecord, 'cost_nanos'> & { readonly cost: number | null };

/** Writes the cost in units of its currency. Fields that a list does not have are absent. Only the admin sees upstream addresses and all messages. */
export function viewRecord(record: ListedRecord, isAdmin: boolean): RecordView {
  const { cost_nanos, currency, cost_source, price_since, cost_estimated, ...rest } = withinPrompt(record);
  const { attempts, dropped, changed, ...facts } = rest;
  const cost = cost_nanos === null ? null : wholeAmount(cost_nanos);
  const money = { cost, currency, cost_source, price_since, cost_estimated };
  return {
    ...facts,
    ...money,
    ...(attempts && { attempts: isAdmin ? attempts : attempts.map(callersView) }),
    ...(dropped && { dropped }),
    ...(changed && { changed }),
  };
}

/** What the callers of the key know of an attempt: no address, and the provider's message only if their own error had it. */
function callersView({ cause: _, message, ...attempt }: Attempt): Attempt {
  return message !== undefined && attempt.message_shown === true ? { ...attempt, message } : attempt;
}
