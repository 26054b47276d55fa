/** Tests the times of records: what is written of a second's start is the engine's own text, whatever came before (L1). */
import { expect, test } from 'vitest';
import { isoTime } from '../../src/metering/record.ts';

const NOW = 1_800_000_000_123;

test.each([
  ['the same second', [NOW, NOW + 1, NOW + 876]],
  ['the next second, and back', [NOW, NOW + 877, NOW]],
  ['its first and its last ms', [NOW - 123, NOW + 876, NOW - 124]],
  ['an hour before and after', [NOW, NOW - 3_600_000, NOW + 3_600_000]],
  ['1970, and before it', [0, 999, -1, -1000, -1001]],
  ['the latest time that there is', [8.64e15 - 1, 8.64e15]],
])('L1 isoTime of %s: as a Date has it', (_, times) => {
  expect(times.map(isoTime)).toEqual(times.map((ms) => new Date(ms).toISOString()));
});

test('L1 isoTime of a time beyond: the latest that there is', () => {
  expect(isoTime(8.64e15 + 2)).toBe(new Date(8.64e15).toISOString());
});
