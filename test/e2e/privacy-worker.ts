/** A host Worker around the gateway, whose hooks name users and log records. With `LEDGER_DOWN`, no record reaches its ledger object. */

import { attribution } from '../../src/attribution/feature.ts';
import { durableResponses } from '../../src/durable-responses/feature.ts';
import { ledger } from '../../src/ledger/feature.ts';
import type { LedgerNamespace, LedgerStub } from '../../src/ledger/ledger-calls.ts';
import { privacy } from '../../src/privacy/feature.ts';
import { weir } from '../../src/weir.ts';

export { LedgerObject, ResponseObject } from '../../src/index.ts';

interface Env {
  readonly WEIR_LEDGER: LedgerNamespace;
  readonly LEDGER_DOWN?: string;
  readonly [name: string]: unknown;
}

const gateway = weir<Env>({
  features: [ledger(), attribution(), durableResponses(), privacy()],
  onRequest: (request) => {
    const user = request.headers.get('x-host-user');
    return user === null ? null : { id: 'host', user };
  },
  onRecord: (record) => {
    // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test reads this line.
    console.log(JSON.stringify({ event: 'on_record', record }));
  },
});

const wrapped = new WeakMap<Env, Env>();

/** The same environment, in which settling fails. */
function withoutLedger(env: Env): Env {
  const settle: LedgerStub['settle'] = () => Promise.reject(new Error('Network connection lost'));
  const WEIR_LEDGER: LedgerNamespace = {
    getByName: (name) =>
      new Proxy(env.WEIR_LEDGER.getByName(name), {
        get: (stub, method) => (method === 'settle' ? settle : Reflect.get(stub, method)),
      }),
  };
  const known = wrapped.get(env) ?? { ...env, WEIR_LEDGER };
  wrapped.set(env, known);
  return known;
}

export default {
  fetch: (request: Request, env: Env, context: ExecutionContext) =>
    gateway.fetch(request, env.LEDGER_DOWN === undefined ? env : withoutLedger(env), context),
};
