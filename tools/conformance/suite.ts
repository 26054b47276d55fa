/** Plays the cases against a gateway: which pairs of protocols it offers, each case, and the measures. */
import { residentBytes } from '../../test/e2e/processes.ts';
import { type Area, areaOf, type Case, type Client, type Measure, UNITS, type Upstream } from './case.ts';
import { plain } from './cases/framing.ts';
import { type Fault, judge } from './judge.ts';
import type { Gateway, Play, Stage } from './play.ts';

export interface Result {
  readonly id: string;
  readonly area: Area;
  /** `none`: cannot be measured from outside, or the gateway does not offer it. */
  readonly verdict: 'passed' | 'failed' | 'none';
  readonly faults: readonly Fault[];
  /** Why there is no verdict. */
  readonly reason?: string;
  readonly value?: number;
  readonly unit?: string;
}

export interface Suite {
  readonly results: readonly Result[];
  /** The plays, for a closer look at single cases. */
  readonly plays: ReadonlyMap<string, Play>;
}

export type Progress = (done: number, all: number, result: Result) => void;

/** Plays for one figure, after one that does not count; the median counts. */
const MEASURE_PLAYS = 9;
const MIB = 1024 * 1024;

/** @param onProgress called after each case */
export async function runSuite(
  stage: Stage,
  gateway: Gateway,
  cases: readonly Case[],
  onProgress: Progress = () => undefined,
): Promise<Suite> {
  const results = new Map<string, Result>();
  const plays = new Map<string, Play>();
  const offers = new Offers(stage, gateway);
  const run = async (one: Case) => {
    const { result, play } = await runCase(stage, gateway, offers, one);
    results.set(one.id, result);
    if (play !== undefined) plays.set(one.id, play);
    onProgress(results.size, cases.length, result);
    return result;
  };
  const alone = cases.filter((one) => needsQuiet(one));
  const others = cases.filter((one) => !needsQuiet(one) && one.isLast !== true);
  // One lane for each upstream: gateways that stop calling a failing provider count consecutive failures.
  const lanes = Map.groupBy(others, ({ upstream }) => upstream);
  await Promise.all(
    [...lanes.values()].map(async (lane) => {
      for (const one of lane) {
        const result = await run(one);
        if (result.verdict !== 'none' && expectsFailure(one)) await succeed(stage, gateway, one);
      }
    }),
  );
  for (const one of alone) await run(one);
  for (const one of cases.filter(({ isLast }) => isLast)) await run(one);
  return { results: cases.flatMap(({ id }) => results.get(id) ?? []), plays };
}

/** Timing, and memory. */
function needsQuiet(one: Case): boolean {
  return ['latency', 'buffering'].includes(areaOf(one));
}

function expectsFailure({ expect }: Case): boolean {
  return expect.outcome === 'failed' || expect.outcome === 'unfinished' || expect.status !== undefined;
}

/** A plain response, so that no provider has several failures in a row. */
async function succeed(stage: Stage, gateway: Gateway, { upstream, client }: Case): Promise<void> {
  const good = plain.find((one) => one.upstream === upstream && one.client === client);
  if (good !== undefined) await stage.play(good, gateway);
}

/** Which pairs of protocols the gateway offers, by a plain response through each. */
class Offers {
  readonly #known = new Map<string, Promise<string | null>>();
  readonly #stage: Stage;
  readonly #gateway: Gateway;

  constructor(stage: Stage, gateway: Gateway) {
    this.#stage = stage;
    this.#gateway = gateway;
  }

  /** Why the pair is not offered; null: it is. */
  missing(upstream: Upstream, client: Client): Promise<string | null> {
    const key = `${upstream} ${client}`;
    const known = this.#known.get(key) ?? this.#probe(upstream, client);
    this.#known.set(key, known);
    return known;
  }

  async #probe(upstream: Upstream, client: Client): Promise<string | null> {
    if (this.#gateway.upstreams[upstream] === undefined) return `no model reaches a ${upstream} provider`;
    const one = plain.find((other) => other.upstream === upstream && other.client === client);
    if (one === undefined) return 'no such pair';
    const play = await this.#stage.play(one, this.#gateway);
    if (play.requests.length > 0) return null;
    if (play.otherUpstream !== undefined) return `calls the provider by ${play.otherUpstream}`;
    const { status, failure } = play.reading;
    return `${status === 0 ? 'no response' : `status ${status}`}: ${failure?.message.slice(0, 100) ?? 'the provider is not called'}`;
  }
}

