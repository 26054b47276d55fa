/** Callers who bring their own credential and were served once: a made-up one costs no listing of records (`AUTH=passthrough`). */

/** The part of a KV namespace that is used. */
type CallerStore = Pick<KVNamespace, 'get' | 'put'>;

const PREFIX = 'caller/';
/** Longer than any report goes back. */
const TTL_SECONDS = 400 * 24 * 60 * 60;
/** Ids that an isolate remembers to have written. */
const MAX_REMEMBERED = 1000;

export class KnownCallers {
  readonly #store: CallerStore;
  readonly #written = new Set<string>();

  constructor(store: CallerStore) {
    this.#store = store;
  }

  /** Writes once an isolate for each caller; a failed write is made up for by the caller's next request. */
  async add(id: string): Promise<void> {
    if (this.#written.has(id)) return;
    try {
      await this.#store.put(PREFIX + id, '', { expirationTtl: TTL_SECONDS });
      if (this.#written.size >= MAX_REMEMBERED) this.#written.clear();
      this.#written.add(id);
    } catch {
      // KV takes one write a second to a key: two isolates at once.
    }
  }

  /** Whether this isolate knows that it was served: no KV is asked. */
  isRemembered(id: string): boolean {
    return this.#written.has(id);
  }

  async has(id: string): Promise<boolean> {
    return this.#written.has(id) || (await this.#store.get(PREFIX + id)) !== null;
  }
}
