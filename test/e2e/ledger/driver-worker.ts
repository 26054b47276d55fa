/** A Worker by which tests call the methods of ledger objects. */
import { BreakableLedger } from './breakable-ledger.ts';

export { BreakableLedger as LedgerObject };

interface Env {
  readonly WEIR_LEDGER: DurableObjectNamespace;
}

/** The body of a call. An exception is returned as text with status 500. */
interface Call {
  readonly name: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

export default {
  async fetch(request, env) {
    const { name, method, args } = await request.json<Call>();
    try {
      const stub: object = env.WEIR_LEDGER.getByName(name);
      const answer: unknown = await Reflect.apply(Reflect.get(stub, method), stub, args);
      return Response.json(answer ?? null);
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
} satisfies ExportedHandler<Env>;
