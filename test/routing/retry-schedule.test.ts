/** Tests when each target is tried: the first round, the retry rounds, their waits, circuits and the deadline (R6, R7). */
import { describe, expect, test } from 'vitest';
import { apiError } from '../../src/canonical/error.ts';
import { CIRCUIT_FAILURES, CIRCUIT_OPEN_MS, CircuitBreakers } from '../../src/routing/circuit-breaker.ts';
import { type Failure, judge } from '../../src/routing/failures.ts';
import { RetrySchedule, type RetryScheduleOptions } from '../../src/routing/retry-schedule.ts';
import { targetsOf } from './targets.ts';

const NOW = 1_790_000_000_000;
const NAMES = ['openai/a', 'openai/b', 'openai/c'];

function failure(
  code: 'upstream_error' | 'upstream_credential',
  retryAfterMs: number | null = null,
): Failure {
  return {
    error: apiError(code, 'x'),
    reason: 'no_response',
    isMade: false,
    isBilled: false,
    retryAfterMs,
  };
}
const DOWN = failure('upstream_error');
const NO_KEY = failure('upstream_credential');
const asksFor = (ms: number) => failure('upstream_error', ms);

function passesOver(names: readonly string[], fields: Partial<RetryScheduleOptions> = {}, now = NOW) {
  const [first = '', ...others] = names;
  const targets = targetsOf([first, ...others]);
  const circuits = fields.circuits ?? new CircuitBreakers();
  const options = {
    targets,
    circuits,
    caller: 'ann',
    circuitKey: ({ address }: { address: string }) => address,
    retries: 1,
    sparesBudget: false,
    deadlineAt: Number.POSITIVE_INFINITY,
    random: () => 0.5,
  };
  return new RetrySchedule({ ...options, ...fields }, now);
}

/** Every attempt with its time. Each target fails at once, in the given ways. */
function run(passes: RetrySchedule, failures: Readonly<Record<string, readonly Failure[]>>): string[] {
  const attempts: string[] = [];
  const counts = new Map<string, number>();
  let now = NOW;
  for (let turn = passes.next(now); turn !== null; turn = passes.next(now)) {
    const { target, at } = turn;
    now = at;
    attempts.push(`${target.model} +${at - NOW}`);
    const count = counts.get(target.model) ?? 0;
    counts.set(target.model, count + 1);
    const ends = failures[target.model]?.[count] ?? DOWN;
    passes.failed(target, ends, judge(ends, target, false), now);
  }
  return attempts;
}

describe('R6 RetrySchedule', () => {
  test('the first round has no delay; the second waits half of 250 ms with random 0.5', () => {
    expect(run(passesOver(NAMES), {})).toEqual(['a +0', 'b +0', 'c +0', 'a +125', 'b +125', 'c +125']);
  });

  test('no retries: one round', () => {
    expect(run(passesOver(NAMES, { retries: 0 }), {})).toEqual(['a +0', 'b +0', 'c +0']);
  });

  test('the longest wait doubles with each round, with full jitter', () => {
    const chances = [0, 0.999, 0.5];
    const random = () => chances.shift() ?? 0;
    expect(run(passesOver(['openai/a'], { retries: 3, random }), {})).toEqual([
      'a +0',
      'a +0',
      'a +499',
      'a +999',
    ]);
  });

  test('a target whose failure is not recoverable is not retried', () => {
    expect(run(passesOver(NAMES), { a: [NO_KEY], c: [NO_KEY] })).toEqual(['a +0', 'b +0', 'c +0', 'b +125']);
    expect(run(passesOver(['openai/a']), { a: [NO_KEY] })).toEqual(['a +0']);
  });

  test('a retry-after is respected, and the earliest retry time comes first', () => {
    expect(run(passesOver(NAMES), { a: [asksFor(3000)], b: [asksFor(20)] })).toEqual([
      'a +0',
      'b +0',
      'c +0',
      'b +20',
      'c +125',
      'a +3000',
    ]);
  });

  test('a target with a retry-after of more than 5 s is not retried', () => {
    expect(run(passesOver(NAMES.slice(0, 2)), { a: [asksFor(5001)], b: [asksFor(5000)] })).toEqual([
      'a +0',
      'b +0',
      'b +5000',
    ]);
  });

  test('no attempt begins at or after the deadline', () => {
    const passes = passesOver(NAMES.slice(0, 2), { deadlineAt: NOW + 1000 });
    expect(run(passes, { a: [asksFor(999)], b: [asksFor(1000)] })).toEqual(['a +0', 'b +0', 'a +999']);
  });

  test('hasMore: whether another attempt may follow', () => {
    const passes = passesOver(NAMES.slice(0, 2));
    const seen: boolean[] = [];
    for (let turn = passes.next(NOW); turn !== null; turn = passes.next(NOW)) {
      seen.push(passes.hasMore);
      passes.failed(turn.target, DOWN, judge(DOWN, turn.target, false), NOW);
    }
    expect(seen).toEqual([true, true, true, false]);
    const single = passesOver(['openai/a'], { retries: 0 });
    single.next(NOW);
    expect(single.hasMore).toBe(false);
  });
});

