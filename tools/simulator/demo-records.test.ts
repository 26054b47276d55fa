/** Tests that the sample records are the same in every run: only their times depend on the clock (D8). */
import { expect, test } from 'vitest';
import { compareSession } from '../../src/metering/cache-breaks.ts';
import { demoRecords, demoSession } from './demo-records.ts';

const HOUR_MS = 3_600_000;
/** In a week, these many hours from one to the next reach each hour of a day. */
const STEP_HOURS = 5;
const MONDAY = Date.parse('2026-11-23T00:17:00Z');
const KEYS = [
  { id: 'web', weight: 5, promptTokens: 2000, completionTokens: 400 },
  { id: 'agents', weight: 3, promptTokens: 12_000, completionTokens: 1500 },
  { id: 'evals', weight: 2, promptTokens: 900, completionTokens: 200 },
];

const made = (now: number) => demoRecords(400, KEYS, now);
const withoutTimes = (now: number) =>
  made(now).map(({ key_id, model, status, error_code, prompt_tokens, completion_tokens, total_ms }) => ({
    key_id,
    model,
    status,
    error_code,
    prompt_tokens,
    completion_tokens,
    total_ms,
  }));

test('D8 demoRecords has the same keys, models, statuses and tokens at hours of a week', () => {
  const first = withoutTimes(MONDAY);
  for (let hour = 1; hour < 7 * 24; hour += STEP_HOURS)
    expect(withoutTimes(MONDAY + hour * HOUR_MS)).toEqual(first);
});

test('D8 demoRecords, at hours of a week: covers most of fourteen days, none in the future, each key within the last day', () => {
  for (let hour = 0; hour < 7 * 24; hour += STEP_HOURS) {
    const now = MONDAY + hour * HOUR_MS;
    const records = made(now);
    const times = records.map(({ ended }) => Date.parse(ended));
    expect(new Set(records.map(({ time }) => time.slice(0, 10))).size).toBeGreaterThan(8);
    expect(Math.max(...times)).toBeLessThan(now);
    const latest = records.filter(({ time }) => Date.parse(time) > now - 24 * HOUR_MS);
    expect(new Set(latest.map(({ key_id }) => key_id)).size).toBe(KEYS.length);
  }
});

test('the session of the demo has two breaks of the prompt cache', () => {
  const reports = [...compareSession(demoSession('0123456789abcdef', MONDAY)).values()];
  const breaks = reports.filter(({ cause }) => cause !== 'none' && cause !== 'first');
  expect(breaks).toMatchObject([{ cause: 'model', by: 'fallback' }, { cause: 'tools' }]);
  expect(breaks.every(({ lost_tokens, lost_nanos = 0 }) => lost_tokens > 0 && lost_nanos > 0)).toBe(true);
});
