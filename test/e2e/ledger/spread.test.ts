/** A key that is called from several regions, in workerd: it is spread over shards, and reads as one without shards (L10). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { jsonOf } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { type Key, type Limited, startLimited } from '../limits/limited.ts';

const REGIONS = ['EU', 'NA', 'AS', 'SA', 'OC'] as const;
/** What the upstream reports of each request. */
const TOKENS = 10;
const ADMIN = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };

let limited: Limited;
beforeAll(async () => {
  limited = await startLimited({
    entrypoint: 'ledger/regions-worker.ts',
    vars: { LEDGER: 'object', USERS: 'plain' },
  });
});
afterAll(() => limited[Symbol.asyncDispose]());

async function ask(key: Key, region: string, session: string): Promise<Response> {
  const { token } = key;
  const body = {
    model: 'deepseek/deepseek-flash',
    messages: [{ role: 'user', content: 'Hello there' }],
    max_tokens: 100,
  };
  const headers = { authorization: `Bearer ${token}`, 'x-test-continent': region, 'x-weir-session': session };
  const response = await limited.gateway.post('/v1/chat/completions', body, { headers });
  await response.text();
  return response;
}

/** Sends requests from all regions, some at a time. @returns the ids of those that were admitted */
async function askAll(key: Key, count: number): Promise<string[]> {
  const ids: string[] = [];
  const queue = Array.from({ length: count }, (_, i) => i).values();
  const next = async () => {
    for (const i of queue) {
      const response = await ask(key, REGIONS[i % REGIONS.length] ?? 'EU', `session-${i % 40}`);
      if (response.status === 200) ids.push(response.headers.get('x-weir-request-id') ?? '');
    }
  };
  await Promise.all(Array.from({ length: 10 }, next));
  return ids;
}

const read = async (path: string, key?: Key) =>
  jsonOf(
    await limited.gateway.fetch(
      path,
      key === undefined ? ADMIN : { headers: { authorization: `Bearer ${key.token}` } },
    ),
  );

const object = (name: string, method: string) =>
  limited.gateway.fetch(`/test/object?name=${encodeURIComponent(name)}&method=${method}`);

test('L10 a key that is called from five regions has a shard in each, and reads as one ledger', async () => {
  const key = await limited.create({ budget: { tokens: 1e8 }, rpm: 1e6, max_concurrent: 1000 });
  const first = await askAll(key, 60);
  const ids = [...first, ...(await askAll(key, 140))];
  expect(ids).toHaveLength(200);
  const standing = await limited.settled(key);
  expect(standing.shards).toEqual({ EU: 1, NA: 1, AS: 1, SA: 1, OC: 1 });
  expect(objectOf(standing.budget)).toMatchObject({ spent: 200 * TOKENS, reserved: 0, estimated: 0 });
  expect(await read(`/admin/keys/${key.id}`)).toMatchObject({ shards: { EU: 1 } });
  // Most requests went to shards.
  const calls = Number(await (await object(key.id, 'callCount')).json());
  expect(calls).toBeLessThan(200);
  // Its own report, list and single records.
  const total = objectOf((await read('/v1/usage', key)).total);
  expect([total.requests, total.total_tokens]).toEqual([200, 200 * TOKENS]);
  const listed: string[] = [];
  for (let cursor = ''; ; ) {
    const page = await read(`/v1/usage/records?limit=30${cursor}`, key);
    listed.push(...objectsOf(page.data).map(({ request_id }) => textOf(request_id)));
    if (page.next_cursor == null) break;
    cursor = `&cursor=${textOf(page.next_cursor)}`;
  }
  expect(listed).toEqual(ids.toSorted().reverse());
  for (const id of [ids[0], ids[100], ids[199]]) {
    expect(await read(`/v1/usage/records/${id}`, key)).toMatchObject({ request_id: id, key_id: key.id });
  }
  // Of all keys, once the directories have the sums.
  const shards = (await (await object(key.id, 'shards')).json()) as string[];
  expect(shards).toHaveLength(5);
  for (const name of [key.id, ...shards]) await object(name, 'sendSums');
  const byKey = objectsOf((await read('/v1/usage?group_by=key')).data);
  expect(byKey.filter(({ requests }) => Number(requests) > 0)).toMatchObject([
    { key: key.id, requests: 200, total_tokens: 200 * TOKENS },
  ]);
  expect(await read(`/v1/usage/records/${ids[150]}`)).toMatchObject({ request_id: ids[150] });
  const all = objectsOf((await read('/v1/usage/records?limit=300')).data);
  expect(all.map(({ request_id }) => request_id)).toEqual(listed);
});

test('L10 the last tokens before a limit, and a rate, are exact over all shards', async () => {
  const key = await limited.create({ rpm: 100 });
  const admitted = await askAll(key, 160);
  expect(admitted).toHaveLength(100);
  expect((await limited.standing(key)).shards).toMatchObject({ EU: 1 });
});

test('L10 a shard that loses its memory, and one whose key does, lose no charge', async () => {
  const key = await limited.create({ budget: { tokens: 1e8 }, rpm: 1e6 });
  await askAll(key, 60);
  const names = (await (await object(key.id, 'shards')).json()) as string[];
  const [shard = ''] = names;
  const running = askAll(key, 60);
  await object(shard, 'die');
  await object(key.id, 'die');
  const ids = await running;
  const standing: JsonObject = await limited.settled(key);
  const { spent, estimated } = objectOf(standing.budget);
  expect(Number(spent) - Number(estimated)).toBeGreaterThanOrEqual((60 + ids.length) * TOKENS);
});
