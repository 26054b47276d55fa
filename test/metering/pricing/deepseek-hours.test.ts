/** Tests DeepSeek's peak hours: every hour of normal weeks, of weeks with holidays, and of weeks in which a rule changed (P1). */
import { describe, expect, test } from 'vitest';
import { costAtPrice, findPrice, ratesInForce } from '../../../src/metering/pricing/cost.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/price-book.ts';
import { price, usage } from './prices.ts';

const HOUR_MS = 60 * 60 * 1000;
const MILLION = usage({ prompt: 1_000_000 });

/** The cost of a million input tokens, in thousandths of a dollar, with `!` for an upper bound. */
function inputAt(model: string, ms: number): string {
  const found = findPrice([SHIPPED_PRICES], ['deepseek'], model, ms);
  const cost = found === null ? null : costAtPrice(MILLION, found, ms);
  return cost === null ? 'none' : `${cost.nano / 1e6}${cost.isUpperBound ? '!' : ''}`;
}

/** The hours of a week in Beijing: one letter for each hour, one line for each day. */
function weekOf(model: string, monday: string, letters: Readonly<Record<string, string>>): string[] {
  const start = Date.parse(`${monday}T00:00:00+08:00`);
  return Array.from({ length: 7 }, (_, day) =>
    Array.from({ length: 24 }, (__, hour) => {
      const input = inputAt(model, start + (day * 24 + hour) * HOUR_MS);
      return letters[input] ?? `[${input}]`;
    }).join(''),
  );
}

//            00       08 9-12   14-18
const PEAK = '.........PPP..PPPP......';
const OFF_ = '........................';
const FLAT = 'ffffffffffffffffffffffff';
const OLDP = '_________OOO__OOOO______';
const OLD_ = '________________________';
/** The price changes at noon in Beijing, after a peak hour at the old price. */
const TURN = '_________OOO..PPPP......';
const MAYB = '.........???..????......';

const FLASH = { '140': 'f', '220': '_', '440': 'O', '150': '.', '300': 'P', '300!': '?' };
const PRO = { '435': 'f', '660': '.', '1320': 'P', '1320!': '?' };

