/** The gateway with callers on several continents, by the header `x-test-continent`, and objects that count the calls to them. */
import weir, { LedgerObject as Deployed } from '../../../src/index.ts';
import type { LedgerObject as Ledger } from '../../../src/ledger/ledger-object.ts';

export { ResponseObject } from '../../../src/index.ts';

interface Env {
  readonly WEIR_LEDGER: DurableObjectNamespace<LedgerObject>;
  readonly [name: string]: unknown;
}

const Base = Deployed as unknown as typeof Ledger;

/** Counts the calls of requests and of shards. */
export class LedgerObject extends Base {
  #calls = 0;

  override async reserve(...args: Parameters<Ledger['reserve']>) {
    this.#calls++;
    return super.reserve(...args);
  }

  override async reserveInShard(...args: Parameters<Ledger['reserveInShard']>) {
    this.#calls++;
    return super.reserveInShard(...args);
  }

  override async settle(...args: Parameters<Ledger['settle']>) {
    this.#calls++;
    return super.settle(...args);
  }

  override async settleReservation(...args: Parameters<Ledger['settleReservation']>) {
    this.#calls++;
    return super.settleReservation(...args);
  }

  override async openUser(...args: Parameters<Ledger['openUser']>) {
    this.#calls++;
    return super.openUser(...args);
  }

  override async lease(...args: Parameters<Ledger['lease']>) {
    this.#calls++;
    return super.lease(...args);
  }

  async callCount(): Promise<number> {
    return this.#calls;
  }

  async fireAlarm(): Promise<void> {
    await this.alarm();
  }

  async die(): Promise<void> {
    this.ctx.abort('killed by the test');
  }
}

export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/test/object') {
      const stub: object = env.WEIR_LEDGER.getByName(searchParams.get('name') ?? '');
      const method: unknown = Reflect.get(stub, searchParams.get('method') ?? '');
      if (typeof method !== 'function') return new Response(null, { status: 404 });
      return Response.json((await Reflect.apply(method, stub, [])) ?? null);
    }
    const continent = request.headers.get('x-test-continent');
    const from = continent === null ? request : new Request(request, { cf: { continent } });
    return weir.fetch(from as typeof request, env, context);
  },
  queue: (batch, env) => weir.queue(batch, env),
  scheduled: (controller, env) => weir.scheduled(controller, env),
} satisfies ExportedHandler<Env>;
