/** Which object of a spread key admits a request: an isolate remembers how keys are spread, and chooses by region and session. */
import { callTwice } from '../shared/durable-objects.ts';
import { type LedgerNamespace, type LedgerStub, objectOfShard, readObjectName } from './ledger-calls.ts';
import { regionOf, type Spread, shardName } from './limits/spread.ts';

/** The region of all callers where `LOCATION_HINT` or `JURISDICTION` says where objects are. */
const ALL_REGIONS = 'all';

/**
 * The regions, by `request.cf.continent`, with the hint for objects near their callers
 * (https://developers.cloudflare.com/durable-objects/reference/data-location, read 2026-11-29).
 */
const HINTS: Readonly<Record<string, string>> = {
  AF: 'afr',
  AS: 'apac',
  EU: 'weur',
  NA: 'enam',
  OC: 'oc',
  SA: 'sam',
};

/** How long an isolate goes on with a spread that no answer has confirmed. It remembers keys for about as long. */
const REMEMBERED_MS = 60_000;
/** Keys whose spread an isolate remembers. */
const MAX_REMEMBERED = 1000;

/** Where a new object of that name is created; undefined: it is not the object of a shard in a region. */
export function shardHint(name: string): string | undefined {
  const { shard } = readObjectName(name);
  return shard === null ? undefined : HINTS[regionOf(shard)];
}

/** What chooses the shard of a request. */
interface Caller {
  readonly keyId: string;
  readonly region: string;
  /** The session, else the user, else the id of the request: all requests of a session have one object. */
  readonly affinity: string;
}

export class KnownSpreads {
  readonly #isPlaced: boolean;
  readonly #spreads = new Map<string, { readonly spread: Spread; readonly until: number }>();

  /** @param isPlaced `LOCATION_HINT` or `JURISDICTION` is set: there are no regions */
  constructor(isPlaced: boolean) {
    this.#isPlaced = isPlaced;
  }

  /** @param continent of the request; null: it is not known, and the request uses no shard */
  regionOf(continent: string | null): string | null {
    if (continent === null) return null;
    return this.#isPlaced || HINTS[continent] === undefined ? ALL_REGIONS : continent;
  }

  /** @param spread of the answer of an object; absent: it is of an earlier version */
  learn(keyId: string, spread: Spread | null | undefined, now: number): void {
    this.#spreads.delete(keyId);
    if (spread == null) return;
    this.#spreads.set(keyId, { spread, until: now + REMEMBERED_MS });
    const [oldest] = this.#spreads.size > MAX_REMEMBERED ? this.#spreads.keys() : [];
    if (oldest !== undefined) this.#spreads.delete(oldest);
  }

  /**
   * The names of the objects of shards that may admit the request, in order: the second one if the first one is
   * overloaded. Empty: the key's.
   */
  shardsFor({ keyId, region, affinity }: Caller, now: number): readonly string[] {
    const known = this.#spreads.get(keyId);
    const count = known === undefined || known.until <= now ? 0 : (known.spread[region] ?? 0);
    const first = count === 0 ? 0 : hashOf(affinity) % count;
    return Array.from({ length: Math.min(count, 2) }, (_, i) =>
      objectOfShard(keyId, shardName(region, (first + i) % count)),
    );
  }
}

/** The names of the objects of a key's shards, also of those that admit no requests now. */
export async function shardsOf(ledgers: LedgerNamespace, keyId: string): Promise<readonly string[]> {
  try {
    return await callTwice(
      () => ledgers.getByName(keyId),
      async (ledger) => ledger.shards(),
    );
  } catch (error) {
    if (isMissing(error, 'shards')) return [];
    throw error;
  }
}

/** Whether a call failed because the object has no such method: while a release is rolled out, it may run an earlier version. */
export function isMissing(error: unknown, method: keyof LedgerStub): boolean {
  return error instanceof TypeError && error.message.includes(method);
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // The lowest bits of FNV depend on few bits of the text.
  return (hash ^ (hash >>> 15)) >>> 0;
}
