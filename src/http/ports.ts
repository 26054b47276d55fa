/** Everything that Weir takes from outside: its store, the network, time, randomness and the log. */

import type { KeyStore } from '../auth/keys.ts';
import type { KeyCalls } from '../ledger/held-key.ts';
import type { LimitsNamespace, LimitsStub } from '../ledger/limits/limit-calls.ts';
import type { LedgerStore } from '../metering/kv/kv-ledger.ts';
import type { RecordQueue } from '../metering/queue.ts';
import type { Clock } from '../stream/timers.ts';
import type { Tracing } from '../tracing/spans.ts';
import type { Fetch } from '../upstream/fetch.ts';

/** One key's object: its ledger, its limits, and the key itself. */
export interface KeyObject extends LimitsStub, KeyCalls {}

/** `WEIR_LEDGER`, or whatever stands in for it. */
export interface KeyObjects extends LimitsNamespace {
  getByName(name: string): KeyObject;
}

export interface Ports {
  /** Keys and usage records. */
  readonly store: KeyStore & LedgerStore;
  /** The ledger objects (`WEIR_LEDGER`), or null where none are bound. */
  readonly ledgers: KeyObjects | null;
  /** The queue through which records go (`USAGE_QUEUE`), or null where none is bound. */
  readonly queue: RecordQueue | null;
  /** The coarse shield (`LIMITER`), or null where none is bound. */
  readonly limiter: Pick<RateLimit, 'limit'> | null;
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** A random UUID (version 4). */
  readonly random: () => string;
  /** The runtime's tracing, or null where it has none (W4). */
  readonly tracing: Tracing | null;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}
