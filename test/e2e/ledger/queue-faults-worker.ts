/**
 * The gateway with a queue, a ledger and dead letters that a test breaks:
 * `/test/faults?queue=…&ledger=…&letters=…&consumer=…`; `/test/met` counts them. `x-test-continent` says where a
 * request comes from.
 */
import weir from '../../../src/index.ts';
import type { LedgerNamespace, LedgerStub } from '../../../src/ledger/ledger-calls.ts';

export { LedgerObject, ResponseObject } from '../../../src/index.ts';

interface Env {
  readonly WEIR_KV: KVNamespace;
  readonly WEIR_LEDGER: LedgerNamespace;
  readonly USAGE_QUEUE: Queue;
  readonly [name: string]: unknown;
}

/**
 * - `down`: a call fails and does nothing. `lost`: it does its work, and its answer is lost. `twice`: it does its work twice.
 * - `half`: every second call is `down`, and every fourth is `lost`.
 */
type Fault = 'none' | 'down' | 'lost' | 'twice' | 'half';
const faults: Record<'queue' | 'ledger' | 'letters' | 'consumer', Fault> = {
  queue: 'none',
  ledger: 'none',
  letters: 'none',
  consumer: 'none',
};
/** How many calls of each met its fault. */
const met: Record<keyof typeof faults, number> = { queue: 0, ledger: 0, letters: 0, consumer: 0 };
/** How many calls of each there were. */
const calls: Record<keyof typeof faults, number> = { queue: 0, ledger: 0, letters: 0, consumer: 0 };

async function broken<Value>(part: keyof typeof faults, act: () => Promise<Value>): Promise<Value> {
  const turn = calls[part]++ % 4;
  const fault = faults[part] === 'half' ? (['down', 'none', 'lost', 'none'] as const)[turn] : faults[part];
  if (fault === 'down') {
    met[part]++;
    throw new Error('Network connection lost');
  }
  const value = await act();
  if (fault !== 'none') met[part]++;
  if (fault === 'lost') throw new Error('Network connection lost after the work');
  return fault === 'twice' ? act() : value;
}

/** The calls by which a request is charged: with its record, or alone where records are in KV. */
const SETTLING: ReadonlySet<string | symbol> = new Set<keyof LedgerStub>([
  'settle',
  'settleReservation',
  'settleUnreserved',
]);
const wrapped = new WeakMap<Env, Env>();

function wrap(env: Env): Env {
  const known = wrapped.get(env);
  if (known !== undefined) return known;
  const WEIR_LEDGER: LedgerNamespace = {
    getByName: (name) => {
      const stub = env.WEIR_LEDGER.getByName(name);
      return new Proxy(stub, {
        get: (_, method) => {
          const own: unknown = Reflect.get(stub, method);
          if (typeof own !== 'function' || !SETTLING.has(method)) return own;
          return (...args: readonly unknown[]) =>
            broken('ledger', async (): Promise<unknown> => Reflect.apply(own, stub, args));
        },
      });
    },
  };
  const USAGE_QUEUE = {
    sendBatch: (messages: Parameters<Queue['sendBatch']>[0]) =>
      broken('queue', () => env.USAGE_QUEUE.sendBatch(messages)),
  };
  const WEIR_KV = new Proxy(env.WEIR_KV, {
    get: (store, method) => {
      const own: unknown = Reflect.get(store, method);
      if (typeof own !== 'function') return own;
      return (...args: readonly unknown[]) => {
        const isRecord = typeof args[0] === 'string' && /^(stranded|usage)\//.test(args[0]);
        const isWrite = method === 'put' || method === 'delete';
        const act = async (): Promise<unknown> => Reflect.apply(own, store, args);
        return isRecord && isWrite ? broken('letters', act) : act();
      };
    },
  });
  const made = { ...env, WEIR_LEDGER, USAGE_QUEUE, WEIR_KV };
  wrapped.set(env, made as unknown as Env);
  return made as unknown as Env;
}

/** Messages come again after a second instead of a minute. */
function soon(message: Message): Message {
  return new Proxy(message, {
    get: (own, name) => {
      if (name === 'retry') return () => own.retry({ delaySeconds: 1 });
      const value: unknown = Reflect.get(own, name);
      return typeof value === 'function' ? value.bind(own) : value;
    },
  });
}

export default {
  async fetch(request: Request<unknown, IncomingRequestCfProperties>, env: Env, context: ExecutionContext) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/test/met') return Response.json({ met, calls });
    if (pathname !== '/test/faults') {
      const continent = request.headers.get('x-test-continent');
      const from = continent === null ? request : new Request(request, { cf: { continent } });
      return weir.fetch(from as typeof request, wrap(env), context);
    }
    for (const part of Object.keys(faults) as (keyof typeof faults)[]) {
      faults[part] = (searchParams.get(part) ?? 'none') as Fault; // decode
      met[part] = 0;
      calls[part] = 0;
    }
    return new Response();
  },
  queue: (batch: MessageBatch, env: Env) =>
    broken('consumer', () =>
      weir.queue({ messages: batch.messages.map(soon) } as unknown as MessageBatch, wrap(env)),
    ),
  scheduled: (controller: ScheduledController, env: Env) => weir.scheduled(controller, wrap(env)),
};
