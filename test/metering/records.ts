/** A builder of records and a KV namespace in memory with pages, for tests. */

import type { DeadLetterStore } from '../../src/ledger/dead-letters.ts';
import type { LedgerStore } from '../../src/metering/kv-ledger.ts';
import type { UsageRecord } from '../../src/metering/record.ts';
import { requestId } from '../../src/metering/time.ts';

const RANDOM = '3f2c9d0e-8a41-4b7e-9c55-0d6a1f2b3c4d';

/** The id contains the record's time; `n` distinguishes records of the same millisecond. */
export function record(fields: Partial<UsageRecord> = {}, n = 0): UsageRecord {
  const time = fields.time ?? '2026-11-20T10:20:30.456Z';
  const random = RANDOM.slice(0, -8) + n.toString(16).padStart(8, '0');
  return {
    request_id: requestId(Date.parse(time), random),
    time,
    ended: new Date(Date.parse(time) + 900).toISOString(),
    key_id: '0123456789abcdef',
    asked: 'mistral/mistral-small-latest',
    provider: 'mistral',
    model: 'mistral-small-latest',
    route: 'chat',
    client: 'chat',
    status: 'finished',
    error_code: null,
    error: fields.error_code ?? null,
    fault: null,
    finish_reason: 'stop',
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    cached_tokens: null,
    cache_write_tokens: null,
    reasoning_tokens: null,
    vendor_events: 0,
    vendor_tokens: 0,
    first_token_ms: 120,
    total_ms: 900,
    bytes_out: 2_000,
    estimated: false,
    cost_nanos: null,
    currency: null,
    cost_source: 'none',
    price_since: null,
    cost_estimated: false,
    user: null,
    session: null,
    app: null,
    tags: {},
    attempts: [
      { provider: 'mistral', model: 'mistral-small-latest', status: 200, error_code: null, ms: 900 },
    ],
    ...fields,
  };
}

interface Entry {
  readonly value: string;
  readonly metadata: unknown;
}

/** Lists in key order, `pageSize` keys a page, with a cursor while there are more. */
export class MemoryStore {
  readonly entries = new Map<string, Entry>();
  readonly #pageSize: number;
  listings = 0;
  /** The most listings in progress at once. */
  mostAtOnce = 0;
  #atOnce = 0;

  constructor(pageSize = 1_000) {
    this.#pageSize = pageSize;
  }

  async put(key: string, value: string, options?: { readonly metadata?: unknown }): Promise<void> {
    this.entries.set(key, { value, metadata: options?.metadata });
  }

  async delete(key: string): Promise<void> {
    this.entries.delete(key);
  }

  /** As JSON: one value, or a map of up to a hundred. */
  async get(names: string | readonly string[]): Promise<unknown> {
    const read = (name: string): unknown => JSON.parse(this.entries.get(name)?.value ?? 'null');
    if (typeof names === 'string') return read(names);
    if (names.length === 0 || names.length > 100)
      throw new Error(`KV does not get ${names.length} values at once`);
    return new Map(names.map((name) => [name, read(name)]));
  }

  async list({
    prefix,
    cursor,
    limit = this.#pageSize,
  }: {
    readonly prefix: string;
    readonly cursor: string | null;
    readonly limit?: number;
  }) {
    this.listings++;
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    await new Promise(setImmediate);
    this.#atOnce--;
    const names = [...this.entries.keys()].filter((name) => name.startsWith(prefix)).sort();
    // The key that the cursor names may have been deleted.
    const start = cursor === null ? 0 : names.filter((name) => name <= cursor).length;
    const page = names.slice(start, start + Math.min(limit, this.#pageSize));
    const keys = page.map((name) => ({ name, metadata: this.entries.get(name)?.metadata }));
    const isLast = start + page.length >= names.length;
    return isLast
      ? { keys, list_complete: true as const, cacheStatus: null }
      : { keys, list_complete: false as const, cursor: page.at(-1) ?? '', cacheStatus: null };
  }

  /** As the ledger sees it: a namespace has many more overloads than the ledger calls. */
  get asStore(): LedgerStore & DeadLetterStore {
    return this as unknown as LedgerStore & DeadLetterStore;
  }
}
