/** Starts ledger objects in workerd, for tests that call their methods. */
import { join } from 'node:path';
import { createTestHarness, unstable_readConfig } from 'wrangler';
import type { LedgerNamespace, LedgerStub } from '../../../src/ledger/ledger-calls.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

export interface Ledgers extends AsyncDisposable {
  /** Calls a method of the object of that name. Rejects with the text of an exception. */
  call(name: string, method: string, ...args: readonly unknown[]): Promise<unknown>;
  /** The namespace that the gateway uses. */
  readonly namespace: LedgerNamespace;
}

/** @param main the Worker that exports the objects' class: its path below this folder */
export async function startLedgers(main = 'driver-worker.ts'): Promise<Ledgers> {
  process.env.CLOUDFLARE_CF_FETCH_ENABLED = 'false';
  const { compatibility_date, compatibility_flags } = unstable_readConfig({
    config: join(ROOT, 'wrangler.toml'),
  });
  const server = createTestHarness({
    // Not the repository's root, where a `.dev.vars` may have real keys.
    root: import.meta.dirname,
    workers: [
      {
        config: {
          name: 'ledgers',
          main: join(import.meta.dirname, main),
          ...(compatibility_date && { compatibility_date }),
          compatibility_flags,
          durable_objects: { bindings: [{ name: 'WEIR_LEDGER', class_name: 'LedgerObject' }] },
          migrations: [{ tag: 'v1', new_sqlite_classes: ['LedgerObject'] }],
        },
      },
    ],
  });
  await server.listen();
  async function call(name: string, method: string, ...args: readonly unknown[]): Promise<unknown> {
    const body = JSON.stringify({ name, method, args });
    const response = await server.getWorker('ledgers').fetch('/', { method: 'POST', body });
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
    [Symbol.asyncDispose]: () => server.close(),
  };
}
