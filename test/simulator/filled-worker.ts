/** The gateway, and one route more: records posted to it go into the ledger as its own would. For the demo and for tests of the page. */
import worker from '../../src/index.ts';
import type { LimitsNamespace } from '../../src/limits/limits-stub.ts';
import { KvLedger } from '../../src/metering/kv/kv-ledger.ts';
import { ObjectLedger } from '../../src/metering/object/object-ledger.ts';
import type { UsageRecord } from '../../src/metering/record.ts';

export { LedgerObject } from '../../src/index.ts';

interface Env {
  readonly WEIR_KV: KVNamespace;
  readonly WEIR_LEDGER: LimitsNamespace;
  readonly LEDGER?: string;
  readonly [name: string]: unknown;
}

export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname !== '/records-of-before') return worker.fetch(request, env, context);
    const records = await request.json<UsageRecord[]>();
    const ledger =
      env.LEDGER === 'object'
        ? new ObjectLedger({ ledgers: env.WEIR_LEDGER, log: () => undefined })
        : new KvLedger(env.WEIR_KV);
    await ledger.put(records);
    return new Response(null, { status: 204 });
  },
} satisfies ExportedHandler<Env>;
