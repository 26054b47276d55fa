/** The runtime's tracing, where it has one. */
// As a whole: a runtime that lacks one of its names would not load the module.
import * as runtime from 'cloudflare:workers';
import type { Tracing } from '../tracing/spans.ts';

/** A span that can be told how it ended came last: an older runtime counts as one without tracing (W4). */
export const tracing: Tracing | null =
  runtime.tracing?.Span?.prototype.setStatus === undefined ? null : runtime.tracing;
