/** The gateway whose provider's key is a secret of Secrets Store, also in the objects of responses. */
import weir, { ResponseObject as Kept, LedgerObject } from '../../src/index.ts';

export { LedgerObject };

interface Env {
  readonly OPENAI_API_KEY: unknown;
  readonly [name: string]: unknown;
}

const wrapped = new WeakMap<Env, Env>();

function withSecret(env: Env): Env {
  const text = env.OPENAI_API_KEY;
  const known = wrapped.get(env) ?? {
    ...env,
    OPENAI_API_KEY: {
      get: async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test reads this line.
        console.log(JSON.stringify({ event: 'secret_read' }));
        return text;
      },
    },
  };
  wrapped.set(env, known);
  return known;
}

/** The class with its constructor, which its public type does not have. */
const KeptClass = Kept as unknown as new (context: DurableObjectState, env: Env) => object;

export class ResponseObject extends KeptClass {
  constructor(context: DurableObjectState, env: Env) {
    super(context, withSecret(env));
  }
}

export default {
  fetch: (request: Request, env: Env, context: ExecutionContext) =>
    weir.fetch(request, withSecret(env), context),
};
