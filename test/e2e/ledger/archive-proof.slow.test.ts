/** The proof of issue 65: ten times as much as an object keeps, with a limit of 1 MB. */
import { expect, test } from 'vitest';
import { firstIdAt } from '../../../src/metering/time.ts';
import { DAY, idsOf, newestFirst, newKey, recordsOf, SmallLedger, sumsOf, TODAY } from './small-ledger.ts';

const BYTES = 1_000_000;

test('L8 ten times RECORD_BYTES: every record is in the object or in the archive, once, and is found, listed and summed', async () => {
  await using small = await SmallLedger.start({ vars: { RECORD_BYTES: String(BYTES) } });
  const keyId = newKey();
  const records = recordsOf(keyId, 14_000, 2);
  expect(records.reduce((sum, one) => sum + JSON.stringify(one).length, 0)).toBeGreaterThan(10 * BYTES);
  for (let at = 0; at < records.length; at += 500) {
    await small.ledger.put(records.slice(at, at + 500));
    if (at % 1000 === 0) await small.call(keyId, 'fireAlarm');
  }
  await small.call(keyId, 'fireAlarm');
  const { stored, archived, bytes } = await small.places(keyId);
  expect(bytes).toBeLessThanOrEqual(BYTES);
  expect([...stored, ...archived].sort()).toEqual(idsOf(records));
  expect(await small.list(keyId, { limit: 1000 })).toEqual(newestFirst(records));
  for (const one of records.filter((_, n) => n % 997 === 0))
    expect(await small.ledger.find(one.request_id, keyId)).toEqual({ kind: 'ok', value: one });
  expect(await small.report(keyId)).toEqual(sumsOf(records));
  const [fromMs, toMs] = [TODAY - 2 * DAY + 1_234_567, TODAY - 2 * DAY + 4_000_000];
  const inTime = records.filter(
    ({ request_id }) => request_id >= firstIdAt(fromMs) && request_id < firstIdAt(toMs),
  );
  const query = { fromMs, toMs, keyId, groups: ['day', 'model', 'status'] as const };
  const result = await small.ledger.report(query);
  expect(result.kind === 'ok' && { rows: result.value.rows, total: result.value.total }).toEqual(
    sumsOf(inTime),
  );
});
