/** The package `weir-gateway`: Weir to be a whole Worker, or to be mounted in another one (W2). */
import { createHandlers } from './worker/handlers.ts';
import { tracing } from './worker/tracing.ts';
import type { Weir, WeirOptions } from './worker/types.ts';

export type { Attempt, UsageRecord } from './metering/record.ts';
export type { AliasStep, ProviderEntry, SettingOptions } from './settings/options.ts';
export type {
  WorkerBatch,
  WorkerContext,
  WorkerMessage,
  WorkerRequest,
  WorkerResponse,
} from './worker/runtime.ts';
export type { Identity, RequestFacts, Weir, WeirOptions } from './worker/types.ts';

/**
 * Weir, with settings of its own over those in the environment. Bindings are found in the environment, as `WEIR_KV`,
 * `WEIR_LEDGER`, `USAGE_QUEUE` and `LIMITER`. It never throws: wrong settings are logged and answered.
 */
export function weir<Env = unknown>(options: WeirOptions<Env> = {}): Weir<Env> {
  return createHandlers(options, (deployment) => deployment.report(), tracing);
}
