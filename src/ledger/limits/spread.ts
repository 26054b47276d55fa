/** How the requests of a busy key are spread over shards: by region, as many in each as its rate needs. */
import { createTables, hasTable, type Sql } from './limit-tables.ts';

/** The number of shards of each region that has any. */
export type Spread = Readonly<Record<string, number>>;

/**
 * - `spread`: the regions with shards now.
 * - `shards`: all shards that ever had a lease, by their names among the children of the key: their records are read with the key's.
 */
const TABLES = [
  'CREATE TABLE IF NOT EXISTS spread (region TEXT PRIMARY KEY, shards INTEGER NOT NULL) WITHOUT ROWID',
  'CREATE TABLE IF NOT EXISTS shards (name TEXT PRIMARY KEY) WITHOUT ROWID',
];

/** Half of what one object takes: of 200 calls a second, by Cloudflare's table, a request makes two. */
const SHARD_REQUESTS_PER_SECOND = 50;
/** A slower region would renew a lease for each request. */
const REGION_REQUESTS_PER_MINUTE = 6;
/** Of one region. */
const MAX_SHARDS = 32;
/** Regions of one key: more than there are. */
const MAX_REGIONS = 16;
/** The time over which the rate that grows a spread is measured, in seconds. */
const BUSY_SECONDS = 10;
const MINUTE_SECONDS = 60;
/** A region has fewer shards after it needed fewer for so long. */
const QUIET_MS = 60 * 60 * 1000;

/** Requests that arrived in one second. */
interface Arrivals {
  readonly second: number;
  requests: number;
}

interface RegionRate {
  readonly arrivals: Arrivals[];
  /** When the region last needed as many shards as it has, in ms since the epoch. */
  busyAt: number;
}

/** In the name of the object of a shard, after the id of its key. */
export const SHARD_OBJECT = '/s/';

const SHARD = '\n';

/** The name of a shard among the children of its key. No user has one with a line break. */
export function shardName(region: string, n: number): string {
  return `${SHARD}${region} ${n}`;
}

/** {@link isShard}, of the column `user`, in SQL. */
export const IS_SHARD = 'substr(user, 1, 1) = char(10)';

export function isShard(child: string): boolean {
  return child.startsWith(SHARD);
}

/** The region of a shard. */
export function regionOf(shard: string): string {
  return shard.slice(SHARD.length, shard.lastIndexOf(' '));
}

/** Measures the rate of one key, and decides how it is spread. What it measures is in memory, the spread is stored. */
export class KeySpread {
  readonly #sql: Sql;
  readonly #now: () => number;
  readonly #rates = new Map<string, RegionRate>();
  readonly #current: Map<string, number>;

  constructor(sql: Sql, now: () => number) {
    this.#sql = sql;
    this.#now = now;
    this.#current = new Map(
      hasTable(sql, 'spread')
        ? sql
            .exec<{ region: string; shards: number }>('SELECT region, shards FROM spread')
            .toArray()
            .map(({ region, shards }) => [region, shards])
        : [],
    );
  }

  /** Null: the key has no shards. */
  get current(): Spread | null {
    // Also where no requests arrive any more.
    if (this.#current.size > 0) this.#decide();
    return this.#current.size === 0 ? null : Object.fromEntries(this.#current);
  }

  /** Requests have arrived from a region. */
  note(region: string, requests = 1): void {
    if (requests <= 0) return;
    const rate = this.#rateOf(region);
    if (rate === null) return;
    const second = Math.floor(this.#now() / 1000);
    const last = rate.arrivals.at(-1);
    if (last?.second === second) last.requests += requests;
    else {
      rate.arrivals.push({ second, requests });
      while ((rate.arrivals[0]?.second ?? second) <= second - MINUTE_SECONDS) rate.arrivals.shift();
    }
    this.#decide();
  }

  #rateOf(region: string): RegionRate | null {
    const known = this.#rates.get(region);
    if (known !== undefined || this.#rates.size >= MAX_REGIONS) return known ?? null;
    const rate = { arrivals: [], busyAt: this.#now() };
    this.#rates.set(region, rate);
    return rate;
  }

  #decide(): void {
    const now = this.#now();
    const since = Math.floor(now / 1000);
    const within = ({ arrivals }: RegionRate, seconds: number) =>
      arrivals.reduce((sum, one) => (one.second > since - seconds ? sum + one.requests : sum), 0);
    const isCalling = (rate: RegionRate) => within(rate, MINUTE_SECONDS) > REGION_REQUESTS_PER_MINUTE;
    const areSeveral = [...this.#rates.values()].filter(isCalling).length > 1;
    for (const region of new Set([...this.#rates.keys(), ...this.#current.keys()])) {
      const rate = this.#rateOf(region);
      if (rate === null) continue;
      const perSecond = within(rate, BUSY_SECONDS) / BUSY_SECONDS;
      const ofRate =
        perSecond < SHARD_REQUESTS_PER_SECOND ? 0 : powerOfTwoFrom(perSecond / SHARD_REQUESTS_PER_SECOND);
      const needed = Math.max(ofRate, areSeveral && isCalling(rate) ? 1 : 0);
      const has = this.#current.get(region) ?? 0;
      if (needed >= has) rate.busyAt = now;
      if (needed > has || (needed < has && now - rate.busyAt >= QUIET_MS)) this.#set(region, needed);
    }
  }

  #set(region: string, shards: number): void {
    createTables(this.#sql, TABLES);
    if (shards === 0) {
      this.#current.delete(region);
      this.#sql.exec('DELETE FROM spread WHERE region = ?', region);
      return;
    }
    this.#current.set(region, shards);
    this.#sql.exec('INSERT OR REPLACE INTO spread VALUES (?, ?)', region, shards);
  }
}

/** Remembers a shard, so that its records are found. */
export function keepShard(sql: Sql, name: string): void {
  createTables(sql, TABLES);
  sql.exec('INSERT OR IGNORE INTO shards VALUES (?)', name);
}

/** The names of all shards that ever had a lease. */
export function knownShards(sql: Sql): readonly string[] {
  if (!hasTable(sql, 'shards')) return [];
  return sql
    .exec<{ name: string }>('SELECT name FROM shards ORDER BY name')
    .toArray()
    .map(({ name }) => name);
}

/** Twice as many shards move half of the sessions to another shard; one shard more would move most of them. */
function powerOfTwoFrom(count: number): number {
  return Math.min(MAX_SHARDS, 2 ** Math.ceil(Math.log2(count)));
}
