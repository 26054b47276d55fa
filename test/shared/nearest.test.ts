/** Tests which known name is suggested for a misspelled one, and that other names get no suggestion. */
import { expect, test } from 'vitest';
import { didYouMean, nearestName } from '../../src/shared/nearest.ts';

const KNOWN = ['AUTH', 'LEDGER', 'ALIASES', 'ORIGIN', 'HEARTBEAT_SECONDS', 'DEEPSEEK_API_KEY', 'openai'];

test.each([
  ['two letters swapped', 'LEGDER', 'LEDGER'],
  ['two letters missing', 'ALIAS', 'ALIASES'],
  ['one letter missing', 'HEARTBEAT_SECOND', 'HEARTBEAT_SECONDS'],
  ['one letter too many', 'DEEPSEEK_APII_KEY', 'DEEPSEEK_API_KEY'],
  ['another letter', 'OPIGIN', 'ORIGIN'],
  ['a letter missing in a short name', 'opnai', 'openai'],
])('%s: %s suggests %s', (_, name, meant) => {
  expect(nearestName(name, KNOWN)).toBe(meant);
});

test.each(['PATH', 'HOME', 'REGION', 'LEADER_ID', 'AUTHOR', 'azure', '', 'A'.repeat(100_000)])(
  '%s: no suggestion',
  (name) => {
    expect(nearestName(name, [...KNOWN, 'B'.repeat(100_000)])).toBeUndefined();
  },
);

test('didYouMean suggests the nearest of two names', () => {
  expect(didYouMean('MISTRAL_API_KEYS', ['CODESTRAL_API_KEY', 'MISTRAL_API_KEY'])).toBe(
    ': did you mean MISTRAL_API_KEY?',
  );
  expect(didYouMean('x', KNOWN)).toBe('');
});
