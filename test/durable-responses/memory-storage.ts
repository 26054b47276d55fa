/** The storage of one object in memory, which outlives the object's instances and can fail. */
import { DatabaseSync } from 'node:sqlite';
import type { Sql } from '../../src/durable-responses/tables.ts';

export class MemoryStorage implements Sql {
  readonly #database = new DatabaseSync(':memory:');
  alarm: number | null = null;
  /** With it every statement fails. */
  failure: Error | null = null;

  exec<Row>(query: string, ...bindings: readonly SqlStorageValue[]): { toArray(): Row[] } {
    if (this.failure !== null) throw this.failure;
    const values = bindings.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    const rows = this.#database.prepare(query).all(...values);
    return { toArray: () => rows as Row[] };
  }

  transaction(write: () => void): void {
    this.#database.exec('SAVEPOINT one');
    try {
      write();
      this.#database.exec('RELEASE one');
    } catch (error) {
      this.#database.exec('ROLLBACK TO one; RELEASE one');
      throw error;
    }
  }

  get tables(): number {
    return this.exec("SELECT name FROM sqlite_master WHERE type = 'table'").toArray().length;
  }

  clear(): void {
    for (const table of ['response', 'kept', 'kept_sums']) this.exec(`DROP TABLE IF EXISTS ${table}`);
    this.alarm = null;
  }
}
