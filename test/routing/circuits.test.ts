/** Tests which targets an isolate leaves out, and for how long (R7). */
import { expect, test } from 'vitest';
import {
  CIRCUIT_FAILURES,
  CIRCUIT_OUT_MS,
  CIRCUIT_REFUSED_MS,
  MAX_CIRCUITS,
} from '../../src/canonical/limits.ts';
import { Circuits } from '../../src/routing/circuits.ts';

const NOW = 1_790_000_000_000;

function failTimes(circuits: Circuits, times: number, now = NOW, target = 'a'): void {
  for (let i = 0; i < times; i++) circuits.failed(target, 'failure', now);
}

test('R7 five failures in a row take a target out for ten seconds', () => {
  const circuits = new Circuits();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  expect(circuits.isOut('a', NOW)).toBe(false);
  failTimes(circuits, 1);
  expect(circuits.isOut('a', NOW)).toBe(true);
  expect(circuits.isOut('a', NOW + CIRCUIT_OUT_MS - 1)).toBe(true);
  expect(circuits.isOut('a', NOW + CIRCUIT_OUT_MS)).toBe(false);
  expect(circuits.isOut('b', NOW)).toBe(false);
});

test('R7 a success between failures begins the row anew', () => {
  const circuits = new Circuits();
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  circuits.succeeded('a');
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  expect(circuits.isOut('a', NOW)).toBe(false);
});

test('R7 after its time one request tries the target, and all others leave it out', () => {
  const circuits = new Circuits();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OUT_MS;
  expect(circuits.asks('a', later)).toBe(true);
  expect(circuits.isOut('a', later)).toBe(true);
  expect(circuits.asks('a', later)).toBe(false);
  circuits.succeeded('a');
  expect(circuits.isOut('a', later)).toBe(false);
});

test('R7 a request that was to try it and did not ask it leaves that to the next one', () => {
  const circuits = new Circuits();
  failTimes(circuits, CIRCUIT_FAILURES);
  const later = NOW + CIRCUIT_OUT_MS;
  circuits.asks('a', later);
  circuits.didNotAsk('a', later + 1);
  expect(circuits.isOut('a', later + 1)).toBe(false);
  expect(circuits.asks('a', later + 1)).toBe(true);
});

test('R7 a try that fails, or of which nothing is heard, leaves it out for as long again', () => {
  for (const ends of ['failure', 'nothing'] as const) {
    const circuits = new Circuits();
    failTimes(circuits, CIRCUIT_FAILURES);
    const later = NOW + CIRCUIT_OUT_MS;
    circuits.asks('a', later);
    circuits.failed('a', ends, later);
    expect(circuits.isOut('a', later + CIRCUIT_OUT_MS - 1)).toBe(true);
    expect(circuits.isOut('a', later + CIRCUIT_OUT_MS)).toBe(false);
  }
});

test("R7 one refusal of the deployment's key, balance or model takes it out for a minute", () => {
  const circuits = new Circuits();
  circuits.failed('a', 'refusal', NOW);
  // A request that was under way fails otherwise.
  circuits.failed('a', 'failure', NOW + 1);
  expect(circuits.isOut('a', NOW + CIRCUIT_REFUSED_MS - 1)).toBe(true);
  expect(circuits.isOut('a', NOW + CIRCUIT_REFUSED_MS)).toBe(false);
});

test("R7 the caller's own mistakes never count, nor do they end a row", () => {
  const circuits = new Circuits();
  for (let i = 0; i < 50; i++) circuits.failed('a', 'nothing', NOW);
  expect(circuits.isOut('a', NOW)).toBe(false);
  failTimes(circuits, CIRCUIT_FAILURES - 1);
  circuits.failed('a', 'nothing', NOW);
  failTimes(circuits, 1);
  expect(circuits.isOut('a', NOW)).toBe(true);
});

test('R7 targets are remembered up to a bound: the one that failed longest ago is forgotten first', () => {
  const circuits = new Circuits();
  circuits.failed('first', 'refusal', NOW);
  circuits.failed('second', 'refusal', NOW);
  for (let i = 0; i < MAX_CIRCUITS - 2; i++) circuits.failed(`model ${i}`, 'failure', NOW);
  circuits.failed('first', 'failure', NOW);
  circuits.failed('one more', 'failure', NOW);
  expect(circuits.isOut('first', NOW)).toBe(true);
  expect(circuits.isOut('second', NOW)).toBe(false);
});
