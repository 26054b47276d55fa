/** Vitest's setup of each file: properties of fast-check draw from the same seed as the random tests, so `SEED=7` repeats both. */
import { configureGlobal } from 'fast-check';
import { SEED } from './random-run.ts';

configureGlobal({ seed: SEED });
