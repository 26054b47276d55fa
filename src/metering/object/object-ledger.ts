/** The ledger on Durable Objects, one a key (LEDGER=object, L4). */
import type { Ledger } from '../ledger.ts';
import type { UsageRecord } from '../record.ts';
import type { LedgerNamespace } from './ledger-stub.ts';

export class ObjectLedger implements Ledger {
  readonly #ledgers: LedgerNamespace;

  constructor(ledgers: LedgerNamespace) {
    this.#ledgers = ledgers;
  }

  async put(records: readonly UsageRecord[]): Promise<void> {
    const byKey = Map.groupBy(records, (record) => record.key_id);
    const settled = [...byKey].map(([keyId, own]) => this.#ledgers.getByName(keyId).settle(own));
    await Promise.all(settled);
  }
}
