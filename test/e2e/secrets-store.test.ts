/** A provider's key in Secrets Store: read once by the Worker, and by the object that runs a background response (W5). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { jsonOf, streamedChat } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({
    entrypoint: 'secret-worker.ts',
    vars: { AUTH: 'open', RESPONSES: 'durable' },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const reads = () => gateway.logs().filter((line) => line.includes('secret_read')).length;

test('W5 concurrent first requests are served, and the secret is read once', async () => {
  const ask = () => gateway.post('/v1/chat/completions', streamedChat('openai/gpt-4o-mini'));
  const responses = await Promise.all([ask(), ask(), ask()]);
  for (const response of responses) expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/);
  await (await ask()).text();
  expect(reads()).toBe(1);
});

test('W5 a background response runs with it', async () => {
  const request = { model: 'openai/gpt-4o-mini', input: 'Hello', background: true };
  let response: JsonObject = await jsonOf(await gateway.post('/v1/responses', request));
  const path = `/v1/responses/${textOf(response.id)}`;
  while (response.status === 'queued' || response.status === 'in_progress')
    response = await jsonOf(await gateway.fetch(path));
  expect(response).toMatchObject({ status: 'completed', error: null });
});
