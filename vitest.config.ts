/**
 * One suite on Node: the pure core directly, and the gateway over real HTTP in workerd. `npm test` runs what a
 * person waits for. Files named `*.slow.test.ts` run with `--mode slow`: long randomised runs, matrices of faults and of clients, real
 * waits, and the dashboard in a browser.
 */
import { configDefaults, defineConfig } from 'vitest/config';

const TESTS = '{test,tools,bench}/**/*.test.ts';
const SLOW = '{test,tools,bench}/**/*.slow.test.ts';
/** These measure the memory and the turns of a workerd of their own, and want a machine to themselves. */
const HOSTILE = 'test/hostile/**/*.test.ts';

const FILES: Readonly<Record<string, { readonly include: string; readonly exclude: readonly string[] }>> = {
  slow: { include: SLOW, exclude: [HOSTILE] },
  hostile: { include: HOSTILE, exclude: [] },
};

export default defineConfig(({ mode }) => {
  const { include, exclude } = FILES[mode] ?? { include: TESTS, exclude: [SLOW, HOSTILE] };
  return {
    test: {
      include: [include],
      globalSetup: 'test/e2e/setup.ts',
      exclude: [...configDefaults.exclude, ...exclude],
      // Two cores: one for the tests, one for workerd.
      maxWorkers: 2,
      testTimeout: 30_000,
      hookTimeout: 60_000,
    },
  };
});
