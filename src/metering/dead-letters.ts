/** Records whose ledger could not be reached wait in KV, until its next settling or the daily run brings them in (L5). */
import { MAX_STRANDED_A_RUN } from '../shared/limits.ts';
import { decodeUsageRecord, type UsageRecord } from './record.ts';
import type { RecordSink } from './record-writer.ts';

/** The part of a KV namespace that is used. */
export type DeadLetterStore = Pick<KVNamespace, 'get' | 'put' | 'list' | 'delete'>;

const PREFIX = 'stranded/';
/** Records that an isolate remembers, of all keys, and that one settling brings in. */
const MAX_REMEMBERED = 1000;
const MAX_A_SETTLING = 100;
/** Values that KV gives at once. */
const PAGE = 100;

function keyOf({ key_id, request_id }: UsageRecord): string {
  return `${PREFIX}${key_id}/${request_id}`;
}

export class DeadLetters implements RecordSink {
  readonly #store: DeadLetterStore;
  readonly #ledger: RecordSink;
  /** What this isolate has left in KV, by its KV key. */
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

  /** The ledger, whose next settling of a key takes along what this isolate has left of it. */
  get ledger(): RecordSink {
    return {
      put: async (records) => {
        const keyIds = new Set(records.map((record) => record.key_id));
        const left = [...this.#remembered.values()].filter(({ key_id }) => keyIds.has(key_id));
        const taken = left.slice(0, MAX_A_SETTLING);
        await this.#ledger.put([...records, ...taken]);
        await this.#forget(taken);
      },
    };
  }

  /**
   * Brings in what there is, of every key.
   * @returns how many records were brought in, and how many were left because their ledger could not be reached
   */
  async replay(): Promise<{ readonly settled: number; readonly left: number }> {
    let settled = 0;
    let left = 0;
    let cursor: string | null = null;
    do {
      const page: KVNamespaceListResult<unknown> = await this.#store.list({
        prefix: PREFIX,
        cursor,
        limit: PAGE,
      });
      const names = page.keys.map(({ name }) => name);
      const values = names.length === 0 ? [] : (await this.#store.get(names, 'json')).values();
      // One that is null was brought in already: KV goes on listing for a while what is deleted.
      const records = [...values].flatMap((value) => decodeUsageRecord(value) ?? []);
      for (const [, own] of Map.groupBy(records, (record) => record.key_id)) {
        try {
          await this.#ledger.put(own);
          await this.#forget(own);
          settled += own.length;
        } catch {
          left += own.length;
        }
      }
      cursor = page.list_complete ? null : page.cursor;
    } while (cursor !== null && settled + left < MAX_STRANDED_A_RUN);
    return { settled, left };
  }

  /** What can't be deleted is settled again by the daily run, which changes nothing. */
  async #forget(records: readonly UsageRecord[]): Promise<void> {
    const names = records.map(keyOf);
    for (const name of names) this.#remembered.delete(name);
    await Promise.allSettled(names.map((name) => this.#store.delete(name)));
  }
}
