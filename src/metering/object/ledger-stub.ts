/** The ledger objects as the gateway calls them: `WEIR_LEDGER`, or whatever stands in for it. */
import type { UsageRecord } from '../record.ts';

/** One key's ledger. A stub that has thrown may be of no more use: ask the namespace for another. */
export interface LedgerStub {
  settle(records: readonly UsageRecord[]): Promise<void>;
  find(requestId: string): Promise<UsageRecord | null>;
}

/** A Durable Object namespace of `LedgerObject`. */
export interface LedgerNamespace {
  /** @param name a key's id */
  getByName(name: string): LedgerStub;
}
