/** Everything that Weir takes from outside: its store, the network, time, randomness and the log. */
import type { KeyStore } from '../auth/keys.ts';
import type { LedgerStore } from '../metering/ledger.ts';
import type { Clock } from '../stream/pacing.ts';
import type { Fetch } from '../upstream/call.ts';

export interface Ports {
  /** Keys and usage records. */
  readonly store: KeyStore & LedgerStore;
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** A fresh random text, such as a UUID. */
  readonly random: () => string;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}
