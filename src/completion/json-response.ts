/** Answers with one object, whichever way the upstream sends it, within the request's deadline (T3). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { deadlineExceeded } from '../canonical/upstream-error.ts';
import { clientError, JSON_TYPE } from '../http/respond.ts';
import { PassthroughJsonWriter } from '../protocols/shared/passthrough-writer.ts';
import type { JsonObject } from '../shared/json.ts';
import { EventReader } from '../stream/event-reader.ts';
import { type Lease, SMALL_BYTES } from '../stream/memory.ts';
import type { JsonWriter } from '../stream/types.ts';
import { errorBeforeHead } from '../upstream/errors.ts';
import { answerOptions, passthroughOptions, writerOptions } from './answer-options.ts';
import type { Attempt } from './attempt.ts';
import { isEventStream, readPlainAnswer, readStreamedAnswer } from './collect.ts';
import type { PreparedCompletion } from './prepare.ts';
import { answerHeaders, type ResponseContext } from './response-context.ts';

type Whole =
  | { readonly kind: 'answer'; readonly json: string; readonly lease: Lease | null }
  | { readonly kind: 'refused' | 'failed'; readonly error: ApiError };

/** `hasOutput`: its upstream sent some, so that no other target is asked (R5). */
type WholeResult = Whole & { readonly hasOutput: boolean };

const encoder = new TextEncoder();

export async function respondWithJson(answering: ResponseContext): Promise<Response> {
  const { prepared, meter, runner } = answering;
  const { deadline, settings } = prepared.context;
  const { deadlineMs } = settings.timers;
  deadline.watch(() => runner.stop());
  const whole = await readAny(answering);
  deadline.stop();
  const headers = answerHeaders(answering);
  if (whole.kind === 'answer') {
    const bytes = encoder.encode(whole.json);
    meter.wrote(bytes.length);
    meter.settle({ kind: 'finished' });
    headers['content-type'] = JSON_TYPE;
    return new Response(sending(bytes, whole.lease), { headers });
  }
  const error = deadline.isOver ? deadlineExceeded(runner.current.upstream, deadlineMs) : whole.error;
  meter.settle({ kind: deadline.isOver ? 'timed_out' : whole.kind, error });
  return clientError(prepared.client, prepared.context, error, headers);
}

/** The answer of the first target that has one, or why the last one has none. */
async function readAny({ prepared, runner }: ResponseContext): Promise<WholeResult> {
  let attempt: Attempt | null = runner.current;
  while (attempt !== null) {
    const whole = await readAttempt(prepared, attempt);
    if (whole.kind === 'answer') {
      if (whole.hasOutput) runner.succeeded(attempt);
      if (whole.hasOutput || !runner.endedEmpty(attempt)) return whole;
      whole.lease?.release();
    } else {
      const last = whole.hasOutput ? whole.error : runner.failed(attempt, whole.error);
      if (last !== null) return { ...whole, error: last };
    }
    attempt = await runner.next();
  }
  // Its time is over, or its client has left.
  return { kind: 'failed', error: apiError('timeout', 'The request is over'), hasOutput: false };
}

async function readAttempt(prepared: PreparedCompletion, attempt: Attempt): Promise<WholeResult> {
  const { client } = prepared;
  const own = client.jsonWriter(writerOptions(prepared));
  const options = passthroughOptions(prepared, attempt.facts);
  const write = (answer: JsonObject) => client.passthrough?.writeJson(answer, options) ?? answer;
  const builder = attempt.facts.passthrough === null ? own : new PassthroughJsonWriter(own, write);
  const reader = new EventReader(answerOptions(prepared, attempt.facts, attempt.meter.accumulator), builder);
  attempt.startTimeout(
    () => attempt.cancel(),
    () => reader.hasOutput,
  );
  const result = await attempt.response;
  const whole: Whole =
    result.kind === 'error'
      ? { kind: 'refused', error: result.error }
      : await readWhole(prepared, attempt, result.response, reader, builder);
  attempt.stopTimeout();
  const { timeoutError } = attempt;
  if (timeoutError === null) return { ...whole, hasOutput: reader.hasOutput };
  if (whole.kind === 'answer') whole.lease?.release();
  return { kind: 'refused', error: timeoutError, hasOutput: false };
}

async function readWhole(
  { context }: PreparedCompletion,
  { upstream }: Attempt,
  response: Response,
  reader: EventReader,
  builder: JsonWriter,
): Promise<Whole> {
  let lease: Lease | null = null;
  try {
    if (isEventStream(response, false)) {
      const { clock } = context.ports;
      const held = () => builder.heldChars;
      lease = await readStreamedAnswer(response, reader, held, upstream, clock, context.leaseMemory);
    } else {
      const read = await readPlainAnswer(response, upstream, context.leaseMemory);
      if (read.kind === 'error') return { kind: 'refused', error: read.error };
      lease = read.lease;
      reader.plain(read.answer);
      await lease.pause();
    }
    if (builder.failure === null) return { kind: 'answer', json: builder.take(), lease };
  } catch (error) {
    lease?.release();
    throw error;
  }
  lease?.release();
  return { kind: 'failed', error: errorBeforeHead(builder.failure, upstream) };
}

/** A body that has its share of the isolate's memory keeps it until its client has taken the last byte, or has gone. */
function sending(bytes: Uint8Array, lease: Lease | null): Uint8Array | ReadableStream<Uint8Array> {
  lease?.endWork();
  if (lease === null || bytes.length <= SMALL_BYTES) {
    lease?.release();
    return bytes;
  }
  const { readable, writable } = new FixedLengthStream(bytes.length);
  const writer = writable.getWriter();
  writer
    .write(bytes)
    .then(() => writer.close())
    .catch(() => {})
    .finally(lease.release);
  return readable;
}
