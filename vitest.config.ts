/** One suite on Node: the pure core directly, and the gateway over real HTTP in the workerd that wrangler starts. */
import { configDefaults, defineConfig } from 'vitest/config';

/** `npm run hostile` measures the memory and the turns of a workerd of its own: it wants a machine to itself. */
const isHostileRun = process.env.HOSTILE !== undefined;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(isHostileRun ? [] : ['test/hostile/**'])],
    // Two cores: one for the tests, one for workerd; what is measured has them to itself.
    maxWorkers: isHostileRun ? 1 : 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
