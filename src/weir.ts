/** The package `weir-gateway`: Weir as a whole Worker, or mounted in another Worker. */
import { responseObjectClass } from './durable-responses/response-object.ts';
import { createHandlers } from './environment.ts';
import { tracing } from './tracing/runtime.ts';
import type { Weir, WeirOptions } from './types.ts';

export type { Attempt, UsageRecord } from './metering/record.ts';
export type { AliasStep, ProviderEntry, SettingOptions } from './settings/options.ts';
export type {
  Handlers,
  Identity,
  RequestFacts,
  Weir,
  WeirOptions,
  WorkerBatch,
  WorkerContext,
  WorkerMessage,
  WorkerRequest,
  WorkerResponse,
} from './types.ts';

/**
 * Creates the handlers of a Worker: `export default weir()`, or call `fetch` from your own Worker for the paths below `basePath`.
 *
 * Settings come from the environment; options override them. Bindings come from the environment: `WEIR_KV`, and optionally
 * `WEIR_LEDGER`, `WEIR_RESPONSES`, `USAGE_QUEUE` and `LIMITER`. `weir()` never throws: requests get an error that names invalid settings, which
 * are also logged.
 */
export function weir<Env = unknown>(options: WeirOptions<Env> = {}): Weir<Env> {
  const { handlers, exchangeOf } = createHandlers(options, tracing);
  return { ...handlers, ResponseObject: responseObjectClass(exchangeOf) };
}
