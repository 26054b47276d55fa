/**
 * Gemini's clients whose provider changes at each step, and that keep a step in other forms than it came: no provider
 * refuses anything (I7, I9).
 */
import { afterAll, describe, expect, test } from 'vitest';
import { SEED } from '../random-run.ts';
import { CALLS, STEPS } from './agent-loops.ts';
import { countCalls } from './count-calls.ts';
import { startGateway } from './gateway.ts';
import { KEEPERS, runByHand } from './gemini-loops.ts';
import { MODELS, SIGNING } from './loop-models.ts';

const gateway = await startGateway();
afterAll(() => gateway[Symbol.asyncDispose]());

/** Without one: Google's signatures are the same at both of its endpoints, those of the simulator are not. */
const ALL = [...SIGNING, ...MODELS].filter((model) => !model.startsWith('gemini-compatible/'));

/** A number of a seed and a place: the same each time. */
function drawn(place: number): number {
  let state = (SEED * 2_654_435_761 + place * 40_503) >>> 0;
  for (let round = 0; round < 3; round++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  return state >>> 0;
}

describe.each(Object.entries(KEEPERS))('%s', (form, keep) => {
  test.each(ALL.slice(0, SIGNING.length - 1))(
    'begun at %s, then at another model in each step',
    async (first) => {
      const at = ALL.indexOf(first) * 8 + Object.keys(KEEPERS).indexOf(form) * 101;
      const models: string[] = [];
      const next = (step: number) => {
        const model = step === 0 ? first : (ALL[drawn(at + step) % ALL.length] ?? first);
        models.push(model);
        return model;
      };
      const before = gateway.simulator.requests.length;
      const { text, calls } = await runByHand(gateway.url, next, drawn(at) % 2 === 0, keep).catch(
        (error: unknown) => {
          throw new Error(`SEED=${SEED}: ${models.join(', ')}`, { cause: error });
        },
      );
      expect(text).not.toBe('');
      expect(calls).toBe(CALLS);
      const requests = gateway.simulator.requests.slice(before);
      expect(requests).toHaveLength(STEPS + 1);
      expect(countCalls(requests.at(-1)?.body ?? {})).toEqual({ calls: CALLS, results: CALLS });
    },
  );
});
