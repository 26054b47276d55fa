/** The ledger objects with what limits add to them, as the gateway calls them. */

import type { Charge } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { LedgerNamespace, LedgerStub } from '../records/ledger-calls.ts';
import type { LimitsResult } from './limits.ts';
import type { Reservation, ReserveRequest } from './reserve.ts';
import type { LimitStatus } from './status.ts';

/** What a key's object does about its limits. */
export interface LimitCalls {
  /** Admits or refuses a request: one call for all limits (G2). */
  reserve(request: ReserveRequest): Promise<Reservation>;
  /** Settles a request whose record is elsewhere (LEDGER=kv), or that was not sent after all. Repeated, it changes nothing. */
  settleReservation(id: string, charge: Charge): Promise<void>;
  /** The same for a request that may have passed without a reservation; it then counts on that UTC day. */
  settleUnreserved(id: string, charge: Charge, day: string): Promise<void>;
  standing(): Promise<LimitStatus>;
  /** Sets the limits that the fields name (see `readLimits`); what is invalid changes nothing. */
  changeLimits(fields: JsonObject): Promise<LimitsResult>;
}

export interface LimitsStub extends LedgerStub, LimitCalls {}

export interface LimitsNamespace extends LedgerNamespace {
  getByName(name: string): LimitsStub;
}
