/** Tables of sums: rows that are added to, replaced by absolute values, and read by their keys. */
import {
  AMOUNTS,
  addition,
  type Columns,
  combine,
  createSumTable,
  DIMENSIONS,
  fromColumns,
  MAX_SPEED_CHARS,
  readColumns,
  rowsFrom,
  shortenSpeeds,
  toColumns,
  valuesOf,
} from './sum-columns.ts';

/** The values of a row's primary key, in the order of its columns. */
export type SumKey = readonly SqlStorageValue[];

export interface StoredSum {
  readonly key: SumKey;
  readonly columns: Columns;
}

/** Rows of one statement: SQLite takes a parameter of two million bytes, and a row has at most about 2,000. */
const ROWS_AT_ONCE = 500;

export class SumTable {
  readonly name: string;
  /** The columns of the primary key. */
  readonly keys: readonly string[];
  readonly #before: Readonly<Record<string, 'INTEGER' | 'TEXT'>>;
  readonly #same: string;

  /** @param before the columns that precede the dimensions, with their types: together they are the primary key */
  constructor(name: string, before: Readonly<Record<string, 'INTEGER' | 'TEXT'>>) {
    this.name = name;
    this.#before = before;
    this.keys = [...Object.keys(before), ...DIMENSIONS];
    this.#same = this.keys.map((key) => `${key} = ?`).join(' AND ');
  }

  create(sql: SqlStorage): void {
    createSumTable(sql, this.name, this.#before);
  }

  /** Adds to the stored rows, and creates those that are missing. @returns each row's key and its requests afterwards */
  add(
    sql: SqlStorage,
    rows: readonly StoredSum[],
  ): readonly { readonly key: SumKey; readonly requests: number }[] {
    const query = `INSERT INTO ${this.name} ${this.#insert} ON CONFLICT DO UPDATE SET ${addition((name) => `excluded.${name}`)}
      RETURNING requests, LENGTH(speeds), ${this.keys.join(', ')}`;
    return parts(rows).flatMap((some) =>
      [...sql.exec(query, jsonOf(some)).raw()].map(([requests, speedChars, ...key]) => {
        if (Number(speedChars) > MAX_SPEED_CHARS) this.#shorten(sql, key);
        return { key, requests: Number(requests) };
      }),
    );
  }

  #shorten(sql: SqlStorage, key: SumKey): void {
    const { speeds } = sql.exec(`SELECT speeds FROM ${this.name} WHERE ${this.#same}`, ...key).one();
    const text = String(speeds);
    // The rows may contain the key several times: after the first it is short.
    if (text.length <= MAX_SPEED_CHARS) return;
    sql.exec(`UPDATE ${this.name} SET speeds = ? WHERE ${this.#same}`, shortenSpeeds(text), ...key);
  }

  /** Stores rows as they are. */
  replace(sql: SqlStorage, rows: readonly StoredSum[]): void {
    const query = `INSERT INTO ${this.name} ${this.#insert} ON CONFLICT DO UPDATE SET
      ${AMOUNTS.map((name) => `${name} = excluded.${name}`).join(', ')}`;
    for (const some of parts(rows)) sql.exec(query, jsonOf(some));
  }

  /** Subtracts from the stored rows, and deletes those that have no requests left. */
  subtract(sql: SqlStorage, rows: readonly StoredSum[]): void {
    for (const { key, columns } of rows) {
      const [stored] = this.read(sql, [key]);
      if (stored === undefined) continue;
      const left = difference(stored.columns, columns);
      if (requestsOf(left) > 0) this.replace(sql, [{ key, columns: left }]);
      else sql.exec(`DELETE FROM ${this.name} WHERE ${this.#same}`, ...key);
    }
  }

  /** The stored rows of these keys. */
  read(sql: SqlStorage, keys: readonly SumKey[]): readonly StoredSum[] {
    const same = this.keys.map((key, i) => `${this.name}.${key} = wanted.value ->> ${i}`).join(' AND ');
    // CROSS JOIN keeps the order: each wanted key is one search.
    const query = `SELECT ${this.#columns} FROM json_each(?) AS wanted CROSS JOIN ${this.name} WHERE ${same}`;
    return parts(keys).flatMap((some) =>
      [...sql.exec(query, JSON.stringify(some)).raw()].map((row) => this.decode(row)),
    );
  }

  /**
   * Rows in the order of their keys, whose first column is in the span.
   * @param after the key before the first one; null: from the first
   */
  page(
    sql: SqlStorage,
    { from, to }: { readonly from: number; readonly to: number },
    after: SumKey | null,
    limit: number,
  ): readonly StoredSum[] {
    const keys = this.keys.join(', ');
    const first = this.keys[0];
    const later = after === null ? '' : `AND (${keys}) > (${this.keys.map(() => '?').join(', ')})`;
    const query = `SELECT ${this.#columns} FROM ${this.name} WHERE ${first} >= ? AND ${first} < ? ${later} ORDER BY ${keys} LIMIT ?`;
    return [...sql.exec(query, from, to, ...(after ?? []), limit).raw()].map((row) => this.decode(row));
  }

  /** Reads a row that has the columns of the key and the amounts. */
  decode(row: readonly SqlStorageValue[]): StoredSum {
    return { key: row.slice(0, this.keys.length), columns: readColumns(row.slice(this.keys.length)) };
  }

  get #columns(): string {
    return [...this.keys, ...AMOUNTS].map((name) => `${this.name}.${name}`).join(', ');
  }

  get #insert(): string {
    return rowsFrom(Object.keys(this.#before).length);
  }
}

/** Identifies a key in a map or a set. */
export function keyText(key: SumKey): string {
  return JSON.stringify(key);
}

export function requestsOf({ numbers: [requests = 0] }: Columns): number {
  return requests;
}

/** What was added to `before` to make `after`. */
export function difference(after: Columns, before: Columns): Columns {
  // The currency is in the key.
  return toColumns(combine(fromColumns('', after), fromColumns('', before), -1));
}

function jsonOf(rows: readonly StoredSum[]): string {
  return JSON.stringify(rows.map(({ key, columns }) => [...key, ...valuesOf(columns)]));
}

function parts<T>(all: readonly T[]): (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / ROWS_AT_ONCE) }, (_, n) =>
    all.slice(n * ROWS_AT_ONCE, (n + 1) * ROWS_AT_ONCE),
  );
}
