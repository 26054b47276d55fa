/** Starts ledger objects in workerd, for tests that call their methods. */
import type { LedgerNamespace, LedgerStub } from '../../../src/ledger/ledger-calls.ts';
import { startWorkers } from '../workers.ts';

export interface Ledgers extends AsyncDisposable {
  /** Calls a method of the object of that name. Rejects with the text of an exception. */
  call(name: string, method: string, ...args: readonly unknown[]): Promise<unknown>;
  /** The namespace that the gateway uses. */
  readonly namespace: LedgerNamespace;
}

/** @param main the Worker that exports the objects' class: its path below this folder */
export async function startLedgers(main = 'driver-worker.ts'): Promise<Ledgers> {
  const runtime = await startWorkers({ workers: [{ main: `ledger/${main}`, bindings: { WEIR_KV: false } }] });
  async function call(name: string, method: string, ...args: readonly unknown[]): Promise<unknown> {
    const body = JSON.stringify({ name, method, args });
    const response = await fetch(runtime.url, { method: 'POST', body });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  }
  return {
    call,
    namespace: {
      getByName: (name) =>
        new Proxy({} as LedgerStub, {
          get:
            (_, method) =>
            (...args: readonly unknown[]) =>
              call(name, String(method), ...args),
        }),
    },
    [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose](),
  };
}
