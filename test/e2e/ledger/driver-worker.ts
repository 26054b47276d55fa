/** A Worker that calls one method of one ledger object for whoever posts to it: tests of the object have no other way in. */
import { BreakableLedger } from './breakable-ledger.ts';

export { BreakableLedger as LedgerObject };

interface Env {
  readonly WEIR_LEDGER: DurableObjectNamespace;
}

/** What a test posts; what was thrown comes back as text, with the status 500. */
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
