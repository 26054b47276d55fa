/**
 * No body costs more than its size: every list, object, text and nesting of every protocol's requests, grown up to the bounds of a
 * body, at every provider's writer. In this process, so that all of them can be tried; the worst go through a workerd beside this.
 */
import { afterAll, describe, expect, test } from 'vitest';
import type { Target } from '../../src/routing/targets.ts';
import { type Growth, growLists, growNestings, growObjects, growPairs, growTexts } from './scaling/grow.ts';
import { SAMPLES, type Sample } from './scaling/samples.ts';
import { type Read, read, targetsFor, type Written, write } from './scaling/writers.ts';

/** So long at most the gateway may work on one body while another stream waits for a frame. */
const MAX_RAN_MS = 250;
/** What leaves has at most so many times the bytes that came, beside what Weir adds itself. */
const MAX_FACTOR = 4;
const ADDED_BYTES = 128 * 1024;
/** What lives as long as the answer is small. */
const MAX_HELD_CHARS = 128 * 1024;
const MAX_NAMES = 200;
/** Runs of a body that took too long: the shortest counts, as the engine compiles and collects whenever it likes. */
const RUNS = 3;

/** These have the most to do, and get the largest bodies; the others have rules of the same form as the third, and get small ones. */
const LARGEST_AT = /^like-(?:anthropic|gemini-native|mistral)\//;
/** Small is a 16th: what grows with the square of a body takes less than a quarter of the time there, and what is linear far less. */
const SMALL_PART = 16;
const MAX_SMALL_MS = MAX_RAN_MS / 4;

const bodies = { tried: 0, sent: 0, refused: 0, beyond: 0 };

/** What is wrong with what became of a body, or null. */
function faultOf(
  { ranMs, did, cameBytes, leftBytes, heldChars, names }: Written,
  maxMs: number,
): string | null {
  if (ranMs > maxMs) return `${ranMs.toFixed(0)} ms for ${cameBytes} bytes in ${did}`;
  if (leftBytes > cameBytes * MAX_FACTOR + ADDED_BYTES) return `${leftBytes} bytes left of ${cameBytes}`;
  if (heldChars > MAX_HELD_CHARS) return `${heldChars} characters are held of ${cameBytes} bytes`;
  return names > MAX_NAMES ? `${names} names are reported` : null;
}

async function outcomeOf(known: Read | Written, target: Target | null): Promise<Written> {
  return target === null || !isRead(known) ? writtenOf(known) : write(known, target);
}

function isRead(known: Read | Written): known is Read {
  return 'request' in known;
}

/** Of a body that is only read. */
function writtenOf(known: Read | Written): Written {
  if (!isRead(known)) return known;
  const { cameBytes, watch } = known;
  const nothing = { outcome: 'sent', why: '', leftBytes: 0, heldChars: 0, names: 0 } as const;
  return { ...nothing, cameBytes, ranMs: watch.longestMs, did: watch.longest };
}

/** A body that is tried. */
interface Trial {
  readonly name: string;
  readonly text: string;
  readonly sample: Sample;
  readonly maxMs: number;
}

/** The fault of one body at one target; what took too long is read and written again. */
async function faultAt({ text, sample, maxMs }: Trial, first: Read | Written, target: Target | null) {
  let fault: string | null = null;
  for (let run = 0; run < RUNS; run++) {
    try {
      const outcome = await outcomeOf(run === 0 ? first : read(text, sample), target);
      if (run === 0) count(outcome);
      fault = faultOf(outcome, maxMs);
      if (fault === null || outcome.ranMs <= maxMs || outcome.ranMs > 4 * maxMs) return fault;
    } catch (error) {
      return String(error).slice(0, 200);
    }
  }
  return fault;
}

/** @returns the targets at which nothing was wrong */
async function tryAt(trial: Trial, targets: readonly (Target | null)[], faults: string[]) {
  let known: Read | Written;
  try {
    known = read(trial.text, trial.sample);
  } catch (error) {
    faults.push(`${trial.name}: ${String(error).slice(0, 200)}`);
    return [];
  }
  const kept: (Target | null)[] = [];
  for (const target of targets) {
    const fault = await faultAt(trial, known, target);
    if (fault === null) kept.push(target);
    else faults.push(`${trial.name} at ${target?.address ?? 'any'}: ${fault}`);
    // What can't be read can't be written.
    if (fault !== null && target === null) return [];
  }
  return kept;
}

