/** A key that is rotated in workerd while clients use it: no request of the overlap is refused (K7). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, jsonOf } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const REQUESTS = 300;
/** Requests at the same time. */
const CLIENTS = 20;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ vars: { AUTH: 'keys' } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

test('K7: 300 requests with the old and the new secret, from before the rotation until after it: none is refused', async () => {
  const admin = async (path: string, body: JsonObject) =>
    jsonOf(await gateway.post(path, body, { headers: ADMIN }));
  const made = await admin('/admin/keys', { name: 'rotated', budget: { tokens: 1_000_000 } });
  const id = textOf(made.id);
  let newest = textOf(made.key);
  const oldest = newest;
  const statuses: number[] = [];
  const client = async (of: number) => {
    while (statuses.length < REQUESTS) {
      // Half of the clients have not been told of the new secret.
      const headers = { authorization: `Bearer ${of % 2 === 0 ? oldest : newest}` };
      const response = await gateway.post('/v1/chat/completions', BODY, { headers });
      await response.text();
      statuses.push(response.status);
    }
  };
  const rotation = async () => {
    while (statuses.length < REQUESTS / 4) await new Promise(setImmediate);
    newest = textOf((await admin(`/v1/admin/keys/${id}/rotate`, { overlap_hours: 24 })).key);
  };
  await Promise.all([rotation(), ...Array.from({ length: CLIENTS }, (_, of) => client(of))]);
  expect(newest).not.toBe(oldest);
  expect(statuses.length).toBeGreaterThanOrEqual(REQUESTS);
  expect(new Set(statuses)).toEqual(new Set([200]));
  const { data } = await jsonOf(await gateway.fetch('/admin/keys', { headers: ADMIN }));
  expect(objectsOf(data)).toMatchObject([{ id, old_key_expires_at: expect.any(String) }]);
});

const BODY = chat('deepseek/deepseek-chat');
