/** The deployed gateway, with routes by which a test runs the alarm of a ledger object, or makes its archive fail. */
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
    if (pathname !== '/fire' && pathname !== '/archive') return weir.fetch(request, env, context);
    const ledger = env.WEIR_LEDGER.getByName(searchParams.get('name') ?? '');
    if (pathname === '/fire') await ledger.fireAlarm();
    else await ledger.failArchive(searchParams.get('fails') === 'true');
    return new Response();
  },
};
