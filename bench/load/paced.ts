/** Paced: many concurrent streams at a model's pace; CPU, added latency and memory of workerd while all run. */
import { setTimeout } from 'node:timers/promises';
import type { JobResult, PacedJob } from '../jobs.ts';
import { cpuMs, residentKib } from './accounting.ts';
import { type PacedAnswer, readPaced } from './paced-client.ts';
import { dropStreams, openPacer, stopStreams } from './pacer.ts';

/** Slow enough that a first byte doesn't wait for earlier requests. */
const STARTS_PER_SECOND = 200;
/** From the last stream's start until the measurement begins. */
const LEAD_MS = 500;
const MEMORY_EVERY_MS = 200;
const AFTER_MS = 1000;
/** A row that can't keep the pace has a queue. Frames that are still queued after this time are dropped and not checked. */
const DRAIN_LIMIT_MS = 3000;

export async function runPaced(job: PacedJob): Promise<JobResult> {
  const { target, stream, streams, rate, ms } = job;
  const { pid } = target;
  const latencies = new Float64Array(Math.ceil(streams * rate * (ms / 1000) * 2));
  let measured = 0;
  let isMeasuring = false;
  openPacer();
  const start = residentKib(pid);
  const answers: Promise<PacedAnswer>[] = [];
  const drain = new AbortController();
  const { signal } = drain;
  // Random start times, like those of real clients.
  const stepMs = Math.max(1000 / STARTS_PER_SECOND, 1000 / rate / streams);
  for (let at = 0, due = performance.now(); at < streams; at++, due += stepMs) {
    const wait = due - performance.now();
    if (wait > 0) await setTimeout(wait);
    const onFrame = (latency: number) => {
      if (isMeasuring && measured < latencies.length) latencies[measured++] = latency;
    };
    const answer = readPaced({
      target,
      stream,
      model: `paced.${rate}.${at}.${stream}`,
      onFrame,
      isKept: at === 0,
      signal,
    });
    answers.push(
      answer.catch((error) => ({ firstByteMs: 0, problem: signal.aborted ? null : String(error) })),
    );
  }
  await setTimeout(LEAD_MS);
  const cpuBefore = cpuMs(pid);
  const wallBefore = performance.now();
  const ownBefore = process.cpuUsage();
  isMeasuring = true;
  const early = residentKib(pid);
  let peak = early;
  while (performance.now() - wallBefore < ms) {
    await setTimeout(Math.min(MEMORY_EVERY_MS, Math.max(1, ms - (performance.now() - wallBefore))));
    peak = Math.max(peak, residentKib(pid));
  }
  const spent = cpuMs(pid) - cpuBefore;
  const wall = performance.now() - wallBefore;
  const own = process.cpuUsage(ownBefore);
  isMeasuring = false;
  const late = residentKib(pid);
  stopStreams();
  const limit = globalThis.setTimeout(() => {
    drain.abort();
    dropStreams();
  }, DRAIN_LIMIT_MS);
  const done = await Promise.all(answers);
  clearTimeout(limit);
  await setTimeout(AFTER_MS);
  const sorted = latencies.subarray(0, measured).sort();
  const firstBytes = Float64Array.from(done, ({ firstByteMs }) => firstByteMs).sort();
  return {
    figures: {
      cpuUs: (spent * 1000) / measured,
      /** The shares of one core that workerd and this process use. */
      load: spent / wall,
      generatorLoad: (own.user + own.system) / 1000 / wall,
      /** The share of due frames that arrived. Below 1, the machine can't keep the pace. */
      pace: measured / (streams * rate * (wall / 1000)),
      p50: quantile(sorted, 0.5),
      p99: quantile(sorted, 0.99),
      firstByteP50: quantile(firstBytes, 0.5),
      firstByteP99: quantile(firstBytes, 0.99),
      startKib: start,
      earlyKib: early,
      lateKib: late,
      peakKib: peak,
      afterKib: residentKib(pid),
    },
    problem: done.find(({ problem }) => problem !== null)?.problem ?? null,
  };
}

function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
