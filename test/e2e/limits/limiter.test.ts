/** Cloudflare's `ratelimit` binding in front of the gateway. It also limits requests with wrong keys. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestHarness, unstable_readConfig } from 'wrangler';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const LIMIT = 5;

let server: ReturnType<typeof createTestHarness>;
beforeAll(async () => {
  process.env.CLOUDFLARE_CF_FETCH_ENABLED = 'false';
  const { main, compatibility_date, compatibility_flags, ...config } = unstable_readConfig({
    config: join(ROOT, 'wrangler.toml'),
  });
  const { kv_namespaces, durable_objects, migrations } = config;
  server = createTestHarness({
    // Not the repository's root, where a `.dev.vars` may have real keys.
    root: import.meta.dirname,
    workers: [
      {
        config: {
          name: 'limited',
          main: main ?? '',
          ...(compatibility_date && { compatibility_date }),
          compatibility_flags,
          kv_namespaces,
          durable_objects,
          migrations,
          ratelimits: [{ name: 'LIMITER', namespace_id: '1', simple: { limit: LIMIT, period: 60 } }],
          vars: { OPENAI_API_KEY: 'sim-openai' },
        },
      },
    ],
  });
  await server.listen();
});
afterAll(() => server.close());

test('G7 too many requests of a caller in a minute: 429, and another caller is not affected', async () => {
  const ask = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await server.getWorker('limited').fetch('/v1/key', { headers })).status;
  };
  const statuses: number[] = [];
  // The binding counts by minutes of the clock: if one begins during the test, more requests than the limit pass.
  for (let i = 0; i < 2 * LIMIT + 1; i++) statuses.push(await ask('weir_wrong'));
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
  expect(statuses.slice(0, LIMIT)).toEqual(Array(LIMIT).fill(401));
  expect(await ask('weir_other')).toBe(401);
});
