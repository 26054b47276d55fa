/** What every route's handler is given: the deployment's settings, its ports to the outside, and the request's own facts. */
import type { KeyStore } from '../auth/keys.ts';
import type { LedgerStore } from '../metering/ledger.ts';
import type { RecordWriter } from '../metering/record-writer.ts';
import type { Settings } from '../settings.ts';
import type { Clock } from '../stream/pacing.ts';
import type { Fetch } from '../upstream/call.ts';

/** Everything that Weir takes from outside. */
export interface Ports {
  /** Keys and usage records. */
  readonly store: KeyStore & LedgerStore;
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** A fresh random text, such as a UUID. */
  readonly random: () => string;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

export interface RequestContext {
  readonly settings: Settings;
  readonly ports: Ports;
  readonly records: RecordWriter;
  readonly requestId: string;
  /** ms since the epoch. */
  readonly arrivedAt: number;
  readonly waitUntil: (work: Promise<unknown>) => void;
}
