/** Reads listings of KV, a thousand entries each, no more than one answer may make (M4, L3). */
import { REPORT_LISTINGS_AT_ONCE } from '../../shared/limits.ts';

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
   * Hands every entry below the prefixes to `each`, in no order; several are read side by side.
   * @returns false where that takes more listings than are left: what was handed on is not all
   */
  async read(prefixes: readonly string[], each: (entry: Entry) => void): Promise<boolean> {
    const left = prefixes[Symbol.iterator]();
    const readSome = async (): Promise<boolean> => {
      for (const prefix of left) if (!(await this.#readOne(prefix, each))) return false;
      return true;
    };
    const readers = Array.from({ length: REPORT_LISTINGS_AT_ONCE }, readSome);
    return (await Promise.all(readers)).every(Boolean);
  }

  async #readOne(prefix: string, each: (entry: Entry) => void): Promise<boolean> {
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
