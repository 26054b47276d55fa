/** Gateway keys that this isolate has read, each for a while: a request with one of them waits for no KV (K3). */
import { KEY_TTL_MS, MAX_KNOWN_KEYS } from '../shared/limits.ts';
import { sha256 } from './digest.ts';
import { callerId, type GatewayKey, isToken, type KeyStore, readKeyOf } from './keys.ts';

export class KnownKeys {
  readonly #store: Pick<KeyStore, 'get'>;
  /** By their tokens' digests, which a caller can't choose; those that were read longest ago come first. */
  readonly #known = new Map<string, { readonly key: GatewayKey; readonly until: number }>();

  constructor(store: Pick<KeyStore, 'get'>) {
    this.#store = store;
  }

  /**
   * The key of a token, or null where there is none, it was revoked or it has expired. What another isolate revoked or changed
   * may be unknown here for {@link KEY_TTL_MS}, and for as long again in KV's own cache. A token without a key is never remembered.
   * @param now in ms since the epoch
   */
  async find(token: string, now: number): Promise<GatewayKey | null> {
    if (!isToken(token)) return null;
    const digest = await sha256(token);
    const known = this.#known.get(digest);
    const key = known !== undefined && now < known.until ? known.key : await this.#read(digest, now);
    if (key === null) return null;
    return key.expires_at !== null && Date.parse(key.expires_at) <= now ? null : key;
  }

  /** The id of the key that has this token, expired or not, where this isolate has read it: no KV is asked. */
  async idOf(token: string): Promise<string | null> {
    return isToken(token) ? (this.#known.get(await sha256(token))?.key.id ?? null) : null;
  }

  /** It was revoked or changed here. */
  forget(id: string): void {
    for (const digest of this.#known.keys()) if (callerId(digest) === id) this.#known.delete(digest);
  }

  async #read(digest: string, now: number): Promise<GatewayKey | null> {
    this.#known.delete(digest);
    const key = await readKeyOf(this.#store, digest, KEY_TTL_MS / 1000);
    if (key === null) return null;
    const [oldest] = this.#known.size >= MAX_KNOWN_KEYS ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(digest, { key, until: now + KEY_TTL_MS });
    return key;
  }
}
