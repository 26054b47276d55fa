/** When a stream's reservation is extended, by what is seen and by the time in which a model may think unseen. */
import { expect, test } from 'vitest';
import type { OutputSlices } from '../../src/completion/admission.ts';
import { OutputPacer } from '../../src/completion/output-pacer.ts';
import { FakeClock } from '../stream/fake-clock.ts';

const SLICE = 2000;

/** A pacer of a stream whose budget has room for this many slices. */
function paced(hiddenTokensPerSecond: number | null, room: number) {
  const clock = new FakeClock();
  const state = { seen: 0, ends: 0, extensions: 0 };
  const slices: OutputSlices & { reserved: number } = {
    ...{ sliceTokens: SLICE, reserved: SLICE, isWhole: false, hiddenTokensPerSecond, hiddenTokens: 0 },
    extend: async () => {
      state.extensions++;
      if (slices.reserved >= room * SLICE) return false;
      slices.reserved += SLICE;
      return true;
    },
  };
  const output = { seenTokens: () => state.seen, onUsedUp: () => state.ends++ };
  return { clock, state, slices, pacer: new OutputPacer(slices, output, clock) };
}

/** Lets answers of extensions arrive. */
const answered = () => new Promise(setImmediate);

test('G9 a model that thinks unseen: time at its speed uses up slices, and ends the stream within the last one', async () => {
  const { clock, state, slices } = paced(100, 3);
  for (let second = 0; second < 70; second++) {
    clock.advance(1000);
    await answered();
    if (second === 35) expect([slices.reserved, state.ends]).toEqual([3 * SLICE, 0]);
  }
  // 6,000 tokens at 100 a second.
  expect(state.ends).toBe(1);
  expect(slices.hiddenTokens).toBeGreaterThanOrEqual(6000);
  expect(slices.hiddenTokens).toBeLessThan(6500);
});

test('G9 visible output counts by itself: time between its pieces adds nothing', async () => {
  const { clock, state, slices, pacer } = paced(100, 9);
  for (let piece = 0; piece < 90; piece++) {
    clock.advance(500);
    state.seen += 10;
    pacer.check();
    await answered();
  }
  expect([state.extensions, slices.hiddenTokens]).toEqual([0, 0]);
  clock.advance(60_000);
  await answered();
  pacer.stop();
  expect(slices.hiddenTokens).toBeGreaterThanOrEqual(6000);
});

test('G9 a model that shows all: no time ends its stream, and a stream that has ended asks for nothing', async () => {
  const { clock, state, pacer } = paced(null, 1);
  clock.advance(600_000);
  expect([state.extensions, state.ends]).toEqual([0, 0]);
  state.seen = 1000;
  pacer.check();
  await answered();
  state.seen = 2000;
  pacer.check();
  expect([state.extensions, state.ends]).toEqual([1, 1]);
  pacer.stop();
  pacer.check();
  expect(state.ends).toBe(1);
});
