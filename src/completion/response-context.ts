/** What the two ways of answering, streamed and whole, are given and share. */

import { headerValue } from '../http/respond.ts';
import type { RequestMeter } from '../metering/request-meter.ts';
import { attemptsHeader } from '../routing/attempt-summary.ts';
import { pickResponseHeaders } from '../upstream/fetch.ts';
import type { AttemptRunner } from './attempt-runner.ts';
import type { PreparedCompletion } from './prepare.ts';

/** A list of names in a header is cut there (Q5). */
const MAX_NAMES_CHARS = 512;

export interface ResponseContext {
  readonly prepared: PreparedCompletion;
  readonly meter: RequestMeter;
  readonly runner: AttemptRunner;
}

/**
 * The headers of an answer: who gave it (H1), what of the upstream's own goes on (H2), how its key stands (G5) and what was
 * tried (R8).
 * @param isDecided whether it is known who answers: a heartbeat may send the head before, and then nobody is named
 */
export function answerHeaders(
  { prepared, meter, runner }: ResponseContext,
  isDecided = true,
): Record<string, string> {
  const { admission, alias } = prepared;
  const { facts, headers: upstreamHeaders } = runner.current;
  const { target, dropped, changed } = facts;
  const passed = (facts.passthrough && prepared.client.passthrough?.responseHeaders) ?? [];
  const headers = isDecided ? pickResponseHeaders(upstreamHeaders, passed) : {};
  // The caller's own limits stand in the place of those that the deployment has at the provider.
  Object.assign(headers, admission?.headers);
  if (alias !== null) headers['x-weir-alias'] = headerValue(alias);
  if (!isDecided) return headers;
  headers['x-weir-provider'] = target.provider.id;
  headers['x-weir-model'] = headerValue(target.model);
  setNames(headers, 'x-weir-dropped', dropped);
  setNames(headers, 'x-weir-changed', changed);
  const { attempts } = meter;
  if (attempts.length > 1) headers['x-weir-attempts'] = attemptsHeader(attempts);
  return headers;
}

/** Names of fields, without their values (Q5). */
function setNames(headers: Record<string, string>, header: string, names: readonly string[]): void {
  if (names.length === 0) return;
  const text = headerValue(names.join(', ')).replaceAll('%20', ' ');
  headers[header] = text.slice(0, MAX_NAMES_CHARS);
}
