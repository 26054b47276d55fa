/** The object that has who falls under which team: changes are made one after the other, and KV gets all of it with each. */
import type { KeyStore } from '../auth/keys.ts';
import {
  decodeRule,
  hasNobody,
  MAX_ENTRIES_OF_ALL,
  type PeopleChange,
  type PeopleFields,
  peopleFields,
  putRules,
  readRules,
  type TeamRules,
} from '../auth/people.ts';
import type { PeopleResult } from '../http/context.ts';
import { parseJson } from '../shared/json.ts';
import type { PeopleCalls } from './ledger-calls.ts';
import { createTables, hasTable } from './limits/limit-tables.ts';
import type { RolePorts } from './roles/ports.ts';
import type { Role } from './roles/role.ts';

const NAME = 'people';
/** `rules` is JSON. */
const TABLE = `CREATE TABLE IF NOT EXISTS ${NAME} (team TEXT PRIMARY KEY, rules TEXT NOT NULL) STRICT, WITHOUT ROWID`;

/** KV accepts one write per second to one entry. */
const RETRY_DELAYS_MS = [1100, 1100];

type PeoplePorts = Pick<RolePorts, 'sql' | 'transaction' | 'store' | 'startTimer'>;
type Team = Pick<TeamRules, 'id' | 'created_at'>;

export class PeopleRole implements Role, PeopleCalls {
  readonly kind = 'the people of teams';
  readonly jobs = [];
  readonly hasWork = false;
  readonly #ports: PeoplePorts;
  /** The last write to KV. The next one waits for it, so that KV ends with the last change. */
  #lastWrite: Promise<void> = Promise.resolve();
  /** The rules have changed since the last write to KV began. */
  #isUnwritten = false;

  constructor(ports: PeoplePorts) {
    this.#ports = ports;
  }

  async changePeople({ id, created_at }: Team, change: PeopleChange): Promise<PeopleResult> {
    await this.#restore();
    const result = this.#ports.transaction(() => this.#change({ id, created_at }, change));
    if (result.kind === 'changed' && Object.keys(change).length > 0) await this.#writeToKv();
    return result;
  }

  #change(team: Team, change: PeopleChange): PeopleResult {
    const all = this.#all;
    const before = peopleFields(all.find(({ id }) => id === team.id) ?? {});
    const after = peopleFields({ ...before, ...change });
    if (Object.keys(change).length === 0) return { kind: 'changed', before, after };
    const rules = { ...team, ...after };
    const others = all.filter(({ id }) => id !== team.id);
    const problem = problemOf(rules, others);
    if (problem !== null) return problem;
    this.#ports.sql.exec(`DELETE FROM ${NAME} WHERE team = ?`, team.id);
    if (!hasNobody(after)) this.#insert(rules);
    return { kind: 'changed', before, after };
  }

  /** A new object, as after a restoration from a backup, takes the rules from KV. */
  async #restore(): Promise<void> {
    const { sql, transaction } = this.#ports;
    if (hasTable(sql, NAME)) return;
    const stored = await readRules(this.#store);
    if (stored === 'unreadable') throw new Error('What KV has of the people of teams cannot be read');
    transaction(() => {
      if (hasTable(sql, NAME)) return;
      createTables(sql, [TABLE]);
      for (const rules of stored) this.#insert(rules);
    });
  }

  get #store(): KeyStore {
    const { store } = this.#ports;
    if (store === null) throw new Error('WEIR_KV is not bound in the Worker that has LedgerObject');
    return store;
  }

  #insert(rules: TeamRules): void {
    this.#ports.sql.exec(`INSERT INTO ${NAME} VALUES (?, ?)`, rules.id, JSON.stringify(rules));
  }

  get #all(): readonly TeamRules[] {
    const rows = this.#ports.sql.exec<{ rules: string }>(`SELECT rules FROM ${NAME}`).toArray();
    return rows.map(({ rules }) => {
      const one = decodeRule(parseJson(rules));
      if (one === null) throw new Error('What is stored of the people of a team cannot be read');
      return one;
    });
  }

  async #writeToKv(): Promise<void> {
    this.#isUnwritten = true;
    const write = this.#lastWrite.then(() => this.#writeWithRetries());
    this.#lastWrite = write.catch(() => {});
    await write;
  }

  async #writeWithRetries(): Promise<void> {
    // An earlier write has already written this state.
    if (!this.#isUnwritten) return;
    for (const delay of [...RETRY_DELAYS_MS, null]) {
      this.#isUnwritten = false;
      try {
        return await putRules(this.#store, this.#all);
      } catch (error) {
        this.#isUnwritten = true;
        if (delay === null) throw error;
        await new Promise<void>((resolve) => this.#ports.startTimer(delay, resolve));
      }
    }
  }
}

function problemOf(rules: TeamRules, others: readonly TeamRules[]): PeopleResult | null {
  const holder = rules.default && others.find((one) => one.default);
  if (holder) {
    const message = `The team ${holder.id} is the default already: set its default to false first`;
    return { kind: 'invalid', message, param: 'default' };
  }
  const entries = [rules, ...others].reduce((sum, one) => sum + entriesOf(one), 0);
  if (entries <= MAX_ENTRIES_OF_ALL || entriesOf(rules) === 0) return null;
  const message = `people and groups of all teams have at most ${MAX_ENTRIES_OF_ALL} entries: this would make ${entries}`;
  return { kind: 'invalid', message, param: (rules.people ?? []).length > 0 ? 'people' : 'groups' };
}

function entriesOf({ people = [], groups = [] }: PeopleFields): number {
  return people.length + groups.length;
}
