/** A request's clock: its timers fire when they are due, in order, and share one timer of the runtime. */
import { describe, expect, test } from 'vitest';
import { RequestClock } from '../../src/http/clock.ts';
import { FakeClock } from '../stream/fake-clock.ts';

function bench() {
  const runtime = new FakeClock();
  const clock = new RequestClock(runtime);
  const startedAt = runtime.now();
  const fired: string[] = [];
  /** Starts a timer that records its name and the ms that have passed. */
  const start = (name: string, ms: number) =>
    clock.startTimer(ms, () => void fired.push(`${name} ${runtime.now() - startedAt}`));
  return { runtime, clock, fired, start };
}

describe('RequestClock.startTimer', () => {
  test('T3 several timers: each fires once, at its own time', () => {
    const { runtime, fired, start } = bench();
    start('deadline', 600_000);
    start('idle', 120_000);
    start('heartbeat', 15_000);
    start('soon', 300);
    runtime.advance(700_000);
    expect(fired).toEqual(['soon 300', 'heartbeat 15000', 'idle 120000', 'deadline 600000']);
    expect(runtime.running).toBe(0);
  });

  test('T1 two timers that are due at once: both fire, the earlier one first', () => {
    const { runtime, fired, start } = bench();
    start('second', 10_000);
    start('first', 9999.5);
    runtime.advance(10_000);
    expect(fired).toEqual(['first 9999.5', 'second 10000']);
  });

  test('T3 a cancelled timer: it never fires, and the runtime has no timer after ten seconds', () => {
    const { runtime, fired, start } = bench();
    const cancel = start('deadline', 600_000);
    cancel();
    runtime.advance(10_000);
    expect([fired, runtime.running]).toEqual([[], 0]);
  });

  test('T3 a timer that cancels another one that is also due: the other one does not fire', () => {
    const { runtime, clock, fired, start } = bench();
    let cancel = () => {};
    clock.startTimer(50, () => cancel());
    cancel = start('cancelled', 50);
    runtime.advance(100);
    expect(fired).toEqual([]);
  });

  test('T1 a timer that starts another one when it fires: both fire', () => {
    const { runtime, clock, fired, start } = bench();
    clock.startTimer(50, () => void start('next', 20_000));
    start('other', 90);
    runtime.advance(30_000);
    expect(fired).toEqual(['other 90', 'next 20050']);
  });

  test('T3 a short request with several timers: one timer of the runtime', () => {
    const { runtime, start } = bench();
    start('deadline', 600_000)();
    start('heartbeat', 15_000)();
    start('record', 25_000)();
    expect(runtime.started).toBe(1);
  });

  test('T3 a runtime whose clock is behind its timers: they fire nevertheless', () => {
    let fire = () => {};
    let starts = 0;
    const clock = new RequestClock({
      now: () => 1000,
      startTimer: (_, onFire) => {
        starts++;
        fire = onFire;
        return () => {};
      },
    });
    let fired = 0;
    clock.startTimer(500, () => fired++);
    fire();
    expect([fired, starts]).toEqual([1, 1]);
  });
});
