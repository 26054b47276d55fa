/**
 * Tests that the work for a request body is in proportion to its size: grows every list, object, text and nesting of
 * every protocol's requests up to the limits of a body, with every provider's writer. Runs in this process for speed;
 * hostile.test.ts runs the worst in workerd. One place in `STEP` is tried of each kind of growth, for each protocol and
 * at each provider: as many `SEED`s as `STEP` try all.
 */
import { afterAll, describe, expect, test } from 'vitest';
import { createAttribution } from '../../src/attribution/attribution.ts';
import { NO_CALLER_FACTS } from '../../src/auth/caller.ts';
import type { Target } from '../../src/routing/targets.ts';
import { slowness } from '../machine-speed.ts';
import { oneIn, SEED, stepOf } from '../random-run.ts';
import {
  type Growth,
  growLists,
  growNestings,
  growObjects,
  growPairs,
  growRuns,
  growTexts,
} from './scaling/grow.ts';
import { SAMPLES, type Sample } from './scaling/samples.ts';
import { type Read, read, targetsFor, type Written, write } from './scaling/writers.ts';

/**
 * Bounds in ms are those of the reference's machine. Times are divided by the slowness of this one, which is measured
 * again beside each run that took too long.
 */
const SLOWNESS = slowness();
function slownessNow(): number {
  return Math.max(SLOWNESS, slowness());
}

/** The longest time that the gateway may work on one body while another stream waits for a frame. */
const MAX_RAN_MS = 250;
/** The maximal ratio of sent to received bytes, without the bytes that Weir adds. */
const MAX_FACTOR = 4;
const ADDED_BYTES = 128 * 1024;
/** The limit of characters that live as long as the response. */
const MAX_HELD_CHARS = 128 * 1024;
const MAX_NAMES = 200;
/** A refusal that names what the body has may take this much of one in few words, or half of what any work may take. */
const MAX_REFUSAL_FACTOR = 2;
const REFUSAL_MS = MAX_RAN_MS / 2;
/** Runs for a body that took too long. The shortest counts, because compilation and garbage collection vary. */
const RUNS = 3;
/** A body that takes this much of its bound is not run again. */
const HOPELESS = 4;

/** The writers with the most work get the largest bodies. The others have rules like those of the third and get small bodies. */
const LARGEST_AT = /^like-(?:anthropic|gemini-native|mistral)\//;
/**
 * Small bodies are a 16th of the maximum. Quadratic work within the limit takes less than a quarter of the time there,
 * and linear work far less.
 */
const SMALL_PART = 16;
const MAX_SMALL_MS = MAX_RAN_MS / 4;

/** All places take 40 minutes of CPU. */
const STEP = stepOf(3);

const OPEN_CALLER = { keyId: 'open', models: null, key: null, credential: null, facts: NO_CALLER_FACTS };

const bodies = { tried: 0, sent: 0, refused: 0, beyond: 0 };

/** The problem of a body's outcome, or null. */
function faultOf(
  { ranMs, did, cameBytes, leftBytes, heldChars, names, refusedMs: [control, named] = [0, 0] }: Written,
  maxMs: number,
  slow: number,
): string | null {
  const most = Math.min(Math.max(MAX_REFUSAL_FACTOR * control, REFUSAL_MS * slow), MAX_RAN_MS * slow);
  const at = `on a machine ${slow.toFixed(2)} x as slow`;
  if (named > most)
    return `${named.toFixed(0)} ms for a refusal of ${cameBytes} bytes that names what they have, ${control.toFixed(0)} ms for a short one, ${at}`;
  if (ranMs > maxMs * slow) return `${ranMs.toFixed(0)} ms for ${cameBytes} bytes in ${did}, ${at}`;
  if (leftBytes > cameBytes * MAX_FACTOR + ADDED_BYTES) return `${leftBytes} bytes left of ${cameBytes}`;
  if (heldChars > MAX_HELD_CHARS) return `${heldChars} characters are kept of ${cameBytes} bytes`;
  return names > MAX_NAMES ? `${names} names are reported` : null;
}

async function outcomeOf(known: Read | Written, target: Target | null): Promise<Written> {
  return target === null || !isRead(known) ? writtenOf(known) : write(known, target, true);
}

function isRead(known: Read | Written): known is Read {
  return 'request' in known;
}

/** The outcome of a body that is only read. */
function writtenOf(known: Read | Written): Written {
  if (!isRead(known)) return known;
  const { cameBytes, watch } = known;
  const nothing = { outcome: 'sent', why: '', leftBytes: 0, heldChars: 0, names: 0 } as const;
  return { ...nothing, cameBytes, ranMs: watch.longestMs, did: watch.longest };
}

/** A body under test. */
interface Trial {
  readonly name: string;
  readonly text: string;
  readonly sample: Sample;
  readonly maxMs: number;
}

