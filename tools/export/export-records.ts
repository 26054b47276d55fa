/** Reads records page by page into a file, and stores the position after each page, so that an export can continue. */
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { MAX_REPORT_ROWS } from '../../src/shared/limits.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../simulator/json.ts';
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

/** A deployment reads at most 366 days at once. */
const MAX_SPAN_MS = 366 * 86_400_000;

/** Delays before each retry of a request. */
const RETRY_DELAYS_MS = [1000, 2000, 4000, 8000, 16_000];

/** How much was written, and where the next page begins. */
interface Position {
  /** The options that select the records. An export with other options must not continue from this position. */
  readonly of: string;
  /** Which of the spans that together are the whole time. */
  readonly span: number;
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
    const spans = spansOf(options);
    const { total, teams } = await countRecords(options, spans, ports);
    let position = resumed ?? { of, span: 0, cursor: null, bytes: 0, records: 0 };
    // Removes the rest of an interrupted write after the last complete page.
    await file.truncate(position.bytes);
    for (let span = spans[position.span]; span !== undefined; span = spans[position.span]) {
      ports.progress.show(position.records, total);
      const page = await get(recordsPath(options, span, position.cursor), options, ports);
      const records = objectsOf(page.data).map((record) => withTeamName(record, teams));
      const head = position.bytes === 0 && format === 'csv' ? csvHeader() : '';
      const text = head + records.map(format === 'csv' ? csvRecord : ndjsonRecord).join('');
      const { bytesWritten } = await file.write(text, position.bytes);
      await file.sync();
      const cursor = page.has_more === true && typeof page.next_cursor === 'string' ? page.next_cursor : null;
      position = {
        of,
        span: cursor === null ? position.span + 1 : position.span,
        cursor,
        bytes: position.bytes + bytesWritten,
        records: position.records + records.length,
      };
      if (position.span < spans.length) await writePosition(state, position);
    }
    await rm(state, { force: true });
    ports.progress.show(position.records, position.records);
    return position.records;
  } finally {
    await file.close();
  }
}

/** A record with the name of its team beside the id, where the team has a name. */
function withTeamName(record: JsonObject, teams: ReadonlyMap<string, string>): JsonObject {
  const name = typeof record.team === 'string' ? teams.get(record.team) : undefined;
  return name === undefined ? record : { ...record, team_name: name };
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
  return {
    ...{ of, span: Number(read.span ?? 0), cursor },
    ...{ bytes: Number(read.bytes), records: Number(read.records) },
  };
}

/** Writes atomically: the process may end at any time. */
async function writePosition(path: string, position: Position): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(position));
  await rename(`${path}.new`, path);
}

type Span = Pick<ExportOptions, 'from' | 'to'>;

/** The time as spans that a query may have, the latest first. */
function spansOf({ from, to }: Span): readonly Span[] {
  const [first, last] = [Date.parse(from), Date.parse(to)];
  // What is no time is for the deployment to refuse.
  if (!(last - first > MAX_SPAN_MS)) return [{ from, to }];
  return Array.from({ length: Math.ceil((last - first) / MAX_SPAN_MS) }, (_, n) => {
    const end = last - n * MAX_SPAN_MS;
    return {
      from: new Date(Math.max(first, end - MAX_SPAN_MS)).toISOString(),
      to: new Date(end).toISOString(),
    };
  });
}

function recordsPath({ key, page }: ExportOptions, { from, to }: Span, cursor: string | null): string {
  const query = new URLSearchParams({ from, to, limit: String(page) });
  if (key !== null) query.set('key', key);
  if (cursor !== null) query.set('cursor', cursor);
  return `/v1/usage/records?${query}`;
}

interface Counted {
  /** The number of records, for the progress bar only; null: the deployment cannot report on the time. */
  readonly total: number | null;
  /** The names of the teams of the records, by id. */
  readonly teams: ReadonlyMap<string, string>;
}

async function countRecords(
  options: ExportOptions,
  spans: readonly Span[],
  ports: ExportPorts,
): Promise<Counted> {
  let total = 0;
  const teams = new Map<string, string>();
  for (const { from, to } of spans) {
    const query = new URLSearchParams({ from, to, group_by: 'team', limit: String(MAX_REPORT_ROWS) });
    if (options.key !== null) query.set('key', options.key);
    const report = await get(`/v1/usage?${query}`, options, ports).catch(() => null);
    for (const { team, team_name } of objectsOf(report?.data))
      if (typeof team_name === 'string') teams.set(textOf(team), team_name);
    const { requests } = objectOf(report?.total);
    if (typeof requests !== 'number') return { total: null, teams };
    total += requests;
  }
  return { total, teams };
}

/** The deployment's answer is final. */
export class RefusedExport extends Error {}

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
      if (response.status === 401)
        throw new RefusedExport(`${url} does not accept the token of ADMIN_TOKEN or WEIR_KEY: ${reason}`);
      if (response.status < 500 && response.status !== 429)
        throw new RefusedExport(`${url} refuses the export: ${reason}`);
    } catch (error) {
      if (error instanceof RefusedExport) throw error;
      reason = String(error);
    }
  }
  throw new Error(`${url} does not respond: ${reason}`);
}
