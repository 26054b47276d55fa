/** A record as answers show it: its cost is in units of its currency (L2). */

import type { ListedRecord } from '../metering/ledger.ts';
import { wholeAmount } from '../shared/money.ts';

export type RecordView = Omit<ListedRecord, 'cost_nanos'> & { readonly cost: number | null };

/** What a list does not know is absent. An upstream's address is for the admin alone (E4). */
export function viewRecord(record: ListedRecord, isAdmin: boolean): RecordView {
  const { cost_nanos, currency, cost_source, price_since, cost_estimated, ...rest } = record;
  const { attempts, dropped, changed, ...facts } = rest;
  const cost = cost_nanos === null ? null : wholeAmount(cost_nanos);
  const money = { cost, currency, cost_source, price_since, cost_estimated };
  return {
    ...facts,
    ...money,
    ...(attempts && { attempts: isAdmin ? attempts : attempts.map(({ cause: _, ...attempt }) => attempt) }),
    ...(dropped && { dropped }),
    ...(changed && { changed }),
  };
}