function count({ outcome }: Written): void {
  bodies.tried++;
  if (outcome === 'sent') bodies.sent++;
  else if (outcome === 'refused') bodies.refused++;
  else bodies.beyond++;
}

/** The faults of a growth at these targets: it grows no further where it shows one. */
async function faultsOf(growth: Growth, sample: Sample, targets: readonly Target[]): Promise<string[]> {
  const faults: string[] = [];
  let left: readonly (Target | null)[] = [null, ...targets];
  for (const { size, maxMs } of sizesOf(growth)) {
    if (maxMs === MAX_RAN_MS)
      left = left.filter((target) => target === null || LARGEST_AT.test(target.address));
    const text = JSON.stringify(growth.body(size));
    left = await tryAt(
      { name: `${sample.name}: ${growth.name} x ${size}`, text, sample, maxMs },
      left,
      faults,
    );
    if (left.length === 0) return faults;
  }
  return faults;
}

function sizesOf({ kind, max }: Growth): { readonly size: number; readonly maxMs: number }[] {
  const largest = { size: max, maxMs: MAX_RAN_MS };
  if (kind === 'text') return [largest];
  // What doubles with each level is found before it takes all memory.
  if (kind === 'nesting') return [6, 12, 24].map((size) => ({ size, maxMs: MAX_RAN_MS })).concat(largest);
  return [{ size: Math.floor(max / SMALL_PART), maxMs: MAX_SMALL_MS }, largest];
}

const GROWTHS: readonly [what: string, grow: (body: unknown) => Growth[]][] = [
  ['list of many entries', growLists],
  ['object of many keys', growObjects],
  ['text of many characters', growTexts],
  ['nesting of as many levels as may be', growNestings],
];

describe.each(SAMPLES.map((sample) => [sample.name, sample] as const))(
  'B4 a request of %s with a',
  (_, sample) => {
    test.each(GROWTHS)(
      '%s costs no more than its size, at each provider',
      async (_, grow) => {
        const faults: string[] = [];
        const targets = targetsFor(sample.route);
        for (const growth of grow(sample.body)) faults.push(...(await faultsOf(growth, sample, targets)));
        expect(faults).toEqual([]);
      },
      600_000,
    );
  },
);

describe.each(SAMPLES.map((sample) => [sample.name, sample] as const))(
  'B4 a request of %s with',
  (_, sample) => {
    test('two lists of many entries that belong together costs no more than its size', async () => {
      const faults: string[] = [];
      const targets = targetsFor(sample.route).filter(({ address }) => LARGEST_AT.test(address));
      for (const growth of growPairs(sample.body))
        faults.push(...(await pairFaults(growth, sample, targets)));
      expect(faults).toEqual([]);
    }, 600_000);
  },
);

/** Of so many entries what is linear takes some ms: all pairs are tried with these, and those that take longer with the most. */
const PAIR_ENTRIES = 4000;
const PAIR_MS = 50;

async function pairFaults(growth: Growth, sample: Sample, targets: readonly Target[]): Promise<string[]> {
  const size = Math.min(PAIR_ENTRIES, growth.max);
  const text = JSON.stringify(growth.body(size));
  const faults: string[] = [];
  const name = `${sample.name}: ${growth.name} x ${size}`;
  const all = [null, ...targets];
  const kept = await tryAt({ name, text, sample, maxMs: PAIR_MS }, all, []);
  if (kept.length < all.length) await tryAt({ ...trialOf(growth, sample), maxMs: MAX_RAN_MS }, all, faults);
  return faults;
}

function trialOf(growth: Growth, sample: Sample) {
  const text = JSON.stringify(growth.body(growth.max));
  return { name: `${sample.name}: ${growth.name} x ${growth.max}`, text, sample };
}

afterAll(() => {
  process.stdout.write(`scaling: ${JSON.stringify(bodies)}\n`);
});
