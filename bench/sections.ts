/** The sections. Each runs its rows in turn in every round, so that changes of the machine's load affect all rows equally. */
import { setTimeout } from 'node:timers/promises';
import { type Bundle, startupMs } from './build.ts';
import type { Job, Target } from './jobs.ts';
import { ADMIN_TOKEN, type Row, type SectionName, takes, upstreamUrl } from './rows.ts';
import { type Load, startWorkerd, type Workerd } from './runner.ts';
import type { Samples } from './samples.ts';
import { PACED_STREAMS, STREAM_NAMES, type StreamName } from './streams.ts';

export interface Bench {
  readonly load: Load;
  readonly bundles: ReadonlyMap<Row, Bundle>;
  readonly samples: Samples;
  readonly rounds: number;
  /** `<streams>x<frames per second of each>`. */
  readonly paces: readonly string[];
  readonly isQuick: boolean;
  readonly showProgress: (progress: string) => void;
}

/** Sizes of the upstream's chunks in bytes; 0: one event per chunk. */
const CHUNK_BYTES = [0, 64, 4096, 16384, 65536];
const QUICK_CHUNK_BYTES = [0, 16384];
const BULK_EVENTS = 5000;
/** Fewer for small chunks, where each event takes one or more reads: a response would take seconds. */
const BULK_EVENTS_IN_SMALL_CHUNKS = 1000;
const SMALL_CHUNK_BYTES = 1024;
const PACED_ROUNDS = 3;
const COLD_RATE = 500;
const COLD_MARKS = [1, 100, 2000];
const IDLE_MS = 300;

export const SECTIONS: { readonly [S in SectionName]: (bench: Bench) => Promise<void> } = {
  bulk,
  paced,
  cold,
  requests,
  prompts,
};

async function bulk(bench: Bench): Promise<void> {
  const ms = bench.isQuick ? 80 : 250;
  const points = STREAM_NAMES.flatMap((stream) =>
    (bench.isQuick ? QUICK_CHUNK_BYTES : CHUNK_BYTES).map((chunkBytes) => {
      const events = chunkBytes < SMALL_CHUNK_BYTES ? BULK_EVENTS_IN_SMALL_CHUNKS : BULK_EVENTS;
      return {
        point: `${stream} ${chunkBytes === 0 ? 'frame' : chunkBytes}`,
        stream,
        job: (target: Target): Job => ({ kind: 'bulk', target, stream, chunkBytes, events, ms }),
      };
    }),
  );
  await withAll(bench, 'bulk', (targets) => interleave(bench, 'bulk', points, targets, true));
}

async function paced(bench: Bench): Promise<void> {
  const ms = bench.isQuick ? 1500 : 4000;
  const rounds = Math.min(bench.rounds, PACED_ROUNDS);
  for (const pace of bench.paces) {
    const [streams = 0, rate = 0] = pace.split('x').map(Number);
    const points = PACED_STREAMS.map((stream) => ({
      point: `${stream} ${streams} x ${rate}/s`,
      stream,
      job: (target: Target): Job => ({ kind: 'paced', target, stream, streams, rate, ms }),
    }));
    // Fresh processes for each point, because memory is measured.
    await withAll(bench, 'paced', async (targets) => {
      for (const target of targets.values()) {
        await bench.load.run({
          kind: 'paced',
          target: target('deepseek'),
          stream: 'deepseek',
          streams: 5,
          rate: 200,
          ms: IDLE_MS,
        });
      }
      await interleave({ ...bench, rounds }, 'paced', points, targets, false);
    });
  }
}

async function cold(bench: Bench): Promise<void> {
  for (const [row, bundled] of bench.bundles) {
    if (!row.isWeir || row.replace !== null || !row.sections.includes('cold')) continue;
    for (let round = 0; round < bench.rounds; round++) {
      const figures = { activeMs: await startupMs(bundled) };
      bench.samples.add({ section: 'cold', row: row.name, point: 'startup', round, figures, problem: null });
    }
  }
  for (let round = 0; round < bench.rounds; round++) {
    for (const [row, bundled] of rowsOf(bench, 'cold')) {
      if (bench.samples.problem('cold', row.name) !== null) continue;
      bench.showProgress(`cold, round ${round + 1} of ${bench.rounds}: ${row.name}`);
      const workerd = await startWorkerd(row, bundled, bench.load.ports);
      await setTimeout(IDLE_MS);
      const target = await targetOf(bench, row, workerd);
      const result = await bench.load.run({
        kind: 'cold',
        target: target('deepseek'),
        rate: COLD_RATE,
        marks: COLD_MARKS,
      });
      await workerd.stop();
      const figures = { ...result.figures, startedInMs: workerd.startedInMs };
      bench.samples.add({ section: 'cold', row: row.name, point: 'first stream', round, ...result, figures });
    }
  }
}

