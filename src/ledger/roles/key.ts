/** The object of a gateway key: its limits, its usage records and the key itself. */
import type { KeyStanding, LimitsResult } from '../../auth/key-limits.ts';
import { type KeyChange, type KeyChangeResult, readKey } from '../../auth/keys.ts';
import { TEAM_ID } from '../../auth/teams.ts';
import type { Charge, ChargedRecord } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';
import { childObject, type KeyObjectCalls, objectOfShard, teamObject } from '../ledger-calls.ts';
import { hasErasedSpent } from '../limits/erased-spent.ts';
import { changeLimits, type LimitsRow, readLimitsRow } from '../limits/limit-tables.ts';
import type { Reservation, ReserveRequest } from '../limits/reservations.ts';
import { knownShards } from '../limits/spread.ts';
import type { ErasedUserPart, UserCursor } from '../records/user-records.ts';
import { LimitedRole, MAX_CLEARED } from './limited.ts';
import { OwnRecords } from './own-records.ts';
import type { RolePorts } from './ports.ts';
import type { Role } from './role.ts';

const RETRY_AFTER_MS = 60_000;

export class KeyRole extends LimitedRole implements Role, KeyObjectCalls {
  readonly kind = 'a key';
  readonly #keyId: string;
  readonly records: OwnRecords;

  constructor(ports: RolePorts, keyId: string) {
    super(ports, {
      level: 'key',
      name: keyId,
      keyId,
      openParent: (team) => ports.objects().getByName(teamObject(team)),
      childObject: (child) => childObject(keyId, child),
      readName: async (store) => {
        const found = await readKey(store, keyId);
        return found === null || found === 'unreadable' ? null : found.key.name;
      },
      teamId: null,
    });
    this.#keyId = keyId;
    this.records = new OwnRecords(ports, {
      keyId,
      ledger: keyId,
      charge: (records) => this.holder.settleRecords(records),
    });
  }

  /** The jobs that call others are last. */
  get jobs() {
    return [
      this.settleExpired,
      (now: number) => this.clear(this.holder.children.names(MAX_CLEARED), now),
      this.forgetErased,
      this.records.deleteOld,
      this.records.send,
      this.sendAlerts,
      ...this.records.room,
    ];
  }

  get hasWork(): boolean {
    return this.hasLimitWork || this.holder.hasTeams || this.records.hasWork;
  }

  async settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]> {
    const forgotten = await this.records.settle(records, recordDays);
    await this.noteAlerts();
    return forgotten;
  }

  async readUser(names: readonly string[], cursor: UserCursor) {
    return { ...(await this.records.readUser(names, cursor)), users: this.holder.children.among(names) };
  }

  async eraseUser(
    names: readonly string[],
    cursor: UserCursor,
    beforeId: string | null,
  ): Promise<ErasedUserPart> {
    if (beforeId === null) await this.key.revokeOf(names, this.#keyId);
    return this.records.eraseUser(names, cursor, beforeId);
  }

  async shards(): Promise<readonly string[]> {
    return knownShards(this.ports.sql).map((shard) => objectOfShard(this.#keyId, shard));
  }

  async reserve(request: ReserveRequest): Promise<Reservation> {
    await this.ports.alarm.read();
    return this.holder.reserve(request);
  }

  async settleReservation(id: string, charge: Charge): Promise<void> {
    await this.ports.alarm.read();
    this.holder.settle(id, charge);
    await this.noteAlerts();
  }

  async returnLease(): Promise<void> {
    await this.ports.alarm.read();
    await this.holder.returnLease();
  }

  /** What shards were charged since their last report counts, too. */
  override async standing(listed: JsonObject | null = null): Promise<KeyStanding> {
    await this.holder.children.reportShards();
    const shards = this.holder.spread;
    return { ...(await super.standing(listed)), ...(shards !== null && { shards }) };
  }

  async limitsRow(): Promise<LimitsRow> {
    return readLimitsRow(this.ports.sql);
  }

  async changeLimits(fields: JsonObject): Promise<LimitsResult> {
    const missing = await this.#joinTeam(fields);
    if (missing !== null) return missing;
    const { sql, transaction } = this.ports;
    const result = transaction(() => changeLimits(sql, fields));
    await this.holder.changed();
    return result;
  }

  override async changeKey(change: KeyChange): Promise<KeyChangeResult> {
    // A key whose change is refused joins no team.
    const refused = this.key.refusalOf(change) ?? (await this.#joinTeam(change.limits));
    return refused ?? super.changeKey(change);
  }

  /** Before a key names a team, the team counts it. @returns the error if there is no such team */
  async #joinTeam({ team = null }: JsonObject): Promise<Extract<LimitsResult, { kind: 'invalid' }> | null> {
    if (typeof team !== 'string') return null;
    const { alarm, now } = this.ports;
    await alarm.setBy(now() + RETRY_AFTER_MS);
    if (TEAM_ID.test(team) && (await this.holder.join(team))) return null;
    return { kind: 'invalid', message: `There is no team ${team.slice(0, 100)}`, param: 'team' };
  }

  async revokeKey(id: string): Promise<void> {
    const { sql, alarm, now } = this.ports;
    try {
      await this.key.revokeKey(id);
    } finally {
      const isKept = this.holder.children.names(1).length > 0 || this.holder.hasTeams || hasErasedSpent(sql);
      if (isKept) await alarm.setBy(now());
    }
  }
}
