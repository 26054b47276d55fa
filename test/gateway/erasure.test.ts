/** The erasure of a user with LEDGER=kv: records stay without the user, so that no report of a key falls (Y10). */
import { expect, test } from 'vitest';
import type { GatewayPorts } from '../../src/gateway.ts';
import { forgetUser, KvLedger, listRecords } from '../../src/metering/kv-ledger.ts';
import { decodeObject, objectOf } from '../../tools/simulator/json.ts';
import { MemoryStore, record } from '../metering/records.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import './upstreams.ts';

const KEY = '0123456789abcdef';
const DAY = '2026-11-20';
const RANGE = `from=${DAY}&to=2026-11-21&key=${KEY}`;
/** Only in what says who sent a request, or what was in it. */
const MARK = 'Qx7';
const SECRET = {
  ...{ user: `${MARK}-ada`, session: `${MARK}-session`, app: `${MARK}-app`, tags: { team: `${MARK}-team` } },
  ...{ prefix: `${MARK}-hashes`, cache_saves: 5 },
  attempts: [
    {
      ...{ provider: 'mistral', model: 'm', status: 400, error_code: 'invalid_request', ms: 5 },
      ...{ message: `Refused: ${MARK}`, message_shown: true as const, cause: `refused: ${MARK}` },
    },
  ],
};

async function erased(pageSize: number, records: number) {
  const store = new MemoryStore(pageSize);
  const clock = new FakeClock();
  const ledger = new KvLedger(store as unknown as GatewayPorts['store']);
  const own = Array.from({ length: records }, (_, n) =>
    record({ ...SECRET, cost_nanos: 1000, currency: 'USD', cost_source: 'table' }, n),
  );
  const others = [record({ user: 'ben', cost_nanos: 7, currency: 'USD', cost_source: 'table' }, records)];
  await ledger.put([...own, ...others]);
  const gateway = new LimitedGateway(
    { WEIR_LEDGER: undefined, DEADLINE_SECONDS: '1' },
    { store: store as unknown as GatewayPorts['store'], clock },
  );
  const admin = async (path: string, init: RequestInit = {}) =>
    decodeObject(await (await gateway.fetch(path, 'admin', init)).text()) ?? {};
  const before = await admin(`/v1/usage?${RANGE}`);
  let shown = await admin(`/v1/admin/users/${SECRET.user}`, { method: 'DELETE' });
  for (let step = 0; shown.status !== 'erased' && step < 20; step++) {
    await clock.advance(3 * 60_000);
    shown = await admin(`/v1/admin/users/${SECRET.user}`, { method: 'DELETE' });
  }
  return { store, admin, before, shown, own };
}

test.each([
  [1000, 3],
  [40, 250],
])(
  'Y10 LEDGER=kv, %i records in a listing: of %i records of a user tokens and cost stay, and nothing else that names or quotes',
  async (pageSize, records) => {
    const { store, admin, before, shown, own } = await erased(pageSize, records);
    expect(shown).toMatchObject({ status: 'erased', problem: null, erased: { records } });
    expect(objectOf(before.total)).toMatchObject({ requests: records + 1 });
    expect((await admin(`/v1/usage?${RANGE}`)).total).toEqual(before.total);
    const entries = [...store.entries].filter(([name]) => name.startsWith('usage/'));
    expect(entries).toHaveLength(records + 1);
    expect(JSON.stringify(entries)).not.toContain(MARK);
    const list = await admin(`/v1/usage/records?${RANGE}&user=${SECRET.user}`);
    expect(list.data).toEqual([]);
    const one = await admin(`/v1/usage/records/${own[0]?.request_id}`);
    expect(one).toMatchObject({ user: null, session: null, app: null, tags: {}, total_tokens: 15 });
    expect(one.attempts).toMatchObject([{ provider: 'mistral', status: 400, error_code: 'invalid_request' }]);
  },
);

test('Y10 LEDGER=kv: a record whose value KV does not return yet stays as its summary', async () => {
  const store = new MemoryStore();
  const kv = store as unknown as GatewayPorts['store'];
  const ledger = new KvLedger(kv);
  await ledger.put([record(SECRET)]);
  for (const [name, entry] of store.entries) store.entries.set(name, { ...entry, value: 'null' });
  await forgetUser(kv, (await listRecords(kv, null)).records);
  const [entry] = [...store.entries.values()];
  expect(entry?.value).not.toContain(MARK);
  expect(decodeObject(entry?.value ?? '')).toMatchObject({ total_tokens: 15, attempts: [], tags: {} });
});
