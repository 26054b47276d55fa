/** The gateway with a KV namespace whose writes of keys a test can delay, also for its Durable Objects, for tests of races. */
import weir from '../../src/index.ts';
import { LedgerObject as Ledger, type LedgerEnv } from '../../src/ledger/ledger-object.ts';

interface Env extends LedgerEnv {
  readonly WEIR_KV: KVNamespace;
}

export { ResponseObject } from '../../src/index.ts';

/** The delayed writes of the isolate, in which the Worker and its objects run. */
const held: (() => void)[] = [];
let isHolding = false;

/** One per environment, because the gateway is cached by its environment. */
const wrapped = new WeakMap<object, Env>();

function withHeldStore(env: Env): Env {
  const known = wrapped.get(env) ?? { ...env, WEIR_KV: heldStore(env.WEIR_KV) };
  wrapped.set(env, known);
  return known;
}

export class LedgerObject extends Ledger {
  constructor(context: DurableObjectState, env: Env) {
    super(context, withHeldStore(env));
  }
}

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    if (pathname === '/hold') {
      isHolding = true;
      return new Response('');
    }
    if (pathname === '/release') {
      isHolding = false;
      for (const release of held.splice(0)) release();
      return new Response('');
    }
    return weir.fetch(request, withHeldStore(env), context);
  },
} satisfies ExportedHandler<Env>;

function heldStore(store: KVNamespace): KVNamespace {
  return new Proxy(store, {
    get: (_, call) => {
      const member: unknown = Reflect.get(store, call);
      if (typeof member !== 'function') return member;
      return async (...args: readonly unknown[]) => {
        const [name] = args;
        const isKey = typeof name === 'string' && name.startsWith('key');
        if (isKey && call === 'put' && isHolding) {
          log({ event: 'held', name });
          await new Promise<void>((release) => held.push(release));
        }
        const result: unknown = await Reflect.apply(member, store, args);
        if (isKey) log({ event: 'kv', call: String(call), name });
        return result;
      };
    },
  });
}

function log(entry: Readonly<Record<string, string>>): void {
  // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test awaits these lines.
  console.log(JSON.stringify(entry));
}
