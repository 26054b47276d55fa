/**
 * The deployed gateway with namespaces that have a jurisdiction, which workerd has not: the objects of `eu` are of
 * classes of their own, and know it. An object anywhere else does nothing. Each object logs its creation, in every
 * instance.
 */
import { DurableObject } from 'cloudflare:workers';
import weir, { LedgerObject as DeployedLedger, ResponseObject as DeployedResponse } from '../../src/index.ts';
import type { LedgerObject as BaseLedger } from '../../src/ledger/ledger-object.ts';
import type { PlaceableNamespace } from '../../src/settings/placement.ts';

interface Env {
  readonly WEIR_LEDGER: DurableObjectNamespace;
  readonly WEIR_RESPONSES: DurableObjectNamespace;
  readonly EU_LEDGER: DurableObjectNamespace<EuLedger>;
  readonly EU_RESPONSES: DurableObjectNamespace;
  readonly [name: string]: unknown;
}

/** The deployed classes are these. */
const Ledger = DeployedLedger as unknown as typeof BaseLedger;
const Kept = DeployedResponse as unknown as new (context: DurableObjectState, env: unknown) => DurableObject;

function report(event: string, kind: string, { id }: DurableObjectState): void {
  // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test reads this line.
  console.log(JSON.stringify({ event, kind, name: id.name }));
}

/** As the platform gives it to an object that is in `eu`. */
function inEu(context: DurableObjectState): DurableObjectState {
  Object.defineProperty(context.id, 'jurisdiction', { value: 'eu' });
  return context;
}

export class EuLedger extends Ledger {
  constructor(context: DurableObjectState, env: Env) {
    report('object_in_eu', 'ledger', context);
    super(inEu(context), wrap(env) as never);
  }

  async fireAlarm(): Promise<void> {
    await this.alarm();
  }
}

export class EuResponse extends Kept {
  constructor(context: DurableObjectState, env: Env) {
    report('object_in_eu', 'response', context);
    super(inEu(context), wrap(env));
  }
}

export class LedgerObject extends DurableObject {
  constructor(context: DurableObjectState, env: Env) {
    super(context, env);
    report('object_outside', 'ledger', context);
  }
}

export class ResponseObject extends DurableObject {
  constructor(context: DurableObjectState, env: Env) {
    super(context, env);
    report('object_outside', 'response', context);
  }
}

function placeable(anywhere: DurableObjectNamespace, eu: DurableObjectNamespace): PlaceableNamespace<object> {
  const of = (namespace: DurableObjectNamespace): PlaceableNamespace<object> => ({
    getByName: (name) => namespace.getByName(name),
    jurisdiction: (name) => of(name === 'eu' ? eu : anywhere),
  });
  return of(anywhere);
}

const held: unknown[] = [];
const wrapped = new WeakMap<Env, Env>();

function wrap(env: Env): Env {
  const known = wrapped.get(env);
  if (known !== undefined) return known;
  const USAGE_QUEUE = {
    sendBatch: async (messages: readonly { readonly body: unknown }[]) => {
      held.push(...messages.map(({ body }) => body));
    },
  };
  const made = {
    ...env,
    WEIR_LEDGER: placeable(env.WEIR_LEDGER, env.EU_LEDGER as unknown as DurableObjectNamespace),
    WEIR_RESPONSES: placeable(env.WEIR_RESPONSES, env.EU_RESPONSES),
    ...(env.HOLD === 'yes' && { USAGE_QUEUE }),
  } as unknown as Env;
  wrapped.set(env, made);
  return made;
}

/** @returns how many messages the consumer took */
async function deliver(bodies: readonly unknown[], env: Env): Promise<number> {
  let taken = bodies.length;
  const retry = () => taken--;
  await weir.queue({ messages: bodies.map((body) => ({ body, ack: () => {}, retry })) }, wrap(env));
  return taken;
}

export default {
  async fetch(request: Request<unknown, IncomingRequestCfProperties>, env: Env, context: ExecutionContext) {
    const { pathname, searchParams } = new URL(request.url);
    switch (pathname) {
      case '/test/fire':
        await env.EU_LEDGER.getByName(searchParams.get('name') ?? '').fireAlarm();
        return new Response();
      case '/test/held':
        return Response.json(held);
      case '/test/deliver':
        return Response.json(await deliver(await request.json<unknown[]>(), env));
      case '/test/daily':
        await weir.scheduled(null, wrap(env));
        return new Response();
      default: {
        const continent = request.headers.get('x-test-continent');
        const from = continent === null ? request : new Request(request, { cf: { continent } });
        return weir.fetch(from as typeof request, wrap(env), context);
      }
    }
  },
};
