/** Keeps records in KV whose ledger cannot be reached, and replays them with the ledger's next records or in the daily run. */
import { decodeUsageRecord, ledgerOfRecord, type UsageRecord } from '../metering/record.ts';
import type { RecordSink } from '../metering/record-writer.ts';
import { MAX_BULK_GET } from '../shared/limits.ts';

/** Stranded records that one run replays. Each takes a KV call to delete it, and Workers Paid allows 10,000 subrequests. */
const MAX_STRANDED_A_RUN = 4000;

/** The part of a KV namespace that is used. */
export type DeadLetterStore = Pick<KVNamespace, 'get' | 'put' | 'list' | 'delete'>;

const PREFIX = 'stranded/';
/** Records of all keys that an isolate remembers. */
const MAX_REMEMBERED = 1000;
/** Remembered records that one `put` replays. */
const MAX_REPLAYED = 100;

function keyOf({ key_id, request_id }: UsageRecord): string {
  return `${PREFIX}${key_id}/${request_id}`;
}

export class DeadLetters implements RecordSink {
  readonly #store: DeadLetterStore;
  readonly #ledger: RecordSink;
  /** The records that this isolate has put into KV, by KV key. */
  readonly #remembered = new Map<string, UsageRecord>();

  constructor(store: DeadLetterStore, ledger: RecordSink) {
    this.#store = store;
    this.#ledger = ledger;
  }

  async put(records: readonly UsageRecord[]): Promise<void> {
    await Promise.all(records.map((record) => this.#store.put(keyOf(record), JSON.stringify(record))));
    for (const record of records)
      if (this.#remembered.size < MAX_REMEMBERED) this.#remembered.set(keyOf(record), record);
  }

  /** The ledger, with a `put` that also replays this isolate's remembered records of the same ledgers. */
  get ledger(): RecordSink {
    return {
      put: async (records) => {
        const names = new Set(records.map(ledgerOfRecord));
        const remembered = [...this.#remembered.values()].filter((one) => names.has(ledgerOfRecord(one)));
        const replayed = remembered.slice(0, MAX_REPLAYED);
        await this.#ledger.put([...records, ...replayed]);
        await this.#delete(replayed);
      },
    };
  }

  /**
   * Replays the records of all keys.
   * @returns how many records were settled, and how many remain because their ledger cannot be reached
   */
  async replay(): Promise<{ readonly settled: number; readonly left: number }> {
    let settled = 0;
    let left = 0;
    for await (const records of this.pages()) {
      for (const [, own] of Map.groupBy(records, ledgerOfRecord)) {
        try {
          await this.#ledger.put(own);
          await this.#delete(own);
          settled += own.length;
        } catch {
          left += own.length;
        }
      }
      if (settled + left >= MAX_STRANDED_A_RUN) break;
    }
    return { settled, left };
  }

  /** The records that wait, of all keys. */
  async *pages(): AsyncGenerator<readonly UsageRecord[]> {
    let cursor: string | null = null;
    do {
      const page: KVNamespaceListResult<unknown> = await this.#store.list({
        prefix: PREFIX,
        cursor,
        limit: MAX_BULK_GET,
      });
      const names = page.keys.map(({ name }) => name);
      const values = names.length === 0 ? [] : (await this.#store.get(names, 'json')).values();
      // A null value was replayed already: KV lists deleted keys for a while.
      yield [...values].flatMap((value) => decodeUsageRecord(value) ?? []);
      cursor = page.list_complete ? null : page.cursor;
    } while (cursor !== null);
  }

  /** How many records wait, up to the 1,000 of one KV listing. */
  async count(): Promise<number> {
    return (await this.#store.list({ prefix: PREFIX })).keys.length;
  }

  /** Deletes records of an erased user. */
  async remove(records: readonly UsageRecord[]): Promise<void> {
    for (const record of records) {
      this.#remembered.delete(keyOf(record));
      await this.#store.delete(keyOf(record));
    }
  }

  /** A failed deletion is harmless: the daily run settles the record again, without effect. */
  async #delete(records: readonly UsageRecord[]): Promise<void> {
    const names = records.map(keyOf);
    for (const name of names) this.#remembered.delete(name);
    await Promise.allSettled(names.map((name) => this.#store.delete(name)));
  }
}
