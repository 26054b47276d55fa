/** Ledger objects of which a test loses messages to other objects. An error is answered as its kind and its text. */
import type { LedgerNamespace, LedgerStub } from '../../../src/ledger/ledger-calls.ts';
import type { LedgerEnv } from '../../../src/ledger/ledger-object.ts';
import { failureOf } from '../../../src/shared/durable-objects.ts';
import { BreakableLedger } from './breakable-ledger.ts';

/** `call`: it never arrives. `answer`: it runs. `reset`: the parent ends after it has run. */
type Loss = 'call' | 'answer' | 'reset' | 'overloaded';

interface Losses {
  /** Of the next calls to a parent, in this order. Null: it arrives. */
  next: (Loss | null)[];
  calls: number;
}

/** The objects, with losses in calls to parents. */
function lossy(namespace: LedgerEnv['WEIR_LEDGER'], losses: Losses): LedgerEnv['WEIR_LEDGER'] {
  const lose = async <Value>(name: string, call: () => Promise<Value>): Promise<Value> => {
    losses.calls++;
    const loss = losses.next.shift() ?? null;
    if (loss === 'overloaded')
      throw Object.assign(new Error('Durable Object is overloaded.'), { overloaded: true });
    if (loss === 'call') throw new Error('The call is lost');
    const value = await call();
    if (loss === 'reset')
      await (namespace.getByName(name) as unknown as BreakableLedger).die().catch(() => {});
    if (loss !== null) throw new Error('The answer is lost');
    return value;
  };
  return {
    getByName: (name) => {
      const stub = namespace.getByName(name);
      const methods: Partial<LedgerStub> = {
        lease: (message) => lose(name, () => stub.lease(message)),
        openUser: (...args) => lose(name, () => stub.openUser(...args)),
      };
      return new Proxy(stub, {
        get: (_, method) => Reflect.get(methods, method) ?? Reflect.get(stub, method),
      });
    },
  };
}

export class LedgerObject extends BreakableLedger {
  readonly #losses: Losses;

  constructor(context: DurableObjectState, env: LedgerEnv) {
    const losses: Losses = { next: [], calls: 0 };
    super(context, { ...env, WEIR_LEDGER: lossy(env.WEIR_LEDGER, losses) });
    this.#losses = losses;
  }

  async lose(next: (Loss | null)[]): Promise<void> {
    this.#losses.next = next;
  }

  /** How often this object has called its parents. */
  async callsToParents(): Promise<number> {
    return this.#losses.calls;
  }
}

interface Call {
  readonly name: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

export default {
  async fetch(request: Request, env: { readonly WEIR_LEDGER: LedgerNamespace }): Promise<Response> {
    const { name, method, args } = await request.json<Call>();
    try {
      const stub: object = env.WEIR_LEDGER.getByName(name);
      return Response.json((await Reflect.apply(Reflect.get(stub, method), stub, args)) ?? null);
    } catch (error) {
      return new Response(`${failureOf(error)}: ${String(error)}`, { status: 500 });
    }
  },
};
