/** The gateway with one more route, which stores posted records in the ledger. For the demo and for tests of the dashboard. */
import worker from '../../src/index.ts';
import type { LedgerStub } from '../../src/ledger/ledger-calls.ts';
import { ObjectLedger } from '../../src/ledger/records/object-ledger.ts';
import { KvLedger } from '../../src/metering/kv-ledger.ts';
import { chargeOfRecord, type UsageRecord } from '../../src/metering/record.ts';

export { LedgerObject, ResponseObject } from '../../src/index.ts';

interface Env {
  readonly WEIR_KV: KVNamespace;
  readonly WEIR_LEDGER: { getByName(name: string): LedgerStub };
  readonly LEDGER?: string;
  readonly [name: string]: unknown;
}

export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname !== '/records-of-before') return worker.fetch(request, env, context);
    const records = await request.json<UsageRecord[]>();
    if (env.LEDGER === 'object') await fillObjects(records, env);
    else {
      await new KvLedger(env.WEIR_KV).put(records);
      // A ledger object charges the budget with the record.
      await chargeBudgets(records, env);
    }
    return new Response(null, { status: 204 });
  },
} satisfies ExportedHandler<Env>;

/** Charges the keys' budgets, as the requests of the records would have: one charge for each key, day and currency. */
async function chargeBudgets(records: readonly UsageRecord[], { WEIR_LEDGER }: Env): Promise<void> {
  const groups = Map.groupBy(
    records,
    ({ key_id, time, currency }) => `${key_id} ${time.slice(0, 10)} ${currency}`,
  );
  await Promise.all(
    [...groups.values()].map(async (group) => {
      const [first] = group;
      if (first === undefined) return;
      const { key_id, request_id, time, currency } = first;
      const charges = group.map(chargeOfRecord);
      const nano = charges.reduce((sum, { cost }) => sum + (cost?.nano ?? 0), 0);
      const tokens = charges.reduce((sum, charge) => sum + charge.tokens, 0);
      const charge = { tokens, cost: currency === null ? null : { currency, nano } };
      await WEIR_LEDGER.getByName(key_id).settleUnreserved(request_id, charge, time.slice(0, 10));
    }),
  );
}

async function fillObjects(records: readonly UsageRecord[], { WEIR_LEDGER }: Env): Promise<void> {
  await new ObjectLedger({ ledgers: WEIR_LEDGER, log: () => undefined }).put(records);
  // At once, instead of after half a minute.
  const keyIds = new Set(records.map(({ key_id }) => key_id));
  await Promise.all([...keyIds].map((id) => WEIR_LEDGER.getByName(id).sendSums()));
}
