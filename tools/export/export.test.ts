/** Tests the export (L7): each record once, also after interruptions, and no cell that a spreadsheet takes for a formula. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decimalText } from '../../src/api/csv.ts';
import { csvLine } from '../../src/shared/csv.ts';
import { chat } from '../../test/e2e/client.ts';
import { ADMIN_TOKEN, startGateway } from '../../test/e2e/gateway.ts';
import { type JsonObject, objectOf } from '../simulator/json.ts';
import { csvHeader, csvRecord } from './csv-record.ts';
import { type ExportOptions, exportRecords } from './export-records.ts';
import { Progress } from './progress.ts';

const RECORDS = Array.from({ length: 95 }, (_, n) => ({
  request_id: `r${n}`,
  model: `m,${n % 3}`,
  cost: n / 1e9,
}));

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-export-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** A fake deployment. `answer` returns a status, or null for a connection error. */
function bench(
  answer: (request: number) => number | null,
  given: Partial<ExportOptions> = {},
  report: object = {},
  records: readonly object[] = RECORDS,
) {
  let requests = 0;
  const waits: number[] = [];
  const requested: string[] = [];
  const options: ExportOptions = {
    url: 'https://weir.example',
    token: 'token',
    from: '2026-11-01',
    to: '2026-12-01',
    format: 'ndjson',
    key: null,
    out: join(folder, 'records'),
    page: 10,
    ...given,
  };
  async function fakeFetch(input: string | URL | Request): Promise<Response> {
    const url = new URL(String(input));
    requested.push(url.pathname + url.search);
    const status = answer(requests++);
    if (status === null) throw new Error('The connection ended');
    if (status !== 200) return Response.json({ error: { message: 'broken' } }, { status });
    if (url.pathname === '/v1/usage')
      return Response.json({ total: { requests: RECORDS.length }, ...report });
    const at = Number(url.searchParams.get('cursor') ?? 0);
    const end = at + Number(url.searchParams.get('limit'));
    const has_more = end < RECORDS.length;
    return Response.json({
      data: records.slice(at, end),
      has_more,
      next_cursor: has_more ? String(end) : null,
    });
  }
  const ports = {
    fetch: fakeFetch,
    wait: async (ms: number) => waits.push(ms),
    progress: { show: () => {} },
  };
  return { options, requested, waits, run: () => exportRecords(options, ports) };
}

const read = () => readFile(join(folder, 'records'), 'utf8');
const whole = RECORDS.map((one) => `${JSON.stringify(one)}\n`).join('');

describe('exportRecords', () => {
  test('L7 writes each record once, in order, and removes its temporary files', async () => {
    const { run, requested } = bench(() => 200);
    expect(await run()).toBe(RECORDS.length);
    expect(await read()).toBe(whole);
    expect(await readdir(folder)).toEqual(['records']);
    expect(requested).toHaveLength(11);
  });

  test.each([500, 503, 429, null])('L7 retries intermittent errors (%s)', async (status) => {
    const { run, waits } = bench((request) => (request % 3 === 1 ? status : 200));
    await run();
    expect(await read()).toBe(whole);
    expect(new Set(waits)).toEqual(new Set([1000]));
  });

  test('L7 continues after an interruption before any page, and the file is the same', async () => {
    for (let page = 1; page < 10; page++) {
      const broken = bench((request) => (request > page ? null : 200));
      await expect(broken.run()).rejects.toThrow('does not respond');
      // An interrupted write leaves a partial page.
      await writeFile(join(folder, 'records'), `${await read()}{"request_id":"ha`);
      const { run, requested } = bench(() => 200);
      await run();
      expect(await read()).toBe(whole);
      expect(requested).toHaveLength(11 - page);
      await rm(join(folder, 'records'));
    }
  });

  test('L7 does not retry a 4xx response and reports its message', async () => {
    const { run, waits } = bench((request) => (request > 0 ? 401 : 200));
    await expect(run()).rejects.toThrow('does not accept the token of ADMIN_TOKEN or WEIR_KEY: 401 broken');
    expect(waits).toEqual([]);
    const refused = bench((request) => (request > 0 ? 400 : 200));
    await expect(refused.run()).rejects.toThrow('refuses the export: 400 broken');
    expect(refused.waits).toEqual([]);
  });

  test('L7 a time of more than 366 days is read in spans, the latest first, and continues in the right one', async () => {
    const given = { from: '2024-11-01' };
    const spansRead = (requested: readonly string[]) => {
      const lists = requested
        .map((path) => new URL(path, 'https://x'))
        .filter(({ pathname }) => pathname.endsWith('/records'));
      return [
        ...new Set(lists.map(({ searchParams }) => `${searchParams.get('from')} ${searchParams.get('to')}`)),
      ];
    };
    const all = [
      '2025-11-30T00:00:00.000Z 2026-12-01T00:00:00.000Z',
      '2024-11-29T00:00:00.000Z 2025-11-30T00:00:00.000Z',
      '2024-11-01T00:00:00.000Z 2024-11-29T00:00:00.000Z',
    ];
    // Three reports, then ten pages of each span.
    const broken = bench((request) => (request >= 3 + 12 ? null : 200), given);
    await expect(broken.run()).rejects.toThrow('does not respond');
    expect(spansRead(broken.requested)).toEqual(all.slice(0, 2));
    const rest = bench(() => 200, given);
    expect(await rest.run()).toBe(3 * RECORDS.length);
    expect(spansRead(rest.requested)).toEqual(all.slice(1));
    expect(await read()).toBe(whole.repeat(3));
  });

  test('L7 does not overwrite the file of another interrupted export', async () => {
    await expect(bench((request) => (request > 2 ? null : 200)).run()).rejects.toThrow();
    const before = await read();
    await expect(bench(() => 200, { from: '2026-10-01' }).run()).rejects.toThrow('another export');
    expect(await read()).toBe(before);
  });

  test('L7 an interrupted CSV export has one header and one line for each record', async () => {
    await expect(bench((request) => (request > 4 ? null : 200), { format: 'csv' }).run()).rejects.toThrow();
    await bench(() => 200, { format: 'csv' }).run();
    const lines = (await read()).split('\r\n');
    expect(lines).toHaveLength(RECORDS.length + 2);
    expect(lines.filter((line) => line.startsWith('request_id'))).toHaveLength(1);
    expect(lines[8]).toMatch(/^r7,.*,"m,1",.*,0.000000007,/);
  });
});

