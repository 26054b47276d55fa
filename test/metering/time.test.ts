/** Tests request ids (L2): UUIDv7 that contain their time and sort by it; and times in ISO 8601. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { firstIdAt, idTime, isoTime, isPosition, isRequestId, requestId } from '../../src/metering/time.ts';

const time = fc.nat(2 ** 48 - 1);
const uuid = fc.uuid({ version: 4 });

describe('requestId', () => {
  test('L2 any time and random UUID: a UUIDv7 with that time and the random bits', () => {
    fc.assert(
      fc.property(time, uuid, (ms, random) => {
        const id = requestId(ms, random);
        expect(isRequestId(id)).toBe(true);
        expect(idTime(id)).toBe(ms);
        expect(id.slice(15)).toBe(random.slice(15));
      }),
    );
  });

  test('L2 reads the time of the example in RFC 9562', () => {
    expect(idTime('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')).toBe(Date.parse('2022-02-22T19:22:22Z'));
  });

  test('L2 ids sort by time, and firstIdAt sorts between ids of two times', () => {
    fc.assert(
      fc.property(time, time, uuid, uuid, (a, b, first, second) => {
        fc.pre(a < b);
        expect(requestId(a, first) < requestId(b, second)).toBe(true);
        expect(firstIdAt(b) > requestId(a, first)).toBe(true);
        expect(firstIdAt(b) < requestId(b, second)).toBe(true);
        expect(isPosition(firstIdAt(b))).toBe(true);
      }),
    );
  });
});

test.each([
  ['', false],
  ['a UUIDv4', false],
  ['3f2c9d0e-8a41-4b7e-9c55-0d6a1f2b3c4d', false],
  ['017F22E2-79B0-7CC3-98C4-DC0C0C07398F', false],
  ['017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n', false],
  ['../017f22e2-79b0-7cc3-98c4-dc0c0c07398f', false],
  ['017f22e2-79b0-7cc3-98c4-dc0c0c07398f', true],
])('L2 isRequestId of %j: %s', (text, is) => {
  expect(isRequestId(text)).toBe(is);
});

const NOW = 1_800_000_000_123;

test.each([
  ['the same second', [NOW, NOW + 1, NOW + 876]],
  ['the next second, and back', [NOW, NOW + 877, NOW]],
  ['its first and its last ms', [NOW - 123, NOW + 876, NOW - 124]],
  ['an hour before and after', [NOW, NOW - 3_600_000, NOW + 3_600_000]],
  ['1970, and before it', [0, 999, -1, -1000, -1001]],
  ['the latest time of a Date', [8.64e15 - 1, 8.64e15]],
])('L1 isoTime of %s: equals Date.toISOString', (_, times) => {
  expect(times.map(isoTime)).toEqual(times.map((ms) => new Date(ms).toISOString()));
});

test('L1 isoTime of a later time: the latest time of a Date', () => {
  expect(isoTime(8.64e15 + 2)).toBe(new Date(8.64e15).toISOString());
});
