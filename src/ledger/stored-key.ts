/** A gateway key in its ledger object: changes are applied one after the other, and refused once the key is revoked. */
import { encodeLimits, NO_LIMITS, readLimits, teamOf } from '../auth/key-limits.ts';
import type { KeyChange, KeyChangeResult } from '../auth/keys.ts';
import {
  applyChange,
  decodeKey,
  deleteChange,
  encodeKey,
  type GatewayKey,
  type KeyStore,
  putChange,
  sizeProblem,
} from '../auth/keys.ts';
import { deleteTeam, putTeam, teamSizeProblem } from '../auth/teams.ts';
import { parseJson } from '../shared/json.ts';
import type { KeyCalls } from './ledger-calls.ts';
import {
  type Sql,
  storedLimits,
  storeLimits,
  UnreadableRow,
  unreadableReason,
} from './limits/limit-tables.ts';

export interface StoredKeyPorts {
  readonly sql: Sql;
  readonly transaction: <Value>(act: () => Value) => Value;
  /** Null where it is not bound. */
  readonly store: KeyStore | null;
  /** It is a team, which is stored as a key is. */
  readonly isTeam?: boolean;
  readonly wait: (ms: number) => Promise<void>;
}

/** KV accepts one write per second to one entry. */
const RETRY_DELAYS_MS = [1100, 1100];

/** `json` is null for a revoked key. */
const TABLE =
  'CREATE TABLE IF NOT EXISTS held_key (only INTEGER PRIMARY KEY CHECK (only = 1), json TEXT) STRICT';

export class StoredKey implements KeyCalls {
  readonly #ports: StoredKeyPorts;
  /** The last write to KV. The next one waits for it. */
  #lastWrite: Promise<void> = Promise.resolve();
  /** The stored key has changed since the last write to KV began. */
  #isUnwritten = false;

  constructor(ports: StoredKeyPorts) {
    this.#ports = ports;
    ports.sql.exec(TABLE);
  }

  /** Whether it was ever changed or revoked. A team is from its creation on. */
  get isStored(): boolean {
    return this.#ports.sql.exec('SELECT 1 AS one FROM held_key').toArray().length > 0;
  }

  /** @throws UnreadableRow */
  get isRevoked(): boolean {
    return this.#read() === null;
  }

  /** False also where it cannot be read: nothing is deleted because of it. */
  get isSurelyRevoked(): boolean {
    const [row] = this.#ports.sql.exec<{ json: string | null }>('SELECT json FROM held_key').toArray();
    return row?.json === null;
  }

  async changeKey(change: KeyChange): Promise<KeyChangeResult> {
    const result = this.#ports.transaction(() => this.#change(change));
    if (result.kind === 'changed') await this.#writeToKv(change.key.id);
    return result;
  }

  async revokeKey(id: string): Promise<void> {
    this.#store(null);
    await this.#writeToKv(id);
  }

  /** Revokes the key if it fixes one of these users. */
  async revokeOf(users: readonly string[], id: string): Promise<void> {
    const query = "SELECT 1 FROM held_key WHERE json ->> 'user' IN (SELECT value FROM json_each(?))";
    if (this.#ports.sql.exec(query, JSON.stringify(users)).toArray().length > 0) await this.revokeKey(id);
  }

  /** Why a change is refused; null: it is not. */
  refusalOf(change: KeyChange): Exclude<KeyChangeResult, { kind: 'changed' }> | null {
    const changed = this.#changed(change);
    return changed.kind === 'changed' ? null : changed;
  }

  #change(change: KeyChange): KeyChangeResult {
    const changed = this.#changed(change);
    if (changed.kind !== 'changed') return changed;
    const { limits, ...result } = changed;
    if (change.replacesLimits || Object.keys(change.limits).length > 0) storeLimits(this.#ports.sql, limits);
    this.#store(result.key);
    return result;
  }

  /** What a change makes of the key. */
  #changed(change: KeyChange) {
    const { key, limits, replacesLimits = false } = change;
    const { sql } = this.#ports;
    if (this.isSurelyRevoked) return { kind: 'revoked' } as const;
    const stored = replacesLimits && !this.#isReadable ? undefined : this.#read();
    const team = teamOf(key.limits);
    // The key stays in its team unless the change names another one.
    const before = replacesLimits
      ? { ...NO_LIMITS, ...(team !== null && { team }) }
      : storedLimits(sql, key.limits);
    const parsedLimits = readLimits(limits, before);
    if (parsedLimits.kind === 'invalid') return parsedLimits;
    const current = stored ?? key;
    const changed = { ...applyChange(current, change), limits: encodeLimits(parsedLimits.limits) };
    const tooLarge = this.#ports.isTeam ? teamSizeProblem(changed) : sizeProblem(changed);
    if (tooLarge !== null) return { kind: 'invalid', message: tooLarge, param: 'models' } as const;
    return { kind: 'changed', key: changed, before: current, limits: parsedLimits.limits } as const;
  }

  /**
   * Undefined where the key was never changed; null where it was revoked.
   * @throws UnreadableRow
   */
  #read(): GatewayKey | null | undefined {
    const [row] = this.#ports.sql.exec<{ json: string | null }>('SELECT json FROM held_key').toArray();
    if (row === undefined) return undefined;
    if (row.json === null) return null;
    const key = decodeKey(parseJson(row.json));
    if (key === null) throw new UnreadableRow('the key is not readable');
    return key;
  }

  get #isReadable(): boolean {
    try {
      this.#read();
      return true;
    } catch (error) {
      if (unreadableReason(error) === null) throw error;
      return false;
    }
  }

  #store(key: GatewayKey | null): void {
    const json = key === null ? null : JSON.stringify(encodeKey(key));
    this.#ports.sql.exec(
      'INSERT INTO held_key VALUES (1, ?) ON CONFLICT DO UPDATE SET json = excluded.json',
      json,
    );
  }

  /** Writes the stored key to KV after any earlier write, so that KV ends with the last change. */
  #writeToKv(id: string): Promise<void> {
    this.#isUnwritten = true;
    const nextWrite = this.#lastWrite.then(() => this.#writeWithRetries(id));
    this.#lastWrite = nextWrite.catch(() => {});
    return nextWrite;
  }

  async #writeWithRetries(id: string): Promise<void> {
    const { store, wait } = this.#ports;
    if (store === null) throw new Error('WEIR_KV is not bound in the Worker that has LedgerObject');
    // An earlier write has already written this state.
    if (!this.#isUnwritten) return;
    for (const delay of [...RETRY_DELAYS_MS, null]) {
      this.#isUnwritten = false;
      const key = this.#read();
      try {
        if (this.#ports.isTeam) return key ? await putTeam(store, key) : await deleteTeam(store, id);
        return key ? await putChange(store, key) : await deleteChange(store, id);
      } catch (error) {
        this.#isUnwritten = true;
        if (delay === null) throw error;
        await wait(delay);
      }
    }
  }
}
