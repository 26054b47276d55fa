/** A gateway that is killed during a request: the object's alarm charges the reservation when it expires. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { objectOf } from '../../../tools/simulator/json.ts';
import { event, replayOf } from '../scenarios.ts';
import { type Limited, startLimited } from './limited.ts';

const DEADLINE_SECONDS = '5';
const VARS = { AUTH: 'keys', DEADLINE_SECONDS, HEARTBEAT_SECONDS: '0', IDLE_TIMEOUT_SECONDS: '0' };

let limited: Limited;
beforeAll(async () => {
  const replay = replayOf({ endless: { chunks: [event('word ')], ending: 'hang' } });
  limited = await startLimited({ vars: VARS, replay });
});
afterAll(() => limited[Symbol.asyncDispose]());

test('G3 the reservation of a killed request holds until it expires, and is then charged as estimated', async () => {
  const key = await limited.create({ budget: { tokens: 1e6 }, max_concurrent: 1 });
  const client = new AbortController();
  const response = await limited.ask(
    key,
    { model: 'deepseek/endless', stream: true },
    { signal: client.signal },
  );
  expect((await response.body?.getReader().read())?.done).toBe(false);
  const left = Number.parseInt(response.headers.get('x-weir-budget-remaining') ?? '', 10);
  // Another workerd replaces it: the pending work of this one is lost.
  await limited.gateway.set(VARS);
  client.abort();
  const killed = await limited.standing(key);
  expect(killed).toMatchObject({ budget: { spent: 0, reserved: 1e6 - left }, concurrent: { running: 1 } });
  expect((await limited.ask(key)).status).toBe(429);

  await limited.gateway.logged((lines) => lines.some((line) => line.event === 'reservation_expired'));
  const { budget, concurrent } = await limited.standing(key);
  expect(objectOf(budget)).toMatchObject({ spent: 1e6 - left, reserved: 0, estimated: 1e6 - left });
  expect(concurrent).toEqual({ limit: 1, running: 0 });
  expect((await limited.ask(key)).status).toBe(200);
});
