/**
 * Bounds on time that a slow or busy machine keeps: the shortest of several runs, which is one that nothing interrupted, and the speed of
 * this machine. CPU time is no better: Linux counts it in steps of 4 ms.
 */

const TEXT = JSON.stringify(
  Array.from({ length: 2000 }, (_, at) => ({ at, text: `a text of "${at}"`, list: [at, null, true] })),
);
/** The time of `readAndWrite` on the machine on which the bounds in ms were measured: 2 cores of an AMD EPYC, idle, 2026-11-28. */
const REFERENCE_MS = 1.5;
/** The first runs are interpreted. */
const RUNS = 50;

function readAndWrite(): string {
  return JSON.stringify(JSON.parse(TEXT));
}

/** The time of a fixed piece of work, as a multiple of the time on the machine of the bounds. A faster machine has 1. */
export function slowness(): number {
  return Math.max(1, shortestMs(RUNS, readAndWrite) / REFERENCE_MS);
}

/** The shortest time of the work in several runs. */
export function shortestMs(runs: number, work: () => unknown): number {
  let shortest = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run++) {
    const from = performance.now();
    work();
    shortest = Math.min(shortest, performance.now() - from);
  }
  return shortest;
}