/** The fault of one body at one target. A body that took too long is run again. */
async function faultAt({ text, sample, maxMs }: Trial, first: Read | Written, target: Target | null) {
  let fault: string | null = null;
  for (let run = 0; run < RUNS; run++) {
    try {
      const outcome = await outcomeOf(run === 0 ? first : read(text, sample), target);
      if (run === 0) count(outcome);
      fault = faultOf(outcome, maxMs, SLOWNESS);
      if (fault === null) return null;
      const slow = slownessNow();
      fault = faultOf(outcome, maxMs, slow);
      const isQuick = outcome.ranMs <= maxMs * slow && outcome.refusedMs === undefined;
      if (fault === null || isQuick || outcome.ranMs > HOPELESS * maxMs * slow) return fault;
    } catch (error) {
      return String(error).slice(0, 200);
    }
  }
  return fault;
}

/** @returns the targets without a fault */
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
    // A body that can't be read can't be written.
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

/** The faults of a growth at these targets. Growing stops at the first fault of a target. */
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
  // Small steps find exponential growth before it takes all memory.
  if (kind === 'nesting') return [6, 12, 24].map((size) => ({ size, maxMs: MAX_RAN_MS })).concat(largest);
  return [{ size: Math.floor(max / SMALL_PART), maxMs: MAX_SMALL_MS }, largest];
}

/** Of each form one in `STEP`, and one at least. */
function sampled(growths: readonly Growth[]): Growth[] {
  const forms = [...new Set(growths.map(({ form }) => form))];
  return forms.flatMap((form, at) => {
    const own = growths.filter((growth) => growth.form === form);
    return oneIn(Math.min(STEP, own.length), own, SEED + at);
  });
}

const GROWTHS: readonly [what: string, grow: (body: unknown) => Growth[]][] = [
  ['list of many entries', growLists],
  ['object of many keys', growObjects],
  ['text of many characters', growTexts],
  ['nesting of as many levels as may be', growNestings],
];

describe.each(SAMPLES.map((sample) => [sample.name, sample] as const))(
  `B4 seed ${SEED}: a request of %s with a`,
  (_, sample) => {
    test.each(GROWTHS)(
      '%s: the work is in proportion to its size, for each provider',
      async (_, grow) => {
        const faults: string[] = [];
        const targets = targetsFor(sample.route);
        for (const growth of sampled(grow(sample.body)))
          faults.push(...(await faultsOf(growth, sample, targets)));
        expect(faults).toEqual([]);
      },
      600_000,
    );
  },
);

describe.each(SAMPLES.map((sample) => [sample.name, sample] as const))(
  `B4 seed ${SEED}: a request of %s with`,
  (_, sample) => {
    test('two related lists of many entries: the work is in proportion to its size', async () => {
      const faults: string[] = [];
      const targets = targetsFor(sample.route).filter(({ address }) => LARGEST_AT.test(address));
      for (const growth of sampled(growPairs(sample.body)))
        faults.push(...(await pairFaults(growth, sample, targets)));
      expect(faults).toEqual([]);
    });
  },
);

/** The longest time for one text of `growRuns`. */
const RUN_MS = 50;

/** The longest time of each sample. */
const runTimes: string[] = [];

describe.each(SAMPLES.map((sample) => [sample.name, sample] as const))(
  `B4 seed ${SEED}: a request of %s`,
  (_, sample) => {
    test('each text in turn, with each of twelve repetitive patterns: at each provider in linear time', async () => {
      const faults: string[] = [];
      const { attribute } = createAttribution({ users: 'plain', userHashKey: null, tags: [] });
      let texts = 0;
      let longest = { ms: 0, name: '' };
      for (const growth of sampled(growRuns(sample.body))) {
        const text = JSON.stringify(growth.body(growth.max));
        for (const target of targetsFor(sample.route)) {
          texts++;
          const name = `${growth.name} at ${target.address}`;
          let ms = Number.POSITIVE_INFINITY;
          // The shortest of several runs, because the machine may be busy.
          for (let run = 0; run < RUNS && ms > RUN_MS; run++) {
            const body = read(text, sample);
            const from = performance.now();
            if (isRead(body))
              await attribute({ headers: new Headers(), body: body.sent, caller: OPEN_CALLER });
            const ownMs = performance.now() - from;
            const allMs = ownMs + (await outcomeOf(body, target)).ranMs;
            ms = Math.min(ms, allMs / (allMs > RUN_MS * SLOWNESS ? slownessNow() : SLOWNESS));
          }
          if (ms > longest.ms) longest = { ms, name };
          if (ms > RUN_MS) faults.push(`${sample.name}: ${name}: ${ms.toFixed(0)} ms`);
        }
      }
      runTimes.push(
        `${sample.name}: ${texts} texts, the longest ${longest.ms.toFixed(1)} ms (${longest.name})`,
      );
      expect(texts).toBeGreaterThan(0);
      expect(faults).toEqual([]);
    });
  },
);

/** Linear work takes a few ms for this many entries. All pairs are tested with these, and slow ones with the maximum. */
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
  process.stdout.write(
    `scaling: bounds in ms are multiplied by the slowness of this machine, ${SLOWNESS.toFixed(2)} at the start\n`,
  );
  for (const times of runTimes) process.stdout.write(`patterns: ${times}\n`);
  process.stdout.write(`scaling: ${JSON.stringify(bodies)}\n`);
});
