/** Answers with one object, whichever way the upstream sends it, within the request's deadline (T3). */
import type { ApiError } from '../canonical/error.ts';
import { SMALL_BYTES } from '../canonical/limits.ts';
import { deadlineExceeded } from '../canonical/upstream-error.ts';
import type { Tally } from '../metering/tally.ts';
import { AnswerReader } from '../stream/answer-reader.ts';
import { CompletionBuilder } from '../stream/completion-builder.ts';
import type { Lease } from '../stream/memory.ts';
import { errorBeforeHead } from '../upstream/classify.ts';
import { isEventStream, readPlainAnswer, readStreamedAnswer } from '../upstream/collect.ts';
import { type Answering, answerHeaders } from './answering.ts';
import { Deadline } from './deadline.ts';
import { answerOptions, type Exchange } from './exchange.ts';
import { errorResponse, JSON_TYPE } from './respond.ts';

type WholeResult =
  | { readonly kind: 'answer'; readonly json: string; readonly lease: Lease | null }
  | { readonly kind: 'refused' | 'failed'; readonly error: ApiError };

const encoder = new TextEncoder();

export async function answerWhole({ exchange, meter, call, abort }: Answering): Promise<Response> {
  const { ports, settings, arrivedAt } = exchange.context;
  const { deadlineMs } = settings.pacing;
  const deadline = new Deadline(ports.clock, arrivedAt, deadlineMs, abort);
  const result = await call;
  const whole: WholeResult =
    result.kind === 'error'
      ? { kind: 'refused', error: result.error }
      : await readWhole(exchange, result.response, meter.tally);
  deadline.stop();
  const headers = answerHeaders(exchange, result.kind === 'error' ? result.headers : result.response.headers);
  if (whole.kind === 'answer') {
    const bytes = encoder.encode(whole.json);
    meter.wrote(bytes.length);
    meter.settle({ kind: 'finished' });
    headers.set('content-type', JSON_TYPE);
    return new Response(sending(bytes, whole.lease), { headers });
  }
  const error = deadline.isOver ? deadlineExceeded(exchange.upstream, deadlineMs) : whole.error;
  meter.settle({ kind: deadline.isOver ? 'timed_out' : whole.kind, error });
  return errorResponse(error, headers);
}

async function readWhole(exchange: Exchange, response: Response, tally: Tally): Promise<WholeResult> {
  const { upstream, callerPays, context } = exchange;
  const builder = new CompletionBuilder();
  const reader = new AnswerReader(answerOptions(exchange, tally), builder);
  let lease: Lease | null = null;
  try {
    if (isEventStream(response, false)) {
      const { clock } = context.ports;
      const held = () => builder.heldChars;
      lease = await readStreamedAnswer(response, reader, held, upstream, clock, context.leaseMemory);
    } else {
      const read = await readPlainAnswer(response, upstream, callerPays, context.leaseMemory);
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
  return { kind: 'failed', error: errorBeforeHead(builder.failure, upstream, callerPays) };
}

/** A body that has its share of the isolate's memory keeps it until its client has taken the last byte, or has gone. */
function sending(bytes: Uint8Array, lease: Lease | null): Uint8Array | ReadableStream<Uint8Array> {
  lease?.end();
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
