/** The gateway with a KV namespace that logs each call and lists a given number of records, for tests of KV costs. */
import weir from '../../src/index.ts';

export { LedgerObject, ResponseObject } from '../../src/index.ts';

interface Env {
  readonly WEIR_KV: KVNamespace;
  /** The number of generated records, each with another model and user, that each listing of a day returns instead of the real ones. */
  readonly LISTED_RECORDS?: string;
  readonly [name: string]: unknown;
}

const PAGE = 1000;

/** One per environment, because the gateway is cached by its environment. */
const wrapped = new WeakMap<Env, Env>();

export default {
  fetch(request, env, context) {
    const watched = wrapped.get(env) ?? { ...env, WEIR_KV: watchedStore(env) };
    wrapped.set(env, watched);
    return weir.fetch(request, watched, context);
  },
} satisfies ExportedHandler<Env>;

function watchedStore(env: Env): KVNamespace {
  return new Proxy(env.WEIR_KV, {
    get: (store, call: 'get' | 'put' | 'list') => {
      if (!['get', 'put', 'list'].includes(call)) return undefined;
      return (...args: readonly [string | KVNamespaceListOptions]) => {
        const [first] = args;
        const key = typeof first === 'string' ? first : first.prefix;
        // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test reads this line.
        console.log(JSON.stringify({ event: 'kv', call, key }));
        const isFake = env.LISTED_RECORDS !== undefined && typeof first === 'object';
        return isFake
          ? madeUpPage(first, Number(env.LISTED_RECORDS))
          : Reflect.apply(store[call], store, args);
      };
    },
  });
}

function madeUpPage({ prefix, cursor }: KVNamespaceListOptions, records: number) {
  const day = prefix?.split('/')[1];
  const start = Number(cursor ?? 0);
  const end = Math.min(start + PAGE, records);
  const keys = Array.from({ length: end - start }, (_, at) => ({
    name: `${prefix}${start + at}`,
    metadata: {
      id: `${start + at}`,
      t: `${day}T00:00:00.000Z`,
      p: 'openai',
      m: `m${start + at}`,
      u: `u${start + at}`,
      s: 'failed',
    },
  }));
  return { keys, list_complete: end === records, cursor: String(end) };
}
