/** The object that runs erasures: their states, and the alarm that takes their steps. */

import type { KeyStore } from '../auth/keys.ts';
import type { Erasures, RequestContext } from '../http/context.ts';
import { type Erasure, isRefusing, putErasing, sameRunning } from '../http/erasure.ts';
import { callTwice } from '../shared/durable-objects.ts';
import { ERASURES, type ErasureCalls, type LedgerNamespace } from './ledger-calls.ts';
import type { Sql } from './limits/limit-tables.ts';
import type { Role } from './roles/role.ts';

/** `erasure` is JSON. */
const TABLE =
  'CREATE TABLE IF NOT EXISTS erasures (id TEXT PRIMARY KEY, due INTEGER NOT NULL, erasure TEXT NOT NULL) STRICT, WITHOUT ROWID';

export interface ErasureRunPorts {
  readonly sql: Sql;
  /** In ms since the epoch. */
  readonly now: () => number;
  readonly store: () => KeyStore;
  /** Takes the steps of an erasure that are due. @returns null: it is forgotten */
  readonly step: (erasure: Erasure) => Promise<Erasure | null>;
  readonly setAlarm: (at: number) => Promise<void>;
}

export class ErasureRun implements Role, ErasureCalls {
  readonly kind = 'the erasures';
  readonly jobs = [() => this.#takeStep()];
  readonly #ports: ErasureRunPorts;

  constructor(ports: ErasureRunPorts) {
    this.#ports = ports;
    ports.sql.exec(TABLE);
  }

  /** Starts an erasure, unless one of the same user runs. A repeated call changes nothing. */
  async startErasure(erasure: Erasure): Promise<Erasure> {
    const running = sameRunning(this.#all, erasure);
    if (running !== undefined && running.id !== erasure.id) return running;
    if (running === undefined) this.#put(erasure);
    try {
      // Without an await before it, so that there is never an erasure without an alarm.
      await this.#ports.setAlarm(this.#nextDue ?? erasure.dueAt);
      await this.#refuse();
    } catch (error) {
      // Nothing has begun, because the user's requests are not refused.
      if (running === undefined) this.#delete(erasure);
      throw error;
    }
    return running ?? erasure;
  }

  async findErasure(id: string): Promise<Erasure | null> {
    return this.#all.find((erasure) => erasure.id === id) ?? null;
  }

  get hasWork(): boolean {
    return this.#nextDue !== null;
  }

  /** When the next step of any erasure is due, in ms since the epoch; null: there is none. */
  get #nextDue(): number | null {
    const query = 'SELECT min(due) AS due FROM erasures';
    return this.#ports.sql.exec<{ due: number | null }>(query).toArray()[0]?.due ?? null;
  }

  /** @returns when the alarm is due again */
  async #takeStep(): Promise<number | null> {
    const { now, step } = this.#ports;
    const [erasure] = this.#all.filter(({ dueAt }) => dueAt <= now()).sort((a, b) => a.dueAt - b.dueAt);
    if (erasure === undefined) return this.#nextDue;
    const next = await step(erasure);
    if (next === null) this.#delete(erasure);
    else this.#put(next);
    if (next === null || !isRefusing(next)) await this.#refuse();
    return this.#nextDue;
  }

  get #all(): readonly Erasure[] {
    const rows = this.#ports.sql.exec<{ erasure: string }>('SELECT erasure FROM erasures').toArray();
    // Only `#put` writes these texts.
    return rows.map(({ erasure }) => JSON.parse(String(erasure)) as Erasure); // decode
  }

  #put(erasure: Erasure): void {
    const json = JSON.stringify(erasure);
    const insert =
      'INSERT INTO erasures VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET due = ?2, erasure = ?3';
    this.#ports.sql.exec(insert, erasure.id, erasure.dueAt, json);
  }

  #delete({ id }: Erasure): void {
    this.#ports.sql.exec('DELETE FROM erasures WHERE id = ?', id);
  }

  async #refuse(): Promise<void> {
    await putErasing(this.#ports.store(), this.#all);
  }
}

/** Erasures in their object. */
export function objectErasures(ledgers: LedgerNamespace): Erasures {
  const object = () => ledgers.getByName(ERASURES);
  return {
    start: (_context: RequestContext, erasure) => callTwice(object, (stub) => stub.startErasure(erasure)),
    find: (_context: RequestContext, id) => callTwice(object, (stub) => stub.findErasure(id)),
  };
}
