/** The ends of reservations: settled with the actual usage, expired and charged, settled late. */
import { describe, expect, test } from 'vitest';
import { readLimitStatus } from '../../../src/ledger/limits/limit-tables.ts';
import {
  expire,
  forgetSettled,
  nextExpiry,
  settle,
  settleRecords,
  settleUnreserved,
} from '../../../src/ledger/limits/reservations.ts';
import { type Charge, chargeOfRecord, withoutCharges } from '../../../src/metering/record.ts';
import { record } from '../../metering/records.ts';
import { MemorySql, MINUTE, NOW, used } from './memory-sql.ts';

const HARD = { budget: { tokens: 1000 } };
const OVER = NOW + 11 * MINUTE;

function budget(sql: MemorySql, now = NOW) {
  return readLimitStatus(sql, now).budget;
}

describe('G3 settle', () => {
  test('deletes the reservation and charges the actual usage, once', () => {
    const sql = new MemorySql(HARD);
    sql.reserve('a');
    for (let i = 0; i < 3; i++) settle(sql, 'a', used(30, 5), NOW);
    expect(budget(sql)).toMatchObject({ spent: 30, reserved: 0 });
    expect(sql.count('reservations')).toBe(0);
  });

  test('a reservation that is repeated after the settlement reserves nothing, so that nothing expires and is charged', () => {
    const sql = new MemorySql(HARD);
    sql.reserve('a');
    settle(sql, 'a', used(30), NOW);
    expect(sql.reserve('a').kind).toBe('reserved');
    expect(budget(sql)).toMatchObject({ spent: 30, reserved: 0 });
    expect(expire(sql, OVER)).toEqual([]);
    expect(budget(sql, OVER)).toMatchObject({ spent: 30, reserved: 0 });
    // The id is not kept.
    forgetSettled(sql, OVER);
    expect(sql.count('unreserved')).toBe(0);
  });

  test('charges the actual usage also where it exceeds the reservation', () => {
    const sql = new MemorySql(HARD);
    sql.reserve('a');
    settle(sql, 'a', used(2000), NOW);
    expect(budget(sql)).toMatchObject({ spent: 2000 });
    expect(sql.reserve('b').kind).toBe('refused');
  });

  test('tokens with an unknown cost: charges the reserved cost', () => {
    const sql = new MemorySql({ budget: { USD: 1 } });
    sql.reserve('a');
    settle(sql, 'a', used(30), NOW);
    expect(budget(sql)).toMatchObject({ spent: 190_000 });
    sql.reserve('b');
    settle(sql, 'b', used(0), NOW);
    expect(budget(sql)).toMatchObject({ spent: 190_000, reserved: 0 });
  });

  test('a request without a reservation: settleUnreserved charges it once on its day, settle does not', () => {
    const sql = new MemorySql({ budget: { tokens: 1000, per: 'day' } });
    expect(settle(sql, 'unknown', used(30), NOW)).toBeNull();
    expect(budget(sql)).toMatchObject({ spent: 0 });
    for (let i = 0; i < 3; i++) settleUnreserved(sql, 'open', used(30), '2026-11-20', NOW);
    expect(budget(sql)).toMatchObject({ spent: 0 });
    expect(budget(sql, NOW - 24 * 60 * MINUTE)).toMatchObject({ spent: 30 });
  });

  test('unreported usage has a sum of its own, in the unit of the budget and for its period', () => {
    const sql = new MemorySql({ budget: { tokens: 1000, per: 'day' } });
    sql.reserve('a');
    sql.reserve('b');
    settle(sql, 'a', { ...used(90, 900), unreported: { tokens: 70, nano: 700 }, recordedTokens: 5 }, NOW);
    settle(sql, 'b', used(10, 100), NOW);
    expect(budget(sql)).toMatchObject({ spent: 100, unreported: 70 });
    expect(budget(sql, NOW + 24 * 60 * MINUTE)).toMatchObject({ spent: 0, unreported: 0 });
    sql.limit({ budget: { USD: 1 } });
    expect(budget(sql)).toMatchObject({ spent: 1000, unreported: 700 });
  });

  test('tpm counts the tokens of the record, not of the charge', () => {
    const sql = new MemorySql({ tpm: 1000 });
    sql.reserve('a');
    settle(sql, 'a', { ...used(900), unreported: { tokens: 900, nano: 0 }, recordedTokens: 5 }, NOW);
    expect(readLimitStatus(sql, NOW).tokens).toMatchObject({ used: 5 });
  });

  test('a record with a charge: the charge counts, and replaces the charge of an expired reservation', () => {
    const sql = new MemorySql(HARD);
    sql.reserve('a');
    expire(sql, OVER);
    const charge: Charge = { ...used(80), unreported: { tokens: 80, nano: 0 }, recordedTokens: 3 };
    const charged = { ...record({ request_id: 'a', total_tokens: 3 }), charge };
    settleRecords(sql, [charged], OVER);
    expect(budget(sql)).toMatchObject({ spent: 80, unreported: 80, estimated: 0 });
    expect(withoutCharges([charged])).toEqual([record({ request_id: 'a', total_tokens: 3 })]);
  });

  test('a record: charges its tokens and cost, with or without a reservation, once limits are set', () => {
    const sql = new MemorySql();
    const records = [
      record({ request_id: 'a', total_tokens: 30, cost_nanos: 7, currency: 'USD' }),
      record({ request_id: 'b', total_tokens: 5, cost_nanos: null, currency: null }),
    ];
    settleRecords(sql, records, NOW);
    expect(sql.count('spent')).toBe(0);
    sql.limit(HARD);
    sql.reserve('a');
    settleRecords(sql, records, NOW);
    expect(budget(sql)).toMatchObject({ spent: 35, reserved: 0 });
    sql.limit({ budget: { USD: 1 } });
    expect(budget(sql)).toMatchObject({ spent: 7, reserved: 0 });
  });

  test('a request whose reservation succeeded but whose response was lost: charged once', () => {
    const sql = new MemorySql(HARD);
    sql.reserve('a');
    for (let i = 0; i < 3; i++) settleUnreserved(sql, 'a', used(30), '2026-11-21', NOW);
    expect(budget(sql)).toMatchObject({ spent: 30, reserved: 0 });
  });
});

