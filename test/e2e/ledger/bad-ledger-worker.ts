/**
 * The gateway with ledger objects whose calls fail, repeat and are delayed, and which are killed at every step. Settled records
 * are also written to KV, as the other store would.
 */
import weir from '../../../src/index.ts';
import type { LedgerNamespace, LedgerStub } from '../../../src/ledger/ledger-calls.ts';
import type { LedgerEnv } from '../../../src/ledger/ledger-object.ts';
import { KvLedger } from '../../../src/metering/kv-ledger.ts';
import type { UsageRecord } from '../../../src/metering/record.ts';
import { seeded } from '../../random.ts';
import { BreakableLedger } from './breakable-ledger.ts';

interface Env {
  readonly WEIR_KV: KVNamespace;
  readonly WEIR_LEDGER: DurableObjectNamespace<BreakableLedger>;
  readonly [name: string]: unknown;
}

/** About the number of steps of a settlement or an alarm. */
const MAX_STEPS = 9;
const NEVER = 1_000_000;
const LATE_MS = 150;
const random = seeded(20261121);

/** Disturbs half of the calls. */
async function disturbed<T>(call: () => Promise<T>, kill: (steps: number) => Promise<void>): Promise<T> {
  const turn = random();
  if (turn < 0.1) throw new Error('The call never arrived');
  if (turn < 0.2) {
    await call();
    throw new Error('The response was lost');
  }
  if (turn < 0.3) return (await Promise.all([call(), call()]))[0];
  if (turn < 0.4) {
    await new Promise((resolve) => setTimeout(resolve, LATE_MS));
    return call();
  }
  if (turn >= 0.5) return call();
  await kill(Math.floor(random() * MAX_STEPS));
  // Later calls are not killed by this one.
  return call().finally(() => kill(NEVER));
}

/** The same objects with disturbed calls. */
function badLedgers(namespace: Env['WEIR_LEDGER'], store: KVNamespace | null): LedgerNamespace {
  return {
    getByName: (name) => {
      const stub = namespace.getByName(name);
      const kill = (steps: number) => stub.killAfter(steps);
      const methods: Partial<LedgerStub> = {
        settle: async (records) => {
          const priced = records.map(withPrice);
          if (store !== null) await new KvLedger(store).put(priced);
          const forgotten = await disturbed(() => namespace.getByName(name).settle(priced), kill);
          for (const { request_id } of records) log({ event: 'settled', request_id });
          return forgotten;
        },
        takeSums: (keyId, message) =>
          disturbed(() => namespace.getByName(name).takeSums(keyId, message), kill),
      };
      return new Proxy(stub, {
        get: (_, method) => Reflect.get(methods, method) ?? Reflect.get(stub, method),
      }) as unknown as LedgerStub;
    },
  };
}

/** Sets a price by the id of the request: several currencies, or none. */
function withPrice(record: UsageRecord): UsageRecord {
  const digits = Number.parseInt(record.request_id.slice(-6), 16);
  if (digits % 5 === 0) return record;
  return {
    ...record,
    cost_nanos: digits * 1001,
    currency: digits % 3 === 0 ? 'CNY' : 'USD',
    cost_source: 'table',
    cost_estimated: record.estimated,
  };
}

export { ResponseObject } from '../../../src/index.ts';

/** A ledger object with disturbed calls to the directory. */
export class LedgerObject extends BreakableLedger {
  constructor(context: DurableObjectState, env: LedgerEnv & Env) {
    super(context, { ...env, WEIR_LEDGER: badLedgers(env.WEIR_LEDGER, null) });
  }
}

const NOW: ScheduledController = { scheduledTime: 0, cron: '', noRetry: () => {} };
const wrapped = new WeakMap<Env, Env & LedgerEnv>();

export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    // For tests: runs an object's alarm, or the daily run, immediately.
    if (pathname === '/fire') {
      await env.WEIR_LEDGER.getByName(searchParams.get('name') ?? '').fireAlarm();
      return new Response();
    }
    const bad = wrapped.get(env) ?? { ...env, WEIR_LEDGER: badLedgers(env.WEIR_LEDGER, env.WEIR_KV) };
    wrapped.set(env, bad as Env & LedgerEnv);
    if (pathname === '/daily') {
      await weir.scheduled(NOW, bad);
      return new Response();
    }
    return weir.fetch(request, bad, context);
  },
} satisfies ExportedHandler<Env>;

function log(entry: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test awaits this line.
  console.log(JSON.stringify(entry));
}
