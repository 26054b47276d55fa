/** The SQLite table of one response: its facts, its input, and the blocks of its events. */
import { objectOf, parseJson } from '../shared/json.ts';
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

/** The version of the facts that this code writes. A row of a later one is not readable here: a rollback must not misread it. */
const VERSION = 1;

/** The facts of a response besides its input and its events. */
export interface ResponseRow {
  readonly owner: string;
  readonly isBackground: boolean;
  readonly chain: readonly string[];
  /** The size of the items of the chain, in UTF-16 units of JSON. */
  readonly earlierChars: number;
  /** The size of its texts that every provider reads, in bytes of UTF-8. Absent in rows of an earlier version. */
  readonly earlierTextBytes?: number;
  readonly keptMs: number;
  readonly maxBytes: number;
  /** The response object before its first event: JSON text; empty for a foreground response. */
  readonly queued: string;
  /** The usage record that is not written yet: JSON text. While it runs, the one to write if it is interrupted. */
  readonly record: string;
  /** In ms since the epoch; null while it runs. */
  readonly endedAt: number | null;
}

/** Facts that this code cannot read, with what is certain about them. */
export interface UnreadableRow {
  readonly reason: string;
  /** Null: the owner is not readable either. */
  readonly owner: string | null;
  /** In ms since the epoch; null: it runs in a version of this code that can read it; undefined: not readable. */
  readonly expiresAt: number | null | undefined;
}

export type StoredRow =
  | { readonly kind: 'none' }
  | { readonly kind: 'row'; readonly row: ResponseRow }
  | { readonly kind: 'unreadable'; readonly unreadable: UnreadableRow };

export class ResponseTables implements BlockStore {
  readonly #sql: Sql;
  #row: ResponseRow | null = null;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The facts. Creates no table, so that a wrong id stores nothing. */
  read(): StoredRow {
    const table = this.#sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'response'");
    if (table.toArray().length === 0) return { kind: 'none' };
    const [stored] = this.#sql.exec('SELECT value FROM response WHERE at = ?', FACTS).toArray();
    const row = decodeRow(stored === undefined ? '' : String(stored.value));
    if (row.kind === 'row') this.#row = row.row;
    return row;
  }

  /** The facts as they are stored now; null: none were read or created. */
  get row(): ResponseRow | null {
    return this.#row;
  }

  create(row: ResponseRow, input: Uint8Array): void {
    this.#sql.exec(SCHEMA);
    this.#sql.exec('INSERT INTO response VALUES (?, NULL, ?)', FACTS, encodeRow(row));
    this.#row = row;
    for (const [part, slice] of partsOf(input).entries())
      this.#sql.exec('INSERT INTO response VALUES (?, NULL, ?)', INPUT - part, slice);
  }

  /** Changes facts of the response. */
  change(fields: Partial<Pick<ResponseRow, 'endedAt' | 'keptMs' | 'record'>>): void {
    if (this.#row === null) return;
    const row = { ...this.#row, ...fields };
    this.#sql.exec('UPDATE response SET value = ? WHERE at = ?', encodeRow(row), FACTS);
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

  /** The size of everything that is stored. */
  get bytes(): number {
    const [row] = this.#sql
      .exec<{ bytes: number }>('SELECT sum(length(value)) AS bytes FROM response')
      .toArray();
    return Number(row?.bytes ?? 0);
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

function encodeRow(row: ResponseRow): string {
  return JSON.stringify({ version: VERSION, ...row });
}

const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value);

/** What each fact must be. A row that lacks one is unreadable: a default could open or keep what it must not. */
const FACT_CHECKS: { readonly [Fact in keyof ResponseRow]-?: (value: unknown) => boolean } = {
  owner: (value) => isText(value) && value !== '',
  isBackground: (value) => typeof value === 'boolean',
  chain: (value) => Array.isArray(value) && value.every(isText),
  earlierChars: isNumber,
  earlierTextBytes: (value) => value === undefined || isNumber(value),
  keptMs: isNumber,
  maxBytes: isNumber,
  queued: isText,
  record: isText,
  endedAt: (value) => value === null || isNumber(value),
};

/** The row that the object itself has stored. Rows of the first version have no number. */
function decodeRow(json: string): StoredRow {
  const stored = objectOf(parseJson(json));
  const { version = VERSION, owner, endedAt, keptMs } = stored;
  const wrong = Object.entries(FACT_CHECKS).flatMap(([fact, isValid]) =>
    isValid(stored[fact]) ? [] : [fact],
  );
  if (version === VERSION && wrong.length === 0)
    return { kind: 'row', row: stored as unknown as ResponseRow }; // decode
  const reason =
    version === VERSION
      ? `The row of the response has no valid ${wrong.join(', ')}`
      : `The row of the response has the version ${String(version)}, and this code reads ${VERSION}`;
  const isExpiring = typeof endedAt === 'number' && typeof keptMs === 'number';
  return {
    kind: 'unreadable',
    unreadable: {
      reason,
      owner: FACT_CHECKS.owner(owner) ? String(owner) : null,
      expiresAt: isExpiring ? endedAt + keptMs : endedAt === null ? null : undefined,
    },
  };
}

function partsOf(bytes: Uint8Array): readonly ArrayBuffer[] {
  const parts: ArrayBuffer[] = [];
  for (let at = 0; at < bytes.length; at += MAX_PART_BYTES)
    parts.push(new Uint8Array(bytes.subarray(at, at + MAX_PART_BYTES)).buffer);
  return parts;
}
