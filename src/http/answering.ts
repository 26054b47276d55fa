/** What the two ways of answering, streamed and whole, are given and share. */
import type { RequestMeter } from '../metering/request-meter.ts';
import { pickResponseHeaders, type UpstreamResult } from '../upstream/call.ts';
import type { Exchange } from './exchange.ts';
import { headerValue } from './respond.ts';

/** A list of names in a header is cut there (Q5). */
const MAX_NAMES_CHARS = 512;

export interface Answering {
  readonly exchange: Exchange;
  readonly meter: RequestMeter;
  /** The upstream's answer; never rejects. */
  readonly call: Promise<UpstreamResult>;
  /** Cancels the upstream request. */
  readonly abort: () => void;
}

/** The headers of an answer: who gave it (H1), what of the upstream's own goes on (H2), and how its key stands (G5). */
export function answerHeaders(exchange: Exchange, upstreamHeaders: Headers): Headers {
  const { target, dropped, changed, admission } = exchange;
  const headers = pickResponseHeaders(upstreamHeaders);
  // The caller's own limits stand in the place of those that the deployment has at the provider.
  for (const [name, value] of Object.entries(admission?.headers ?? {})) headers.set(name, value);
  headers.set('x-weir-provider', target.provider.id);
  headers.set('x-weir-model', headerValue(target.model));
  setNames(headers, 'x-weir-dropped', dropped);
  setNames(headers, 'x-weir-changed', changed);
  return headers;
}

/** Names of fields, without their values (Q5). */
function setNames(headers: Headers, header: string, names: readonly string[]): void {
  const text = headerValue(names.join(', ')).replaceAll('%20', ' ');
  if (names.length > 0) headers.set(header, text.slice(0, MAX_NAMES_CHARS));
}
