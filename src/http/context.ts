/** What every route's handler is given: the deployment's settings, its ports to the outside, and the request's own facts. */

import type { ModelLists } from '../api/model-lists.ts';
import type { Caller } from '../auth/caller.ts';
import type { KnownKeys } from '../auth/keys.ts';
import type { KnownCallers } from '../metering/known-callers.ts';
import type { Ledger } from '../metering/ledger.ts';
import type { PriceBook } from '../metering/pricing/price-book.ts';
import type { RecordWriter } from '../metering/record-writer.ts';
import type { CircuitBreakers } from '../routing/circuit-breaker.ts';
import type { Settings } from '../settings/settings.ts';
import type { LeaseMemory } from '../stream/memory.ts';
import type { Deadline } from './deadline.ts';
import type { Ports } from './ports.ts';

/** What becomes known of a request on its way, for the line and the counts of one that is refused (M6). */
interface Known {
  /** Whose request it is; `none` until that is known. */
  keyId: string;
  /** It has reached the upstreams: its record says the rest. */
  isSentOn: boolean;
}

export interface RequestContext {
  readonly settings: Settings;
  readonly ports: Ports;
  readonly ledger: Ledger;
  readonly records: Pick<RecordWriter, 'write'>;
  /** Who calls, where the Worker around Weir says so; null: `AUTH` decides (W2). */
  readonly hostCaller: Caller | null;
  readonly modelLists: ModelLists;
  readonly knownKeys: KnownKeys;
  readonly knownCallers: KnownCallers;
  readonly circuits: CircuitBreakers;
  readonly leaseMemory: LeaseMemory;
  readonly prices: PriceBook;
  readonly deadline: Deadline;
  readonly known: Known;
  readonly requestId: string;
  /** ms since the epoch. */
  readonly arrivedAt: number;
  readonly waitUntil: (work: Promise<unknown>) => void;
}
