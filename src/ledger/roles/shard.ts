/** The object of one shard of a busy key: it admits requests by what it leases from the key, and has the records of these requests. */
import type { Charge, ChargedRecord } from '../../metering/record.ts';
import { objectOfShard, type ShardObjectCalls } from '../ledger-calls.ts';
import type { Holder } from '../limits/holder.ts';
import { createLimitTables } from '../limits/limit-tables.ts';
import { forgetParent, hasUnreported } from '../limits/reports.ts';
import type { Reservation, ReserveRequest } from '../limits/reservations.ts';
import type { ErasedUserPart, UserCursor } from '../records/user-records.ts';
import { reservedMs } from '../settings.ts';
import { openHolder } from './limited.ts';
import { OwnRecords } from './own-records.ts';
import type { RolePorts } from './ports.ts';
import type { Role } from './role.ts';

/** A key that cannot be reached is told of charges later. */
const RETRY_AFTER_MS = 60_000;

export class ShardRole implements Role, ShardObjectCalls {
  readonly kind = 'a shard of a key';
  readonly #ports: RolePorts;
  readonly #holder: Holder;
  readonly records: OwnRecords;

  /** @param shard its name among the children of the key */
  constructor(ports: RolePorts, keyId: string, shard: string) {
    const { sql, transaction } = ports;
    this.#ports = ports;
    createLimitTables(sql);
    this.#holder = openHolder(
      // Its records stay.
      { ...ports, forget: async () => transaction(() => forgetParent(sql)) },
      {
        level: 'shard',
        name: shard,
        keyId,
        openParent: () => ports.objects().getByName(keyId),
        isRevoked: () => false,
        // It has no children.
        silentMs: () => reservedMs(0),
        childObject: (child) => child,
      },
    );
    this.records = new OwnRecords(ports, {
      keyId,
      ledger: objectOfShard(keyId, shard),
      charge: (records) => this.#holder.settleRecords(records),
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
    return this.#holder.isOpen || this.records.hasWork;
  }

  /** Reports to the key, also what was charged after the shard had closed. */
  async #reportCharges(now: number): Promise<number | null> {
    if (!this.#holder.isOpen && hasUnreported(this.#ports.sql)) {
      try {
        await this.#holder.openShard();
      } catch {
        return now + RETRY_AFTER_MS;
      }
    }
    return this.#holder.alarm();
  }

  async reserveInShard(request: ReserveRequest): Promise<Reservation> {
    await this.#ports.alarm.read();
    return this.#holder.reserve(request);
  }

  async settleReservation(id: string, charge: Charge): Promise<void> {
    await this.#ports.alarm.read();
    this.#holder.settle(id, charge);
  }

  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    await this.#ports.alarm.read();
    await this.#holder.settleUnreserved(id, charge, day);
  }

  async returnLease(): Promise<void> {
    await this.#ports.alarm.read();
    await this.#holder.returnLease();
  }

  async reportCharges(): Promise<void> {
    await this.#ports.alarm.read();
    await this.#holder.report();
  }

  async clearUser(): Promise<boolean> {
    await this.#ports.alarm.read();
    return this.#holder.drain(null);
  }

  async settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]> {
    // The key has to know the shard: its records are read with the key's, and charged by the key's limits.
    if (!this.#holder.isOpen) await this.#holder.openShard();
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