async function runCase(
  stage: Stage,
  gateway: Gateway,
  offers: Offers,
  one: Case,
): Promise<{ result: Result; play?: Play }> {
  const base = { id: one.id, area: areaOf(one), faults: [] };
  const missing = await offers.missing(one.upstream, one.client);
  if (missing !== null) return { result: { ...base, verdict: 'none', reason: missing } };
  if (one.measure === 'memory' && gateway.processes === undefined)
    return { result: { ...base, verdict: 'none', reason: 'memory is not visible from outside' } };
  if (one.expect.record !== undefined && gateway.record === undefined)
    return { result: { ...base, verdict: 'none', reason: 'records are not visible from outside' } };
  if (one.measure !== undefined) return measured(stage, gateway, one, one.measure);
  const play = await stage.play(one, gateway);
  const record =
    one.expect.record === undefined ? null : ((await gateway.record?.(play.reading.headers)) ?? null);
  const faults = judge(play, gateway, record);
  if (one.expect.record !== undefined && record === null)
    faults.push({ kind: 'wrong record', text: 'there is no record' });
  return { result: { ...base, verdict: faults.length === 0 ? 'passed' : 'failed', faults }, play };
}

async function measured(
  stage: Stage,
  gateway: Gateway,
  one: Case,
  measure: Measure,
): Promise<{ result: Result; play: Play }> {
  const before = residentBytes(gateway.processes?.() ?? []);
  const plays: Play[] = [];
  const direct: Play[] = [];
  const count = measure === 'first chunk' || measure === 'further chunk' ? MEASURE_PLAYS : 1;
  if (count > 1) await stage.play(one, gateway);
  for (let turn = 0; turn < count; turn += 1) {
    plays.push(await stage.play(one, gateway));
    // A provider of another protocol cannot be read by this client; there the time from write to arrival is the gateway's.
    if (count > 1 && one.upstream === one.client) direct.push(await stage.play(one, null));
  }
  const [play] = plays;
  if (play === undefined) throw new Error('no play');
  const base = { id: one.id, area: areaOf(one), unit: UNITS[measure] };
  const value = figureOf(measure, plays, direct, before, gateway);
  if (value === null) {
    const faults: Fault[] = [{ kind: 'dropped', text: 'there was nothing to measure' }];
    return { result: { ...base, verdict: 'failed', faults }, play };
  }
  const { atMost = Number.POSITIVE_INFINITY } = one.expect;
  const faults: Fault[] =
    value <= atMost ? [] : [{ kind: 'over limit', text: `${value} ${UNITS[measure]}, at most ${atMost}` }];
  return { result: { ...base, verdict: faults.length === 0 ? 'passed' : 'failed', faults, value }, play };
}

function figureOf(
  measure: Measure,
  plays: readonly Play[],
  direct: readonly Play[],
  before: number,
  gateway: Gateway,
): number | null {
  if (measure === 'bytes ahead') return rounded(Math.max(...plays.map((play) => play.bytesAhead)) / MIB);
  if (measure === 'memory') {
    const peak = Math.max(
      ...plays.map((play) => play.memoryAhead),
      residentBytes(gateway.processes?.() ?? []),
    );
    return rounded(Math.max(0, peak - before) / MIB);
  }
  const times = measure === 'first chunk' ? firstTimes : furtherTimes;
  const through = median(plays.flatMap(times));
  const without = direct.length === 0 ? 0 : median(direct.flatMap(times));
  return through === null || without === null ? null : rounded(Math.max(0, through - without));
}

function firstTimes(play: Play): number[] {
  const [first] = play.reading.arrivals;
  return first === undefined ? [] : [first.at - play.sentAt];
}

/** From the write of a word to its arrival, without the first word. */
function furtherTimes(play: Play): number[] {
  return play.reading.arrivals.slice(1).flatMap(({ at, text }) => {
    const write = play.writes.find((one) => one.text.includes(`"${text}"`));
    return write === undefined ? [] : [at - write.at];
  });
}

function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
