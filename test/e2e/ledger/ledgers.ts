/** Starts ledger objects in workerd, for tests that call their methods. */
import type { LedgerNamespace, LedgerStub } from '../../../src/ledger/ledger-calls.ts';
import { startWorkers, type WorkerOptions } from '../workers.ts';

export interface Ledgers extends AsyncDisposable {
  /** Calls a method of the object of that name. Rejects with the text of an exception. */
  call(name: string, method: string, ...args: readonly unknown[]): Promise<unknown>;
  /** The namespace that the gateway uses. */
  readonly namespace: LedgerNamespace;
  /** The texts of all objects of the bucket `WEIR_ARCHIVE`, by their names. */
  archived(prefix: string): Promise<ReadonlyMap<string, string>>;
  /** The lines of JSON that the objects log. */
  readonly logged: readonly string[];
}

/** The bucket for records. */
export const ARCHIVE = { WEIR_ARCHIVE: { type: 'r2', name: 'weir-archive' } } as const;

/** @param main the Worker that exports the objects' class: its path below this folder */
export async function startLedgers({
  main = 'driver-worker.ts',
  vars = {},
  bindings = {},
}: Pick<WorkerOptions, 'main' | 'vars' | 'bindings'> = {}): Promise<Ledgers> {
  const logged: string[] = [];
  const runtime = await startWorkers({
    workers: [{ main: `ledger/${main}`, vars, bindings: { WEIR_KV: false, ...bindings } }],
    onLog: (line) => logged.push(line),
  });
  async function call(name: string, method: string, ...args: readonly unknown[]): Promise<unknown> {
    const body = JSON.stringify({ name, method, args });
    const response = await fetch(runtime.url, { method: 'POST', body });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  }
  return {
    call,
    logged,
    archived: async (prefix) => {
      const bucket = await runtime.miniflare.getR2Bucket('WEIR_ARCHIVE');
      const texts = new Map<string, string>();
      for (let cursor: string | undefined; ; ) {
        const page = await bucket.list({ prefix, ...(cursor && { cursor }) });
        for (const { key } of page.objects) texts.set(key, (await (await bucket.get(key))?.text()) ?? '');
        if (!page.truncated) return texts;
        cursor = page.cursor;
      }
    },
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
