/**
 * The people of teams: callers of Cloudflare Access without a gateway key, who fall under the limits of a team. Which
 * team that is, is decided by the rules of all teams, which KV has in one entry: an isolate reads it as it reads a key.
 */

import { matchesGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import type { KeyStore } from './keys.ts';

/** ListedEntries of one list of a team, and of the lists of all teams together. */
export const MAX_ENTRIES = 200;
export const MAX_ENTRIES_OF_ALL = 1000;
/** An address has at most 254. */
export const MAX_ENTRY_CHARS = 256;
/** Groups of one token. Each is compared with the globs of all teams. */
export const MAX_GROUPS = 1000;

/** Who falls under a team: the fields of the team that say it. Absent: nobody by it. */
export interface PeopleFields {
  /** Globs over addresses, in lower case; without an `@` over names of service tokens. `*` alone is everybody. */
  readonly people?: readonly string[] | undefined;
  /** Names or globs of groups. */
  readonly groups?: readonly string[] | undefined;
  /** All callers of Access whom no list names. One team at most has it. */
  readonly default?: true | undefined;
}

/** The rules of one team. Of two teams that match in the same way, the older one counts. */
export interface TeamRules extends PeopleFields {
  readonly id: string;
  readonly created_at: string;
}

/** Fields to set; null removes one, an absent field stays. */
export type PeopleChange = { readonly [Field in keyof PeopleFields]: PeopleFields[Field] | null };

export const NOBODY: PeopleChange = { people: null, groups: null, default: null };

/** The groups in a token. What is absent or cannot be read is no membership, and not the same as no groups. */
type Groups =
  | { readonly kind: 'known'; readonly names: readonly string[] }
  | { readonly kind: 'unknown'; readonly reason: string };

export const NO_GROUPS: Groups = { kind: 'known', names: [] };

/** A caller of Access. */
export interface Person {
  /** The address, or the name of a service token. */
  readonly name: string;
  readonly isService: boolean;
  readonly groups: Groups;
}

/** The entry in KV. */
const NAME = 'team-people';
const VERSION = 1;
/** How long an isolate keeps the rules, and KV's own cache. */
const RULES_TTL_MS = 30_000;

/** The fields as they are stored and shown: those that are set. */
export function peopleFields({ people, groups, default: isDefault }: PeopleChange): PeopleFields {
  return {
    ...(people && people.length > 0 && { people }),
    ...(groups && groups.length > 0 && { groups }),
    ...(isDefault && { default: isDefault }),
  };
}

/** Whether nobody falls under a team by these fields. */
export function hasNobody(fields: PeopleFields): boolean {
  return Object.keys(peopleFields(fields)).length === 0;
}

/** What is wrong with an entry of `people`; null: nothing. */
export function personProblem(entry: string): string | null {
  const sides = entry.split('@');
  return sides.length <= 2 && sides.every((side) => side !== '') && !/\s/.test(entry)
    ? null
    : 'must be an address with *, as *@example.com, or the name of a service token';
}

/** Stores the rules of all teams in KV. */
export async function putRules(store: Pick<KeyStore, 'put'>, teams: readonly TeamRules[]): Promise<void> {
  await store.put(NAME, JSON.stringify({ version: VERSION, teams }));
}

/**
 * The rules of all teams; `unreadable`: nobody knows who falls under which team.
 * @param cacheTtl for how many seconds KV may return a cached value
 */
export async function readRules(
  store: Pick<KeyStore, 'get'>,
  cacheTtl?: number,
): Promise<readonly TeamRules[] | 'unreadable'> {
  try {
    return decodeRules(await store.get(NAME, { type: 'json', ...(cacheTtl && { cacheTtl }) }));
  } catch {
    return 'unreadable';
  }
}

function decodeRules(stored: unknown): readonly TeamRules[] | 'unreadable' {
  if (stored === null || stored === undefined) return [];
  if (!isObject(stored) || stored.version !== VERSION || !Array.isArray(stored.teams)) return 'unreadable';
  const rules = readArray(stored.teams).map(decodeRule);
  return rules.some((rule) => rule === null) ? 'unreadable' : rules.filter((rule) => rule !== null);
}

/** Null where it has not the form of {@link TeamRules}. */
export function decodeRule(stored: unknown): TeamRules | null {
  if (!isObject(stored)) return null;
  const { people = [], groups = [], default: isDefault = false, ...others } = stored;
  const [id, created_at] = [readText(others.id), readText(others.created_at)];
  const isReadable = isTexts(people) && isTexts(groups) && typeof isDefault === 'boolean';
  if (id === undefined || created_at === undefined || !isReadable) return null;
  return { id, created_at, ...peopleFields({ people, groups, ...(isDefault && { default: true }) }) };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/** The team of a person: `none`, or `unknown` where a group may decide it and the token's groups are not known. */
type FoundTeam =
  | { readonly kind: 'team'; readonly id: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown'; readonly reason: string };

/** One kind of entry of all teams: names that must be equal come before globs, and older teams before younger ones. */
class ListedEntries {
  readonly #names = new Map<string, string>();
  readonly #globs: { readonly glob: string; readonly id: string }[] = [];

  add(entry: string, id: string): void {
    if (entry.includes('*')) this.#globs.push({ glob: entry, id });
    else if (!this.#names.has(entry)) this.#names.set(entry, id);
  }

  get isEmpty(): boolean {
    return this.#names.size === 0 && this.#globs.length === 0;
  }

  named(name: string): string | undefined {
    return this.#names.get(name);
  }

  matching(names: readonly string[]): string | undefined {
    return this.#globs.find(({ glob }) => names.some((name) => matchesGlob(glob, name)))?.id;
  }
}

/** The rules of all teams, as requests use them. */
export class PeopleRules {
  readonly #addresses = new ListedEntries();
  readonly #services = new ListedEntries();
  readonly #groups = new ListedEntries();
  readonly #order = new Map<string, number>();
  #default: string | undefined;

  constructor(teams: readonly TeamRules[]) {
    const byAge = [...teams].sort((a, b) => compare(a.created_at, b.created_at) || compare(a.id, b.id));
    for (const { id, people = [], groups = [], default: isDefault } of byAge) {
      this.#order.set(id, this.#order.size);
      for (const entry of people) {
        if (entry.includes('@') || entry === '*') this.#addresses.add(entry, id);
        if (!entry.includes('@')) this.#services.add(entry, id);
      }
      for (const entry of groups) this.#groups.add(entry, id);
      if (isDefault) this.#default ??= id;
    }
  }

  /**
   * `people` comes before `groups`, `groups` before `default`; in each list an entry without `*` before a glob; then the older team. A
   * person without a team is as before teams.
   */
  teamOf({ name, isService, groups }: Person): FoundTeam {
    const people = isService ? this.#services : this.#addresses;
    const names = groups.kind === 'known' && !isService ? groups.names : [];
    const id =
      people.named(name) ??
      people.matching([name]) ??
      this.#oldest(names.map((group) => this.#groups.named(group))) ??
      this.#groups.matching(names) ??
      this.#default;
    if (id !== undefined) return { kind: 'team', id };
    const mayDecide = groups.kind === 'unknown' && !isService && !this.#groups.isEmpty;
    return mayDecide ? { kind: 'unknown', reason: groups.reason } : { kind: 'none' };
  }

  #oldest(ids: readonly (string | undefined)[]): string | undefined {
    const rankOf = (id: string) => this.#order.get(id) ?? 0;
    return ids.reduce((oldest, id) => {
      if (oldest === undefined || id === undefined) return oldest ?? id;
      return rankOf(id) < rankOf(oldest) ? id : oldest;
    }, undefined);
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What an isolate knows of the rules. A change arrives as that of a key does: within a minute. */
export class KnownPeople {
  readonly #store: Pick<KeyStore, 'get'>;
  #known: { readonly rules: PeopleRules; readonly until: number } | null = null;

  constructor(store: Pick<KeyStore, 'get'>) {
    this.#store = store;
  }

  /** @param now in ms since the epoch */
  async find(now: number): Promise<PeopleRules | 'unreadable'> {
    if (this.#known !== null && now < this.#known.until) return this.#known.rules;
    const read = await readRules(this.#store, RULES_TTL_MS / 1000);
    // What was known is not used longer: who is no longer in it must not keep what the team allows.
    if (read === 'unreadable') return read;
    const rules = new PeopleRules(read);
    this.#known = { rules, until: now + RULES_TTL_MS };
    return rules;
  }

  /** After this isolate has changed the rules. */
  forget(): void {
    this.#known = null;
  }
}

/** Reads the groups of a token. @param claim the name of the claim; null: the deployment reads none */
export function readGroups(claims: JsonObject, claim: string | null): Groups {
  if (claim === null) return unknown('ACCESS_GROUPS_CLAIM is not set');
  const { custom } = claims;
  const owner = Object.hasOwn(claims, claim) ? claims : isObject(custom) ? custom : {};
  if (!Object.hasOwn(owner, claim)) return unknown(`the token has no claim ${claim}`);
  const value = owner[claim];
  if (!isTexts(value)) return unknown(`the claim ${claim} is no list of texts`);
  if (value.length > MAX_GROUPS) return unknown(`the claim ${claim} has more than ${MAX_GROUPS} groups`);
  return { kind: 'known', names: value };
}

function unknown(reason: string): Groups {
  return { kind: 'unknown', reason };
}
