/**
 * The object of one user of a key, of one person of a team, or of several that share an allowance: their part of the
 * limits of the key or the team, of which it holds a copy.
 */
import type { LimitStatus, Limits } from '../../auth/key-limits.ts';
import { teamIdOf, type UserObjectCalls } from '../ledger-calls.ts';
import type { Amounts } from '../limits/allowance.ts';
import type { Reservation, ReserveRequest } from '../limits/reservations.ts';
import { LeasingRole } from './limited.ts';
import type { RolePorts } from './ports.ts';
import type { Role } from './role.ts';

export class UserRole extends LeasingRole implements Role, UserObjectCalls {
  readonly kind = 'a user';
  readonly jobs = [() => this.holder.alarm()];

  /** @param keyId of the key, or the name of the team's object */
  constructor(ports: RolePorts, keyId: string, user: string) {
    const parentLevel = teamIdOf(keyId) === null ? 'key' : 'team';
    super(ports, { level: 'user', parentLevel, name: user, keyId });
  }

  get hasWork(): boolean {
    return this.holder.isOpen;
  }

  async reserveForUser(request: ReserveRequest): Promise<Reservation> {
    return this.admit(request);
  }

  async userStanding(limits: Limits): Promise<LimitStatus | null> {
    return this.holder.status(limits);
  }

  async userSpent(): Promise<readonly Amounts[]> {
    return this.holder.spent;
  }

  async eraseLimits(hash: string): Promise<boolean> {
    await this.ports.alarm.read();
    return this.holder.drain(hash);
  }
}
