/** Tests the parser of a deployment's own prices: valid prices, and the messages for invalid ones (P2). */
import { describe, expect, test } from 'vitest';
import { MAX_OWN_PRICES, parsePrices } from '../../../src/metering/pricing/price.ts';
import { failure, ok } from '../../../src/shared/result.ts';

const PRICE = { provider: 'groq', models: ['llama-*'], since: '2026-11-01', currency: 'USD', input: 0.5 };
const PEAK = { zone: '+08:00', days: [1, 5], hours: [['09:00', '24:00']], holidays: 'cn', input: 1 };

describe('parsePrices', () => {
  test.each<[what: string, price: Record<string, unknown>]>([
    ['since is a day', PRICE],
    ['since is a time', { ...PRICE, since: '2026-11-01T16:00:00Z' }],
    [
      'every rate',
      {
        ...PRICE,
        cached_input: 0,
        cache_write: 1,
        cache_write_long: 1.6,
        output: 0.000001,
        reasoning: 2,
        audio_input: 3,
        audio_output: 4,
      },
    ],
    ['a price for searches', { ...PRICE, web_search: 10 }],
    ['service tiers', { ...PRICE, service_tiers: ['priority', 'fast'] }],
    ['rates above a threshold', { ...PRICE, above: { prompt_tokens: 200_000, input: 1 } }],
    ['peak hours', { ...PRICE, peak: PEAK }],
    ['peak hours without holidays', { ...PRICE, peak: { ...PEAK, holidays: undefined } }],
  ])('P2 %s: parsed unchanged', (_, price) => {
    expect(parsePrices([price, PRICE])).toEqual(ok([price, PRICE]));
  });

  test('P2 source and checked are ignored', () => {
    expect(parsePrices([{ ...PRICE, source: 'the contract', checked: '2026-11-01' }])).toEqual(ok([PRICE]));
  });

  test('P1 a null rate counts as absent', () => {
    expect(parsePrices([{ ...PRICE, output: null }])).toEqual(ok([PRICE]));
  });

  test('P2 an empty list is valid', () => {
    expect(parsePrices([])).toEqual(ok([]));
  });

  test.each<[what: string, change: Record<string, unknown>, problem: RegExp]>([
    ['an unknown field', { hunter2: 1 }, /^price 2: has an unknown field; the fields are provider, models, /],
    [
      'a misspelt field',
      { model: ['m'] },
      /^price 2: has no field model: did you mean models; the fields are provider, models, /,
    ],
    [
      'searches without a number',
      { web_search: '10' },
      /web_search must be a number from 0 to 1000000, per thousand searches/,
    ],
    ['no provider', { provider: '' }, /^price 2: provider must be the id of a provider, such as "deepseek"$/],
    ['no models', { models: [] }, /^price 2: models must be a list of 1 to 50 names or globs/],
    ['models as a text', { models: 'hunter2' }, /models must be a list/],
    ['a model that is a number', { models: ['a', 2] }, /models must be a list/],
    ['too many models', { models: Array(51).fill('m') }, /models must be a list/],
    [
      'a day that does not exist',
      { since: '2026-02-30' },
      /^price 2: since must be a day or a UTC time, such as 2026-11-01 or/,
    ],
    ['a time in another zone', { since: '2026-11-01T00:00:00+08:00' }, /since must be/],
    ['no since', { since: undefined }, /since must be/],
    [
      'a currency in words',
      { currency: 'dollars' },
      /^price 2: currency must be an ISO 4217 code, such as USD$/,
    ],
    [
      'a negative rate',
      { input: -1 },
      /^price 2: input must be a number from 0 to 1000000, per million tokens, with at most 6/,
    ],
    ['a rate as text', { input: '0.5' }, /input must be a number/],
    ['a rate of 1e308', { output: 1e308 }, /output must be a number/],
    ['a rate that is not a number', { cached_input: Number.NaN }, /cached_input must be a number/],
    ['a rate with seven decimals', { input: 0.0000001 }, /at most 6 decimals$/],
    [
      'an empty list of service tiers',
      { service_tiers: [] },
      /^price 2: service_tiers must be a list of 1 to 50 names, such as \["priority"\]$/,
    ],
    ['service tiers as a text', { service_tiers: 'priority' }, /service_tiers must be a list/],
    ['no rate', { input: undefined }, /^price 2: needs at least one of input, /],
    [
      'tier and peak',
      { above: { prompt_tokens: 1, input: 1 }, peak: PEAK },
      /^price 2: must not have both above and peak$/,
    ],
    ['above as a number', { above: 200_000 }, /^price 2: above must be an object$/],
    [
      'above without prompt_tokens',
      { above: { input: 1 } },
      /^price 2: above.prompt_tokens must be a positive integer$/,
    ],
    [
      'above with an invalid rate',
      { above: { prompt_tokens: 1, input: -1 } },
      /^price 2: above.input must be a number/,
    ],
    [
      'a zone by its name',
      { peak: { ...PEAK, zone: 'Asia/Shanghai' } },
      /^price 2: peak.zone must be an offset from UTC, such as "\+08:00"$/,
    ],
    [
      'a day by its name',
      { peak: { ...PEAK, days: ['Mon'] } },
      /^price 2: peak.days must be a list of 1 \(Monday\) to 7/,
    ],
    ['day 0', { peak: { ...PEAK, days: [0] } }, /peak.days must be/],
    [
      'hours over midnight',
      { peak: { ...PEAK, hours: [['22:00', '06:00']] } },
      /^price 2: peak.hours must be a list of spans within a day/,
    ],
    ['an hour that does not exist', { peak: { ...PEAK, hours: [['09:00', '25:00']] } }, /peak.hours must be/],
    ['no hours', { peak: { ...PEAK, hours: [] } }, /peak.hours must be/],
    [
      'an unknown calendar',
      { peak: { ...PEAK, holidays: 'hunter2' } },
      /^price 2: peak.holidays must be one of: cn$/,
    ],
  ])('P2 %s: invalid, with a message that does not contain the value', (_, change, problem) => {
    const parsed = parsePrices([PRICE, { ...PRICE, ...change }]);
    expect(parsed).toMatchObject(failure(expect.stringMatching(problem)));
    expect(JSON.stringify(parsed)).not.toContain('hunter2');
  });

  test.each<[what: string, value: unknown, problem: RegExp]>([
    ['an object', { provider: 'groq' }, /^must be a list of prices$/],
    ['a text', 'hunter2', /^must be a list/],
    ['nothing', undefined, /^must be a list/],
    ['a list of texts', ['hunter2'], /^price 1: must be an object$/],
    ['a list that is too long', Array(MAX_OWN_PRICES + 1).fill(PRICE), /^must be at most 500 prices$/],
  ])('P2 %s: invalid', (_, value, problem) => {
    expect(parsePrices(value)).toMatchObject(failure(expect.stringMatching(problem)));
  });
});