describe('DeepSeek, every hour of a week', () => {
  test.each<[what: string, monday: string, days: readonly string[]]>([
    ['before peak prices', '2026-08-10', [FLAT, FLAT, FLAT, FLAT, FLAT, FLAT, FLAT]],
    [
      'with the first peak prices and the first weekend day without peak',
      '2026-08-17',
      [OLDP, OLDP, OLDP, OLDP, OLDP, OLDP, OLD_],
    ],
    ['at the old price', '2026-08-24', [OLDP, OLDP, OLDP, OLDP, OLDP, OLD_, OLD_]],
    ['with the new price from Thursday noon on', '2026-09-07', [OLDP, OLDP, OLDP, TURN, PEAK, OFF_, OFF_]],
    ['with Mid-Autumn on Friday', '2026-09-21', [PEAK, PEAK, PEAK, PEAK, OFF_, OFF_, OFF_]],
    ['with the National Day', '2026-09-28', [PEAK, PEAK, PEAK, OFF_, OFF_, OFF_, OFF_]],
    [
      'after the National Day: holidays end on Wednesday, and the working Saturday is off-peak',
      '2026-10-05',
      [OFF_, OFF_, OFF_, PEAK, PEAK, OFF_, OFF_],
    ],
    ['plain', '2026-10-12', [PEAK, PEAK, PEAK, PEAK, PEAK, OFF_, OFF_]],
    ['across the end of the list of holidays', '2026-12-28', [PEAK, PEAK, PEAK, PEAK, MAYB, OFF_, OFF_]],
    ['past it', '2027-02-08', [MAYB, MAYB, MAYB, MAYB, MAYB, OFF_, OFF_]],
  ])('P1 Flash, a week %s (%s)', (_, monday, days) => {
    expect(weekOf('deepseek-v4-flash', monday, FLASH)).toEqual(days);
  });

  test.each<[what: string, monday: string, days: readonly string[]]>([
    ['before peak prices', '2026-08-10', [FLAT, FLAT, FLAT, FLAT, FLAT, FLAT, FLAT]],
    ['with the first weekend day without peak', '2026-08-17', [PEAK, PEAK, PEAK, PEAK, PEAK, PEAK, OFF_]],
    ["with Flash's new price", '2026-09-07', [PEAK, PEAK, PEAK, PEAK, PEAK, OFF_, OFF_]],
    ['with the National Day', '2026-09-28', [PEAK, PEAK, PEAK, OFF_, OFF_, OFF_, OFF_]],
    ['plain', '2026-10-12', [PEAK, PEAK, PEAK, PEAK, PEAK, OFF_, OFF_]],
    ['after the list of holidays', '2027-02-08', [MAYB, MAYB, MAYB, MAYB, MAYB, OFF_, OFF_]],
  ])('P1 Pro, a week %s (%s)', (_, monday, days) => {
    expect(weekOf('deepseek-v4-pro', monday, PRO)).toEqual(days);
  });

  test.each<[what: string, at: string, input: string]>([
    ['the last of the flat price', '2026-08-16T15:59:59.999Z', '140'],
    ['the first of the next', '2026-08-16T16:00:00.000Z', '220'],
    ['Saturday, the last peak hour of a weekend', '2026-08-22T09:59:59.999Z', '440'],
    ['before V4.1', '2026-09-10T03:59:59.999Z', '440'],
    ['with V4.1', '2026-09-10T04:00:00.000Z', '150'],
    ['before nine', '2026-10-13T00:59:59.999Z', '150'],
    ['at nine', '2026-10-13T01:00:00.000Z', '300'],
    ['before noon', '2026-10-13T03:59:59.999Z', '300'],
    ['at noon', '2026-10-13T04:00:00.000Z', '150'],
    ['before two', '2026-10-13T05:59:59.999Z', '150'],
    ['at two', '2026-10-13T06:00:00.000Z', '300'],
    ['before six', '2026-10-13T09:59:59.999Z', '300'],
    ['at six', '2026-10-13T10:00:00.000Z', '150'],
    ['before the first known price', '2026-04-26T12:14:59.999Z', 'none'],
  ])('P1 to the millisecond, %s', (_, at, input) => {
    expect(inputAt('deepseek-v4-flash', Date.parse(at))).toBe(input);
  });

  test('P1 cached input and output also double at peak', () => {
    const found = findPrice(
      [SHIPPED_PRICES],
      ['deepseek'],
      'deepseek-flash',
      Date.parse('2026-10-13T12:00:00Z'),
    );
    expect(found).toMatchObject({
      cached_input: 0.003,
      output: 0.6,
      peak: { cached_input: 0.006, input: 0.3, output: 1.2 },
    });
  });
});

describe("ratesInForce, hours in the provider's zone", () => {
  // DeepSeek's hours fall on the same weekday in UTC, so other hours test the zone.
  test.each<[zone: string, at: string, isPeak: boolean]>([
    ['+08:00', '2026-10-11T16:00:00Z', true],
    ['+08:00', '2026-10-11T15:59:59Z', false],
    ['+08:00', '2026-10-12T15:59:59Z', true],
    ['+08:00', '2026-10-12T16:00:00Z', false],
    ['-05:30', '2026-10-12T05:29:59Z', false],
    ['-05:30', '2026-10-12T05:30:00Z', true],
    ['-05:30', '2026-10-13T05:29:59Z', true],
    ['-05:30', '2026-10-13T05:30:00Z', false],
  ])('P1 all of Monday at %s, %s: %s', (zone, at, isPeak) => {
    const mondays = price({ input: 1, peak: { zone, days: [1], hours: [['00:00', '24:00']], input: 2 } });
    expect(ratesInForce(mondays, 0, Date.parse(at)).rates.input).toBe(isPeak ? 2 : 1);
  });
});
