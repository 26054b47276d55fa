/** The object of one shard of a busy key: it admits requests by what it leases from the key, and has the records of these requests. */
import type { ChargedRecord } from '../../metering/record.ts';
import { objectOfShard, type ShardObjectCalls } from '../ledger-calls.ts';
import { createLimitTables } from '../limits/limit-tables.ts';
import { forgetParent, hasUnreported } from '../limits/reports.ts';
import type { Reservation, ReserveRequest } from '../limits/reservations.ts';
import type { ErasedUserPart, UserCursor } from '../records/user-records.ts';
import { LeasingRole } from './limited.ts';
import { OwnRecords } from './own-records.ts';
import type { RolePorts } from './ports.ts';
import type { Role } from './role.ts';

/** After its key could not be reached, a shard reports charges again after this time, in ms. */
const RETRY_AFTER_MS = 60_000;

export class ShardRole extends LeasingRole implements Role, ShardObjectCalls {
  readonly kind = 'a shard of a key';
  readonly records: OwnRecords;

  /** @param shard its name among the children of the key */
  constructor(ports: RolePorts, keyId: string, shard: string) {
    const { sql, transaction } = ports;
    // Its records stay.
    const forget = async () => transaction(() => forgetParent(sql));
    createLimitTables(sql);
    super({ ...ports, forget }, { level: 'shard', name: shard, keyId });
    this.records = new OwnRecords(ports, {
      keyId,
      ledger: objectOfShard(keyId, shard),
      charge: (records) => this.holder.settleRecords(records),
    });
  }

  get jobs() {
    return [
      (now: number) => this.#reportCharges(now),
      this.records.deleteOld,
      this.records.send,
      ...this.records.room,
    ];
  }

  get hasWork(): boolean {
    return this.holder.isOpen || this.records.hasWork;
  }

  /** Reports to the key, also what was charged after the shard had closed. */
  async #reportCharges(now: number): Promise<number | null> {
    if (!this.holder.isOpen && hasUnreported(this.ports.sql)) {
      try {
        await this.holder.openShard();
      } catch {
        return now + RETRY_AFTER_MS;
      }
    }
    return this.holder.alarm();
  }

  async reserveInShard(request: ReserveRequest): Promise<Reservation> {
    return this.admit(request);
  }

  async reportCharges(): Promise<void> {
    await this.ports.alarm.read();
    await this.holder.report();
  }

  async settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]> {
    // The key has to know the shard: its records are read with the key's, and charged by the key's limits.
    if (!this.holder.isOpen) await this.holder.openShard();
    return this.records.settle(records, recordDays);
  }

  async readUser(names: readonly string[], cursor: UserCursor) {
    return { ...(await this.records.readUser(names, cursor)), users: [] };
  }

  async eraseUser(
    names: readonly string[],
    cursor: UserCursor,
    beforeId: string | null,
  ): Promise<ErasedUserPart> {
    return this.records.eraseUser(names, cursor, beforeId);
  }
}
