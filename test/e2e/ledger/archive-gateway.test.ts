/** A deployment with full ledger objects, over HTTP: what its key and its admin see of records that have left. */
import { expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { chat, jsonOf } from '../client.ts';
import { ADMIN_TOKEN, type Gateway, type GatewayOptions, startGateway } from '../gateway.ts';
import { ARCHIVE } from './ledgers.ts';

const REQUESTS = 400;
const AT_A_TIME = 20;
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const USERS = ['ada', 'bob'];

/** A deployment whose one key has made requests of two users. The first ones have left its object. */
async function withRequests(bindings: GatewayOptions['bindings']) {
  const gateway = await startGateway({
    vars: { AUTH: 'keys', LEDGER: 'object', RECORD_BYTES: '100000' },
    entrypoint: 'ledger/calm-ledger-worker.ts',
    ...(bindings && { bindings }),
  });
  const made = await jsonOf(await gateway.post('/admin/keys', { name: 'busy' }, { headers: ADMIN }));
  const headers = { authorization: `Bearer ${textOf(made.key)}` };
  const ids: string[] = [];
  const ask = async (_: unknown, n: number) => {
    const response = await gateway.post(
      '/v1/chat/completions',
      chat('mistral/mistral-small-latest', { user: USERS[n % USERS.length] }),
      { headers },
    );
    await response.text();
    ids.push(response.headers.get('x-weir-request-id') ?? '');
  };
  for (let asked = 0; asked < REQUESTS; asked += AT_A_TIME) {
    await Promise.all(Array.from({ length: AT_A_TIME }, ask));
    await gateway.logged((lines) => lines.filter(({ event }) => event === 'request').length >= ids.length);
  }
  const fire = () => gateway.fetch(`/fire?name=${textOf(made.id)}`);
  await expect
    .poll(async () => {
      await fire();
      return totalOf(await get(gateway, '/v1/usage', headers));
    })
    .toBe(REQUESTS);
  return { gateway, headers, ids: ids.sort(), keyId: textOf(made.id) };
}

const totalOf = (report: JsonObject) => objectOf(report.total).requests;

async function get(gateway: Gateway, path: string, headers: Record<string, string> = ADMIN) {
  const response = await gateway.fetch(path, { headers });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return decodeObject(text) ?? {};
}

/** The ids of all pages of a list. */
async function listed(gateway: Gateway, query: string, headers: Record<string, string>) {
  const ids: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await get(
      gateway,
      `/v1/usage/records?limit=90&${query}${cursor && `&cursor=${cursor}`}`,
      headers,
    );
    ids.push(...objectsOf(page.data).map(({ request_id }) => textOf(request_id)));
    cursor = page.next_cursor === null ? null : textOf(page.next_cursor);
  }
  return ids.sort();
}

async function exportedOf(gateway: Gateway, user: string) {
  const response = await gateway.fetch(`/v1/admin/users/${user}/export`, { headers: ADMIN });
  const lines = (await response.text())
    .trimEnd()
    .split('\n')
    .map((line) => decodeObject(line) ?? {});
  expect(lines.at(-1)?.type).toBe('end');
  return lines.flatMap(({ type, request_id }) => (type === 'record' ? [textOf(request_id)] : [])).sort();
}

test('L8 Y9 with a bucket: the key and the admin find each record, by id, in lists and in the export of a user, once', async () => {
  const { gateway, headers, ids, keyId } = await withRequests(ARCHIVE);
  await using _ = gateway;
  expect(gateway.logs().some((line) => line.includes('"records_archived"'))).toBe(true);
  expect(await listed(gateway, '', headers)).toEqual(ids);
  expect(await listed(gateway, `key=${keyId}`, ADMIN)).toEqual(ids);
  for (const id of [ids[0], ids[REQUESTS / 2], ids.at(-1)]) {
    expect(await get(gateway, `/v1/usage/records/${id}`, headers)).toMatchObject({ request_id: id });
    expect(await get(gateway, `/v1/usage/records/${id}`)).toMatchObject({ request_id: id, key_id: keyId });
  }
  const exported = await exportedOf(gateway, 'ada');
  expect(exported).toHaveLength(REQUESTS / 2);
  expect(exported).toEqual(await listed(gateway, 'user=ada', headers));
  const { ledger } = await get(gateway, '/v1/admin/status');
  expect(ledger).toMatchObject({ store: 'object', has_archive: true, full_keys: [] });
});

test('L8 without a bucket: the first records are gone, the sums are not, and the status names the key', async () => {
  const { gateway, headers, ids, keyId } = await withRequests(undefined);
  await using _ = gateway;
  const kept = await listed(gateway, '', headers);
  expect(kept.length).toBeGreaterThan(50);
  expect(kept).toEqual(ids.slice(-kept.length));
  expect((await gateway.fetch(`/v1/usage/records/${ids[0]}`, { headers })).status).toBe(404);
  const { ledger } = await get(gateway, '/v1/admin/status');
  expect(ledger).toMatchObject({
    has_archive: false,
    full_keys: [{ key_id: keyId, deleted_records: REQUESTS - kept.length, archive_failing_since: null }],
  });
});
