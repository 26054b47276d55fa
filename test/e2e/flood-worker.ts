/**
 * The gateway with a KV namespace that keeps nothing, which sends itself many requests at once, each with a context of its own, and has the
 * provider that answers them: a flood without the costs of a network and of a disk. The isolate's clock is slow, so that a busy machine
 * reaches no limit of the gateway's.
 */
import weir from '../../src/index.ts';

export { LedgerObject, ResponseObject } from '../../src/index.ts';

interface Env {
  readonly WEIR_KV: KVNamespace;
  /** This Worker. */
  readonly SELF: Fetcher;
  readonly [name: string]: unknown;
}

/** How many seconds one second of this isolate's clock takes. */
const SLOWNESS = 30;
/** Shorter timers, such as the pauses of a poll, keep their length. */
const MIN_SLOWED_MS = 1000;

const { now } = Date;
const start = globalThis.setTimeout;
/** Of the first request: before it, the runtime's clock is at zero. */
let startedAt = 0;
Date.now = () => {
  startedAt ||= now();
  return startedAt + Math.floor((now() - startedAt) / SLOWNESS);
};
Reflect.set(globalThis, 'setTimeout', (onFire: () => void, ms: number) =>
  start(onFire, ms < MIN_SLOWED_MS ? ms : ms * SLOWNESS),
);

/** The provider. A request of its own to this Worker would double the hops of each. */
const MODELS = { fetch: async () => Response.json(WHOLE) };

/** One per environment, because the gateway is cached by its environment. */
const wrapped = new WeakMap<Env, Env>();

const WHOLE = {
  ...{ id: 'a', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Here.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
};

export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/flood') return flood(request, env, Number(searchParams.get('count')));
    const quiet = wrapped.get(env) ?? { ...env, WEIR_KV: withoutWrites(env.WEIR_KV), MODELS };
    wrapped.set(env, quiet);
    return weir.fetch(request, quiet, context);
  },
} satisfies ExportedHandler<Env>;

/** What each request got: `served`, or the text of another response. */
async function flood(request: Request, { SELF }: Env, count: number): Promise<Response> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: await request.text(),
  };
  const send = async () => {
    const response = await SELF.fetch('https://weir.example/v1/chat/completions', init);
    const text = await response.text();
    return response.status === 200 ? 'served' : text;
  };
  return Response.json(await Promise.all(Array.from({ length: count }, send)));
}

function withoutWrites(store: KVNamespace): KVNamespace {
  return new Proxy(store, {
    get: (_, call) => (call === 'put' ? async () => {} : Reflect.get(store, call).bind(store)),
  });
}
