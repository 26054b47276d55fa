/** Tests how the page writes numbers. */
import { expect, test } from 'vitest';
import { rates } from '../../src/dashboard/page/format/numbers.ts';

test.each([
  [{ input: 1, output: 2, currency: 'USD' }, /1.* in, .*2.* out$/],
  [{ input: 0.02, currency: 'USD' }, /0\.02.* in$/],
  [{ output: 3, currency: 'EUR' }, /^\D*3.* out$/],
  [{ currency: 'USD' }, /^no price is known$/],
])('a price of %j names the rates that it has, and no other', (price, text) => {
  expect(rates(price)).toMatch(text);
  expect(rates(price)).not.toContain('NaN');
});
