/** The gateway with objects of responses that tests can kill and make hang, and that count their rows and calls. */
import type { FinishedResponse, ResponseStub } from '../../../src/durable-responses/response-calls.ts';
import weir, { LedgerObject, ResponseObject } from '../../../src/index.ts';

export { LedgerObject };

interface Env {
  readonly WEIR_RESPONSES: DurableObjectNamespace;
  readonly [name: string]: unknown;
}

/** Of all objects since the last reading. */
let counts = { calls: 0, rowsRead: 0, rowsWritten: 0, alarmsSet: 0, alarmsRun: 0, statements: 0 };
/** Calls of `put` wait for it. */
let store = Promise.resolve();

/** The class with its methods, which its public type does not have. */
type ResponseClass = new (
  context: DurableObjectState,
  env: unknown,
) => ResponseStub & { alarm(): Promise<void> };

class CountedResponse extends (ResponseObject as unknown as ResponseClass) {
  readonly #context: DurableObjectState;

  constructor(context: DurableObjectState, env: Env) {
    count(context.storage);
    super(context, env);
    this.#context = context;
  }

  override async put(response: FinishedResponse): Promise<void> {
    await store;
    return super.put(response);
  }

  override async alarm(): Promise<void> {
    counts.alarmsRun++;
    await super.alarm();
  }

  async kill(): Promise<void> {
    this.#context.abort('killed by the test');
  }

  /** The time at which the alarm is set, in ms since the epoch. */
  async alarmTime(): Promise<number | null> {
    return this.#context.storage.getAlarm();
  }
}

export { CountedResponse as ResponseObject };

/** The rows of a statement are known when its cursor has been read. */
function count(storage: DurableObjectStorage): void {
  const { sql } = storage;
  const exec = sql.exec.bind(sql);
  const setAlarm = storage.setAlarm.bind(storage);
  Object.assign(sql, {
    exec: (...args: Parameters<SqlStorage['exec']>) => {
      const cursor = exec(...args);
      const rows = cursor.toArray();
      counts.statements++;
      counts.rowsRead += cursor.rowsRead;
      counts.rowsWritten += cursor.rowsWritten;
      return { toArray: () => rows };
    },
  });
  Object.assign(storage, {
    setAlarm: (...args: Parameters<typeof setAlarm>) => {
      counts.alarmsSet++;
      return setAlarm(...args);
    },
  });
}

/** Counts the calls of the gateway to its objects. */
function counted(namespace: DurableObjectNamespace): Pick<DurableObjectNamespace, 'getByName'> {
  return {
    getByName: (name) => {
      const stub: DurableObjectStub = namespace.getByName(name);
      return new Proxy(stub, {
        get: (_, method) => {
          const call: unknown = Reflect.get(stub, method);
          if (typeof call !== 'function') return call;
          return (...args: readonly unknown[]) => {
            counts.calls++;
            return Reflect.apply(call, stub, args);
          };
        },
      });
    },
  };
}

const wrapped = new WeakMap<Env, Env>();

export default {
  async fetch(request, env, context) {
    const own = wrapped.get(env) ?? {
      ...env,
      WEIR_RESPONSES: counted(env.WEIR_RESPONSES) as DurableObjectNamespace,
    };
    wrapped.set(env, own);
    const [, scope, method = '', id = ''] = new URL(request.url).pathname.split('/');
    if (scope !== 'test') return weir.fetch(request, own, context);
    if (method === 'counts') {
      const before = counts;
      counts = { calls: 0, rowsRead: 0, rowsWritten: 0, alarmsSet: 0, alarmsRun: 0, statements: 0 };
      return Response.json(before);
    }
    if (method === 'hang') {
      store = id === 'on' ? new Promise(() => {}) : Promise.resolve();
      return Response.json(null);
    }
    const stub: object = env.WEIR_RESPONSES.getByName(id);
    try {
      return Response.json(await Reflect.apply(Reflect.get(stub, method), stub, []));
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
} satisfies ExportedHandler<Env>;
