/** What responses report about limits: headers in OpenAI's form, and refusals. */
import { describe, expect, test } from 'vitest';
import {
  formatDuration,
  limitHeaders,
  refusalResponse,
  unifiedHeaders,
} from '../../../src/ledger/limits/limit-responses.ts';
import { outputNeed, type ReserveRequest, settle } from '../../../src/ledger/limits/reservations.ts';
import type { JsonObject } from '../../../tools/simulator/json.ts';
import { MemorySql, NOW, request, used } from './memory-sql.ts';

function refuse(limits: JsonObject, before: readonly string[] = [], fields: Partial<ReserveRequest> = {}) {
  const sql = new MemorySql(limits);
  for (const id of before) sql.reserve(id);
  const answer = sql.reserve('refused', fields, NOW + 250);
  if (answer.kind === 'reserved') throw new Error('It was not refused');
  return refusalResponse(answer.refusal, answer.standing);
}

test('G5 the headers of a response count the request itself', () => {
  const sql = new MemorySql({ budget: { USD: 5 }, rpm: 3, tpm: 1000 });
  const answer = sql.reserve('a', {}, NOW + 250);
  expect(limitHeaders(answer.standing)).toEqual({
    'x-ratelimit-limit-requests': '3',
    'x-ratelimit-remaining-requests': '2',
    'x-ratelimit-reset-requests': '1m0.75s',
    'x-ratelimit-limit-tokens': '1000',
    'x-ratelimit-remaining-tokens': '906',
    'x-ratelimit-reset-tokens': '1m0.75s',
    'x-weir-budget-remaining': '4.99981 USD',
  });
});

test('G5 a budget that warns reports by how much it is overdrawn', () => {
  const sql = new MemorySql({ budget: { USD: 1, mode: 'warn' } });
  sql.reserve('a');
  settle(sql, 'a', used(10, 1_520_000_000), NOW);
  expect(limitHeaders(sql.reserve('b').standing)).toEqual({ 'x-weir-budget-remaining': '-0.52 USD' });
});

test('G5 a key without counted limits has no headers', () => {
  expect(
    limitHeaders(new MemorySql({ max_concurrent: 5, max_output_tokens: 9 }).reserve('a').standing),
  ).toEqual({});
});

describe('G5 a refusal', () => {
  test('for the budget names what is spent, reserved and needed, the limit and the reset time', () => {
    const { error, headers } = refuse({ budget: { USD: 0.0003, per: 'day' } }, ['a']);
    expect(error).toMatchObject({ status: 429, code: 'budget_exceeded', type: 'insufficient_quota' });
    expect(error.message).toBe(
      'This key has a budget of 0.0003 USD a day: 0.00 USD are spent, 0.00019 USD reserved by running requests, ' +
        'and this request may use up to 0.00019 USD; it starts again at 2026-11-22T00:00:00.000Z',
    );
    expect(headers).toMatchObject({ 'retry-after': '1', 'x-weir-budget-remaining': '0.00011 USD' });
    expect(headers).not.toHaveProperty('x-should-retry');
  });

  test('that waiting does not help has no retry-after, and x-should-retry is false', () => {
    const { error, headers } = refuse({ budget: { tokens: 50 } });
    expect(error.message).toContain('lower max_tokens');
    expect(headers).toEqual({
      'x-weir-budget-remaining': '50 tokens',
      'x-should-retry': 'false',
      'x-weir-limit': 'key',
    });
  });

  test.each([
    [
      'the prompt is larger and does not fit',
      { budget: { tokens: 60 } },
      { promptTokens: 1112, outputTokens: 30 },
      '1112 tokens for the prompt and 30 tokens for the output. The prompt is the larger part: send less; a lower max_tokens does not help',
    ],
    [
      'the prompt is larger, and a lower limit helps',
      { budget: { tokens: 100 } },
      { promptTokens: 90, outputTokens: 30 },
      '90 tokens for the prompt and 30 tokens for the output. The prompt is the larger part: send less or lower max_tokens',
    ],
    [
      'the limit is larger',
      { budget: { tokens: 100 } },
      { promptTokens: 20, outputTokens: 50, choices: 2 },
      '20 tokens for the prompt and 100 tokens for the output. The output limit is the larger part: lower max_tokens',
    ],
    [
      'the limit is larger, and the prompt alone does not fit',
      { budget: { tokens: 10 } },
      { promptTokens: 20, outputTokens: 50 },
      'The output limit is the larger part: lower max_tokens, and send less: the prompt alone does not fit',
    ],
    [
      'the request sets no limit',
      { budget: { tokens: 1000 } },
      { promptTokens: 20, outputTokens: null },
      'The output limit is the larger part: set max_tokens, without which 4096 tokens of output are reserved',
    ],
    [
      'the budget is in money',
      { budget: { USD: 0.0001 } },
      { promptTokens: 50, outputTokens: 40 },
      '0.00005 USD for the prompt and 0.00008 USD for the output. The output limit is the larger part: lower max_tokens',
    ],
    [
      'the limit is tpm',
      { tpm: 60 },
      { promptTokens: 900, estimatedPromptTokens: 70, outputTokens: 20 },
      '70 tokens for the prompt and 20 tokens for the output. The prompt is the larger part: send less; a lower max_tokens does not help',
    ],
  ])('names the parts of what is needed, and what helps: %s', (_, limits, fields, text) => {
    const sql = new MemorySql(limits);
    const refused = { ...request('refused'), ...fields };
    const answer = sql.reserve('refused', refused);
    if (answer.kind === 'reserved') throw new Error('It was not refused');
    const output = outputNeed(refused, answer.standing.limits);
    expect(
      refusalResponse(answer.refusal, answer.standing, 'key', [], false, output).error.message,
    ).toContain(text);
  });

  test('until the next month has a retry-after, and x-should-retry is false', () => {
    const sql = new MemorySql({ budget: { tokens: 150, per: 'month' } });
    sql.reserve('a');
    settle(sql, 'a', used(149), NOW);
    const answer = sql.reserve('b');
    if (answer.kind === 'reserved') throw new Error('It was not refused');
    const days = (Date.UTC(2026, 11, 1) - NOW) / 1000;
    expect(refusalResponse(answer.refusal, answer.standing).headers).toMatchObject({
      'retry-after': String(days),
      'x-should-retry': 'false',
    });
  });

  test.each([
    [{ rpm: 1 }, 'a request a minute', '61'],
    [{ tpm: 100 }, 'tokens a minute', '61'],
    [{ max_concurrent: 1 }, 'running at once', '1'],
  ])('for %j is rate_limited, with the seconds to wait', (limits, _, seconds) => {
    const { error, headers } = refuse(limits, ['a']);
    expect(error).toMatchObject({ status: 429, code: 'rate_limited', type: 'rate_limit_error' });
    expect(headers['retry-after']).toBe(seconds);
  });

  test('for an unknown price names the remedy', () => {
    const { error } = refuse({ budget: { USD: 5 } }, [], { price: null });
    expect(error).toMatchObject({ status: 403, code: 'model_not_allowed', param: 'model' });
    expect(error.message).toContain('PRICES');
  });
});