async function requests(bench: Bench): Promise<void> {
  const ms = bench.isQuick ? 200 : 1000;
  const points = [true, false].map((isStreamed) => ({
    point: isStreamed ? 'streamed' : 'whole',
    stream: 'deepseek' as const,
    job: (target: Target): Job => ({ kind: 'requests', target, isStreamed, ms }),
  }));
  await withAll(bench, 'requests', (targets) => interleave(bench, 'requests', points, targets, true));
}

/** Bytes of a prompt. */
const PROMPT_BYTES = [2_000, 20_000, 400_000, 1_000_000];

async function prompts(bench: Bench): Promise<void> {
  const ms = bench.isQuick ? 500 : 2000;
  const points = PROMPT_BYTES.flatMap((promptBytes) =>
    [false, true].map((isRefused) => ({
      point: `${isRefused ? 'refused' : 'finished'} ${promptBytes / 1000} KB`,
      stream: 'deepseek' as const,
      job: (target: Target): Job => ({
        ...{ kind: 'requests', target, isStreamed: false, ms },
        ...{ promptBytes, isRefused },
      }),
    })),
  );
  await withAll(bench, 'prompts', (targets) => interleave(bench, 'prompts', points, targets, true));
}

type TargetOf = (stream: StreamName) => Target;

interface Point {
  readonly point: string;
  readonly stream: StreamName;
  readonly job: (target: Target) => Job;
}

/** Runs all rows at a point, then at the next point, then the next round. The first round is a warm-up. */
async function interleave(
  bench: Bench,
  section: SectionName,
  points: readonly Point[],
  targets: ReadonlyMap<Row, TargetOf>,
  hasWarmUp: boolean,
): Promise<void> {
  const { samples, rounds } = bench;
  for (let round = hasWarmUp ? -1 : 0; round < rounds; round++) {
    for (const { point, stream, job } of points) {
      bench.showProgress(
        `${section}, ${round < 0 ? 'warm-up' : `round ${round + 1} of ${rounds}`}: ${point}`,
      );
      for (const [row, target] of targets) {
        if (!takes(row, stream) || samples.problem(section, row.name, point) !== null) continue;
        const result = await bench.load.run(job(target(stream)));
        if (round < 0 && result.problem === null) continue;
        samples.add({ section, row: row.name, point, round, ...result });
      }
    }
  }
}

/** Runs a function with one workerd per row. All run at the same time, and one is used at a time. */
async function withAll(
  bench: Bench,
  section: SectionName,
  use: (targets: ReadonlyMap<Row, TargetOf>) => Promise<void>,
): Promise<void> {
  const running: Workerd[] = [];
  try {
    const targets = new Map<Row, TargetOf>();
    for (const [row, bundled] of rowsOf(bench, section)) {
      const workerd = await startWorkerd(row, bundled, bench.load.ports);
      running.push(workerd);
      targets.set(row, await targetOf(bench, row, workerd));
    }
    await use(targets);
  } finally {
    await Promise.all(running.map((workerd) => workerd.stop()));
  }
}

function rowsOf(bench: Bench, section: SectionName): [Row, Bundle][] {
  return [...bench.bundles].filter(([row]) => row.sections.includes(section));
}

export async function targetOf({ load }: Pick<Bench, 'load'>, row: Row, workerd: Workerd): Promise<TargetOf> {
  const headers = { ...row.headers(upstreamUrl(load.ports)) };
  if (row.isWeir && row.hasLedger) headers.authorization = `Bearer ${await makeKey(row, workerd)}`;
  const { name, treatment, modelPrefix, path } = row;
  const { pid, port } = workerd;
  return (stream) => ({
    row: name,
    pid,
    port,
    path,
    headers,
    modelPrefix: modelPrefix(stream),
    treatment,
  });
}

/** Creates a key through the admin route of the running Weir. */
async function makeKey({ limits }: Row, { port }: Workerd): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/admin/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', ...limits }),
  });
  const made: { readonly key?: string } = JSON.parse(await response.text());
  if (made.key === undefined) throw new Error(`Creating a key failed: status ${response.status}`);
  return made.key;
}
