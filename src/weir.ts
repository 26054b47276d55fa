/** The package `weir-gateway`: Weir as a whole Worker, or mounted in another Worker. */
import { createHandlers } from './environment.ts';
import { tracing } from './tracing/runtime.ts';
import type { Feature, Weir, WeirOptions } from './types.ts';

export type { Price } from './metering/pricing/price.ts';
export type { RecordedAttempt, UsageRecord } from './metering/record.ts';
export type { AliasStep, ProviderEntry } from './settings/entries.ts';
export type { SettingOptions } from './settings/options.ts';
export type {
  Feature,
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
 * Settings come from the environment; options override them. Bindings come from the environment: `WEIR_KV`, optionally `LIMITER`, and
 * those of the listed features. `weir()` never throws: requests get an error that names invalid settings, which are also logged.
 */
export function weir<Env = unknown, const Features extends readonly Feature[] = readonly Feature[]>(
  options: WeirOptions<Env, Features> = {},
): Weir<Env, Features> {
  return createHandlers(options, tracing);
}
