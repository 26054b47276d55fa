/**
 * Learns how the numbers of a text's frame make its usage, which some upstreams count on with every frame (`splice.ts`).
 *
 * Only of reports that take the place of earlier ones (A5): such a report's counts are sums of the event's numbers, so what a number
 * adds to each count is found by changing it, and tried with all of them changed at once.
 */
import type { ChunkPart } from '../canonical/part.ts';
import type { UsageReport } from '../canonical/usage.ts';

type Count = Exclude<keyof UsageReport, 'isLatest' | 'besides'>;
const COUNTS: readonly Count[] = [
  ...(['prompt', 'completion', 'total', 'cached', 'cacheWrite', 'reasoning', 'promptAudio'] as const),
  ...(['completionAudio', 'acceptedPrediction', 'rejectedPrediction', 'cost'] as const),
];

/** A number of the event, where it is written, and what one more of it adds to each count. */
export interface NumberHole {
  readonly start: number;
  readonly end: number;
  readonly value: number;
  readonly adds: Readonly<Partial<Record<Count, number>>>;
}

/** Trying one costs two reads of the event. */
const MAX_NUMBERS = 16;
/** Two that no event has by itself, and of which no multiple looks like the other. */
const STEPS = [1_000_003, 7_000_009] as const;

/** Strings are taken whole, so that no digit in them is a number. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const COUNT = /^(?:0|[1-9]\d{0,8})$/;

/** The event's numbers that its usage alone is made of, or that nothing is made of; none where it reports none that may be learned. */
export function findNumbers(
  json: string,
  read: ChunkPart,
  readPart: (json: string) => ChunkPart | null,
): readonly NumberHole[] {
  if (read.usage?.isLatest !== true || read.usage.besides !== undefined) return [];
  const tokens = [...json.matchAll(TOKEN)].filter(([token]) => COUNT.test(token)).slice(0, MAX_NUMBERS);
  const beside = besideOf(read);
  const holes = tokens.flatMap((token): NumberHole[] => {
    const [text] = token;
    const start = token.index;
    const hole = { start, end: start + text.length, value: Number(text), adds: {} };
    const addsBy = (step: number) => {
      const changed = readPart(putNumbers(json, [hole], [hole.value + step]));
      return changed === null || besideOf(changed) !== beside ? null : differenceOf(read, changed, step);
    };
    const adds = addsBy(STEPS[0]);
    const isSum = adds !== null && JSON.stringify(adds) === JSON.stringify(addsBy(STEPS[1]));
    return isSum ? [{ ...hole, adds }] : [];
  });
  const values = holes.map(({ value }, at) => value + STEPS[0] * (at + 1));
  const all = readPart(putNumbers(json, holes, values));
  const isRight =
    all !== null && besideOf(all) === beside && isSame(all.usage, usageOf(read.usage, holes, values));
  return isRight ? holes : [];
}

/** The report of an event with these numbers in its holes. */
export function usageOf(
  learned: UsageReport,
  holes: readonly NumberHole[],
  values: readonly number[],
): UsageReport {
  const usage: { -readonly [K in keyof UsageReport]: UsageReport[K] } = { ...learned };
  for (let i = 0; i < holes.length; i++) {
    const hole = holes[i];
    if (hole === undefined) continue;
    const more = (values[i] ?? hole.value) - hole.value;
    for (const count of COUNTS) {
      const adds = hole.adds[count];
      if (adds !== undefined) usage[count] = (usage[count] ?? 0) + adds * more;
    }
  }
  return usage;
}

/** The event with other numbers. */
function putNumbers(json: string, holes: readonly NumberHole[], values: readonly number[]): string {
  let changed = '';
  let at = 0;
  for (const [i, { start, end }] of holes.entries()) {
    changed += json.slice(at, start) + String(values[i]);
    at = end;
  }
  return changed + json.slice(at);
}

/** What each count gained a step of the number, or null where it is no multiple. */
function differenceOf(before: ChunkPart, after: ChunkPart, step: number): NumberHole['adds'] | null {
  const adds: Partial<Record<Count, number>> = {};
  for (const count of COUNTS) {
    const [one, other] = [before.usage?.[count], after.usage?.[count]];
    if (one === other) continue;
    if (one === undefined || other === undefined || (other - one) % step !== 0) return null;
    adds[count] = (other - one) / step;
  }
  return adds;
}

function isSame(one: UsageReport | null, other: UsageReport): boolean {
  return one !== null && COUNTS.every((count) => one[count] === other[count]);
}

/** All but the usage. */
function besideOf(part: ChunkPart): string {
  return JSON.stringify({ ...part, usage: null });
}
