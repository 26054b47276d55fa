/**
 * `npm run ledger`: fills ledger objects with a million records in workerd, and measures the CPU time of settlements and reports, and how
 * many requests under a running budget one object takes. Then it compares reads over 10, 1,000 and 10,000 keys that have the same
 * number of records and users (`-- --only keys` for these alone).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ReportQuery } from '../src/metering/ledger.ts';
import { residentBytes, workerdIds } from '../test/e2e/processes.ts';
import { startWorkers } from '../test/e2e/workers.ts';
import type { Job } from './ledger/scale-worker.ts';

const DAY_MS = 86_400_000;
const DAYS = 31;
const CHUNK = 20_000;
/** Records per call: the batch size of a Queue where it is measured; otherwise more, because each call is one write to disk. */
const BATCH = 100;
const LARGE_BATCH = 2000;
/** Spread over the keys of each comparison. */
const SPREAD_RECORDS = 40_000;
const SPREAD_USERS = 1000;
const KEY_COUNTS = [10, 1000, 10_000];
const KEYS_AT_ONCE = 100;
const READS = 10;
/** The least of so many rounds counts. */
const ROUNDS = 3;
/** Objects set alarms while they are filled. They have run once workerd uses less of a second. */
const IDLE_MS = 20;
/** An alarm comes so long after a record. */
const SEND_AFTER_SECONDS = 30;
const MAX_WAIT_SECONDS = 180;
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const SPAN = { fromMs: TODAY - (DAYS - 1) * DAY_MS, toMs: TODAY + DAY_MS };

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    keys: { type: 'string', default: '20' },
    only: { type: 'string' },
  },
});
const records = Number(values.records);
const keys = Number(values.keys);

const start = () => startWorkers({ workers: [{ main: '../../tools/ledger/scale-worker.ts' }] });
let runtime = await start();

