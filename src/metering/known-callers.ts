/**
 * Remembers callers with their own credential (`AUTH=passthrough`) that were served at least once, so that requests for usage with an
 * invented credential cause no listing of records.
 */

/** The part of a KV namespace that is used. */
type CallerStore = Pick<KVNamespace, 'get' | 'put'>;

const PREFIX = 'caller/';
/** Longer than the maximal range of a report. */
const TTL_SECONDS = 400 * 24 * 60 * 60;
/** Ids that an isolate remembers as written. */
const MAX_REMEMBERED = 1000;

/** Callers whose own credential a provider has accepted before (`AUTH=passthrough`), remembered in KV and in the isolate. */
export class KnownCallers {
  readonly #store: CallerStore;
  readonly #written = new Set<string>();

  constructor(store: CallerStore) {
    this.#store = store;
  }

  /** Writes a caller once in each isolate. After a failure, the caller's next request writes again. */
  async add(id: string): Promise<void> {
    if (this.#written.has(id)) return;
    try {
      await this.#store.put(PREFIX + id, '', { expirationTtl: TTL_SECONDS });
      if (this.#written.size >= MAX_REMEMBERED) this.#written.clear();
      this.#written.add(id);
    } catch {
      // KV takes one write a second for a key, and two isolates may write at once.
    }
  }

  /** Whether this isolate knows the caller, without a KV read. */
  isRemembered(id: string): boolean {
    return this.#written.has(id);
  }

  async has(id: string): Promise<boolean> {
    return this.#written.has(id) || (await this.#store.get(PREFIX + id)) !== null;
  }
}