test('L7 records have the name of their team beside its id, in NDJSON and in CSV; a team without a name has its id', async () => {
  const data = [
    { team: 'm,1', team_name: 'search, ads' },
    { team: 'm,2' },
    { team: '', team_name: 'nobody' },
  ];
  // The fake records have the model in place of a team.
  const teamsOf = (records: readonly JsonObject[]) => records.map(({ team, team_name }) => [team, team_name]);
  const answers = RECORDS.map((record, n) => ({ ...record, ...(n % 3 > 0 && { team: record.model }) }));
  const { run, options } = bench(() => 200, {}, { data }, answers);
  await run();
  const lines = (await read())
    .trim()
    .split('\n')
    .map((line) => objectOf(JSON.parse(line)));
  expect(teamsOf(lines.slice(0, 3))).toEqual([
    [undefined, undefined],
    ['m,1', 'search, ads'],
    ['m,2', undefined],
  ]);
  await rm(options.out);
  await bench(() => 200, { format: 'csv' }, { data }, answers).run();
  const csv = (await read()).split('\r\n');
  expect(csv[0]).toMatch(/^request_id,time,ended,key_id,team,team_name,asked,/);
  expect(csv[1]).toMatch(/^r0,,,,,,,/);
  expect(csv[2]).toMatch(/^r1,,,,"m,1","search, ads",,/);
  expect(csv[3]).toMatch(/^r2,,,,"m,2",,,/);
});

describe('Progress', () => {
  test('L7 shows one line with a progress bar in a terminal, and several lines in a file', () => {
    const shown = (isTTY: boolean) => {
      const lines: string[] = [];
      const progress = new Progress({ isTTY, write: (line: string) => lines.push(line) });
      for (let done = 0; done <= 1000; done++) progress.show(done, 1000);
      return lines;
    };
    expect(shown(true).at(500)).toMatch(/^\r\[#{15}\.{15}\] 50% 500 of 1000 records/);
    expect(shown(false).length).toBeLessThan(25);
  });
});

test.each([
  [['a', 'b'], 'a,b\r\n'],
  [['a,b', 'c"d', 'e\nf'], '"a,b","c""d","e\nf"\r\n'],
  [['=1+1', '+x', '-x', '@x', '\tx', '＝x'], "'=1+1,'+x,'-x,'@x,'\tx,'＝x\r\n"],
  [['-1.5', '+', ''], "-1.5,'+,\r\n"],
])('L7 csvLine of %j: no cell breaks the line or is a formula', (cells, line) => {
  expect(csvLine(cells)).toBe(line);
});

test('Y4 a record as CSV has its user, session, app and tags, whatever their characters', () => {
  const facts = { user: '=1+1', session: null, app: 'a "b", c', tags: { team: 'search, ads' } };
  expect(csvHeader()).toMatch(/,attempts,user,session,app,tags\r\n$/);
  const cells = `,'=1+1,,"a ""b"", c","{""team"":""search, ads""}"\r\n`;
  expect(csvRecord({ request_id: 'r', ...facts }).endsWith(cells)).toBe(true);
});

test.each([
  [0.000000128, '0.000000128'],
  [1e-9, '0.000000001'],
  [12, '12'],
  [100, '100'],
  [0, '0'],
  [9007199.254740991, '9007199.254740991'],
  [null, ''],
])('L7 decimalText of %s has no exponent', (amount, decimal) => {
  expect(decimalText(amount)).toBe(decimal);
});

test('L7 npm run export writes the records of a deployment to a file', async () => {
  await using gateway = await startGateway({ vars: { LEDGER: 'object' } });
  for (let request = 0; request < 5; request++) {
    const response = await gateway.post('/v1/chat/completions', chat('openai/gpt-4o-mini'));
    await response.text();
  }
  const day = (fromNow: number) => new Date(Date.now() + fromNow * 86_400_000).toISOString().slice(0, 10);
  const path = `/v1/usage/records?from=${day(-1)}`;
  for (let reads = 0; reads < 500; reads++) {
    const { data } = (await (await gateway.fetch(path)).json()) as { data: unknown[] };
    if (data.length === 5) break;
  }
  const out = join(folder, 'out');
  const script = join(import.meta.dirname, '..', 'export.ts');
  const args = [
    '--url',
    gateway.url,
    '--from',
    day(-1),
    '--to',
    day(2),
    '--key',
    'open',
    '--out',
    out,
    '--page',
    '2',
  ];
  const child = spawn(process.execPath, [script, ...args], { env: { ...process.env, ADMIN_TOKEN } });
  const [errors] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(errors).toContain('5 records are in');
  expect((await readFile(out, 'utf8')).trim().split('\n')).toHaveLength(5);
});
