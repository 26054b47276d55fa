/** The handlers of the deployed Worker: every feature, configured by the environment alone. */
import { env } from 'cloudflare:workers';
import { attribution } from './attribution/feature.ts';
import { dashboard } from './dashboard/feature.ts';
import { durableResponses } from './durable-responses/feature.ts';
import { createHandlers } from './environment.ts';
import { ledger } from './ledger/feature.ts';
import { origin } from './origin-proxy/feature.ts';
import { tracing } from './tracing/runtime.ts';

const features = [ledger(), attribution(), durableResponses(), dashboard(), origin()] as const;

// The settings are read at startup, so that invalid or missing ones are logged before the first request.
const gateway = createHandlers({ features }, tracing, { ...env });

export default gateway;
export const { ResponseObject } = gateway.objects;
