/** The object of a team: its limits, its entry in KV, and what its keys and its people hold of them. */
import { dayOf, type KeyStanding } from '../../auth/key-limits.ts';
import { readKey } from '../../auth/keys.ts';
import { NOBODY } from '../../auth/people.ts';
import { readTeam } from '../../auth/teams.ts';
import { DAY_MS } from '../../metering/time.ts';
import type { JsonObject } from '../../shared/json.ts';
import { PEOPLE, type TeamObjectCalls, teamObject, userObject } from '../ledger-calls.ts';
import type { LeaseAnswer, LeaseMessage, OpenAnswer } from '../limits/allowance.ts';
import { isPerson } from '../limits/children.ts';
import { LimitedRole, MAX_CLEARED } from './limited.ts';
import type { RolePorts } from './ports.ts';
import { type Role, succeeds } from './role.ts';

/** A key is stored in KV after its team counts it, and KV shows it within a minute. */
const SURELY_STORED_MS = DAY_MS;
const MAX_REVOKE_MS = 1000;

export class TeamRole extends LimitedRole implements Role, TeamObjectCalls {
  readonly kind = 'a team';
  readonly jobs = [
    this.settleExpired,
    (now: number) => this.clear(this.holder.children.people(MAX_CLEARED), now),
    this.forgetErased,
    this.sendAlerts,
  ];
  readonly #teamId: string;

  constructor(ports: RolePorts, teamId: string) {
    super(ports, {
      level: 'team',
      name: teamObject(teamId),
      keyId: teamObject(teamId),
      openParent: null,
      childObject: (child) => (isPerson(child) ? userObject(teamObject(teamId), child) : child),
      readName: async (store) => (await readTeam(store, teamId))?.name ?? null,
      teamId,
    });
    this.#teamId = teamId;
  }

  get hasWork(): boolean {
    const hasPeople = () => this.key.isSurelyRevoked && this.holder.children.people(1).length > 0;
    return this.hasLimitWork || hasPeople();
  }

  override async standing(listed: JsonObject | null = null): Promise<KeyStanding> {
    return { ...(await super.standing(listed)), keys: this.holder.children.members };
  }

  async deleteTeam(created_at = ''): Promise<number> {
    const { children } = this.holder;
    if (children.members > 0) await this.#dropRevoked();
    if (children.members > 0) return children.members;
    // Before the team is gone: nobody must fall under a team that does not exist.
    const people = this.ports.objects().getByName(PEOPLE);
    const team = { id: this.#teamId, created_at };
    const removed = await people.changePeople(team, NOBODY);
    // A key has joined meanwhile.
    if (children.members > 0) {
      if (removed.kind === 'changed') await people.changePeople(team, removed.before);
      return children.members;
    }
    await this.key.revokeKey(this.#teamId);
    if (this.hasWork) await this.ports.alarm.setBy(this.ports.now());
    return 0;
  }

  /** A key whose object was not reached when it was revoked is still a member: it is revoked again, and not counted. */
  async #dropRevoked(): Promise<void> {
    const { store, objects, now } = this.ports;
    const { children } = this.holder;
    if (store === null) return;
    const dropUnknown = async (id: string) => {
      if ((await readKey(store, id)) !== null) return;
      await succeeds(objects().getByName(id).revokeKey(id), MAX_REVOKE_MS);
      children.leave(id);
    };
    const idle = children.membersBefore(dayOf(now() - SURELY_STORED_MS), MAX_CLEARED);
    await Promise.all(idle.map(dropUnknown));
  }

  async peopleAmong(people: readonly string[]): Promise<readonly string[]> {
    return this.holder.children.among(people);
  }

  override async openUser(child: string, listed?: JsonObject | null, hash?: string): Promise<OpenAnswer> {
    await this.#restore();
    return super.openUser(child, listed, hash);
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
