/** The cases as data: enough of them, each with what a client suffers and where it was seen. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeObject, objectOf, textOf } from '../simulator/json.ts';
import { AREAS, areaOf, CLIENTS, isWeirsOwn, UPSTREAMS } from './case.ts';
import { CASES } from './cases/index.ts';
import { failingTable, scoresOf, threadUrl } from './report.ts';
import { WEIR_FAILING } from './weir-failing.ts';

const MIN_CASES = 120;

test(`there are at least ${MIN_CASES} cases without those of Weir's contract, and each area has some`, () => {
  expect(CASES.filter((one) => !isWeirsOwn(one)).length).toBeGreaterThanOrEqual(MIN_CASES);
  expect(new Set(CASES.map(areaOf))).toEqual(new Set(Object.keys(AREAS)));
  expect(new Set(CASES.map(({ id }) => id)).size).toBe(CASES.length);
});

test('each protocol is played on both sides', () => {
  expect(new Set(CASES.map(({ upstream }) => upstream))).toEqual(new Set(UPSTREAMS));
  expect(new Set(CASES.map(({ client }) => client))).toEqual(new Set(CLIENTS));
});

describe.each(CASES.map((one) => [one.id, one] as const))('%s', (_, one) => {
  test('says what a client suffers, names a thread by repository and number or none, and expects something', () => {
    expect(one.suffers).toMatch(/^[A-Z"0].*\.$/s);
    if (one.thread !== null)
      expect(threadUrl(one.thread)).toMatch(/^https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/issues\/\d+$/);
    expect(Object.keys(one.expect).length).toBeGreaterThan(0);
  });
});

test('what is listed as failing is a case', () => {
  const ids: readonly string[] = CASES.map(({ id }) => id);
  expect(Object.keys(WEIR_FAILING).filter((id) => !ids.includes(id))).toEqual([]);
});

test('docs/conformance.md has scores of the version that the package has', () => {
  const root = join(import.meta.dirname, '..', '..');
  const { version } = objectOf(decodeObject(readFileSync(join(root, 'package.json'), 'utf8')));
  const document = readFileSync(join(root, 'docs', 'conformance.md'), 'utf8');
  expect(document).toContain(`\n| Weir | ${textOf(version)} (`);
});

test('docs/conformance.md lists them', () => {
  const document = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'conformance.md'), 'utf8');
  expect(document).toContain(failingTable(WEIR_FAILING).join('\n'));
});

test('a score counts what was played, and shows nothing where nothing was', () => {
  const base = { faults: [], area: 'calls' as const };
  const scores = scoresOf([
    { ...base, id: 'calls/a', verdict: 'passed' },
    { ...base, id: 'calls/b', verdict: 'failed' },
    { ...base, id: 'calls/c', verdict: 'none' },
  ]);
  expect(scores.find(({ area }) => area === 'calls')).toEqual({ area: 'calls', passed: 1, played: 2 });
  expect(scores.find(({ area }) => area === 'usage')).toEqual({ area: 'usage', passed: 0, played: 0 });
});
