/** A short run of the fuzz, the same in every run of the tests: `npm run fuzz -- --seconds 600` searches further. */
import { expect, test } from 'vitest';
import { runFuzz } from './run.ts';

const SEED = 20261121;
const SECONDS = 30;
const LIMIT_MS = 90_000;

test(
  `B5 M1 ${SECONDS} s of random requests and answers: the contract holds, one record each, and other streams go on`,
  async () => {
    const { requests, asked, faults, pacedStreams } = await runFuzz({
      seed: SEED,
      seconds: SECONDS,
      only: null,
    });
    expect(faults).toEqual([]);
    expect(Math.min(requests, asked, pacedStreams)).toBeGreaterThan(0);
  },
  LIMIT_MS,
);
