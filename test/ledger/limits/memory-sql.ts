/** The SQL storage of a key's ledger object in memory, with helpers that build calls. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { type LimitsResult, readLimits } from '../../../src/auth/key-limits.ts';
import { Holder } from '../../../src/ledger/limits/holder.ts';
import {
  changeLimits,
  createLimitTables,
  forgetTables,
  type Sql,
} from '../../../src/ledger/limits/limit-tables.ts';
import type { Reservation, ReserveRequest } from '../../../src/ledger/limits/reservations.ts';
import type { Charge } from '../../../src/metering/record.ts';
import type { JsonObject } from '../../../tools/simulator/json.ts';

/** A Saturday noon. */
export const NOW = Date.UTC(2026, 10, 21, 12);
export const MINUTE = 60_000;

export class MemorySql implements Sql {
  readonly #database = new DatabaseSync(':memory:');
  readonly #statements = new Map<string, StatementSync>();

  /** @param limits null: limits were never set */
  constructor(limits: JsonObject | null = null) {
    createLimitTables(this);
    if (limits !== null) this.limit(limits);
  }

  exec<Row>(query: string, ...bindings: readonly SqlStorageValue[]): { toArray(): Row[] } {
    const values = bindings.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    const known = this.#statements.get(query);
    const statement = known ?? this.#database.prepare(query);
    if (known === undefined) this.#statements.set(query, statement);
    const rows = statement.all(...values);
    return { toArray: () => rows as Row[] };
  }

  limit(limits: JsonObject): LimitsResult {
    return changeLimits(this, limits);
  }

  /** Drops all tables. */
  clear(): void {
    const tables = this.exec<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table'",
    ).toArray();
    for (const { name } of tables) this.exec(`DROP TABLE ${name}`);
    forgetTables(this);
  }

  count(table: string): number {
    return Number(this.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).toArray()[0]?.n);
  }

  /** Reserves 10 tokens of prompt and 90 of output, unless `fields` has other values. */
  reserve(id: string, fields: Partial<ReserveRequest> = {}, now = NOW): KeyReservation {
    return reserve(this, { ...request(id), ...fields }, now);
  }
}

type KeyReservation = Extract<Reservation, { kind: 'reserved' | 'refused' }>;

/** As the object of a key does: at once, without calls to others. */
export function reserve(sql: MemorySql, asked: ReserveRequest, now: number): KeyReservation {
  const reservation = new Holder({
    ...{ level: 'key', name: 'k', sql, now: () => now, parent: null, isRevoked: () => false },
    transaction: (act) => transaction(sql, act),
    ...{ returnLease: async () => false, forget: async () => {}, wakeBy: () => {}, log: () => {} },
    reportCharges: async () => {},
    silentMs: () => 11 * MINUTE,
  }).reserve(asked);
  if (reservation instanceof Promise || reservation.kind === 'shared' || reservation.kind === 'revoked')
    throw new Error('A key without users decides at once');
  return reservation;
}

/** All that `act` writes, or nothing. */
export function transaction<Value>(sql: MemorySql, act: () => Value): Value {
  sql.exec('SAVEPOINT act');
  try {
    const value = act();
    sql.exec('RELEASE act');
    return value;
  } catch (error) {
    forgetTables(sql);
    sql.exec('ROLLBACK TO act');
    sql.exec('RELEASE act');
    throw error;
  }
}

export function request(id: string): ReserveRequest {
  return {
    id,
    promptTokens: 10,
    estimatedPromptTokens: 4,
    outputTokens: 90,
    choices: 1,
    price: { currency: 'USD', prompt: 1_000_000, output: 2_000_000 },
    expiresAfterMs: 11 * MINUTE,
  };
}

export function used(tokens: number, nano: number | null = null, currency = 'USD'): Charge {
  return { tokens, cost: nano === null ? null : { currency, nano } };
}

export function limitsOf(body: JsonObject) {
  const read = readLimits(body);
  if (read.kind === 'invalid') throw new Error(read.message);
  return read.limits;
}
