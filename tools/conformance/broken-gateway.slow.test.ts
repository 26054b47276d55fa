/** The suite finds what a gateway breaks on purpose, and names it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BREAKS, type Break, startBroken } from './broken-gateway.ts';
import type { Case } from './case.ts';
import { CASES } from './cases/index.ts';
import { Stage } from './play.ts';
import { runSuite } from './suite.ts';

/** Cases that pass through a gateway that breaks nothing. */
const QUICK = [
  'framing/plain-chat-to-chat',
  'calls/parallel',
  'finish/beside-text',
  'usage/last-chunk',
  'errors/retry-after',
  'truncation/reset',
  'holding/text',
];
/** The breaks that show in time or bytes only, and where. */
const IN_TIME: Partial<Record<Break, string>> = {
  'delays each event': 'latency/further-chunk',
  'takes all that the provider sends': 'buffering/reader-stops',
  'goes on after a disconnect': 'disconnects/while-writing',
};

/** The provider's ids are equal here, so that different ones are the gateway's. */
function withOneId(one: Case): Case {
  return one.id === 'usage/last-chunk' ? { ...one, expect: { ...one.expect, hasOneId: true } } : one;
}

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(0);
});
afterAll(() => stage[Symbol.asyncDispose]());

/** The kinds of faults that the suite names. */
async function kindsOf(breaks: Break | null, ids: readonly string[]): Promise<string[]> {
  const cases = CASES.filter(({ id }) => ids.includes(id));
  expect(cases.map(({ id }) => id).sort()).toEqual([...ids].sort());
  await using gateway = await startBroken(stage.url, breaks);
  const { results } = await runSuite(stage, gateway, cases.map(withOneId));
  expect(results.map(({ verdict }) => verdict)).not.toContain('none');
  return [...new Set(results.flatMap(({ faults }) => faults.map(({ kind }) => kind)))];
}

test('a gateway that breaks nothing has no fault', async () => {
  expect(await kindsOf(null, [...QUICK, ...Object.values(IN_TIME)])).toEqual([]);
});

const named = Object.entries(BREAKS).filter(
  (entry): entry is [Break, (typeof BREAKS)[Break]] => entry[0] in BREAKS,
);
test.each(named)('a gateway that %s: the suite names `%s`', async (breaks, kind) => {
  const slow = IN_TIME[breaks];
  expect(await kindsOf(breaks, slow === undefined ? QUICK : [slow])).toContain(kind);
});

test('a case that the gateway does not offer has no verdict', async () => {
  await using gateway = await startBroken(stage.url, null);
  const other = CASES.filter(({ id }) =>
    ['calls/messages-parallel', 'usage/to-messages', 'metering/complete', 'buffering/memory'].includes(id),
  );
  const { results } = await runSuite(stage, gateway, other);
  expect(results.map(({ verdict }) => verdict)).toEqual(['none', 'none', 'none', 'none']);
});
