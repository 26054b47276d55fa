/** The deployed gateway, whose clock a test moves on, whose alarms it fires, and whose queue it holds back. */
import weir, { LedgerObject as Deployed } from '../../src/index.ts';
import type { LedgerObject as Base } from '../../src/ledger/ledger-object.ts';

export { ResponseObject } from '../../src/index.ts';

const realNow = Date.now.bind(Date);
let laterMs = 0;
Date.now = () => realNow() + laterMs;

/** The deployed class is one of these. */
const Class = Deployed as unknown as typeof Base;

export class LedgerObject extends Class {
  async fireAlarm(): Promise<void> {
    await this.alarm();
  }
}

interface Env {
  readonly WEIR_LEDGER: DurableObjectNamespace<LedgerObject>;
  readonly [name: string]: unknown;
}

const held: unknown[] = [];
const USAGE_QUEUE = {
  sendBatch: async (messages: readonly { readonly body: unknown }[]) => {
    held.push(...messages.map(({ body }) => body));
  },
};
const wrapped = new WeakMap<Env, Env>();
let isHolding = false;

/** With the queue while it is held back, and without ledger objects where `NO_LEDGER` is set. */
function envOf(env: Env): Env {
  if (env.NO_LEDGER !== undefined) {
    const { WEIR_LEDGER: _, ...without } = env;
    noLedger ??= without as Env; // decode
    return noLedger;
  }
  if (!isHolding) return env;
  const known = wrapped.get(env) ?? { ...env, USAGE_QUEUE };
  wrapped.set(env, known);
  return known;
}

let noLedger: Env | null = null;

export default {
  async fetch(request: Request<unknown, IncomingRequestCfProperties>, env: Env, context: ExecutionContext) {
    const { pathname, searchParams } = new URL(request.url);
    switch (pathname) {
      case '/test/later':
        laterMs += Number(searchParams.get('ms'));
        return new Response();
      case '/test/fire':
        await env.WEIR_LEDGER.getByName(searchParams.get('name') ?? '').fireAlarm();
        return new Response();
      case '/test/hold':
        isHolding = searchParams.get('on') === 'yes';
        return Response.json(held.length);
      case '/test/deliver': {
        const messages = held.splice(0).map((body) => ({ body, ack: () => {}, retry: () => {} }));
        await weir.queue({ messages }, env);
        return Response.json(messages.length);
      }
      case '/test/daily':
        await weir.scheduled({ scheduledTime: Number(searchParams.get('at')) || null }, envOf(env));
        return new Response();
      default:
        return weir.fetch(request, envOf(env), context);
    }
  },
};
