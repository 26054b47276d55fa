/** The deployed gateway, with a route by which a test runs the alarm of a ledger object immediately. */
import weir from '../../../src/index.ts';
import { BreakableLedger } from './breakable-ledger.ts';

export { ResponseObject } from '../../../src/index.ts';
export { BreakableLedger as LedgerObject };

interface Env {
  readonly WEIR_LEDGER: DurableObjectNamespace<BreakableLedger>;
  readonly [name: string]: unknown;
}

export default {
  queue: weir.queue,
  scheduled: weir.scheduled,
  async fetch(request: Request<unknown, IncomingRequestCfProperties>, env: Env, context: ExecutionContext) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== '/fire') return weir.fetch(request, env, context);
    await env.WEIR_LEDGER.getByName(searchParams.get('name') ?? '').fireAlarm();
    return new Response();
  },
};
