/** The Workers runtime's tracing API, or null where the runtime has none. */
// Imported as a namespace: a named import fails to load in a runtime that does not export the name.
import * as runtime from 'cloudflare:workers';
import type { Tracing } from './spans.ts';

/** Runtimes before `Span.setStatus` count as without tracing: a span could not record how its request ended. */
export const tracing: Tracing | null =
  runtime.tracing?.Span?.prototype.setStatus === undefined ? null : runtime.tracing;
