/** Breaks of the prompt cache with LEDGER=object, in workerd: the header that a caller asks for, records, and what is stored. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

let gateway: Gateway;
let token: string;

beforeAll(async () => {
  gateway = await startGateway({ vars: { AUTH: 'keys', LEDGER: 'object' } });
  const made = await gateway.post('/admin/keys', { name: 'agent' }, { headers: ADMIN });
  token = textOf(decodeObject(await made.text())?.key);
});
afterAll(() => gateway[Symbol.asyncDispose]());

function step(steps: number, tools: readonly string[], edit = ''): JsonObject {
  return {
    model: 'deepseek/deepseek-flash',
    tools: tools.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
    messages: [
      { role: 'system', content: 'You keep the locks of a canal.' },
      { role: 'user', content: 'Correct river.txt' },
      ...Array.from({ length: steps }, (_, i) => [
        { role: 'assistant', content: i === 0 ? `step 0${edit}` : `step ${i}` },
        { role: 'user', content: 'Go on' },
      ]).flat(),
    ],
  };
}

async function send(body: JsonObject, more: Readonly<Record<string, string>> = {}): Promise<string | null> {
  const before = (await records()).length;
  const headers = { authorization: `Bearer ${token}`, 'x-weir-session': 's', ...more };
  const response = await gateway.post('/v1/chat/completions', body, { headers });
  expect(response.status).toBe(200);
  await response.text();
  // A request is compared with those whose records are stored.
  await expect.poll(async () => (await records()).length).toBe(before + 1);
  return response.headers.get('x-weir-cache');
}

async function records(): Promise<readonly JsonObject[]> {
  const response = await gateway.fetch('/v1/usage/records', {
    headers: { authorization: `Bearer ${token}` },
  });
  return objectsOf(decodeObject(await response.text())?.data).reverse();
}

test('M10 the response says what changed since the last request of the session, if its caller asks', async () => {
  const asks = { 'x-weir-cache-report': '1' };
  const sent = [
    await send(step(0, ['read']), asks),
    await send(step(1, ['read']), asks),
    await send(step(2, ['read', 'write']), asks),
    await send(step(3, ['read', 'write'], ' edited'), asks),
    await send(step(4, ['read', 'write'], ' edited')),
    await send(step(4, ['read', 'write']), { ...asks, 'x-weir-session': '' }),
  ];
  expect(sent).toEqual(['first', 'none', 'tools', 'history;at=1', null, null]);
  const causes = (await records())
    .filter(({ session }) => session === 's')
    .map(({ cache }) => objectOf(cache).cause);
  // The simulator reads nothing from a cache, and its prompts are too short for one.
  expect(causes).toEqual(['first', 'none', 'tools', 'history', 'none']);
});
