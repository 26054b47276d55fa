/**
 * Two projects on Node. `process` runs files one after the other in the same process: the pure core, the gateway in memory, the tools.
 * `workerd` runs each file in a process of its own, and most of them start the gateway in workerd. `npm test` runs what a person waits
 * for. Files named `*.slow.test.ts` run with `--mode slow`: long randomised runs, matrices of faults and of clients, real waits, and
 * the dashboard in a browser.
 */
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';

/** Files that start processes. */
const WORKERD = '{test/{e2e,dashboard,package,hostile}/**/*,test/*,tools/**/*,bench/*}';
/** Files whose modules keep nothing that another file would notice. */
const PURE = 'test/!(e2e|dashboard|package|hostile)/**/*';
/** Counts executed blocks, which V8 does only for code that it compiles after the count has begun: no other file runs before it. */
const COUNTED = 'test/stream/hostile-work.test.ts';
/** These measure the memory and the turns of a workerd of their own, and want a machine to themselves. */
const HOSTILE = 'test/hostile/**/*.test.ts';
const SLOW = '**/*.slow.test.ts';

export default defineConfig(({ mode }) => {
  const ending = mode === 'slow' ? 'slow.test.ts' : 'test.ts';
  const exclude = [
    ...configDefaults.exclude,
    ...(mode === 'slow' ? [] : [SLOW]),
    ...(mode === 'hostile' ? [] : [HOSTILE]),
  ];
  return {
    // Durable Object classes extend a class of the runtime.
    resolve: { alias: { 'cloudflare:workers': join(import.meta.dirname, 'test/cloudflare-workers.ts') } },
    test: {
      globalSetup: 'test/e2e/setup.ts',
      reporters: [
        'default',
        './test/recordings-reporter.ts',
        ...(process.env.GITHUB_ACTIONS ? ['github-actions'] : []),
      ],
      // Two cores: one for the tests, one for workerd.
      maxWorkers: 2,
      projects:
        mode === 'hostile'
          ? [project('hostile', [HOSTILE], exclude)]
          : [
              project('workerd', [`${WORKERD}.${ending}`, ...(mode === 'slow' ? [] : [COUNTED])], exclude),
              project('process', [`${PURE}.${ending}`], [...exclude, COUNTED], { isolate: false }),
            ],
    },
  };
});

function project(name: string, include: readonly string[], exclude: readonly string[], options = {}) {
  return {
    extends: true as const,
    test: {
      name,
      include: [...include],
      exclude: [...exclude],
      testTimeout: 30_000,
      hookTimeout: 60_000,
      ...options,
    },
  };
}
