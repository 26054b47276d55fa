/**
 * The fast path against the normal one over frames mutated at random, as many as `MUTATED_FRAMES`:
 * MUTATED_FRAMES=5000000 npx vitest run --mode slow test/stream/fast-path/mutations
 */
import { expect, test } from 'vitest';
import { compareWays } from '../both-ways.ts';
import { mutatedStream } from '../mutated-streams.ts';

const FRAMES = Number(process.env.MUTATED_FRAMES ?? 60_000);
/** The first stream's seed: a failure reports its own. */
const FIRST_SEED = Number(process.env.MUTATED_FROM ?? 1);
/** Some frames are not mutated. */
const LEAST_SHARE_OF_HITS = 0.2;
/** Only a hang reaches it: an idle machine takes a tenth of a millisecond. */
const LIMIT_MS_A_FRAME = 20;

test(
  `TemplateFastPath, ${FRAMES} frames mutated at random: same output as the slow path`,
  () => {
    let read = 0;
    let hits = 0;
    for (let seed = FIRST_SEED; read < FRAMES; seed++) {
      const { reads, conversion } = mutatedStream(seed);
      try {
        const { events, copiedEvents } = compareWays(reads, conversion);
        read += events;
        hits += copiedEvents;
      } catch (error) {
        throw new Error(`It fails from MUTATED_FROM=${seed}`, { cause: error });
      }
    }
    expect(hits).toBeGreaterThan(read * LEAST_SHARE_OF_HITS);
  },
  FRAMES * LIMIT_MS_A_FRAME,
);