describe('G3 expire', () => {
  test('charges the reservation when it expires, not before, and counts it as estimated', () => {
    const sql = new MemorySql({ budget: { USD: 1 } });
    sql.reserve('a');
    expect(nextExpiry(sql)).toBe(OVER);
    expect(expire(sql, OVER - 1)).toEqual([]);
    expect(expire(sql, OVER)).toMatchObject([{ id: 'a', tokens: 100, cost: 190_000, currency: 'USD' }]);
    expect(budget(sql)).toMatchObject({ spent: 190_000, reserved: 0, estimated: 190_000 });
    expect(expire(sql, OVER)).toEqual([]);
  });

  test('a late settlement replaces the charge, once', () => {
    const sql = new MemorySql({ budget: { USD: 1 } });
    sql.reserve('a');
    expire(sql, OVER);
    for (let i = 0; i < 3; i++) settle(sql, 'a', used(30, 44), NOW);
    expect(budget(sql)).toMatchObject({ spent: 44, reserved: 0, estimated: 0 });
  });

  test('charges lost requests also under a budget that warns and under a rate alone', () => {
    const sql = new MemorySql({ rpm: 5 });
    sql.reserve('a');
    expire(sql, OVER);
    sql.limit({ budget: { tokens: 1000, mode: 'warn' } });
    expect(budget(sql)).toMatchObject({ spent: 100, estimated: 100 });
  });

  test('a lost request no longer counts for max_concurrent', () => {
    const sql = new MemorySql({ max_concurrent: 1 });
    sql.reserve('a');
    expect(sql.reserve('b').kind).toBe('refused');
    expire(sql, OVER);
    expect(sql.reserve('b', {}, OVER).kind).toBe('reserved');
  });

  test('deletes charges and ids after 35 days; what was spent stays', () => {
    const sql = new MemorySql(HARD);
    sql.reserve('a');
    expire(sql, OVER);
    settleUnreserved(sql, 'open', used(5), '2026-11-21', OVER);
    // All that are due within ten minutes are deleted at once.
    const later = OVER + 35 * 24 * 60 * MINUTE + 10 * MINUTE;
    expect(nextExpiry(sql)).toBe(later);
    settleUnreserved(sql, 'another', used(0), '2026-11-21', OVER + 10 * MINUTE);
    expire(sql, later);
    expect([sql.count('expired'), sql.count('unreserved')]).toEqual([1, 2]);
    forgetSettled(sql, later);
    expect([sql.count('expired'), sql.count('unreserved'), nextExpiry(sql)]).toEqual([0, 0, null]);
    expect(budget(sql)).toMatchObject({ spent: 105, estimated: 0 });
  });
});

test('Y6 a record whose charge the object of its user reports is not charged by the object of its key', () => {
  const sql = new MemorySql({ budget: { tokens: 1000 } });
  const one = record({ total_tokens: 40 });
  settleRecords(sql, [{ ...one, charge: { ...chargeOfRecord(one), userObject: 'k/u/ada' } }], NOW);
  expect(readLimitStatus(sql, NOW).budget).toMatchObject({ spent: 0 });
  settleRecords(sql, [one], NOW);
  expect(sql.exec<{ tokens: number }>('SELECT sum(tokens) AS tokens FROM spent').toArray()).toEqual([
    { tokens: 40 },
  ]);
});
