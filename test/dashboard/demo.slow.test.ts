/** Tests the sample records of the demo's dashboard (D8). */
import { expect, test } from 'vitest';
import { fillDemo } from '../../tools/simulator/demo-fill.ts';
import { DEMO_SESSION } from '../../tools/simulator/demo-records.ts';
import { objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from '../e2e/client.ts';
import { ADMIN_TOKEN, startGateway } from '../e2e/gateway.ts';
import { ADMIN } from './filled.ts';

const DAY_MS = 86_400_000;

test('D8 the demo has a few hundred records of the last days with every status, users, tags, a session, a used budget and refused requests, under keys whose names say that they are made up', async () => {
  await using gateway = await startGateway({
    entrypoint: '../../tools/simulator/filled-worker.ts',
    vars: { AUTH: 'keys', LEDGER: 'object' },
  });
  const key = await fillDemo(gateway.url, ADMIN_TOKEN);
  const from = new Date(Date.now() - 15 * DAY_MS).toISOString().slice(0, 10);
  const of = async (query: string, headers: Record<string, string> = ADMIN, since = from) =>
    jsonOf(await gateway.fetch(`/v1/usage?from=${since}&${query}`, { headers }));
  const total = objectOf((await of('group_by=status')).total);
  expect(total.requests).toBeGreaterThanOrEqual(300);
  for (const count of ['failed_requests', 'cut_requests', 'cancelled_requests', 'unpriced_requests'])
    expect(total[count]).toBeGreaterThan(0);
  expect(objectOf(total.cost).USD).toBeGreaterThan(0);
  expect(objectsOf((await of('group_by=day')).data).length).toBeGreaterThan(8);
  const rowsBy = async (group: string) => objectsOf((await of(`group_by=${group}`)).data);
  expect((await rowsBy('user')).length).toBeGreaterThan(8);
  expect((await rowsBy('tag:team')).map((row) => row['tag:team'])).toEqual(
    expect.arrayContaining(['search', 'shop', 'support']),
  );
  const session = (await rowsBy('session')).find((row) => row.session === DEMO_SESSION);
  expect(session).toMatchObject({ requests: 20 });
  // Two breaks of its prompt cache cost a part of it.
  expect(Number(session?.cached_share)).toBeGreaterThan(0.7);
  const { data } = await jsonOf(await gateway.fetch('/admin/keys', { headers: ADMIN }));
  const names = new Map(objectsOf(data).map(({ id, name }) => [id, String(name)]));
  for (const row of objectsOf((await of('group_by=key')).data))
    expect(names.get(row.key)).toContain('made-up records');
  const web = objectsOf(data).find(({ name }) => String(name).startsWith('web app'));
  const { budget } = await jsonOf(await gateway.fetch(`/admin/keys/${textOf(web?.id)}`, { headers: ADMIN }));
  // Early in a month its budget is hardly used.
  const month = `${new Date().toISOString().slice(0, 8)}01`;
  const used = await of(`key=${textOf(web?.id)}&group_by=key`, ADMIN, month);
  expect(Number(objectOf(budget).spent)).toBeCloseTo(Number(objectOf(objectOf(used.total).cost).USD ?? 0), 6);
  // Refusals are written after a second or more.
  const refused = async () =>
    objectOf((await jsonOf(await gateway.fetch(`/v1/usage/refusals?from=${from}`, { headers: ADMIN }))).total)
      .refused_requests;
  await expect.poll(refused).toBe(3);
  const own = objectOf((await of('group_by=day', { authorization: `Bearer ${key}` })).total);
  expect(own.requests).toBe(0);
});
