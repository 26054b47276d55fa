/** Tests when a target's circuit opens, for whom, and for how long (R7). */
import { describe, expect, test } from 'vitest';
import {
  ANSWERED_MS,
  CIRCUIT_FAILURES,
  CIRCUIT_OPEN_MS,
  CIRCUIT_REFUSED_MS,
  CircuitBreakers,
  MAX_CIRCUITS,
  MAX_UNANSWERED_ATTEMPTS,
} from '../../src/routing/circuit-breaker.ts';

const NOW = 1_790_000_000_000;

const ANN = 'ann';
const BOB = 'bob';

function failTimes(circuits: CircuitBreakers, times: number, now = NOW, target = 'a', caller = ANN): void {
  for (let i = 0; i < times; i++) circuits.failed(target, caller, 'failure', now);
}

test('R7 five consecutive failures open a target’s circuit for ten seconds', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
  failTimes(circuits, 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(true);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_OPEN_MS - 1)).toBe(true);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_OPEN_MS)).toBe(false);
  expect(circuits.isOpen('b', ANN, NOW)).toBe(false);
});

test('R7 a success resets the count of failures', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  circuits.succeeded('a', ANN);
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
});

test('R7 after the open time one request probes the target, and all others skip it', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OPEN_MS;
  expect(circuits.startProbe('a', ANN, later)).toBe(true);
  expect(circuits.isOpen('a', ANN, later)).toBe(true);
  expect(circuits.startProbe('a', ANN, later)).toBe(false);
  circuits.succeeded('a', ANN);
  expect(circuits.isOpen('a', ANN, later)).toBe(false);
});

test('R7 a probe that is released without a call passes to the next request', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OPEN_MS;
  circuits.startProbe('a', ANN, later);
  circuits.releaseProbe('a', ANN, later + 1);
  expect(circuits.isOpen('a', ANN, later + 1)).toBe(false);
  expect(circuits.startProbe('a', ANN, later + 1)).toBe(true);
});

test('R7 a probe that fails, or has no result, keeps the circuit open for the same time again', () => {
  for (const ends of ['failure', 'nothing'] as const) {
    const circuits = new CircuitBreakers();
    failTimes(circuits, CIRCUIT_FAILURES);
    const later = NOW + CIRCUIT_OPEN_MS;
    circuits.startProbe('a', ANN, later);
    circuits.failed('a', ANN, ends, later);
    expect(circuits.isOpen('a', ANN, later + CIRCUIT_OPEN_MS - 1)).toBe(true);
    expect(circuits.isOpen('a', ANN, later + CIRCUIT_OPEN_MS)).toBe(false);
  }
});

test("R7 one refusal of the deployment's key, balance or model opens the circuit for a minute", () => {
  const circuits = new CircuitBreakers();
  circuits.failed('a', ANN, 'refusal', NOW);
  // A request that was sent before the refusal fails in another way.
  circuits.failed('a', ANN, 'failure', NOW + 1);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_REFUSED_MS - 1)).toBe(true);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_REFUSED_MS)).toBe(false);
});

test("R7 the caller's mistakes neither count as failures nor reset the count", () => {
  const circuits = new CircuitBreakers();
  for (let i = 0; i < 50; i++) circuits.failed('a', ANN, 'nothing', NOW);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  circuits.failed('a', ANN, 'nothing', NOW);
  failTimes(circuits, 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(true);
});

test('R7 the number of circuits is bounded: the oldest failure is evicted first', () => {
  const circuits = new CircuitBreakers();
  circuits.failed('first', ANN, 'refusal', NOW);
  circuits.failed('second', ANN, 'refusal', NOW);
  for (let i = 0; i < MAX_CIRCUITS - 2; i++) circuits.failed(`model ${i}`, ANN, 'failure', NOW);
  circuits.failed('first', ANN, 'failure', NOW);
  circuits.failed('one more', ANN, 'failure', NOW);
  expect(circuits.isOpen('first', ANN, NOW)).toBe(true);
  expect(circuits.isOpen('second', ANN, NOW)).toBe(false);
});

test('R7 five failures of one caller open the circuit for that caller only', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, 50);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(true);
  expect(circuits.isOpen('a', BOB, NOW)).toBe(false);
});

test('R7 five consecutive failures of several callers open it for all', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  failTimes(circuits, 1, NOW, 'a', BOB);
  for (const caller of [ANN, BOB, 'cid']) expect(circuits.isOpen('a', caller, NOW)).toBe(true);
});

