/** Opens the response of an attempt and reads it, as events or as one object, with the writer of a stream or of an object. */
import type { ApiError } from '../canonical/error.ts';
import type { Result } from '../shared/result.ts';
import type { EventReader } from '../stream/event-reader.ts';
import type { MemoryGrant } from '../stream/memory.ts';
import type { RelayOutput } from '../stream/relay.ts';
import { failedWith, type Outcome } from '../stream/types.ts';
import { openResponse, type ResponseBody } from '../upstream/fetch.ts';
import type { Attempt } from './attempt-runner.ts';
import type { CompletionRequest } from './prepare.ts';

interface ReadResponse {
  /** Not `MORE`. */
  readonly outcome: Outcome;
  /** The memory of a JSON response, whose work goes on; null for events. */
  readonly value: MemoryGrant | null;
}

/**
 * Reads the response up to its end. Resolves early if a timeout or a disconnect ends the attempt.
 * @param readerFor creates the reader, when the kind of the response is known
 */
export async function readResponse(
  attempt: Attempt,
  { isStreamed, context }: CompletionRequest,
  output: RelayOutput,
  readerFor: (kind: ResponseBody['kind']) => EventReader,
): Promise<ReadResponse> {
  const { relay, upstream } = attempt;
  const head = await attempt.head();
  if (head.kind === 'error') return { outcome: head.error, value: null };
  const opening = openResponse(head.value, upstream, isStreamed, context.takeMemory);
  const opened = await relay.until(opening, releaseLate);
  if (opened === null) return { outcome: relay.outcome, value: null };
  if (opened.kind === 'error') {
    return { outcome: failedWith(opened.error, 'no_response'), value: null };
  }
  const body = opened.value;
  const reader = readerFor(body.kind);
  return body.kind === 'events'
    ? { outcome: await relay.readEvents(body.events, reader, output), value: null }
    : { outcome: relay.readObject(body.object, body.text, reader), value: body.grant };
}

/** The attempt ended while the response was opened. */
function releaseLate(opened: Result<ResponseBody, ApiError>): void {
  if (opened.kind === 'error') return;
  if (opened.value.kind === 'object') opened.value.grant.release();
  else opened.value.events.cancel().catch(() => {});
}
