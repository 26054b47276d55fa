/**
 * Teams: limits and models that several keys share. The ledger object of a team decides; KV has a copy for listings and
 * for the isolates.
 */
import type { JsonObject } from '../shared/json.ts';
import { encodeLimits, limitsInTeam, readLimits, showLimits } from './key-limits.ts';
import type { TeamView } from './key-views.ts';
import { decodeKey, encodeKey, type GatewayKey, type KeyStore, listEntries, metadataOf } from './keys.ts';
import { type PeopleFields, peopleFields } from './people.ts';

/** A team is stored as a key without a secret. Its `limits` also have the defaults for its keys, and its keys may use only its `models`. */
export type Team = Pick<GatewayKey, 'id' | 'name' | 'models' | 'limits' | 'created_at'>;

/** 16 hexadecimal digits, as the id of a key. */
export const TEAM_ID = /^[0-9a-f]{16}$/;

const PREFIX = 'team/';
/** How long an isolate keeps a team, and KV's own cache. */
const TEAM_TTL_MS = 30_000;
/** Teams that an isolate keeps. */
const MAX_KNOWN_TEAMS = 1000;
/** `name` and `models`, as JSON. */
const MAX_TEAM_BYTES = 850;

/** A message if a team is too large, or null. */
export function teamSizeProblem({ name, models }: Pick<Team, 'name' | 'models'>): string | null {
  const bytes = new TextEncoder().encode(JSON.stringify([name, models])).length;
  return bytes <= MAX_TEAM_BYTES ? null : `name and models must not take more than ${MAX_TEAM_BYTES} bytes`;
}

/** Stores a team in KV. */
export async function putTeam(store: KeyStore, team: GatewayKey): Promise<void> {
  const stored = encodeKey(team);
  await store.put(PREFIX + team.id, JSON.stringify(stored), metadataOf(stored));
}

/** Deletes a team from KV. */
export async function deleteTeam(store: KeyStore, id: string): Promise<void> {
  await store.delete(PREFIX + id);
}

/** The team with this id; null: there is none, or it cannot be read. @param cacheTtl for how many seconds KV may return a cached value */
export async function readTeam(
  store: Pick<KeyStore, 'get'>,
  id: string,
  cacheTtl?: number,
): Promise<GatewayKey | null> {
  if (!TEAM_ID.test(id)) return null;
  const options = { type: 'json', ...(cacheTtl && { cacheTtl }) } as const;
  return decodeKey(await store.get(PREFIX + id, options));
}

/** All teams. Entries that cannot be read are left out. */
export async function listTeams(store: KeyStore): Promise<readonly Team[]> {
  const entries = await listEntries(store, PREFIX);
  return [...entries.values()].flatMap((stored) => decodeKey(stored) ?? []);
}

/** A team as responses show it. */
export function writeTeam({
  id,
  name,
  models,
  limits,
  created_at,
  ...people
}: Team & PeopleFields): TeamView {
  return { id, name, models, created_at, ...peopleFields(people), ...showLimits(limits) };
}

/** The stored limits of a key, with the defaults and the budgets of its team. */
export function withTeam(limits: JsonObject | null, team: Team): JsonObject | null {
  const own = readLimits(limits ?? {});
  const ofTeam = readLimits(team.limits ?? {});
  if (own.kind === 'invalid' || ofTeam.kind === 'invalid') return limits;
  return encodeLimits(limitsInTeam(own.limits, ofTeam.limits));
}

/** Caches the teams that this isolate has read. */
export class KnownTeams {
  readonly #store: Pick<KeyStore, 'get'>;
  readonly #known = new Map<string, { readonly team: Team; readonly until: number }>();

  constructor(store: Pick<KeyStore, 'get'>) {
    this.#store = store;
  }

  /** @param now in ms since the epoch */
  async find(id: string, now: number): Promise<Team | null> {
    const known = this.#known.get(id);
    if (known !== undefined && now < known.until) return known.team;
    this.#known.delete(id);
    const team = await readTeam(this.#store, id, TEAM_TTL_MS / 1000);
    if (team === null) return null;
    const [oldest] = this.#known.size >= MAX_KNOWN_TEAMS ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(id, { team, until: now + TEAM_TTL_MS });
    return team;
  }

  forget(id: string): void {
    this.#known.delete(id);
  }
}