describe('R7 RetrySchedule, circuits', () => {
  function withOut(...names: readonly string[]): CircuitBreakers {
    const circuits = new CircuitBreakers();
    for (const name of names) {
      for (let i = 0; i < CIRCUIT_FAILURES; i++) circuits.failed(name, 'ann', 'failure', NOW);
    }
    return circuits;
  }

  test('a target whose circuit is open is skipped in every round and reported', () => {
    const passes = passesOver(NAMES, { circuits: withOut('openai/b') });
    expect(run(passes, { a: [NO_KEY] })).toEqual(['a +0', 'c +0', 'c +125']);
    expect(passes.takeSkipped()).toMatchObject([{ target: { model: 'b' }, reason: 'circuit_open' }]);
  });

  test('the last target’s circuit is open: the others still have their retry rounds', () => {
    expect(run(passesOver(NAMES, { circuits: withOut('openai/c') }), { b: [NO_KEY] })).toEqual([
      'a +0',
      'b +0',
      'a +125',
    ]);
  });

  test('if every circuit is open, all targets are tried', () => {
    expect(run(passesOver(NAMES, { circuits: withOut(...NAMES), retries: 0 }), {})).toEqual([
      'a +0',
      'b +0',
      'c +0',
    ]);
  });

  test('five failures of earlier requests make the next ones skip the target', () => {
    const circuits = new CircuitBreakers();
    for (let i = 0; i < CIRCUIT_FAILURES; i++) run(passesOver(['openai/a'], { circuits, retries: 0 }), {});
    expect(run(passesOver(NAMES, { circuits, retries: 0 }), {})).toEqual(['b +0', 'c +0']);
  });

  test('an output closes the circuit', () => {
    const circuits = withOut('openai/a');
    const passes = passesOver(['openai/a'], { circuits });
    const turn = passes.next(NOW);
    if (turn === null) throw new Error('No target is scheduled');
    passes.succeeded(turn.target);
    expect(circuits.isOpen('openai/a', 'ann', NOW)).toBe(false);
  });

  test('after the open time one request probes it, and requests that come meanwhile skip it', () => {
    const circuits = withOut('openai/a');
    const later = NOW + CIRCUIT_OPEN_MS;
    const first = passesOver(NAMES, { circuits }, later);
    const turn = first.next(later);
    expect(turn?.target.model).toBe('a');
    const other = passesOver(NAMES, { circuits }, later);
    expect(other.next(later)?.target.model).toBe('b');
    // The request was refused before the call: the next one probes the target.
    if (turn !== null) first.releaseProbe(turn.target, later);
    expect(passesOver(NAMES, { circuits }, later).next(later)?.target.model).toBe('a');
  });

  test('a request has at least one attempt, even if other requests probe all its targets', () => {
    const circuits = withOut('openai/a', 'openai/b');
    const later = NOW + CIRCUIT_OPEN_MS;
    const mine = passesOver(NAMES.slice(0, 2), { circuits }, later);
    circuits.startProbe('openai/a', 'ann', later);
    circuits.startProbe('openai/b', 'ann', later);
    expect(mine.next(later)?.target.model).toBe('b');
    expect(mine.next(later)).toBeNull();
  });
});
