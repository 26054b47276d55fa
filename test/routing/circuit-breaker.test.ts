/** Tests which targets an isolate leaves out, and for how long (R7). */
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

test('R7 five failures in a row take a target out for ten seconds', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
  failTimes(circuits, 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(true);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_OPEN_MS - 1)).toBe(true);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_OPEN_MS)).toBe(false);
  expect(circuits.isOpen('b', ANN, NOW)).toBe(false);
});

test('R7 a success between failures begins the row anew', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  circuits.succeeded('a');
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
});

test('R7 after its time one request tries the target, and all others leave it out', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OPEN_MS;
  expect(circuits.startProbe('a', later)).toBe(true);
  expect(circuits.isOpen('a', ANN, later)).toBe(true);
  expect(circuits.startProbe('a', later)).toBe(false);
  circuits.succeeded('a');
  expect(circuits.isOpen('a', ANN, later)).toBe(false);
});

test('R7 a request that was to try it and did not ask it leaves that to the next one', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OPEN_MS;
  circuits.startProbe('a', later);
  circuits.releaseProbe('a', later + 1);
  expect(circuits.isOpen('a', ANN, later + 1)).toBe(false);
  expect(circuits.startProbe('a', later + 1)).toBe(true);
});

test('R7 a try that fails, or of which nothing is heard, leaves it out for as long again', () => {
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

test("R7 one refusal of the deployment's key, balance or model takes it out for a minute", () => {
  const circuits = new CircuitBreakers();
  circuits.failed('a', ANN, 'refusal', NOW);
  // A request that was under way fails otherwise.
  circuits.failed('a', ANN, 'failure', NOW + 1);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_REFUSED_MS - 1)).toBe(true);
  expect(circuits.isOpen('a', ANN, NOW + CIRCUIT_REFUSED_MS)).toBe(false);
});

test("R7 the caller's own mistakes never count, nor do they end a row", () => {
  const circuits = new CircuitBreakers();
  for (let i = 0; i < 50; i++) circuits.failed('a', ANN, 'nothing', NOW);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  circuits.failed('a', ANN, 'nothing', NOW);
  failTimes(circuits, 1);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(true);
});

test('R7 targets are remembered up to a bound: the one that failed longest ago is forgotten first', () => {
  const circuits = new CircuitBreakers();
  circuits.failed('first', ANN, 'refusal', NOW);
  circuits.failed('second', ANN, 'refusal', NOW);
  for (let i = 0; i < MAX_CIRCUITS - 2; i++) circuits.failed(`model ${i}`, ANN, 'failure', NOW);
  circuits.failed('first', ANN, 'failure', NOW);
  circuits.failed('one more', ANN, 'failure', NOW);
  expect(circuits.isOpen('first', ANN, NOW)).toBe(true);
  expect(circuits.isOpen('second', ANN, NOW)).toBe(false);
});

test('R7 finding 11: five failures of one caller take the target out for that caller alone', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, 50);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(true);
  expect(circuits.isOpen('a', BOB, NOW)).toBe(false);
});

test('R7 five failures in a row of several callers take it out for all', () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  failTimes(circuits, 1, NOW, 'a', BOB);
  for (const caller of [ANN, BOB, 'cid']) expect(circuits.isOpen('a', caller, NOW)).toBe(true);
});

test("R7 another caller's success ends the row of the one whose requests fail", () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  circuits.succeeded('a');
  failTimes(circuits, 1, NOW, 'a', BOB);
  expect(circuits.isOpen('a', ANN, NOW)).toBe(false);
});

test("R7 a refusal of the deployment's own takes it out for all, whoever asked, and whoever failed before", () => {
  const circuits = new CircuitBreakers();
  failTimes(circuits, CIRCUIT_FAILURES);
  circuits.failed('a', ANN, 'refusal', NOW);
  failTimes(circuits, 1);
  for (const caller of [ANN, BOB]) expect(circuits.isOpen('a', caller, NOW)).toBe(true);
});
