/** Reads the listings of days of KV, a thousand records each, no more than one answer may make (M4, L3). */
import { REPORT_LISTINGS_AT_ONCE } from '../../canonical/limits.ts';
import { dayPrefix } from './keys.ts';

export interface Entry {
  readonly name: string;
  readonly metadata: unknown;
}

export class Listings {
  readonly #store: Pick<KVNamespace, 'list'>;
  #left: number;

  /** @param max how many listings may be made in all */
  constructor(store: Pick<KVNamespace, 'list'>, max: number) {
    this.#store = store;
    this.#left = max;
  }

  /**
   * Hands every entry of the days to `each`, in no order; several days are read side by side.
   * @param keyId one key's, or all (null)
   * @returns false where that takes more listings than are left: what was handed on is not all
   */
  async read(days: readonly string[], keyId: string | null, each: (entry: Entry) => void): Promise<boolean> {
    const left = days[Symbol.iterator]();
    const readDays = async (): Promise<boolean> => {
      for (const day of left) if (!(await this.#readDay(dayPrefix(day, keyId), each))) return false;
      return true;
    };
    const readers = Array.from({ length: REPORT_LISTINGS_AT_ONCE }, readDays);
    return (await Promise.all(readers)).every(Boolean);
  }

  async #readDay(prefix: string, each: (entry: Entry) => void): Promise<boolean> {
    let cursor: string | null = null;
    do {
      if (this.#left-- <= 0) return false;
      const page: KVNamespaceListResult<unknown> = await this.#store.list({ prefix, cursor });
      for (const { name, metadata } of page.keys) each({ name, metadata });
      cursor = page.list_complete ? null : page.cursor;
    } while (cursor !== null);
    return true;
  }
}
