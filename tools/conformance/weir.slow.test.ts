/** Weir plays the suite. The cases that it fails are those that are listed. */
import { expect, test } from 'vitest';
import { CASES } from './cases/index.ts';
import { KNOWN } from './gateways.ts';
import { Stage } from './play.ts';
import { runSuite } from './suite.ts';
import { WEIR_FAILING } from './weir-failing.ts';

test('Weir fails the cases that are listed as failing, and no others', async () => {
  const start = KNOWN.weir;
  if (start === undefined) throw new Error('Weir is missing');
  await using stage = await Stage.open(0);
  await using gateway = await start(stage.url);
  const { results } = await runSuite(stage, gateway, CASES);
  const failed = results.filter(({ verdict }) => verdict === 'failed');
  const faults = Object.fromEntries(failed.map(({ id, faults }) => [id, faults.map(({ text }) => text)]));
  expect(Object.keys(faults).sort(), JSON.stringify(faults, null, 1)).toEqual(
    Object.keys(WEIR_FAILING).sort(),
  );
  expect(results.filter(({ verdict }) => verdict === 'none')).toEqual([]);
});
