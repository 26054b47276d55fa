/** Everything that Weir takes from outside: its store, the network, time, randomness and the log. */
import type { KeyStore } from '../auth/keys.ts';
import type { LimitsNamespace } from '../limits/limits-stub.ts';
import type { LedgerStore } from '../metering/kv/kv-ledger.ts';
import type { RecordQueue } from '../metering/queue.ts';
import type { Clock } from '../stream/pacing.ts';
import type { Tracing } from '../tracing/spans.ts';
import type { Fetch } from '../upstream/call.ts';

export interface Ports {
  /** Keys and usage records. */
  readonly store: KeyStore & LedgerStore;
  /** The ledger objects (`WEIR_LEDGER`), or null where none are bound. */
  readonly ledgers: LimitsNamespace | null;
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
