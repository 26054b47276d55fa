/** The gateway with a KV namespace that is slow or fails the first writes of each record, for tests of lost records. */
import weir from '../../src/index.ts';

export { LedgerObject, ResponseObject } from '../../src/index.ts';

interface Env {
  readonly WEIR_KV: KVNamespace;
  /** The delay before each write. */
  readonly KV_DELAY_MS?: string;
  /** How many writes of each record fail before one succeeds. */
  readonly KV_REFUSALS?: string;
  readonly [name: string]: unknown;
}

/** One per environment, because the gateway is cached by its environment. */
const wrapped = new WeakMap<Env, Env>();

export default {
  fetch(request, env, context) {
    const bad = wrapped.get(env) ?? { ...env, WEIR_KV: badStore(env) };
    wrapped.set(env, bad);
    return weir.fetch(request, bad, context);
  },
} satisfies ExportedHandler<Env>;

function badStore(env: Env): KVNamespace {
  const refusals = Number(env.KV_REFUSALS ?? 0);
  const delayMs = Number(env.KV_DELAY_MS ?? 0);
  const tries = new Map<string, number>();
  async function put(...entry: Parameters<KVNamespace['put']>): Promise<void> {
    const [key] = entry;
    const before = tries.get(key) ?? 0;
    tries.set(key, before + 1);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (before < refusals) throw new Error('KV PUT failed: 429 Too Many Requests');
    await env.WEIR_KV.put(...entry);
    // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test awaits this line.
    console.log(JSON.stringify({ event: 'stored', key, tries: before + 1 }));
  }
  return new Proxy(env.WEIR_KV, {
    get: (store, name) => {
      if (name === 'put') return put;
      const member: unknown = Reflect.get(store, name);
      return typeof member === 'function' ? member.bind(store) : member;
    },
  });
}
