/** What a record takes in a ledger object, as docs/ledgers.md says it, in workerd. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { record } from '../../metering/records.ts';
import { newKey, SmallLedger, TODAY } from './small-ledger.ts';

let small: SmallLedger;
beforeAll(async () => {
  small = await SmallLedger.start({ hasBucket: false, vars: { RECORD_BYTES: '8000000000' } });
});
afterAll(() => small[Symbol.asyncDispose]());

/** The bytes that one of 1,000 records with JSON of this length takes in its object, without its sums. */
async function bytesOf(chars: number): Promise<number> {
  const keyId = newKey();
  const records = Array.from({ length: 1000 }, (_, n) => {
    const one = record({ key_id: keyId, time: new Date(TODAY + n).toISOString(), asked: '' }, n);
    return { ...one, asked: 'm'.repeat(chars - JSON.stringify(one).length) };
  });
  await small.ledger.put(records);
  const before = Number(await small.call(keyId, 'size'));
  await small.call(keyId, 'run', 'DELETE FROM records');
  return (before - Number(await small.call(keyId, 'size'))) / records.length;
}

test.each([
  [864, 1027],
  [950, 1027],
  [1007, 4682],
  [1200, 4682],
])('L8 a record of %i characters takes about %i bytes', async (chars, bytes) => {
  const taken = await bytesOf(chars);
  expect(taken).toBeGreaterThan(0.97 * bytes);
  expect(taken).toBeLessThan(1.03 * bytes);
});