test("R7 another caller's success resets the count of the caller whose requests fail", () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  circuits.succeeded('a', ANN);
  failTimes(circuits, 1, NOW, 'a', BOB);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
});

test('R7 a refusal of the deployment opens it for all callers, also after failures of one caller', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  circuits.failed('a', ANN, 'refusal', NOW);
  failTimes(circuits, 1);
  for (const caller of [ANN, BOB]) expect(circuits.isOpen('a', caller, NOW)).toBe(true);
});

describe('R7 attempts that wait for an answer, after one that ended without', () => {
  const LATER = NOW + 60_000;

  /** A target with this many attempts that wait since `NOW`, and one that failed after a minute. */
  function silent(waiting: number, isBilled = true) {
    const circuits = new CircuitBreakers();
    const ends = Array.from({ length: waiting }, () => circuits.startWaiting('a', NOW));
    circuits.failed('a', ANN, 'failure', LATER, isBilled);
    return { circuits, ends };
  }

  test('as many as the bound: a further one is spared, whoever sends it', () => {
    const { circuits } = silent(MAX_UNANSWERED_ATTEMPTS);
    expect(circuits.sparedMs('a', ANN, LATER)).toBe(CIRCUIT_OPEN_MS);
    expect(circuits.sparedMs('a', BOB, LATER)).toBe(CIRCUIT_OPEN_MS);
    expect(circuits.sparedMs('b', ANN, LATER)).toBeNull();
    expect(circuits.isOpen('a', ANN, LATER)).toBe(false);
  });

  test('fewer: the next one is called', () => {
    const { circuits, ends } = silent(MAX_UNANSWERED_ATTEMPTS);
    ends[0]?.(false, LATER);
    ends[0]?.(false, LATER);
    expect(circuits.sparedMs('a', ANN, LATER)).toBeNull();
  });

  test('the failure costs nothing: the next one is called', () => {
    expect(silent(100, false).circuits.sparedMs('a', ANN, LATER)).toBeNull();
  });

  test('a busy target that answered one of them lately: the next one is called', () => {
    const { circuits, ends } = silent(100);
    ends[0]?.(true, LATER - ANSWERED_MS + 1);
    expect(circuits.sparedMs('a', ANN, LATER)).toBeNull();
    expect(circuits.sparedMs('a', ANN, LATER + 1)).toBe(CIRCUIT_OPEN_MS);
    ends[1]?.(true, LATER + 1);
    expect(circuits.sparedMs('a', ANN, LATER + 1)).toBeNull();
  });

  test('all of them began after the failure: the next one is called', () => {
    const circuits = new CircuitBreakers();
    circuits.failed('a', ANN, 'failure', NOW, true);
    for (let i = 0; i < 100; i++) circuits.startWaiting('a', NOW + 1);
    expect(circuits.sparedMs('a', ANN, LATER)).toBeNull();
  });

  test('none wait: nothing is stored of the target', () => {
    const { circuits, ends } = silent(MAX_UNANSWERED_ATTEMPTS);
    for (const end of ends) end(false, LATER);
    for (let i = 1; i < MAX_UNANSWERED_ATTEMPTS; i++) circuits.startWaiting('a', NOW);
    // A late end of an attempt that has ended changes nothing.
    ends[0]?.(false, LATER);
    circuits.startWaiting('a', NOW);
    expect(circuits.sparedMs('a', ANN, LATER)).toBe(CIRCUIT_OPEN_MS);
  });
});

describe('R7 requests that their caller abandons before an answer', () => {
  test('five in a row spare the target for this caller, until it is answered', () => {
    const circuits = new CircuitBreakers();
    for (let i = 0; i < CIRCUIT_FAILURES; i++) circuits.abandoned('a', ANN, NOW);
    expect(circuits.sparedMs('a', ANN, NOW)).toBe(CIRCUIT_OPEN_MS);
    expect(circuits.sparedMs('a', BOB, NOW)).toBeNull();
    expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
    expect(circuits.openCircuits(NOW)).toMatchObject([{ target: 'a', caller: ANN }]);
    const later = NOW + CIRCUIT_OPEN_MS;
    expect(circuits.startProbe('a', ANN, later)).toBe(true);
    expect(circuits.sparedMs('a', ANN, later)).toBe(CIRCUIT_OPEN_MS);
    circuits.succeeded('a', ANN);
    expect(circuits.sparedMs('a', ANN, later)).toBeNull();
  });
});
