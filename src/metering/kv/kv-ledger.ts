/** Puts usage records into KV and lists them again: immutable, one key each, read from metadata alone (M1, M4). */
import { MAX_REPORT_LISTINGS, REPORT_LISTINGS_AT_ONCE } from '../../canonical/limits.ts';
import type { Ledger } from '../ledger.ts';
import { decodeRecord, encodeRecord, type RecordSummary, type UsageRecord } from '../record.ts';
import { dayPrefix, recordKey } from './keys.ts';

/** The part of a KV namespace that the ledger uses. */
export type LedgerStore = Pick<KVNamespace, 'put' | 'list'>;

export interface LedgerQuery {
  /** ISO 8601 days, in order. */
  readonly days: readonly string[];
  /** One key's records, or all (null). */
  readonly keyId: string | null;
}

export class KvLedger implements Ledger {
  readonly #store: LedgerStore;

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /** The value is the whole record; listings read the metadata. The same key and value each time: a repeated call changes nothing. */
  async put(records: readonly UsageRecord[]): Promise<void> {
    await Promise.all(
      records.map((record) =>
        this.#store.put(recordKey(record), JSON.stringify(record), { metadata: encodeRecord(record) }),
      ),
    );
  }
}

/**
 * Hands every record of the query to `each`, in no order.
 * @returns false where the query takes more listings than one request may make: what was handed on is not all
 */
export async function eachRecord(
  store: LedgerStore,
  query: LedgerQuery,
  each: (record: RecordSummary) => void,
): Promise<boolean> {
  const days = query.days[Symbol.iterator]();
  let listingsLeft = MAX_REPORT_LISTINGS;

  /** Takes one day after the other until none is left: a few of these run side by side. */
  async function readDays(): Promise<boolean> {
    for (const day of days) {
      let cursor: string | null = null;
      do {
        if (listingsLeft-- <= 0) return false;
        const page: KVNamespaceListResult<unknown> = await store.list({
          prefix: dayPrefix(day, query.keyId),
          cursor,
        });
        for (const key of page.keys) {
          const record = decodeRecord(key.metadata);
          if (record !== null) each(record);
        }
        cursor = page.list_complete ? null : page.cursor;
      } while (cursor !== null);
    }
    return true;
  }

  const readers = Array.from({ length: REPORT_LISTINGS_AT_ONCE }, readDays);
  return (await Promise.all(readers)).every(Boolean);
}
