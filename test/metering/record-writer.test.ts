/** Records and a KV that fails, is slow, or never answers, under timers that are fired by hand. */
import { expect, test } from 'vitest';
import type { UsageRecord } from '../../src/metering/record.ts';
import { RecordWriter } from '../../src/metering/record-writer.ts';

const RECORD: UsageRecord = {
  request_id: 'r-1',
  time: '2026-11-21T10:00:00.000Z',
  key_id: 'k',
  provider: 'deepseek',
  model: 'deepseek-chat',
  route: 'chat',
  status: 'finished',
  error_code: null,
  finish_reason: 'stop',
  prompt_tokens: 3,
  completion_tokens: 4,
  total_tokens: 7,
  cached_tokens: null,
  reasoning_tokens: null,
  vendor_events: 0,
  vendor_tokens: 0,
  first_token_ms: 10,
  total_ms: 20,
  bytes_out: 300,
  estimated: false,
};

/** A KV whose first puts fail, and timers that wait until `fireNext`. */
function setUp(put: (attempt: number) => Promise<void>) {
  const puts: string[] = [];
  const logged: Readonly<Record<string, unknown>>[] = [];
  const timers: { readonly ms: number; readonly fire: () => void }[] = [];
  const armed = { resolve: () => {} };
  const writer = new RecordWriter({
    store: {
      put: (key: string) => put(puts.push(key)),
      list: () => Promise.reject(new Error('not listed here')),
    },
    startTimer: (ms, fire) => {
      const timer = { ms, fire };
      timers.push(timer);
      armed.resolve();
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
    log: (entry) => logged.push(entry),
  });
  /** Fires the wait before the next try, as soon as it is armed. */
  async function fireRetry(): Promise<number> {
    const isRetry = (timer: { ms: number }) => timer.ms < 25_000;
    while (!timers.some(isRetry)) {
      await new Promise<void>((resolve) => {
        armed.resolve = resolve;
      });
    }
    const [timer] = timers.splice(timers.findIndex(isRetry), 1);
    timer?.fire();
    return timer?.ms ?? 0;
  }
  return { writer, puts, logged, timers, fireRetry };
}

const failing = () => Promise.reject(new Error('KV PUT failed: 429 Too Many Requests'));

test('M4: RecordWriter with a KV that fails twice tries again with growing waits, under the same key', async () => {
  const { writer, puts, logged, timers, fireRetry } = setUp((attempt) =>
    attempt < 3 ? failing() : Promise.resolve(),
  );
  const written = writer.write(RECORD);
  expect([await fireRetry(), await fireRetry()]).toEqual([500, 1000]);
  await written;
  expect(puts).toEqual(Array(3).fill('usage/2026-11-21/k/10:00:00.000Z-r-1'));
  expect(logged).toEqual([]);
  expect(timers).toEqual([]);
});

test('M1: RecordWriter with a KV that always fails logs the whole record once, and counts it', async () => {
  const { writer, puts, logged, fireRetry } = setUp(failing);
  for (const lost of [1, 2]) {
    const written = writer.write(RECORD);
    for (let retry = 0; retry < 5; retry++) await fireRetry();
    await written;
    expect(puts).toHaveLength(6 * lost);
    expect(logged).toHaveLength(lost);
    expect(logged.at(-1)).toMatchObject({ event: 'record_lost', lost_by_this_isolate: lost, record: RECORD });
    expect(JSON.parse(JSON.stringify(logged.at(-1))).record).toEqual(RECORD);
  }
});

test('M1: RecordWriter with a KV that never answers logs the record before the Worker ends', async () => {
  const { writer, logged, timers } = setUp(() => new Promise(() => {}));
  const written = writer.write(RECORD);
  expect(timers.map(({ ms }) => ms)).toEqual([25_000]);
  timers[0]?.fire();
  await written;
  expect(logged).toMatchObject([
    { event: 'record_lost', record: RECORD, reason: 'KV took longer than 25000 ms' },
  ]);
});
