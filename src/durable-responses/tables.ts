/** The SQLite tables of one response: its row, its input, and the blocks of its events. */
import { parseJson, readArray, readText } from '../shared/json.ts';
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

const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS response (
    id INTEGER PRIMARY KEY CHECK (id = 0), owner TEXT NOT NULL, is_background INTEGER NOT NULL, chain TEXT NOT NULL,
    earlier_chars INTEGER NOT NULL,    kept_ms INTEGER NOT NULL, max_bytes INTEGER NOT NULL, queued TEXT NOT NULL, record TEXT NOT NULL,
    ended_at INTEGER)`,
  'CREATE TABLE IF NOT EXISTS input (part INTEGER PRIMARY KEY, bytes BLOB NOT NULL)',
  `CREATE TABLE IF NOT EXISTS blocks (
    last INTEGER NOT NULL, part INTEGER NOT NULL, first INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (last, part)
  ) WITHOUT ROWID`,
];

/** What is known of a response besides its input and its events. */
export interface ResponseRow {
  readonly owner: string;
  readonly isBackground: boolean;
  readonly chain: readonly string[];
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

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The row, or null where nothing is stored. Creates no table, so that a wrong id leaves no storage behind. */
  read(): ResponseRow | null {
    const table = this.#sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'response'");
    if (table.toArray().length === 0) return null;
    const [row] = this.#sql.exec('SELECT * FROM response').toArray();
    if (row === undefined) return null;
    return {
      owner: String(row.owner),
      isBackground: row.is_background === 1,
      chain: readArray(parseJson(String(row.chain))).flatMap((id) => readText(id) ?? []),
      earlierChars: Number(row.earlier_chars),
      keptMs: Number(row.kept_ms),
      maxBytes: Number(row.max_bytes),
      queued: String(row.queued),
      record: String(row.record),
      endedAt: row.ended_at === null ? null : Number(row.ended_at),
    };
  }

  create(row: ResponseRow, input: string): void {
    for (const statement of SCHEMA) this.#sql.exec(statement);
    this.#sql.exec(
      'INSERT INTO response VALUES (0, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      row.owner,
      row.isBackground ? 1 : 0,
      JSON.stringify(row.chain),
      row.earlierChars,
      row.keptMs,
      row.maxBytes,
      row.queued,
      row.record,
      row.endedAt,
    );
    const bytes = new TextEncoder().encode(input);
    for (const [part, slice] of partsOf(bytes).entries())
      this.#sql.exec('INSERT INTO input VALUES (?, ?)', part, slice);
  }

  /**
   * @param endedAt in ms since the epoch
   * @param record JSON text; empty: there is none to write
   */
  end(endedAt: number, record: string): void {
    this.#sql.exec('UPDATE response SET ended_at = ?, record = ?', endedAt, record);
  }

  /** @param record JSON text; empty: it is written */
  setRecord(record: string): void {
    this.#sql.exec('UPDATE response SET record = ?', record);
  }

  /** The own input items: a JSON list. */
  input(): string {
    const rows = this.#sql.exec<{ bytes: ArrayBuffer }>('SELECT bytes FROM input ORDER BY part').toArray();
    return new TextDecoder().decode(joinBytes(rows.map(({ bytes }) => new Uint8Array(bytes))));
  }

  /** The number of the last stored event (-1: none), and the bytes of all. */
  stored(): { readonly last: number; readonly bytes: number } {
    const [sums] = this.#sql
      .exec<{ last: number; bytes: number }>(
        'SELECT coalesce(max(last), -1) AS last, coalesce(sum(length(bytes)), 0) AS bytes FROM blocks',
      )
      .toArray();
    return { last: Number(sums?.last ?? -1), bytes: Number(sums?.bytes ?? 0) };
  }

  append({ first, last, bytes }: Block): void {
    for (const [part, slice] of partsOf(bytes).entries())
      this.#sql.exec('INSERT INTO blocks VALUES (?, ?, ?, ?)', last, part, first, slice);
  }

  after(number: number): Block | null {
    const rows = this.#sql
      .exec<{ last: number; first: number; bytes: ArrayBuffer }>(
        'SELECT last, first, bytes FROM blocks WHERE last = (SELECT min(last) FROM blocks WHERE last > ?) ORDER BY part',
        number,
      )
      .toArray();
    const [row] = rows;
    if (row === undefined) return null;
    const bytes = joinBytes(rows.map((one) => new Uint8Array(one.bytes)));
    return { first: Number(row.first), last: Number(row.last), bytes };
  }
}

function partsOf(bytes: Uint8Array): readonly ArrayBuffer[] {
  const parts: ArrayBuffer[] = [];
  for (let at = 0; at < bytes.length; at += MAX_PART_BYTES)
    parts.push(new Uint8Array(bytes.subarray(at, at + MAX_PART_BYTES)).buffer);
  return parts;
}
