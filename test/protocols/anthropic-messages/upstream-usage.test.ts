/** Tests what a redeemed fallback credit says about the cost of a Messages response (P3). */
import { describe, expect, test } from 'vitest';
import { ClaudeUsage } from '../../../src/protocols/anthropic-messages/upstream-usage.ts';

const COUNTS = { input_tokens: 5, cache_creation_input_tokens: 900, output_tokens: 3 };
const credit = (type: string) => ({ fallback_credit: { status: { type } } });

describe('P3 fallback_credit', () => {
  test.each([
    ['redeemed, at the end', {}, credit('redeemed'), true],
    ['redeemed, at the start', credit('redeemed'), {}, true],
    ['not applied', credit('not_applied'), credit('not_applied'), undefined],
    ['null', { fallback_credit: null }, {}, undefined],
  ])('%s: the cost of the counts is an upper bound, or not', (_, atStart, atEnd, isUpperBound) => {
    const usage = new ClaudeUsage();
    usage.start({ ...COUNTS, ...atStart });
    expect(usage.latest({ ...COUNTS, ...atEnd }, 0)?.isUpperBound).toBe(isUpperBound);
  });
});