async function run(job: Job): Promise<unknown> {
  const response = await fetch(runtime.url, { method: 'POST', body: JSON.stringify(job) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** CPU time of all threads of workerd's processes so far, in ms. */
function cpuMs(): number {
  const threads = workerdIds().flatMap((id) =>
    readdirSync(`/proc/${id}/task`).map((task) => `/proc/${id}/task/${task}/schedstat`),
  );
  return threads.reduce((sum, path) => sum + Number(readFileSync(path, 'utf8').split(' ')[0]) / 1e6, 0);
}

async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = cpuMs();
  await work();
  return cpuMs() - before;
}

/** CPU time of a method call, minus that of a call that does nothing. */
async function cpuOfCall(key: string, call: 'report', args: readonly unknown[]): Promise<number> {
  const times = 20;
  const run_ = (what: 'report' | 'nothing') => cpuOf(() => run({ call: what, times, key, args }));
  await run_(call);
  await run_('nothing');
  return ((await run_(call)) - (await run_('nothing'))) / times;
}

async function fill(key: string, count: number, batch = LARGE_BATCH): Promise<void> {
  for (let at = 0; at < count; at += CHUNK) {
    await run({ fill: Math.min(CHUNK, count - at), seed: at, batch, key, ...SPAN });
    process.stderr.write(`\r${key}: ${Math.min(at + CHUNK, count)} of ${count} records `);
  }
  process.stderr.write('\n');
}

function print(what: string, figure: string): void {
  process.stdout.write(`${what.padEnd(72)}${figure}\n`);
}

const mib = (bytes: number) => Math.round(bytes / 2 ** 20);

const query = (keyId: string | null, groups: ReportQuery['groups'], days = DAYS): ReportQuery => ({
  fromMs: SPAN.toMs - days * DAY_MS,
  toMs: SPAN.toMs,
  keyId,
  groups,
});
const GROUPS: readonly ReportQuery['groups'][] = [['day'], ['day', 'model'], ['model', 'status']];

async function measureObjects(): Promise<void> {
  await fill('one', CHUNK);
  const before = residentBytes(workerdIds());
  await fill('one', records - 2 * CHUNK);
  const after = residentBytes(workerdIds());
  const settled = await cpuOf(() => fill('one', CHUNK, BATCH));
  print(
    `settling, in batches of 100 (including the generation of records)`,
    `${((settled * 1000) / CHUNK).toFixed(0)} µs a record`,
  );
  print(
    `memory of workerd after ${CHUNK} records, and after ${records - CHUNK}`,
    `${mib(before)}, ${mib(after)} MiB`,
  );
  for (const isSent of [false, true]) {
    if (isSent) await run({ call: 'fireAlarms', times: 1, key: 'one', args: [5] });
    const when = isSent ? 'its days summed' : 'from hours alone';
    for (const groups of GROUPS) {
      const cpu = await cpuOfCall('one', 'report', [query('one', groups)]);
      print(
        `a key’s ${DAYS} days of ${records} records by ${groups.join(',')}, ${when}`,
        `${cpu.toFixed(1)} ms`,
      );
    }
  }
  for (let i = 0; i < keys; i++) {
    await fill(`key-${i}`, records / keys);
    await run({ call: 'fireAlarms', times: 1, key: `key-${i}`, args: [5] });
  }
  for (const groups of [...GROUPS, ['key', 'day'] as const, ['key', 'model'] as const]) {
    const cpu = await cpuOfAll(query(null, groups));
    print(
      `${keys + 1} keys’ ${DAYS} days of ${2 * records} records by ${groups.join(',')}`,
      `${cpu.toFixed(1)} ms`,
    );
  }
  for (const slices of [1, 4]) {
    const [reserve, parallel, key] = [5000, 100, `limited-${slices}`];
    const started = performance.now();
    const cpu = await cpuOf(async () => {
      const refused = await run({ reserve, parallel, slices, key });
      if (refused !== 0) throw new Error(`${refused} calls found no room`);
    });
    const perSecond = (reserve * 1000) / (performance.now() - started);
    print(
      `requests a second under a running budget, ${slices + 1} calls each`,
      `${perSecond.toFixed(0)}, ${(cpu / reserve).toFixed(2)} ms of CPU`,
    );
  }
}

/** CPU time of a read over all keys, in ms. */
async function cpuOfAll(all: ReportQuery | 'list'): Promise<number> {
  await run({ all, times: READS });
  const rounds: number[] = [];
  while (rounds.length < ROUNDS) rounds.push(await cpuOf(() => run({ all, times: READS })));
  return Math.min(...rounds) / READS;
}

/** Waits until the alarms of filled objects have run: their CPU time is not that of a read. */
async function untilIdle(): Promise<void> {
  const settled = SEND_AFTER_SECONDS + 1;
  for (let seconds = 0, idle = 0; seconds < MAX_WAIT_SECONDS && idle < settled; seconds++)
    idle = (await cpuOf(() => setTimeout(1000))) < IDLE_MS ? idle + 1 : 0;
}

/** Reads over all keys, at several numbers of keys. */
async function compareKeys(): Promise<void> {
  const day = { fromMs: TODAY - DAY_MS, toMs: TODAY };
  const reads = [
    ['by hour', { ...day, keyId: null, groups: ['hour'] }],
    ['by user', { ...day, keyId: null, groups: ['user'] }],
    [
      'by user, of its second half',
      { ...day, fromMs: day.fromMs + DAY_MS / 2, keyId: null, groups: ['user'] },
    ],
    ['the first page of records', 'list'],
  ] as const satisfies readonly (readonly [string, ReportQuery | 'list'])[];
  const before = new Map<string, number>();
  for (const count of KEY_COUNTS) {
    await runtime[Symbol.asyncDispose]();
    runtime = await start();
    const ids = Array.from({ length: count }, (_, n) => `key-${n}`);
    const records = SPREAD_RECORDS / count;
    for (let at = 0; at < count; at += KEYS_AT_ONCE) {
      await run({ spread: ids.slice(at, at + KEYS_AT_ONCE), records, users: SPREAD_USERS, ...day });
      process.stderr.write(`\r${Math.min(at + KEYS_AT_ONCE, count)} of ${count} keys `);
    }
    process.stderr.write('\n');
    await untilIdle();
    for (const [what, read] of reads) {
      const cpu = await cpuOfAll(read);
      const earlier = before.get(what);
      const ratio = earlier === undefined ? '' : `, ${(cpu / earlier).toFixed(2)} x`;
      print(`a day of ${SPREAD_RECORDS} records of ${count} keys, ${what}`, `${cpu.toFixed(1)} ms${ratio}`);
      before.set(what, cpu);
    }
  }
}

if (values.only !== 'keys') await measureObjects();
await compareKeys();
await runtime[Symbol.asyncDispose]();
