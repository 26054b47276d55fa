/** A deployment with full ledger objects, over HTTP: what its key and its admin see of records that have left. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportRecords } from '../../../tools/export/export-records.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { chat, jsonOf } from '../client.ts';
import { ADMIN_TOKEN, type Gateway, type GatewayOptions, startGateway } from '../gateway.ts';
import { ARCHIVE } from './ledgers.ts';

const REQUESTS = 400;
const AT_A_TIME = 20;
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const USERS = ['ada', 'bob'];
const BUDGET = { tokens: 1e9, per: 'month' };

/** A deployment whose one key has made requests of two users. The first ones have left its object. */
async function withRequests(bindings: GatewayOptions['bindings']) {
  const gateway = await startGateway({
    vars: { AUTH: 'keys', LEDGER: 'object', RECORD_BYTES: '100000' },
    entrypoint: 'ledger/calm-ledger-worker.ts',
    ...(bindings && { bindings }),
  });
  const made = await jsonOf(
    await gateway.post('/admin/keys', { name: 'busy', budget: BUDGET }, { headers: ADMIN }),
  );
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

/** What the budget of the key has counted, and the tokens of all its records. */
async function spentAndUsed(gateway: Gateway, keyId: string) {
  const { budget } = await get(gateway, `/admin/keys/${keyId}`);
  const { total } = await get(gateway, `/v1/usage?key=${keyId}`);
  const { spent, reserved } = objectOf(budget);
  expect(reserved).toBe(0);
  return [spent, objectOf(total).total_tokens];
}

/** Exports the records of the key. Each call of the deployment runs after `before`. @returns the ids in the file */
async function exported(gateway: Gateway, key: string, out: string, before: (call: number) => Promise<void>) {
  const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  let calls = 0;
  const ports = {
    fetch: async (...args: Parameters<typeof fetch>) => {
      await before(calls++);
      return fetch(...args);
    },
    wait: async () => {},
    progress: { show: () => {} },
  };
  const span = { from: day(-1), to: day(1) };
  const options = {
    url: gateway.url,
    token: ADMIN_TOKEN,
    ...span,
    format: 'ndjson',
    key,
    out,
    page: 30,
  } as const;
  await exportRecords(options, ports);
  const lines = (await readFile(out, 'utf8')).trimEnd().split('\n');
  return lines.map((line) => textOf(decodeObject(line)?.request_id));
}

test('L7 L8 an export reads the archive, and goes on where it stopped because the archive failed', async () => {
  const { gateway, ids, keyId } = await withRequests(ARCHIVE);
  await using _ = gateway;
  const folder = await mkdtemp(join(tmpdir(), 'weir-export-'));
  const out = join(folder, 'records.ndjson');
  const failArchive = async (fails: boolean) => {
    await gateway.fetch(`/archive?name=${keyId}&fails=${fails}`);
  };
  // The first call counts the records. By then some of the archive are written.
  const stopped = exported(gateway, keyId, out, async (call) => {
    if (call === 8) await failArchive(true);
  });
  await expect(stopped).rejects.toThrow('503 The archive (WEIR_ARCHIVE)');
  const written = (await readFile(out, 'utf8')).trimEnd().split('\n');
  expect(written).toHaveLength(7 * 30);
  await failArchive(false);
  let calls = 0;
  const all = await exported(gateway, keyId, out, async () => void calls++);
  expect(all.toSorted()).toEqual(ids);
  expect(calls).toBe(1 + Math.ceil((REQUESTS - written.length) / 30));
  await rm(folder, { recursive: true });
});

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
  const [spent, used] = await spentAndUsed(gateway, keyId);
  expect(spent).toBe(used);
});

test('L8 without a bucket: the first records are gone, the sums are not, and the status names the key', async () => {
  const { gateway, headers, ids, keyId } = await withRequests(undefined);
  await using _ = gateway;
  const kept = await listed(gateway, '', headers);
  expect(kept.length).toBeGreaterThan(50);
  expect(kept).toEqual(ids.slice(-kept.length));
  expect((await gateway.fetch(`/v1/usage/records/${ids[0]}`, { headers })).status).toBe(404);
  const [spent, used] = await spentAndUsed(gateway, keyId);
  expect(spent).toBe(used);
  const { ledger } = await get(gateway, '/v1/admin/status');
  expect(ledger).toMatchObject({
    has_archive: false,
    full_keys: [{ key_id: keyId, deleted_records: REQUESTS - kept.length, archive_failing_since: null }],
  });
});
