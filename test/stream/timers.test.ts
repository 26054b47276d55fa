/** Tests the three timers of a stream, under a clock that is advanced by hand. */
import { describe, expect, test } from 'vitest';
import { StreamTimers, type TimerLimits } from '../../src/stream/timers.ts';

const LIMITS: TimerLimits = { heartbeatMs: 15_000, idleTimeoutMs: 120_000, deadlineMs: 600_000 };

/** A clock that only `advance` moves, firing the timers due meanwhile. */
class HandClock {
  time = 0;
  armed = 0;
  #timer: { readonly at: number; readonly fire: () => void } | undefined;

  readonly now = () => this.time;

  readonly startTimer = (ms: number, fire: () => void) => {
    this.armed++;
    const timer = { at: this.time + ms, fire };
    this.#timer = timer;
    return () => {
      if (this.#timer === timer) this.#timer = undefined;
    };
  };

  get isArmed(): boolean {
    return this.#timer !== undefined;
  }

  advance(ms: number): void {
    const end = this.time + ms;
    for (let timer = this.#timer; timer !== undefined && timer.at <= end; timer = this.#timer) {
      this.#timer = undefined;
      this.time = timer.at;
      timer.fire();
    }
    this.time = end;
  }
}

function start(limits: Partial<TimerLimits> = {}) {
  const clock = new HandClock();
  const events: string[] = [];
  const timers: StreamTimers = new StreamTimers({ ...LIMITS, ...limits }, clock, 0, (due) => {
    events.push(`${due} at ${clock.time / 1000}`);
    if (due !== 'heartbeat') return;
    timers.wrote();
    timers.taken();
  });
  return { clock, events, timers };
}

describe('T1: heartbeats', () => {
  test('T1: one for each interval without output', () => {
    const { clock, events } = start();
    clock.advance(45_000);
    expect(events).toEqual(['heartbeat at 15', 'heartbeat at 30', 'heartbeat at 45']);
  });

  test('T1: a write postpones the next one', () => {
    const { clock, events, timers } = start();
    clock.advance(10_000);
    timers.wrote();
    timers.taken();
    clock.advance(14_999);
    expect(events).toEqual([]);
    clock.advance(1);
    expect(events).toEqual(['heartbeat at 25']);
  });

  test('T1: 0 turns them off, fractions of a second count', () => {
    const off = start({ heartbeatMs: 0 });
    off.clock.advance(100_000);
    expect(off.events).toEqual([]);
    const quick = start({ heartbeatMs: 250 });
    quick.clock.advance(600);
    expect(quick.events).toEqual(['heartbeat at 0.25', 'heartbeat at 0.5']);
  });

  test('T1 T5: a client that does not read gets none', () => {
    const { clock, events, timers } = start();
    timers.wrote();
    clock.advance(40_000);
    expect(events).toEqual([]);
    timers.taken();
    clock.advance(5_000);
    expect(events).toEqual(['heartbeat at 45']);
  });
});

describe('T2: the idle timeout', () => {
  const quiet = { heartbeatMs: 0 };

  test('T2: fires once after so long without a data event, and stops the clock', () => {
    const { clock, events, timers } = start(quiet);
    clock.advance(100_000);
    timers.read(true);
    clock.advance(1_000_000);
    expect(events).toEqual(['idle at 220']);
    expect(clock.isArmed).toBe(false);
  });

  test("T2: Weir's own heartbeats do not postpone it", () => {
    const { clock, events } = start();
    clock.advance(120_000);
    expect(events.at(-1)).toBe('idle at 120');
    expect(events).toHaveLength(8);
  });

  test('T2: upstream comments postpone it before the first data event, and not after it', () => {
    const { clock, events, timers } = start(quiet);
    clock.advance(100_000);
    timers.read(false);
    clock.advance(100_000);
    timers.read(true);
    clock.advance(100_000);
    timers.read(false);
    clock.advance(20_000);
    expect(events).toEqual(['idle at 320']);
  });

  test('T2 T5: while the client does not read, the idle timeout does not count', () => {
    const { clock, events, timers } = start(quiet);
    timers.wrote();
    clock.advance(300_000);
    expect(events).toEqual([]);
    timers.taken();
    clock.advance(120_000);
    expect(events).toEqual(['idle at 360']);
  });
});

describe('T3: the deadline', () => {
  test('T3: counts from the request’s arrival, whatever happens meanwhile', () => {
    const { clock, events, timers } = start({ heartbeatMs: 0 });
    for (let i = 0; i < 7; i++) {
      clock.advance(100_000);
      timers.read(true);
      timers.wrote();
    }
    expect(events).toEqual(['deadline at 600']);
  });

  test('T3: with every clock off no timer is armed', () => {
    const { clock } = start({ heartbeatMs: 0, idleTimeoutMs: 0, deadlineMs: 0 });
    expect(clock.armed).toBe(0);
  });
});

test('Pacing: a thousand chunks arm no timer of their own', () => {
  const { clock, timers } = start();
  for (let i = 0; i < 1000; i++) {
    clock.advance(10);
    timers.read(true);
    timers.wrote();
  }
  expect(clock.armed).toBe(1);
});

test('Pacing: stop() cancels what is armed', () => {
  const { clock, events, timers } = start();
  timers.stop();
  clock.advance(1_000_000);
  expect(events).toEqual([]);
});
