/** The steps of an erasure: searches each store in bounded parts, first by the name, and weeks later by its hash for what arrived late. */
import { AUDIT_OF_USERS } from '../api/audit.ts';
import { OPEN_ID } from '../auth/caller-ids.ts';
import { listKeys } from '../auth/keys.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import type { ErasedPart, ErasedUser, RequestContext, UserData, UserStore } from '../http/context.ts';
import {
  ERASURE_KEPT_MS,
  ERASURE_START,
  type Erasure,
  type ErasurePosition,
  LATE_AFTER_MS,
  REFUSED_AFTER_MS,
} from '../http/erasure.ts';
import { firstIdAt } from '../metering/time.ts';
import { CALLERS_OF_USERS, KEYS_OF_USERS, RECORDS_OF_USERS } from './kv-stores.ts';

/** Calls to stores in one invocation, which may make 1,000. A part may make 500. */
const MAX_CALLS = 450;
/** How long one invocation goes on, in ms. */
const MAX_STEP_MS = 10_000;
/** A step that failed is tried again after this time. */
const RETRY_AFTER_MS = 60_000;
/** Assumed for requests without a deadline. */
const LONGEST_REQUEST_MS = 24 * 60 * 60 * 1000;

/** All stores with data of users. Erasures that run know their place by its number, so the order never changes. */
export function storesOf({ kept = [], ledger = [], people = [] }: UserData): readonly UserStore[] {
  return [KEYS_OF_USERS, CALLERS_OF_USERS, ...kept, ...ledger, RECORDS_OF_USERS, AUDIT_OF_USERS, ...people];
}

/** When the stores can be searched: no request of the user runs any more. */
export function searchableAt({ settings }: Pick<RequestContext, 'settings'>, now: number): number {
  return now + REFUSED_AFTER_MS + (settings.timers.deadlineMs || LONGEST_REQUEST_MS);
}

/**
 * Takes the steps that are due, within the bounds of one invocation. Never rejects.
 * @returns null: the erasure is over, and is forgotten
 */
export async function stepErasure(context: RequestContext, erasure: Erasure): Promise<Erasure | null> {
  const { clock, log } = context.ports;
  if (clock.now() < erasure.dueAt) return erasure;
  try {
    const next = await takeSteps(context, erasure);
    if (next !== null && next.phase !== erasure.phase) {
      const { id, phase, counts } = next;
      log({ event: 'erasure_advanced', erasure: id, phase, ...counts });
    }
    return next;
  } catch (error) {
    const problem = String(error);
    log({ event: 'erasure_failed', erasure: erasure.id, reason: problem });
    return { ...erasure, problem, dueAt: clock.now() + RETRY_AFTER_MS };
  }
}

async function takeSteps(context: RequestContext, erasure: Erasure): Promise<Erasure | null> {
  const now = context.ports.clock.now();
  switch (erasure.phase) {
    case 'waiting':
      return search(context, { ...erasure, phase: 'erasing', position: ERASURE_START });
    case 'erased':
      return search(context, { ...erasure, phase: 'erasing_late', position: ERASURE_START });
    case 'erasing':
    case 'erasing_late':
      return search(context, erasure);
    case 'done':
      return now < erasure.dueAt ? erasure : null;
  }
}

