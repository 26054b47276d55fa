/** A Worker with every feature, configured by its environment alone. */
import { env } from 'cloudflare:workers';
import { attribution } from './attribution/feature.ts';
import { durableResponses } from './durable-responses/feature.ts';
import { createHandlers } from './environment.ts';
import { ledger } from './ledger/feature.ts';
import { origin } from './origin-proxy/feature.ts';
import { privacy } from './privacy/feature.ts';
import { tracing } from './tracing/runtime.ts';
import type { Feature } from './types.ts';

/** Reads the settings at startup, so that invalid or missing ones are logged before the first request. `wrangler dev` shows the log. */
export function createWholeWorker(dashboard: Feature<'dashboard'>) {
  const features = [ledger(), attribution(), durableResponses(), privacy(), dashboard, origin()] as const;
  return createHandlers({ features }, tracing, { ...env });
}
