/** The memory of workerd while requests that limits refuse name a large conversation. */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeObject, textOf } from '../../../tools/simulator/json.ts';
import { type Limited, startLimited } from '../limits/limited.ts';
import { residentBytes, workerdIds } from '../processes.ts';

const MIB = 1024 * 1024;
const REQUESTS = 20;
const ANSWER = 'mistral/mistral-small-latest';

let limited: Limited;
let processes: readonly number[];
beforeAll(async () => {
  const others = workerdIds();
  limited = await startLimited({ vars: { RESPONSES: 'durable' } });
  processes = workerdIds().filter((id) => !others.includes(id));
});
afterAll(() => limited[Symbol.asyncDispose]());

/** The most that workerd takes in addition while `run` runs, in MiB. */
async function measure(run: () => Promise<void>): Promise<number> {
  const before = residentBytes([...processes]);
  let peak = before;
  let isOver = false;
  const sampling = (async () => {
    while (!isOver) {
      peak = Math.max(peak, residentBytes([...processes]));
      await setTimeout(20);
    }
  })();
  await run();
  isOver = true;
  await sampling;
  return Math.round((peak - before) / MIB);
}

test('B3 G2 refused requests that continue 9 MB take no memory', async () => {
  const key = await limited.create({ rpm: 1000 });
  const post = async (token: string, body: object) => {
    const response = await limited.gateway.fetch('/v1/responses', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: ANSWER, max_output_tokens: 10, ...body }),
    });
    return { status: response.status, body: decodeObject(await response.text()) ?? {} };
  };
  const made = await post(key.token, { input: 'word '.repeat(1_880_000) });
  expect([made.status, made.body.store]).toEqual([200, true]);
  const next = { previous_response_id: textOf(made.body.id), input: 'And?', store: false };
  const burst = async () => {
    const sent = await Promise.all(Array.from({ length: REQUESTS }, () => post(key.token, next)));
    expect(sent.filter(({ status }) => status !== 429)).toEqual([]);
  };
  await limited.patch(key, { rpm: 1 });
  const refused = await measure(burst);
  // Read before they were refused, they took 630 MiB (2026-11-23).
  expect(refused).toBeLessThan(150);
});
