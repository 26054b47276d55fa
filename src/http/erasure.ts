/** The erasure of one user: its state, which is stored between its steps, and the users whose requests are refused meanwhile. */
import type { KeyStore } from '../auth/keys.ts';
import type { HashUser } from '../auth/user-hash.ts';
import type { ApiError } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable, type UnreadableSecret } from '../canonical/secret.ts';
import type { RecordSummary } from '../metering/record.ts';
import { DAY_MS } from '../metering/time.ts';
import { readArray } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';

/** What an erasure counts. */
export type ErasedCounts = {
  readonly [Kind in 'keys' | 'tokens' | 'records' | 'sums' | 'limits' | 'responses' | 'audit']: number;
};

export const NOTHING_ERASED: ErasedCounts = {
  ...{ keys: 0, tokens: 0, records: 0, sums: 0, limits: 0, responses: 0, audit: 0 },
};

/** Where the next step begins. */
export interface ErasurePosition {
  /** The place among the stores. */
  readonly store: number;
  /** The key that is searched; null: the first one of the store, or the store has no keys. */
  readonly keyId: string | null;
  /** Of the store; null: from its beginning. */
  readonly cursor: string | null;
}

export const ERASURE_START: ErasurePosition = { store: 0, keyId: null, cursor: null };

/**
 * - `waiting`: the user's requests are refused, and those that run end.
 * - `erasing`: the stores are searched.
 * - `erased`: the name is forgotten. Records may still arrive through a queue.
 * - `erasing_late`: records that arrived late are searched by the hash of the name.
 * - `done`: the hash is kept until the erasure is forgotten.
 */
export type ErasurePhase = 'waiting' | 'erasing' | 'erased' | 'erasing_late' | 'done';

export interface Erasure {
  /** A UUIDv7. */
  readonly id: string;
  /** Times in ms since the epoch. */
  readonly startedAt: number;
  /** Null: not yet. */
  readonly erasedAt: number | null;
  readonly phase: ErasurePhase;
  /** When the next step is due. */
  readonly dueAt: number;
  /** All forms of the name; empty once it is forgotten. */
  readonly names: readonly string[];
  /** Keyed hashes of these forms. */
  readonly hashes: readonly string[];
  readonly position: ErasurePosition;
  /** Callers with records of the user in KV. */
  readonly callers: readonly string[];
  /** Keys that were the user's own. */
  readonly ownKeys: readonly string[];
  readonly counts: ErasedCounts;
  /** Why the last step failed; null: it did not. It is tried again. */
  readonly problem: string | null;
}

/** A queue delivers a message for at most 14 days. The second search is a day later. */
export const LATE_AFTER_MS = 15 * DAY_MS;
/** How long an erasure with its hashes is kept. */
export const ERASURE_KEPT_MS = 30 * DAY_MS;

/** Whether the user's requests are refused. */
export function isRefusing({ phase }: Erasure): boolean {
  return phase === 'waiting' || phase === 'erasing';
}

/** Of several erasures, the one that runs and is of the same user as this one. */
export function sameRunning(all: readonly Erasure[], { hashes }: Erasure): Erasure | undefined {
  return all.find((one) => isRefusing(one) && one.hashes.some((hash) => hashes.includes(hash)));
}

/** Whether a record is one that is erased. */
export async function isErased(
  { user, request_id }: Pick<RecordSummary, 'user' | 'request_id'>,
  {
    isName,
    beforeId,
  }: { readonly isName: (name: string) => Promise<boolean>; readonly beforeId: string | null },
): Promise<boolean> {
  return user !== null && (beforeId === null || request_id < beforeId) && (await isName(user));
}

/** How long an isolate uses the list of users that it has read; KV's own cache does the same. */
const LIST_TTL_MS = 30_000;
/** KV shows a change everywhere after a minute at most. */
const KV_DELAY_MS = 60_000;
/** When every isolate refuses the requests of a user: KV, KV's cache, the isolate's cache. */
export const REFUSED_AFTER_MS = KV_DELAY_MS + 2 * LIST_TTL_MS;

const NAME = 'erasing-users';

/** Stores whose requests are refused: the users of these erasures. */
export async function putErasing(store: KeyStore, erasures: readonly Erasure[]): Promise<void> {
  const hashes = erasures.filter(isRefusing).flatMap((one) => one.hashes);
  if (hashes.length === 0) await store.delete(NAME);
  else await store.put(NAME, JSON.stringify(hashes));
}

/** The users who are being erased, as this isolate knows them. Most requests wait for nothing. */
export class ErasingUsers {
  readonly #store: Pick<KeyStore, 'get'>;
  readonly #hash: HashUser | UnreadableSecret;
  #hashes: readonly unknown[] = [];
  #until = 0;

  constructor(store: Pick<KeyStore, 'get'>, hash: HashUser | UnreadableSecret) {
    this.#store = store;
    this.#hash = hash;
  }

  /**
   * Whether the requests of a user are refused. Rejects where the list cannot be read, and fails where users cannot be
   * compared with it now.
   * @param name as it is stored
   * @param now in ms since the epoch
   */
  async has(name: string, now: number): Promise<Result<boolean, ApiError>> {
    if (now >= this.#until) {
      this.#hashes = readArray(await this.#store.get(NAME, { type: 'json', cacheTtl: LIST_TTL_MS / 1000 }));
      this.#until = now + LIST_TTL_MS;
    }
    if (this.#hashes.length === 0) return ok(false);
    if (isUnreadable(this.#hash)) return failure(secretUnreadable(this.#hash));
    return ok(this.#hashes.includes(await this.#hash(name)));
  }
}
