/** The object of a team: its limits, its entry in KV, and what its keys hold of them. */
import type { KeyStanding } from '../../auth/key-limits.ts';
import { readTeam } from '../../auth/teams.ts';
import type { JsonObject } from '../../shared/json.ts';
import { type TeamObjectCalls, teamObject } from '../ledger-calls.ts';
import type { LeaseAnswer, LeaseMessage, OpenAnswer } from '../limits/allowance.ts';
import { LimitedRole } from './limited.ts';
import type { RolePorts } from './ports.ts';
import type { Role } from './role.ts';

export class TeamRole extends LimitedRole implements Role, TeamObjectCalls {
  readonly kind = 'a team';
  readonly jobs = [this.settleExpired, this.sendAlerts];
  readonly #teamId: string;

  constructor(ports: RolePorts, teamId: string) {
    super(ports, {
      level: 'team',
      name: teamObject(teamId),
      keyId: teamObject(teamId),
      openParent: null,
      childObject: (keyId) => keyId,
      readName: async (store) => (await readTeam(store, teamId))?.name ?? null,
      teamId,
    });
    this.#teamId = teamId;
  }

  get hasWork(): boolean {
    return this.hasLimitWork;
  }

  override async standing(listed: JsonObject | null = null): Promise<KeyStanding> {
    return { ...(await super.standing(listed)), keys: this.holder.children.members };
  }

  async deleteTeam(): Promise<number> {
    const keys = this.holder.children.members;
    if (keys === 0) await this.key.revokeKey(this.#teamId);
    return keys;
  }

  override async openUser(keyId: string, listed?: JsonObject | null, hash?: string): Promise<OpenAnswer> {
    await this.#restore();
    return super.openUser(keyId, listed, hash);
  }

  override async lease(message: LeaseMessage): Promise<LeaseAnswer> {
    await this.#restore();
    return super.lease(message);
  }

  /** A new object, as after a restoration from a backup, takes the team from KV. */
  async #restore(): Promise<void> {
    const { store } = this.ports;
    if (store === null || this.key.isStored) return;
    const key = await readTeam(store, this.#teamId);
    if (key !== null) await this.key.changeKey({ key, fields: {}, limits: key.limits ?? {} });
  }
}
