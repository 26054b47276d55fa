/** The export of one user (Y9) in workerd: from every store, on both ledgers, and of nobody else. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { chat, jsonOf } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const MODEL = 'openai/gpt-4o-mini';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ vars: { AUTH: 'keys', RESPONSES: 'durable' } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface Made {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function makeKey(fields: JsonObject): Promise<Made> {
  const made = await jsonOf(await gateway.post('/admin/keys', { name: 'k', ...fields }, { headers: ADMIN }));
  return { id: textOf(made.id), headers: { authorization: `Bearer ${textOf(made.key)}` } };
}

async function exported(name: string): Promise<readonly JsonObject[]> {
  const path = `/v1/admin/users/${encodeURIComponent(name)}/export`;
  const response = await gateway.fetch(path, { headers: ADMIN });
  expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
  const lines = (await response.text()).split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => decodeObject(line) ?? {});
}

/** Asks as two users, with a key that counts its users and with one that fixes the first of them. */
async function fill(ada: string, ben: string) {
  const shared = await makeKey({ per_user: { budget: { USD: 100 } } });
  const own = await makeKey({ user: ada });
  const records: Promise<Response>[] = [];
  for (const user of [ada, ben]) {
    const headers = { ...shared.headers, 'x-weir-user': user, 'x-weir-session': `session of ${user}` };
    records.push(gateway.post('/v1/chat/completions', chat(MODEL), { headers }));
    records.push(gateway.post('/v1/responses', { model: MODEL, input: `I am ${user}` }, { headers }));
  }
  records.push(gateway.post('/v1/responses', { model: MODEL, input: 'fixed' }, { headers: own.headers }));
  const responses = await Promise.all(records);
  for (const response of responses) expect([response.status, await response.text()][0]).toBe(200);
  await makeKey({ scope: 'usage', filter: { user: ada } });
  return { shared, own };
}

describe.each(['kv', 'object'])('Y9 the export of a user with LEDGER=%s', (ledger) => {
  test.each([
    ['plain', {}],
    ['hash', { USERS: 'hash', USER_HASH_KEY: 'a secret of users' }],
  ])(
    'USERS=%s: records, sums, limits, responses, keys, tokens and audit, and nothing of others',
    async (users, vars) => {
      await gateway.set({ AUTH: 'keys', RESPONSES: 'durable', LEDGER: ledger, ...vars });
      const [ada, ben] = [`ada ${ledger} ${users}/1`, `ben ${ledger} ${users}`];
      const { shared, own } = await fill(ada, ben);
      const of = (lines: readonly JsonObject[], type: string) => lines.filter((line) => line.type === type);
      await expect.poll(async () => of(await exported(ada), 'record').length).toBe(3);
      const lines = await exported(ada);
      expect(lines[0]).toMatchObject({ type: 'user', name: ada });
      expect(lines.at(-1)).toEqual({ type: 'end', lines: lines.length - 2 });
      const ids = of(lines, 'record').map(({ key_id }) => key_id);
      expect(ids.toSorted()).toEqual([own.id, shared.id, shared.id].toSorted());
      for (const record of of(lines, 'record'))
        expect(Object.keys(record)).toEqual(expect.not.arrayContaining(['prefix', 'user']));
      const sums = of(lines, 'sum').map(({ key_id, requests }) => [key_id, requests]);
      expect(sums).toEqual(
        ledger === 'kv'
          ? []
          : expect.arrayContaining([
              [own.id, 1],
              [shared.id, 2],
            ]),
      );
      await expect
        .poll(async () => of(await exported(ada), 'spent'))
        .toEqual([expect.objectContaining({ key_id: shared.id, currency: 'USD', cost: expect.any(Number) })]);
      const responses = of(lines, 'response');
      const texts = responses.map(({ input }) => JSON.stringify(input));
      expect(texts.filter((text) => text.includes(`I am ${ada}`) || text.includes('fixed'))).toHaveLength(2);
      expect(responses.map(({ response }) => objectOf(response).status)).toEqual(['completed', 'completed']);
      expect(of(lines, 'key')).toMatchObject([{ key_id: own.id, name: 'k' }]);
      expect(of(lines, 'token')).toHaveLength(1);
      expect(of(lines, 'audit').map(({ action }) => action)).toEqual(['key_created', 'key_created']);
      expect(JSON.stringify(lines)).not.toContain(ben);
      expect(of(await exported(ben), 'record')).toHaveLength(2);
    },
  );
});

test('Y9 the export is the admin’s, and a name that nobody has is an export of nothing', async () => {
  const { headers } = await makeKey({});
  expect((await gateway.fetch('/v1/admin/users/ada/export', { headers })).status).toBe(401);
  expect((await exported('nobody')).map(({ type }) => type)).toEqual(['user', 'end']);
  const tooLong = await gateway.fetch(`/v1/admin/users/${'x'.repeat(1001)}/export`, { headers: ADMIN });
  expect(tooLong.status).toBe(400);
});
