/** A ledger object that is killed at each step while its records leave for the archive, in workerd. */
import { expect, test } from 'vitest';
import { newestFirst, newKey, recordsOf, SmallLedger } from './small-ledger.ts';

test('L8 an object that is killed at each step of an alarm in which records leave: nothing is lost and nothing is twice', async () => {
  await using small = await SmallLedger.start();
  const keyId = newKey();
  const [first = [], ...batches] = Map.groupBy(recordsOf(keyId, 1300), (_, n) => Math.floor(n / 20)).values();
  await small.ledger.put(first);
  const settled = [...first];
  const isKilledAfter = async (steps: number) => {
    await small.call(keyId, 'killAfter', steps);
    return small.call(keyId, 'fireAlarm').then(
      () => false,
      () => true,
    );
  };
  let kills = 0;
  for (const [turn, batch] of batches.entries()) {
    await small.call(keyId, 'killAfter', 1e9);
    await small.ledger.put(batch);
    settled.push(...batch);
    if (await isKilledAfter(2 * turn)) kills++;
    if (turn % 20 === 19) expect(await small.list(keyId)).toEqual(newestFirst(settled));
  }
  expect(kills).toBeGreaterThan(20);
  await small.call(keyId, 'killAfter', 1e9);
  await small.call(keyId, 'fireAlarm');
  await small.expectEachOnce(keyId, settled);
});
