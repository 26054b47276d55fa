/** Cloudflare's `ratelimit` binding in front of the gateway. It also limits requests with wrong keys. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Runtime, startWorkers } from '../workers.ts';

const LIMIT = 5;

let runtime: Runtime;
beforeAll(async () => {
  const limiter = { type: 'rate-limit', namespace: '1', simple: { limit: LIMIT, period: 60 } } as const;
  const vars = { OPENAI_API_KEY: 'sim-openai' };
  runtime = await startWorkers({ workers: [{ vars, bindings: { LIMITER: limiter } }] });
});
afterAll(() => runtime[Symbol.asyncDispose]());

test('G7 too many requests of a caller in a minute: 429, and another caller is not affected', async () => {
  const ask = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${runtime.url}/v1/key`, { headers })).status;
  };
  const statuses: number[] = [];
  // The binding counts by minutes of the clock: if one begins during the test, more requests than the limit pass.
  for (let i = 0; i < 2 * LIMIT + 1; i++) statuses.push(await ask('weir_wrong'));
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
  expect(statuses.slice(0, LIMIT)).toEqual(Array(LIMIT).fill(401));
  expect(await ask('weir_other')).toBe(401);
});
