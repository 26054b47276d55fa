/** What every store of usage records does, whichever it is (L3, L4). */
import type { UsageRecord } from './record.ts';

export interface Ledger {
  /**
   * Writes records, of one key or of several. A record that is there already (by its request id) changes nothing, so that
   * a call may be repeated. Rejects where the store can't be reached or did not take all of them.
   */
  put(records: readonly UsageRecord[]): Promise<void>;
}
