/** The SQLite table of one response: its facts, its input, and the blocks of its events. */
import { parseJson } from '../shared/json.ts';
import type { Block, BlockStore } from './event-log.ts';
import { joinBytes } from './frames.ts';

/** The part of `SqlStorage` that is used. */
export interface Sql {
  exec<Row extends Record<string, SqlStorageValue>>(
    query: string,
    ...bindings: readonly SqlStorageValue[]
  ): { toArray(): Row[] };
}

/** A value of a row has at most 2 MB in a Durable Object: longer ones are stored in parts. */
const MAX_PART_BYTES = 1024 * 1024;
/** The most parts of one block. A block above {@link MAX_PART_BYTES} has one frame, which `RESPONSE_BYTES` bounds. */
const MAX_PARTS = 4096;

/**
 * One table, because creating one costs three written rows. `at` is -1 for the facts of the response (JSON), -2, -3, … for the parts of
 * its input, and `last * MAX_PARTS + part` for the parts of a block.
 */
const SCHEMA = 'CREATE TABLE response (at INTEGER PRIMARY KEY, first INTEGER, value BLOB NOT NULL)';
const FACTS = -1;
const INPUT = -2;

/** The facts of a response besides its input and its events. */
export interface ResponseRow {
  readonly owner: string;
  readonly isBackground: boolean;
  readonly chain: readonly string[];
  /** The size of the items of the chain, in UTF-16 units of JSON. */
  readonly earlierChars: number;
  readonly keptMs: number;
  readonly maxBytes: number;
  /** The response object before its first event: JSON text; empty for a foreground response. */
  readonly queued: string;
  /** The usage record that is not written yet: JSON text. While it runs, the one to write if it is interrupted. */
  readonly record: string;
  /** In ms since the epoch; null while it runs. */
  readonly endedAt: number | null;
}

export class ResponseTables implements BlockStore {
  readonly #sql: Sql;
  #row: ResponseRow | null = null;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The facts, or null where nothing is stored. Creates no table, so that a wrong id stores nothing. */
  read(): ResponseRow | null {
    const table = this.#sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'response'");
    if (table.toArray().length === 0) return null;
    const [row] = this.#sql.exec('SELECT value FROM response WHERE at = ?', FACTS).toArray();
    this.#row = row === undefined ? null : decodeRow(String(row.value));
    return this.#row;
  }

  create(row: ResponseRow, input: Uint8Array): void {
    this.#sql.exec(SCHEMA);
    this.#sql.exec('INSERT INTO response VALUES (?, NULL, ?)', FACTS, JSON.stringify(row));
    this.#row = row;
    for (const [part, slice] of partsOf(input).entries())
      this.#sql.exec('INSERT INTO response VALUES (?, NULL, ?)', INPUT - part, slice);
  }

  /** Changes facts of the response. */
  change(fields: Partial<Pick<ResponseRow, 'endedAt' | 'record'>>): void {
    if (this.#row === null) return;
    const row = { ...this.#row, ...fields };
    this.#sql.exec('UPDATE response SET value = ? WHERE at = ?', JSON.stringify(row), FACTS);
    this.#row = row;
  }

  /** The own input items: a JSON list. */
  input(): string {
    const rows = this.#sql.exec<{ value: ArrayBuffer }>(
      'SELECT value FROM response WHERE at <= ? ORDER BY at DESC',
      INPUT,
    );
    return new TextDecoder().decode(joinBytes(rows.toArray().map(({ value }) => new Uint8Array(value))));
  }

  /** The number of the last stored event; -1: none is. */
  get last(): number {
    const [row] = this.#sql.exec<{ at: number | null }>('SELECT max(at) AS at FROM response').toArray();
    return Math.max(-1, Math.floor((row?.at ?? FACTS) / MAX_PARTS));
  }

  append({ first, last, bytes }: Block): void {
    for (const [part, slice] of partsOf(bytes).entries())
      this.#sql.exec('INSERT INTO response VALUES (?, ?, ?)', last * MAX_PARTS + part, first, slice);
  }

  after(number: number): Block | null {
    const from = Math.max(0, number + 1) * MAX_PARTS;
    const rows = this.#sql
      .exec<{ at: number; first: number; value: ArrayBuffer }>(
        `SELECT at, first, value FROM response WHERE at >= ?1 AND at < (
          SELECT (min(at) / ?2 + 1) * ?2 FROM response WHERE at >= ?1
        ) ORDER BY at`,
        from,
        MAX_PARTS,
      )
      .toArray();
    const [row] = rows;
    if (row === undefined) return null;
    const bytes = joinBytes(rows.map(({ value }) => new Uint8Array(value)));
    return { first: Number(row.first), last: Math.floor(Number(row.at) / MAX_PARTS), bytes };
  }
}

/** The row that the object itself has stored. */
function decodeRow(json: string): ResponseRow {
  return parseJson(json) as ResponseRow; // decode
}

function partsOf(bytes: Uint8Array): readonly ArrayBuffer[] {
  const parts: ArrayBuffer[] = [];
  for (let at = 0; at < bytes.length; at += MAX_PART_BYTES)
    parts.push(new Uint8Array(bytes.subarray(at, at + MAX_PART_BYTES)).buffer);
  return parts;
}
