/** One run of the fuzz test: the gateway in workerd, the fuzzer in a separate process, and a normal stream beside it. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { boundName } from '../../src/metering/record.ts';
import { textOf } from '../../tools/simulator/json.ts';
import { writeBundle } from '../e2e/workers.ts';
import { type Kv, startKv } from '../hostile/harness/kv.ts';
import { type Gap, startPacedUpstream, startPacer } from '../hostile/harness/pacer.ts';
import { peakBytes, ranMs, resetPeak, residentBytes } from '../hostile/harness/process.ts';
import { startWorkerd, type Workerd } from '../hostile/harness/workerd.ts';
import { slowness } from '../machine-speed.ts';
import type { FuzzReport, Start } from './messages.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly seconds: number;
  /** The number of the only case to run, or null. */
  readonly only: number | null;
}

export interface FuzzResult {
  readonly requests: number;
  readonly asked: number;
  readonly records: number;
  readonly rssMib: number;
  readonly gap: Gap;
  readonly pacedStreams: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
}

/** With sixteen concurrent hostile clients. The limit for a single one is 250 (`test/hostile`). */
export const MAX_GAP_MS = Math.round(400 * slowness());
export const MAX_RSS_MIB = 256;
/** A busy machine that stops a process for three seconds fails no normal stream. */
const CLOCKS = { HEARTBEAT_SECONDS: '1', IDLE_TIMEOUT_SECONDS: '4', DEADLINE_SECONDS: '8' };
const WARM_MS = 1500;
/** Records are written after the responses, and failed writes are retried for this time. */
const RECORD_LIMIT_MS = 60_000;
const MIB = 1024 * 1024;
/** Statuses of records whose request may not have reached the upstream. */
const UNASKED = ['cancelled', 'timed_out', 'failed'];

type Done = Extract<FuzzReport, { kind: 'done' }>;

export async function runFuzz(options: FuzzOptions): Promise<FuzzResult> {
  const fuzzer = fork(join(import.meta.dirname, 'fuzzer.ts'), { serialization: 'advanced' });
  const faults: string[] = [];
  const done = Promise.withResolvers<Done>();
  fuzzer.on('message', (report: FuzzReport) => {
    if (report.kind === 'fault') faults.push(`case ${report.number}: ${report.fault}\n    in ${report.file}`);
    else if (report.kind === 'done') done.resolve(report);
  });
  fuzzer.once('exit', () => done.reject(new Error('The fuzzer ended')));
  done.promise.catch(() => {});
  const [[started]] = await Promise.all([once(fuzzer, 'message')]);
  const first: FuzzReport = started;
  const upstreamPort = first.kind === 'started' ? first.upstreamPort : 0;
  const [kv, pacedPort, bundle] = await Promise.all([startKv(), startPacedUpstream(), writeBundle('fuzz')]);
  const workerd = await startWorkerd({ bundle, kvPort: kv.port, vars: varsOf(upstreamPort, pacedPort) });
  try {
    const pacer = startPacer(workerd.port, () => ranMs(workerd.pid));
    await setTimeout(WARM_MS);
    const idle = residentBytes(workerd.pid);
    resetPeak(workerd.pid);
    pacer.takeGap();
    const start: Start = { ...options, port: workerd.port };
    fuzzer.send(start);
    const { requests, asked, ends } = await done.promise;
    const gap = pacer.takeGap();
    await pacer.stop();
    const rssMib = workerd.isAlive() ? (peakBytes(workerd.pid) - idle) / MIB : Number.POSITIVE_INFINITY;
    faults.push(...(await recordFaults(kv, asRecorded(asked))), ...pacer.problems);
    faults.push(...(await endFaults(workerd)));
    if (gap.ranMs > MAX_GAP_MS)
      faults.push(`B4: the paced stream waited for ${Math.round(gap.ranMs)} ms of the gateway's work`);
    if (rssMib > MAX_RSS_MIB) faults.push(`B3: ${Math.round(rssMib)} MiB above idle`);
    return {
      requests,
      asked: asked.reduce((sum, [, count]) => sum + count, 0),
      records: hostileRecords(kv).length,
      rssMib,
      gap,
      pacedStreams: pacer.whole,
      ends,
      faults,
    };
  } finally {
    if (fuzzer.connected) fuzzer.disconnect();
    await workerd.stop();
  }
}

function varsOf(upstreamPort: number, pacedPort: number): Record<string, string> {
  const base = `http://127.0.0.1:${upstreamPort}/v1`;
  const providers = ['OPENAI', 'DEEPSEEK', 'MISTRAL', 'XEROTIER'].flatMap((name) => [
    [`${name}_API_KEY`, 'sk-fuzz-000000'],
    [`${name}_BASE_URL`, base],
  ]);
  return {
    AUTH: 'open',
    // Each request reaches its upstream once, so that records can be compared with requests.
    RETRIES: '0',
    ...CLOCKS,
    ...Object.fromEntries(providers),
    PROVIDERS: JSON.stringify({
      odd: { base_url: base },
      paced: { base_url: `http://127.0.0.1:${pacedPort}/v1` },
    }),
  };
}

/** The number of requests for each model, under its name in records. */
function asRecorded(asked: Done['asked']): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [model, count] of asked) {
    const name = boundName(model, Number.MAX_SAFE_INTEGER);
    counts.set(name, (counts.get(name) ?? 0) + count);
  }
  return counts;
}

function hostileRecords(kv: Kv) {
  return kv.records.filter(({ provider }) => provider !== 'paced');
}

/** M1: one record for each request that reached the upstream; others only for requests that did not reach it. */
async function recordFaults(kv: Kv, asked: ReadonlyMap<string, number>): Promise<string[]> {
  const counts = () => Map.groupBy(hostileRecords(kv), (record) => textOf(record.model));
  const missing = () => {
    const written = counts();
    return [...asked].filter(([model, count]) => (written.get(model)?.length ?? 0) < count);
  };
  const until = performance.now() + RECORD_LIMIT_MS;
  while (missing().length > 0 && performance.now() < until) await setTimeout(100);
  const faults = missing().map(
    ([model, count]) => `M1: ${model} was requested ${count} times, with fewer records`,
  );
  for (const [model, records] of counts()) {
    const surplus = records.length - (asked.get(model) ?? 0);
    const unasked = records.filter(({ status }) => UNASKED.includes(textOf(status))).length;
    if (surplus > unasked) faults.push(`M1: ${records.length} records of ${model}, ${surplus} too many`);
  }
  const ids = hostileRecords(kv).map((record) => textOf(record.request_id));
  if (new Set(ids).size !== ids.length) faults.push('M1: a request has two records');
  return faults;
}

/** Expects a log without alarms and a gateway that still responds. */
async function endFaults({ port, logged, otherLines, isAlive }: Workerd): Promise<string[]> {
  const alarms = logged.filter(({ event }) => event === 'internal_error' || event === 'record_lost');
  const faults = alarms.slice(0, 5).map((line) => `the log has ${JSON.stringify(line).slice(0, 400)}`);
  const exceptions = otherLines.filter((line) => /uncaught|exception/i.test(line));
  faults.push(...exceptions.slice(0, 5));
  if (!isAlive()) return [...faults, `workerd ended: ${otherLines.slice(-5).join(' ')}`];
  const health = await fetch(`http://127.0.0.1:${port}/health`, {
    signal: AbortSignal.timeout(60_000),
  }).catch(() => null);
  return health?.status === 200 ? faults : [...faults, 'the gateway does not answer any more'];
}
