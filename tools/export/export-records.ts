/** Reads records page by page into a file, and stores the position after each page, so that an export can continue. */
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../simulator/json.ts';
import { csvHeader, csvRecord } from './csv-record.ts';
import type { Progress } from './progress.ts';

export interface ExportOptions {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: string;
  readonly from: string;
  readonly to: string;
  readonly format: 'ndjson' | 'csv';
  /** Null: all records that the token may read. */
  readonly key: string | null;
  readonly out: string;
  /** Records for each request. */
  readonly page: number;
}

export interface ExportPorts {
  readonly fetch: typeof fetch;
  readonly wait: (ms: number) => Promise<unknown>;
  readonly progress: Pick<Progress, 'show'>;
}

/** Delays before each retry of a request. */
const RETRY_DELAYS_MS = [1000, 2000, 4000, 8000, 16_000];

/** How much was written, and where the next page begins. */
interface Position {
  /** The options that select the records. An export with other options must not continue from this position. */
  readonly of: string;
  readonly cursor: string | null;
  /** Bytes of the file with complete pages. */
  readonly bytes: number;
  readonly records: number;
}

/** @returns the number of records in the complete file */
export async function exportRecords(options: ExportOptions, ports: ExportPorts): Promise<number> {
  const { format, out } = options;
  const state = `${out}.position`;
  const of = JSON.stringify([options.url, options.from, options.to, options.format, options.key]);
  const resumed = await readPosition(state, of);
  const file = await open(out, resumed === null ? 'w' : 'r+');
  try {
    const total = await countRecords(options, ports);
    let position = resumed ?? { of, cursor: null, bytes: 0, records: 0 };
    // Removes the rest of an interrupted write after the last complete page.
    await file.truncate(position.bytes);
    for (let isMore = true; isMore; ) {
      ports.progress.show(position.records, total);
      const page = await get(recordsPath(options, position.cursor), options, ports);
      const records = objectsOf(page.data);
      const head = position.bytes === 0 && format === 'csv' ? csvHeader() : '';
      const text = head + records.map(format === 'csv' ? csvRecord : ndjsonRecord).join('');
      const { bytesWritten } = await file.write(text, position.bytes);
      await file.sync();
      isMore = page.has_more === true && typeof page.next_cursor === 'string';
      position = {
        of,
        cursor: isMore ? String(page.next_cursor) : null,
        bytes: position.bytes + bytesWritten,
        records: position.records + records.length,
      };
      if (isMore) await writePosition(state, position);
    }
    await rm(state, { force: true });
    ports.progress.show(position.records, position.records);
    return position.records;
  } finally {
    await file.close();
  }
}

function ndjsonRecord(record: JsonObject): string {
  return `${JSON.stringify(record)}\n`;
}

async function readPosition(path: string, of: string): Promise<Position | null> {
  const text = await readFile(path, 'utf8').catch(() => null);
  if (text === null) return null;
  const read = decodeObject(text);
  if (read?.of !== of) {
    throw new Error(`${path} belongs to another export: finish that export or delete the file`);
  }
  const cursor = typeof read.cursor === 'string' ? read.cursor : null;
  return { of, cursor, bytes: Number(read.bytes), records: Number(read.records) };
}

/** Writes atomically: the process may end at any time. */
async function writePosition(path: string, position: Position): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(position));
  await rename(`${path}.new`, path);
}

function recordsPath({ from, to, key, page }: ExportOptions, cursor: string | null): string {
  const query = new URLSearchParams({ from, to, limit: String(page) });
  if (key !== null) query.set('key', key);
  if (cursor !== null) query.set('cursor', cursor);
  return `/v1/usage/records?${query}`;
}

/** The number of records, for the progress bar only; null if the deployment cannot report on the range. */
async function countRecords(options: ExportOptions, ports: ExportPorts): Promise<number | null> {
  const { from, to, key } = options;
  const query = new URLSearchParams({ from, to, group_by: 'status' });
  if (key !== null) query.set('key', key);
  const report = await get(`/v1/usage?${query}`, options, ports).catch(() => null);
  const requests = objectOf(report?.total).requests;
  return typeof requests === 'number' ? requests : null;
}

/** Retries network errors, 429 and 5xx. Other errors are final. */
async function get(path: string, { url, token }: ExportOptions, ports: ExportPorts): Promise<JsonObject> {
  let reason = '';
  for (const delay of [0, ...RETRY_DELAYS_MS]) {
    if (delay > 0) await ports.wait(delay);
    try {
      const response = await ports.fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
      const body = decodeObject(await response.text());
      if (response.ok && body !== undefined) return body;
      reason = `${response.status} ${objectOf(body?.error).message ?? ''}`.trim();
      if (response.status < 500 && response.status !== 429) break;
    } catch (error) {
      reason = String(error);
    }
  }
  throw new Error(`${url} does not respond: ${reason}`);
}
