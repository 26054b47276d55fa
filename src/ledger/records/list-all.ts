/** One list of many ledgers' records, the latest first: each ledger is read as far as its records come next (L2). */

import type { RecordQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import { DAY_MS, firstIdAt } from '../../metering/time.ts';
import { ASKED_LEDGERS_AT_ONCE, MAX_ASKED_LEDGERS } from '../../shared/limits.ts';
import type { ActiveDay } from './directory.ts';
import type { LedgerPage } from './records.ts';

/** Records that a ledger is asked for at a time, however many ledgers there are. */
const MIN_CHUNK = 20;

type ListOne = (keyId: string, query: RecordQuery) => Promise<LedgerPage>;

/** @param days whose records they are, the latest first */
export async function listAll(
  query: RecordQuery,
  days: readonly ActiveDay[],
  listOne: ListOne,
): Promise<LedgerPage> {
  const records: UsageRecord[] = [];
  let calls = 0;
  for (const { day, keyIds } of days) {
    const fromId = latest(query.fromId, firstIdAt(day * DAY_MS));
    const beforeId = earliest(query.beforeId, firstIdAt((day + 1) * DAY_MS));
    const sources = keyIds.map((keyId) => new Source(keyId, beforeId));
    const fair = Math.ceil((2 * query.limit) / sources.length);
    const limit = Math.min(query.limit, Math.max(MIN_CHUNK, fair));
    const read = async (source: Source) => {
      calls++;
      source.take(
        await listOne(source.keyId, { ...query, fromId, beforeId: source.position ?? fromId, limit }),
      );
    };
    for (let at = 0; at < sources.length; at += ASKED_LEDGERS_AT_ONCE)
      await Promise.all(sources.slice(at, at + ASKED_LEDGERS_AT_ONCE).map(read));
    for (let source = leading(sources); source !== undefined; source = leading(sources)) {
      const last = records.at(-1);
      if (records.length === query.limit && last !== undefined) return { records, next: last.request_id };
      const record = source.shift();
      if (record !== undefined) records.push(record);
      else if (calls < 2 * MAX_ASKED_LEDGERS) await read(source);
      else return { records, next: source.position };
    }
  }
  return { records, next: null };
}

/** One ledger's records: some that were read, and where to read on. */
class Source {
  readonly keyId: string;
  #records: UsageRecord[] = [];
  #next: string | null;

  constructor(keyId: string, beforeId: string) {
    this.keyId = keyId;
    this.#next = beforeId;
  }

  /** The id of the next record, or one that the next record's comes before; null where nothing is left. */
  get position(): string | null {
    return this.#records[0]?.request_id ?? this.#next;
  }

  take({ records, next }: LedgerPage): void {
    this.#records = [...records];
    this.#next = next;
  }

  shift(): UsageRecord | undefined {
    return this.#records.shift();
  }
}

/** The source whose next record may be the latest of all. */
function leading(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  for (const source of sources) {
    if (source.position !== null && source.position > (best?.position ?? '')) best = source;
  }
  return best;
}

function latest(a: string, b: string): string {
  return a > b ? a : b;
}

function earliest(a: string, b: string): string {
  return a < b ? a : b;
}
