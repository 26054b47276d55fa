/** Records in a ledger object, under real workerd: each once (L4). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { record } from '../../metering/records.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

let ledgers: Ledgers;
beforeAll(async () => {
  ledgers = await startLedgers();
});
afterAll(() => ledgers[Symbol.asyncDispose]());

test('L4 a record that is settled twice: the first one stays as it is', async () => {
  await ledgers.call('a', 'settle', [record()]);
  await ledgers.call('a', 'settle', [record({ total_tokens: 99 })]);
  expect(await ledgers.call('a', 'find', record().request_id)).toEqual(record());
  expect(await ledgers.call('b', 'find', record().request_id)).toBeNull();
});
