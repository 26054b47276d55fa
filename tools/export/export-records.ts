/** Reads single records page by page, and keeps with each page where the next one begins, so that an export can go on. */
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../simulator/json.ts';
import { csvHeader, csvRecord } from './csv-record.ts';
import type { Progress } from './progress.ts';

export interface ExportOptions {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string;
  readonly from: string;
  readonly to: string;
  readonly format: 'ndjson' | 'csv';
  /** One key's records, or all that the token may see (null). */
  readonly key: string | null;
  readonly out: string;
  /** Records a page. */
  readonly page: number;
}

export interface ExportPorts {
  readonly fetch: typeof fetch;
  readonly wait: (ms: number) => Promise<unknown>;
  readonly progress: Pick<Progress, 'show'>;
}

/** The waits before the second try of a request and each one after it. */
const RETRY_DELAYS_MS = [1000, 2000, 4000, 8000, 16_000];

/** Where an export is: what was written of it, and what comes next. */
interface Position {
  /** What was asked for; another export must not go on here. */
  readonly of: string;
  readonly cursor: string | null;
  /** Bytes of the file that are whole records. */
  readonly bytes: number;
  readonly records: number;
}

/** @returns how many records are in the file, which is complete */
export async function exportRecords(options: ExportOptions, ports: ExportPorts): Promise<number> {
  const { format, out } = options;
  const state = `${out}.position`;
  const of = JSON.stringify([options.url, options.from, options.to, options.format, options.key]);
  const resumed = await readPosition(state, of);
  const file = await open(out, resumed === null ? 'w' : 'r+');
  try {
    const total = await countRecords(options, ports);
    let position = resumed ?? { of, cursor: null, bytes: 0, records: 0 };
    // What an interrupted write left behind the last whole page.
    await file.truncate(position.bytes);
    for (let isMore = true; isMore; ) {
      ports.progress.show(position.records, total);
      const page = await ask(recordsPath(options, position.cursor), options, ports);
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
    throw new Error(`${path} is of another export: finish that one, or delete the file`);
  }
  const cursor = typeof read.cursor === 'string' ? read.cursor : null;
  return { of, cursor, bytes: Number(read.bytes), records: Number(read.records) };
}

/** Whole or not at all, whenever this process ends. */
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

/** How many there are, for the bar alone: null where the deployment can't sum up that time. */
async function countRecords(options: ExportOptions, ports: ExportPorts): Promise<number | null> {
  const { from, to, key } = options;
  const query = new URLSearchParams({ from, to, group_by: 'status' });
  if (key !== null) query.set('key', key);
  const report = await ask(`/v1/usage?${query}`, options, ports).catch(() => null);
  const requests = objectOf(report?.total).requests;
  return typeof requests === 'number' ? requests : null;
}

/** A refusal is final; whatever may pass is tried again. */
async function ask(path: string, { url, token }: ExportOptions, ports: ExportPorts): Promise<JsonObject> {
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
  throw new Error(`${url} does not answer: ${reason}`);
}