test.each([
  [0, '0ms'],
  [820, '820ms'],
  [1000, '1s'],
  [12_500, '12.5s'],
  [60_000, '1m0s'],
  [61_000, '1m1s'],
])('formatDuration %d: %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('Y6 a refusal says whether it is the limit of the key or of its user, without the name of the user', () => {
  const sql = new MemorySql({ rpm: 1 });
  sql.reserve('a');
  const refused = sql.reserve('b');
  if (refused.kind !== 'refused') throw new Error('not refused');
  const { error, headers } = refusalResponse(refused.refusal, refused.standing, 'user');
  expect(error.message).toBe('Each user of this key may send 1 request a minute');
  expect(headers['x-weir-limit']).toBe('user');
});

describe('G5 the headers by which Claude Code warns', () => {
  const reset = String(Date.UTC(2026, 11, 1) / 1000);

  test.each([
    [0, 'allowed', '0', undefined],
    [749, 'allowed', '0.74', undefined],
    [750, 'allowed_warning', '0.75', '0.75'],
    [949, 'allowed_warning', '0.94', '0.75'],
    [950, 'allowed_warning', '0.95', '0.95'],
    [2000, 'allowed_warning', '0.99', '0.95'],
  ])('%d of 1000 tokens of a month are spent: %s, %s', (spent, word, share, surpassed) => {
    const sql = new MemorySql({ budget: { tokens: 1000, per: 'month', mode: 'warn' } });
    sql.reserve('a');
    settle(sql, 'a', used(spent), NOW);
    const headers = unifiedHeaders(sql.reserve('b').standing);
    const name = 'anthropic-ratelimit-unified';
    expect(headers).toEqual({
      [`${name}-status`]: word,
      [`${name}-representative-claim`]: 'overage',
      [`${name}-overage-status`]: word,
      [`${name}-overage-utilization`]: share,
      ...(surpassed !== undefined && { [`${name}-overage-surpassed-threshold`]: surpassed }),
      [`${name}-reset`]: reset,
      [`${name}-overage-reset`]: reset,
    });
  });

  test('a key without a budget has none', () => {
    expect(unifiedHeaders(new MemorySql({ rpm: 5 }).reserve('a').standing)).toEqual({});
  });

  function refused(spent: number, isMessages: boolean) {
    const sql = new MemorySql({ budget: { tokens: 150, per: 'month' } });
    sql.reserve('a');
    if (spent > 0) settle(sql, 'a', used(spent), NOW);
    const answer = sql.reserve('b');
    if (answer.kind === 'reserved') throw new Error('It was not refused');
    return refusalResponse(answer.refusal, answer.standing, 'key', [], isMessages).headers;
  }

  test('a spent budget: rejected, without the claim for which Claude Code would replace the message', () => {
    expect(refused(100, true)).toMatchObject({
      'anthropic-ratelimit-unified-status': 'rejected',
      'anthropic-ratelimit-unified-reset': reset,
      'anthropic-ratelimit-unified-overage-reset': reset,
      'anthropic-ratelimit-unified-overage-utilization': '1',
      'anthropic-ratelimit-unified-overage-surpassed-threshold': '1',
      'anthropic-ratelimit-unified-overage-period': 'monthly',
      'anthropic-ratelimit-unified-overage-disabled-reason': 'org_spend_cap_reached',
    });
    expect(refused(100, true)).not.toHaveProperty('anthropic-ratelimit-unified-representative-claim');
    expect(refused(100, false)).not.toHaveProperty('anthropic-ratelimit-unified-status');
  });

  test('a budget that only running requests use up is not spent', () => {
    expect(refused(0, true)).not.toHaveProperty('anthropic-ratelimit-unified-status');
  });
});
