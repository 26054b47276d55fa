/**
 * All files run in two or four processes, each of which runs its files one after the other and keeps what it has imported. `npm test` runs what
 * a person waits for. Files named `*.slow.test.ts` run with `--mode slow`: long randomised runs, matrices of faults and of clients, real
 * waits, and the dashboard in a browser. Files named `*-random.test.ts` and
 * `*-matrix.test.ts` run in both: a sample in `npm test`.
 */
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const ALL = '{test,tools,bench}/**/*';
/**
 * These measure: executed blocks, which V8 counts only in code that it compiles after the count has begun, and the time of patterns, which
 * it compiles further the more of them run. No other file runs before them in their process.
 */
const MEASURED = ['test/stream/hostile-work.test.ts', 'tools/patterns/patterns.test.ts'];
/** These measure the memory and the turns of a workerd of their own, and want a machine to themselves. */
const HOSTILE = 'test/hostile/**/*.test.ts';
const SLOW = '**/*.slow.test.ts';
/**
 * Only a hang reaches these. A test of `npm test` takes up to 10 s on an idle machine; slow ones run many Workers, wrangler and a browser
 * beside each other, and the start of 33 Workers took two minutes on a slow one (2026-11-28).
 */
const TEST_LIMIT_MS = 300_000;
const SLOW_LIMITS = { testTimeout: 1_200_000, hookTimeout: 1_200_000 };
/** The same for a state that a test polls for. */
const POLL_LIMIT_MS = 60_000;
/** A sample in `npm test`, and all with `--mode slow`: `sampleOf` in test/random-run.ts. */
const SAMPLED = 'test/**/*-{random,matrix}.test.ts';

/** These wait for a minute of real time, or compute for minutes: they start first, beside the work of the others. */
const LONG = [
  'test/e2e/limits/killed.slow.test.ts',
  'test/ledger/limits/tree-random.test.ts',
  'test/ledger/limits/allowance-exhaustive.slow.test.ts',
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((file) => moduleId.endsWith(file));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig(({ mode }) => {
  const include = mode === 'slow' ? [SLOW, SAMPLED] : [`${ALL}.test.ts`];
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
      setupFiles: ['test/fast-check-setup.ts'],
      // Commands and wrangler, which tests start hundreds of times, compile once.
      env: { TEST_MODE: mode, NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node') },
      reporters: [
        'default',
        './test/recordings-reporter.ts',
        './test/repeat-reporter.ts',
        ...(process.env.GITHUB_ACTIONS ? ['github-actions'] : []),
      ],
      // Two cores: one for the tests, one for workerd. Half of the slow suites' time is waits. What measures runs alone.
      maxWorkers: mode === 'slow' ? 4 : mode === 'hostile' ? 1 : 2,
      sequence: { sequencer: LongFirst },
      projects:
        mode === 'hostile'
          ? [project('hostile', [HOSTILE], exclude, SLOW_LIMITS)]
          : [
              project('tests', include, [...exclude, ...MEASURED], {
                isolate: false,
                ...(mode === 'slow' ? SLOW_LIMITS : {}),
              }),
              ...(mode === 'slow' ? [] : [project('measured', MEASURED, exclude)]),
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
      testTimeout: TEST_LIMIT_MS,
      hookTimeout: TEST_LIMIT_MS,
      expect: { poll: { timeout: POLL_LIMIT_MS } },
      ...options,
    },
  };
}
