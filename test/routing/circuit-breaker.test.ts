/** Tests when a target's circuit opens, for whom, and for how long (R7). */
import { expect, test } from 'vitest';
import {
  CIRCUIT_FAILURES,
  CIRCUIT_OPEN_MS,
  CIRCUIT_REFUSED_MS,
  CircuitBreakers,
  MAX_CIRCUITS,
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
  circuits.succeeded('a');
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
});

test('R7 after the open time one request probes the target, and all others skip it', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OPEN_MS;
  expect(circuits.startProbe('a', later)).toBe(true);
  expect(circuits.isOpen('a', ANN, later)).toBe(true);
  expect(circuits.startProbe('a', later)).toBe(false);
  circuits.succeeded('a');
  expect(circuits.isOpen('a', ANN, later)).toBe(false);
});

test('R7 a probe that is released without a call passes to the next request', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OPEN_MS;
  circuits.startProbe('a', later);
  circuits.releaseProbe('a', later + 1);
  expect(circuits.isOpen('a', ANN, later + 1)).toBe(false);
  expect(circuits.startProbe('a', later + 1)).toBe(true);
});

test('R7 a probe that fails, or has no result, keeps the circuit open for the same time again', () => {
  for (const ends of ['failure', 'nothing'] as const) {
    const circuits = new CircuitBreakers();
    failTimes(circuits, CIRCUIT_FAILURES);
    const later = NOW + CIRCUIT_OPEN_MS;
    circuits.startProbe('a', later);
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
  circuits.succeeded('a');
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
