/**
 * The object of one user of a key, of one person of a team, or of several that share an allowance: their part of the limits of the key or the
 * team, of which it holds a copy.
 */
import type { LimitStatus, Limits } from '../../auth/key-limits.ts';
import type { Charge } from '../../metering/record.ts';
import { teamIdOf, type UserObjectCalls } from '../ledger-calls.ts';
import type { Amounts } from '../limits/allowance.ts';
import type { Holder } from '../limits/holder.ts';
import type { Reservation, ReserveRequest } from '../limits/reservations.ts';
import { reservedMs } from '../settings.ts';
import { openHolder } from './limited.ts';
import type { RolePorts } from './ports.ts';
import type { Role } from './role.ts';

export class UserRole implements Role, UserObjectCalls {
  readonly kind = 'a user';
  readonly jobs = [() => this.#holder.alarm()];
  readonly #ports: RolePorts;
  readonly #holder: Holder;

  /** @param keyId of the key, or the name of the team's object */
  constructor(ports: RolePorts, keyId: string, user: string) {
    this.#ports = ports;
    this.#holder = openHolder(ports, {
      level: 'user',
      parentLevel: teamIdOf(keyId) === null ? 'key' : 'team',
      name: user,
      keyId,
      openParent: () => ports.objects().getByName(keyId),
      isRevoked: () => false,
      // It has no children.
      childObject: (child) => child,
      silentMs: () => reservedMs(0),
    });
  }

  get hasWork(): boolean {
    return this.#holder.isOpen;
  }

  async reserveForUser(request: ReserveRequest): Promise<Reservation> {
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

  async userStanding(limits: Limits): Promise<LimitStatus | null> {
    return this.#holder.status(limits);
  }

  async userSpent(): Promise<readonly Amounts[]> {
    return this.#holder.spent;
  }

  async eraseLimits(hash: string): Promise<boolean> {
    await this.#ports.alarm.read();
    return this.#holder.drain(hash);
  }

  async returnLease(): Promise<void> {
    await this.#ports.alarm.read();
    await this.#holder.returnLease();
  }

  async clearUser(): Promise<boolean> {
    await this.#ports.alarm.read();
    return this.#holder.drain(null);
  }
}
