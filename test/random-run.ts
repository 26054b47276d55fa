/** How often random tests run, and from which seed (`RUNS=2000 SEED=7 npx vitest run <file>`), and how much of a matrix runs. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';

const MAX_SEED = 1_000_000_000;

/**
 * The seed of a random test's first run; each further run adds one. Without `SEED` it is always the same, so `npm test` has the same
 * outcome each time. `SEED=random` draws one. A test has it in its title, so that a report names it.
 */
export const SEED =
  process.env.SEED === 'random' ? Math.floor(Math.random() * MAX_SEED) : Number(process.env.SEED ?? 1);

/** The number of runs: `RUNS`, or a few that a person waits for, or many with `--mode slow`. */
export function runsOf(few: number, many = few): number {
  return Number(process.env.RUNS ?? sampleOf(few, many));
}

/** What a person waits for, or all with `--mode slow`. */
export function sampleOf<Value>(few: Value, all: Value): Value {
  return process.env.TEST_MODE === 'slow' ? all : few;
}

/** Of the places or cells of a matrix one in so many is tried: `STEP=1` tries all. */
export function stepOf(few: number, many = few): number {
  return Number(process.env.STEP ?? sampleOf(few, many));
}

/** One value in `step`. Tests that cross the same values shift them, so that each value has some test. */
export function oneIn<Value>(step: number, values: readonly Value[], shift = 0): Value[] {
  return values.filter((_, at) => (at + shift) % step === 0);
}

/** Runs with a seed; an error names the seed that repeats its run alone. */
export async function repeatable(seed: number, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw new Error(`SEED=${seed} RUNS=1 repeats it`, { cause: error });
  }
}

/** Digests end in the turn in which they begin. Node computes them in other threads, which end in any order, whatever the seed. */
export function useOrderedDigests(): void {
  const { subtle } = crypto;
  beforeAll(() => {
    const digest = async (_: string, bytes: Uint8Array) => {
      const { buffer } = new Uint8Array(createHash('sha256').update(bytes).digest());
      return buffer;
    };
    Object.assign(subtle, { digest });
  });
  afterAll(() => void Reflect.deleteProperty(subtle, 'digest'));
}
