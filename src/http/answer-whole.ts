/** Answers with one object, whichever way the upstream sends it, within the request's deadline (T3). */
import type { ApiError } from '../canonical/error.ts';
import { deadlineExceeded } from '../canonical/upstream-error.ts';
import type { Tally } from '../metering/tally.ts';
import { AnswerReader } from '../stream/answer-reader.ts';
import { CompletionBuilder } from '../stream/completion-builder.ts';
import { errorBeforeHead } from '../upstream/classify.ts';
import { isEventStream, readPlainAnswer, readStreamedAnswer } from '../upstream/collect.ts';
import { type Answering, answerHeaders } from './answering.ts';
import { Deadline } from './deadline.ts';
import { answerOptions, type Exchange } from './exchange.ts';
import { errorResponse, JSON_TYPE } from './respond.ts';

type WholeResult =
  | { readonly kind: 'answer'; readonly json: string }
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
    return new Response(bytes, { headers });
  }
  const error = deadline.isOver ? deadlineExceeded(exchange.upstream, deadlineMs) : whole.error;
  meter.settle({ kind: deadline.isOver ? 'timed_out' : whole.kind, error });
  return errorResponse(error, headers);
}

async function readWhole(exchange: Exchange, response: Response, tally: Tally): Promise<WholeResult> {
  const { upstream, callerPays } = exchange;
  const builder = new CompletionBuilder();
  const reader = new AnswerReader(answerOptions(exchange, tally), builder);
  if (isEventStream(response, false)) {
    await readStreamedAnswer(response, reader, upstream, exchange.context.ports.clock);
  } else {
    const read = await readPlainAnswer(response, upstream, callerPays);
    if (read.kind === 'error') return { kind: 'refused', error: read.error };
    reader.plain(read.answer);
  }
  if (builder.failure === null) return { kind: 'answer', json: builder.take() };
  return { kind: 'failed', error: errorBeforeHead(builder.failure, upstream, callerPays) };
}
