/** Tests the memory that all requests of an isolate share: grants, waiting, revocation and turns of work (B3, B4). */
import { describe, expect, test, vi } from 'vitest';
import {
  LARGE_BYTES,
  MAX_MEMORY_BYTES,
  MAX_MEMORY_WAIT_MS,
  MAX_TURN_MS,
  Memory,
  type MemoryGrant,
  PAUSE_BETWEEN_TURNS_MS,
  PAUSED_BYTES,
  SMALL_BYTES,
} from '../../src/stream/memory.ts';
import { FakeClock } from './fake-clock.ts';
import { settle } from './stream-bench.ts';

const HALF = MAX_MEMORY_BYTES / 2;

class Bench {
  readonly clock = new FakeClock();
  readonly memory = new Memory(this.clock);
  /** Unfinished work that the runtime keeps alive. */
  kept = 0;
  /** The names of granted and refused grants, in order. */
  readonly given: string[] = [];

  grant(name: string, bytes: number): Promise<MemoryGrant | null> {
    const grant = this.memory.grant(bytes, (work) => {
      this.kept++;
      void work.then(() => this.kept--);
    });
    void grant.then((got) => this.given.push(got === null ? `${name} refused` : name));
    return grant;
  }

  /** A grant for which there is room. */
  async room(bytes: number): Promise<MemoryGrant> {
    const grant = await this.grant('room', bytes);
    if (grant === null) throw new Error('There was no room');
    return grant;
  }
}

describe('Memory.grant', () => {
  test('B3 small grants: always granted, never counted, and nothing is kept alive', async () => {
    const bench = new Bench();
    for (let i = 0; i < 1000; i++) await bench.room(SMALL_BYTES);
    expect([bench.kept, bench.clock.started]).toEqual([0, 0]);
    await bench.room(MAX_MEMORY_BYTES);
    expect(bench.given).toHaveLength(1001);
  });

  test('B3 grants without room: wait in order until room is released, even small ones', async () => {
    const bench = new Bench();
    const first = await bench.room(HALF);
    const second = await bench.room(HALF);
    bench.grant('third', HALF);
    bench.grant('fourth', SMALL_BYTES + 1);
    await settle();
    expect(bench.given).toEqual(['room', 'room']);
    first.release();
    first.release();
    await settle();
    expect(bench.given).toEqual(['room', 'room', 'third']);
    second.release();
    await settle();
    expect(bench.given).toEqual(['room', 'room', 'third', 'fourth']);
    expect(bench.clock.running).toBe(0);
  });

  test('B3 more than the total: granted when nothing else is held', async () => {
    const bench = new Bench();
    const first = await bench.room(HALF);
    bench.grant('giant', MAX_MEMORY_BYTES * 2);
    await settle();
    expect(bench.given).toEqual(['room']);
    first.release();
    await settle();
    expect(bench.given).toEqual(['room', 'giant']);
  });

  test('B3 no room for ten seconds while all other bodies are received: refused, and later grants continue', async () => {
    const bench = new Bench();
    const held = await bench.room(MAX_MEMORY_BYTES - SMALL_BYTES * 2);
    held.markReceived();
    bench.grant('large', HALF);
    bench.grant('fits', SMALL_BYTES + 1);
    bench.clock.advance(MAX_MEMORY_WAIT_MS);
    await settle();
    expect(bench.given).toEqual(['room', 'large refused', 'fits']);
    expect(bench.kept).toBe(2);
  });

  test('B3 a grant of ten seconds ago whose body was not received: revoked', async () => {
    const bench = new Bench();
    const stalled = await bench.room(MAX_MEMORY_BYTES);
    const revoked = stalled.revoked?.then(() => stalled.release());
    bench.clock.advance(MAX_MEMORY_WAIT_MS / 2);
    const next = bench.grant('next', HALF);
    bench.clock.advance(MAX_MEMORY_WAIT_MS);
    await revoked;
    await settle();
    expect(bench.given).toEqual(['room', 'next']);
    (await next)?.release();
    await settle();
    expect([bench.kept, bench.clock.running]).toEqual([0, 0]);
  });
});

describe('MemoryGrant.startWork', () => {
  const LARGE = LARGE_BYTES + 1;

  /** Whether the work has started after everything that can continue did. */
  async function hasStartedWork(work: Promise<void>): Promise<boolean> {
    let hasStarted = false;
    void work.then(() => {
      hasStarted = true;
    });
    await settle();
    return hasStarted;
  }

  test('B4 large bodies: one after the other, with a pause in between', async () => {
    const bench = new Bench();
    const first = await bench.room(LARGE);
    const second = await bench.room(LARGE);
    await first.startWork();
    const work = second.startWork();
    expect(await hasStartedWork(work)).toBe(false);
    first.endWork();
    expect(await hasStartedWork(work)).toBe(false);
    bench.clock.advance(PAUSE_BETWEEN_TURNS_MS);
    expect(await hasStartedWork(work)).toBe(true);
    second.release();
    expect(await hasStartedWork((await bench.room(LARGE)).startWork())).toBe(true);
  });

  test('B4 a body that is not large: at once', async () => {
    const bench = new Bench();
    await (await bench.room(LARGE)).startWork();
    expect(await hasStartedWork((await bench.room(LARGE_BYTES)).startWork())).toBe(true);
  });

  test.each([
    ['of more than PAUSED_BYTES', PAUSED_BYTES + 1, 1],
    ['of PAUSED_BYTES', PAUSED_BYTES, 0],
  ])('B4 a body %s (%i bytes): pause() waits for %i timers', async (_, bytes, timers) => {
    const bench = new Bench();
    const grant = await bench.room(bytes);
    const startTimer = vi.spyOn(bench.clock, 'startTimer');
    await grant.pause();
    expect(startTimer).toHaveBeenCalledTimes(timers);
  });

  test('B4 release without endWork: ends the turn', async () => {
    const bench = new Bench();
    const first = await bench.room(LARGE);
    const second = await bench.room(LARGE);
    await first.startWork();
    const work = second.startWork();
    first.release();
    await settle();
    bench.clock.advance(PAUSE_BETWEEN_TURNS_MS);
    expect(await hasStartedWork(work)).toBe(true);
  });

  test('B4 a turn that never ends: delays the next one only for MAX_TURN_MS', async () => {
    const bench = new Bench();
    await (await bench.room(LARGE)).startWork();
    const work = (await bench.room(LARGE)).startWork();
    bench.clock.advance(MAX_TURN_MS - 1);
    expect(await hasStartedWork(work)).toBe(false);
    bench.clock.advance(1);
    await settle();
    bench.clock.advance(PAUSE_BETWEEN_TURNS_MS);
    expect(await hasStartedWork(work)).toBe(true);
  });
});