/** Searches the stores from where the last step ended, until the bounds of an invocation. */
async function search(context: RequestContext, begun: Erasure): Promise<Erasure> {
  const { clock } = context.ports;
  const isLate = begun.phase === 'erasing_late';
  const stores = storesOf(context.userData).filter(({ hasLate }) => !isLate || hasLate === true);
  const keys = new KeyIds(context);
  const until = clock.now() + MAX_STEP_MS;
  let erasure: Erasure = { ...begun, problem: null };
  for (let calls = 0; calls < MAX_CALLS && clock.now() < until; ) {
    const { store: at, keyId, cursor } = erasure.position;
    const store = stores[at];
    if (store === undefined) return finished(erasure, clock.now());
    const nextStore: ErasurePosition = { store: at + 1, keyId: null, cursor: null };
    const user = erasedUser(context, erasure);
    if (store.scope === 'all') {
      const part = await store.erase(context, user, cursor);
      calls += part.calls;
      const isWhole = part.next === null && part.waitMs === undefined;
      const position = isWhole ? nextStore : { store: at, keyId, cursor: part.next };
      erasure = withPart(erasure, part, position);
      if (part.waitMs !== undefined) return { ...erasure, dueAt: clock.now() + part.waitMs };
      continue;
    }
    const key = keyId ?? (await keys.after(null, erasure.callers));
    if (key === null) {
      erasure = { ...erasure, position: nextStore };
      continue;
    }
    const part = await store.erase(context, user, key, cursor);
    calls += part.calls;
    if (part.waitMs !== undefined) return { ...erasure, dueAt: clock.now() + part.waitMs };
    const next = part.next === null ? await keys.after(key, erasure.callers) : key;
    const position = next === null ? nextStore : { store: at, keyId: next, cursor: part.next };
    erasure = withPart(erasure, part, position);
  }
  return { ...erasure, dueAt: clock.now() };
}

function erasedUser({ users: { hash: hashUser } }: RequestContext, erasure: Erasure): ErasedUser {
  if (hashUser === null) throw new Error('Neither USER_HASH_KEY nor ADMIN_TOKEN is set');
  if (isUnreadable(hashUser)) throw new Error(secretUnreadable(hashUser).message);
  const { names, hashes, erasedAt, ownKeys } = erasure;
  const isName = async (name: string) => hashes.includes(await hashUser(name));
  const beforeId = erasedAt === null ? null : firstIdAt(erasedAt);
  return { names, isName, hash: hashUser, beforeId, ownKeys };
}

function withPart(erasure: Erasure, part: ErasedPart, position: ErasurePosition): Erasure {
  const { counts = {}, callers = [], ownKeys = [] } = part;
  const added = { ...erasure.counts };
  for (const kind of Object.keys(added) as (keyof typeof added)[]) added[kind] += counts[kind] ?? 0; // decode
  return {
    ...erasure,
    position,
    counts: added,
    callers: [...new Set([...erasure.callers, ...callers])],
    ownKeys: [...new Set([...erasure.ownKeys, ...ownKeys])],
  };
}

function finished(erasure: Erasure, now: number): Erasure {
  const { startedAt, phase } = erasure;
  const rest = { ...erasure, names: [], callers: [], ownKeys: [], position: ERASURE_START };
  if (phase === 'erasing') return { ...rest, phase: 'erased', erasedAt: now, dueAt: now + LATE_AFTER_MS };
  return { ...rest, phase: 'done', dueAt: Math.max(now, startedAt + ERASURE_KEPT_MS) };
}

/** The ids of all callers whose objects may have data of users, in order. */
class KeyIds {
  readonly #context: RequestContext;
  #known: readonly string[] | null = null;
  /** Ids after the one that was asked for last. */
  #page: string[] = [];
  #isLast = false;

  constructor(context: RequestContext) {
    this.#context = context;
  }

  /** The first id after `after`; null: there is none. */
  async after(after: string | null, callers: readonly string[]): Promise<string | null> {
    if (after === null) this.#isLast = false;
    this.#page = after === null ? [] : this.#page.filter((id) => id > after);
    if (this.#page.length === 0 && !this.#isLast) await this.#load(after, callers);
    return this.#page[0] ?? null;
  }

  async #load(after: string | null, callers: readonly string[]): Promise<void> {
    const { ports, userData } = this.#context;
    this.#known ??= await knownKeyIds(ports.store);
    const listed = (await userData.keyIdsAfter?.(after)) ?? [];
    const last = listed.at(-1);
    this.#isLast = last === undefined;
    const others = [OPEN_ID, ...callers, ...this.#known].filter(
      (id) => (after === null || id > after) && (last === undefined || id <= last),
    );
    this.#page = [...new Set([...listed, ...others])].sort();
  }
}

/** The ids of keys in KV, also of revoked and of unreadable ones. */
export async function knownKeyIds(store: RequestContext['ports']['store']): Promise<readonly string[]> {
  const { keys, revoked, unreadable } = await listKeys(store);
  return [...keys.map(({ id }) => id), ...revoked.map(({ id }) => id), ...unreadable];
}
