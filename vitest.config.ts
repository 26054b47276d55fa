/** One suite on Node: the pure core directly, and the gateway over real HTTP in the workerd that wrangler starts. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Two cores: one for the tests, one for workerd.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
