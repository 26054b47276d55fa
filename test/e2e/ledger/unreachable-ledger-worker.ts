/** The gateway with ledger objects that a test makes unreachable and reachable again. */
import weir from '../../../src/index.ts';
import type { LedgerNamespace, LedgerStub } from '../../../src/ledger/ledger-calls.ts';

export { LedgerObject, ResponseObject } from '../../../src/index.ts';

interface Env {
  readonly WEIR_LEDGER: LedgerNamespace;
  readonly [name: string]: unknown;
}

let isDown = false;
const wrapped = new WeakMap<Env, Env>();

/** The same environment, in which settling fails while `isDown` is true. */
function wrap(env: Env): Env {
  const WEIR_LEDGER: LedgerNamespace = {
    getByName: (name) => {
      const stub = env.WEIR_LEDGER.getByName(name);
      const settle: LedgerStub['settle'] = async (records) => {
        if (isDown) throw new Error('Network connection lost');
        return stub.settle(records);
      };
      return new Proxy(stub, {
        get: (_, method) => (method === 'settle' ? settle : Reflect.get(stub, method)),
      });
    },
  };
  const known = wrapped.get(env) ?? { ...env, WEIR_LEDGER };
  wrapped.set(env, known);
  return known;
}

export default {
  async fetch(request: Request<unknown, IncomingRequestCfProperties>, env: Env, context: ExecutionContext) {
    const { pathname } = new URL(request.url);
    if (pathname !== '/down' && pathname !== '/up') return weir.fetch(request, wrap(env), context);
    isDown = pathname === '/down';
    return new Response();
  },
  queue: (batch: MessageBatch, env: Env) => weir.queue(batch, wrap(env)),
  scheduled: (controller: ScheduledController, env: Env) => weir.scheduled(controller, wrap(env)),
};
