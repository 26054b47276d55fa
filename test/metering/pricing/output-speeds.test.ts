/** How fast models may write, measured and assumed (G3, G9). */
import { expect, test } from 'vitest';
import {
  assumedOutputSpeed,
  fastestOutputSpeed,
  ShownSpeeds,
} from '../../../src/metering/pricing/output-speeds.ts';

const measured = { priceIds: ['openai'], model: 'gpt-5.4' };
const fastest = { priceIds: ['openai'], model: 'gpt-5.4-mini' };
const newest = { priceIds: ['openai'], model: 'gpt-6.2-sol' };
const foreign = { priceIds: ['a-host'], model: 'gpt-5.4' };
const stated = { ...foreign, maxTokensPerSecond: 50 };

test('G3 the highest of several speeds counts, and a model without one makes it unknown', () => {
  expect(fastestOutputSpeed([measured, stated])).toBe(fastestOutputSpeed([measured]));
  expect(fastestOutputSpeed([stated])).toBe(50);
  for (const unknown of [newest, foreign, { ...measured, tier: 'priority' }])
    expect(fastestOutputSpeed([measured, unknown])).toBeNull();
});

test('G9 a model without a measurement, or in a premium tier, is assumed to be twice as fast as the fastest of its provider', () => {
  const twice = 2 * (fastestOutputSpeed([fastest]) ?? 0);
  expect(assumedOutputSpeed([measured])).toBe(fastestOutputSpeed([measured]));
  expect(assumedOutputSpeed([newest])).toBe(twice);
  expect(assumedOutputSpeed([{ ...measured, tier: 'priority' }, measured])).toBe(twice);
});

test('G9 a model of whose provider nothing is measured is assumed to be a usual one, until it has shown its speed', () => {
  const own = { address: 'own/llama', ...foreign };
  const shown = new ShownSpeeds();
  const usual = assumedOutputSpeed([own], shown);
  expect(usual).toBeGreaterThan(300);
  expect(usual).toBeLessThan(900);
  expect(assumedOutputSpeed([fastest, own], shown)).toBe(fastestOutputSpeed([fastest]));
  // Too short to be measured.
  shown.add('own/llama', 40, 1000);
  shown.add('own/llama', 4000, 100);
  expect(assumedOutputSpeed([own], shown)).toBe(usual);
  shown.add('own/llama', 100, 2000);
  shown.add('own/llama', 60, 3000);
  expect(assumedOutputSpeed([own], shown)).toBe(150);
  expect(assumedOutputSpeed([{ ...own, tier: 'priority' }], shown)).toBe(usual);
  for (let i = 0; i < 1000; i++) shown.add(`own/${i}`, 100, 1000);
  expect(assumedOutputSpeed([own], shown)).toBe(usual);
});
