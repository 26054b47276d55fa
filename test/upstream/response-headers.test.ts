/** Which headers of a provider reach the client. */
import { expect, test } from 'vitest';
import { pickResponseHeaders } from '../../src/upstream/fetch.ts';

const picked = (value: string) =>
  pickResponseHeaders(new Headers({ 'retry-after': value, 'x-other': value }), []);

test.each([
  ...['30', '0.5', '-1', '6ms', '1m30.5s', '2h15m', '1000', '100, 100;w=60'],
  ...['Wed, 21 Oct 2026 07:28:00 GMT', 'Wednesday, 21-Oct-26 07:28:00 GMT', 'Sun May  6 08:49:37 2026'],
  ...['2026-11-28T16:00:00Z', '2026-11-28T16:00:00.5+01:00'],
])('E5 a number, a duration or a time reaches it: %s', (value) => {
  expect(picked(value)).toEqual({ 'retry-after': value });
});

test.each([
  ...['soon', 'my password is hunter2', 'hunter2', 'user 4711', 'Wed hunter2', 'h:d', '', '1'.repeat(65)],
  ...['3 alice', 'Kröte 3', '{"seconds":3}'],
])('E5 no other text does, as it may quote the request: %s', (value) => {
  const headers = { get: (name: string) => (name === 'retry-after' ? value : null) };
  expect(pickResponseHeaders(headers as Headers, [])).toEqual({});
});
