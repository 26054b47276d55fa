/** What a key's object does about the key itself: it is changed once at a time, and no more after it was revoked (K2). */

import {
  decodeKey,
  deleteChange,
  type GatewayKey,
  type KeyStore,
  type NewKey,
  putChange,
  sizeProblem,
} from '../auth/keys.ts';
import { isObject, type JsonObject, parseJson } from '../shared/json.ts';
import { readLimits, writeLimits } from './limits/limits.ts';
import { changeLimits, type Sql, storedLimits } from './limits/tables.ts';

export interface KeyChange {
  /** As KV has it: the object knows of none before the first change. */
  readonly key: GatewayKey;
  readonly fields: Partial<Omit<NewKey, 'limits'>>;
  /** Limits that the change names; absent ones stay, null takes one away. */
  readonly limits: JsonObject;
}

export type KeyChangeResult =
  | { readonly kind: 'changed'; readonly key: GatewayKey }
  | { readonly kind: 'revoked' }
  | { readonly kind: 'invalid'; readonly message: string; readonly param: string };

/** A key's object, as the admin's routes call it. A repeated call changes nothing. */
export interface KeyCalls {
  changeKey(change: KeyChange): Promise<KeyChangeResult>;
  /** From now on every change is refused; what the key was is forgotten. */
  revokeKey(id: string): Promise<void>;
}

export interface LedgerKeyPorts {
  readonly sql: Sql;
  readonly transaction: <Value>(act: () => Value) => Value;
  /** Null where it is not bound. */
  readonly store: KeyStore | null;
  readonly wait: (ms: number) => Promise<void>;
}

/** KV takes one write a second to one entry. */
const RETRY_DELAYS_MS = [1100, 1100];

/** `json` null: the key was revoked. */
const TABLE =
  'CREATE TABLE IF NOT EXISTS held_key (only INTEGER PRIMARY KEY CHECK (only = 1), json TEXT) STRICT';

export class LedgerKey implements KeyCalls {
  readonly #ports: LedgerKeyPorts;
  /** The last write to KV: the next one waits for it. */
  #written: Promise<void> = Promise.resolve();
  #isNewer = false;

  constructor(ports: LedgerKeyPorts) {
    this.#ports = ports;
    ports.sql.exec(TABLE);
  }

  async changeKey(change: KeyChange): Promise<KeyChangeResult> {
    const result = this.#ports.transaction(() => this.#change(change));
    if (result.kind === 'changed') await this.#write(change.key.id);
    return result;
  }

  async revokeKey(id: string): Promise<void> {
    this.#keep(null);
    await this.#write(id);
  }

  #change({ key, fields, limits }: KeyChange): KeyChangeResult {
    const { sql } = this.#ports;
    const held = this.#held();
    if (held === null) return { kind: 'revoked' };
    const read = readLimits(limits, storedLimits(sql));
    if (read.kind === 'invalid') return read;
    const changed = { ...(held ?? key), ...fields, limits: writeLimits(read.limits) };
    const tooLarge = sizeProblem(changed);
    if (tooLarge !== null) return { kind: 'invalid', message: tooLarge, param: 'models' };
    if (Object.keys(limits).length > 0) changeLimits(sql, limits);
    this.#keep(changed);
    return { kind: 'changed', key: changed };
  }

  /** The key; undefined where it was never changed here, null where it was revoked. */
  #held(): GatewayKey | null | undefined {
    const [row] = this.#ports.sql.exec<{ json: string | null }>('SELECT json FROM held_key').toArray();
    if (row === undefined) return undefined;
    const stored = row.json === null ? null : parseJson(row.json);
    return isObject(stored) ? decodeKey(stored) : null;
  }

  #keep(key: GatewayKey | null): void {
    const json = key === null ? null : JSON.stringify(key);
    this.#ports.sql.exec(
      'INSERT INTO held_key VALUES (1, ?) ON CONFLICT DO UPDATE SET json = excluded.json',
      json,
    );
  }

  /** Writes what is held now into KV, after any write that is under way: what was changed last is written last. */
  #write(id: string): Promise<void> {
    this.#isNewer = true;
    const written = this.#written.then(() => this.#writeHeld(id));
    this.#written = written.catch(() => {});
    return written;
  }

  async #writeHeld(id: string): Promise<void> {
    const { store, wait } = this.#ports;
    if (store === null) throw new Error('WEIR_KV is not bound in the Worker that has LedgerObject');
    // A write that came before it was of this state, too.
    if (!this.#isNewer) return;
    for (const delay of [...RETRY_DELAYS_MS, null]) {
      this.#isNewer = false;
      const held = this.#held();
      try {
        return held ? await putChange(store, held) : await deleteChange(store, id);
      } catch (error) {
        this.#isNewer = true;
        if (delay === null) throw error;
        await wait(delay);
      }
    }
  }
}
