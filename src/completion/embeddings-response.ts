/** Responds with embeddings: passes the provider's bytes on and reads only the usage in them, or converts a response in another form. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { brokenConnection, deadlineExceeded, findUpstreamError } from '../canonical/upstream-error.ts';
import { clientError, JSON_TYPE } from '../http/respond.ts';
import type { Endpoint } from '../providers/provider.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { readBodyText } from '../stream/read-body.ts';
import { errorBeforeHead } from '../upstream/errors.ts';
import { memoryExhausted, responseTooLarge } from '../upstream/fetch.ts';
import type { Attempt } from './attempt-runner.ts';
import { bodyOf } from './json-response.ts';
import { type ResponseContext, responseHeaders } from './response-context.ts';

/** A response that can be sent. Exactly one of the two must be called. */
interface OpenEmbeddings {
  /** Starts the response's body. */
  readonly send: () => Uint8Array | ReadableStream<Uint8Array>;
  readonly discard: () => void;
}

export async function respondWithEmbeddings(response: ResponseContext): Promise<Response> {
  const { prepared, runner, settle } = response;
  const { deadline, settings } = prepared.context;
  deadline.watch(() => runner.stop());
  let error = apiError('timeout', 'The request is over');
  for await (const attempt of runner.attempts()) {
    attempt.startTimeout(() => attempt.cancel());
    const opened = await openEmbeddings(attempt, response);
    attempt.stopTimeout();
    if (opened.kind === 'ok' && attempt.timeoutError === null) {
      runner.succeeded(attempt);
      const headers = { ...responseHeaders(response), 'content-type': JSON_TYPE };
      return new Response(opened.value.send(), { headers });
    }
    if (opened.kind === 'ok') opened.value.discard();
    const failed = attempt.timeoutError ?? (opened.kind === 'error' ? opened.error : error);
    error = runner.failed(attempt, failed) ?? error;
  }
  if (deadline.isOver) {
    error = deadlineExceeded(runner.current.upstream, settings.timers.deadlineMs);
    settle({ kind: 'timed_out', error });
  } else settle({ kind: 'refused', error });
  return clientError(prepared.client, prepared.context, error, responseHeaders(response));
}

async function openEmbeddings(
  attempt: Attempt,
  response: ResponseContext,
): Promise<Result<OpenEmbeddings, ApiError>> {
  const called = await attempt.response;
  if (called.kind === 'error') return failure(called.error.error);
  const { convertEmbeddings } = attempt.facts.target.endpoint;
  return convertEmbeddings === undefined
    ? passEmbeddings(called.value, attempt, response)
    : convert(called.value, convertEmbeddings, attempt, response);
}

async function convert(
  message: Response,
  convertEmbeddings: NonNullable<Endpoint['convertEmbeddings']>,
  { upstream, facts, meter: attemptMeter }: Attempt,
  { prepared, meter, settle }: ResponseContext,
): Promise<Result<OpenEmbeddings, ApiError>> {
  const read = await readBodyText({ message, maxBytes: MAX_RESPONSE_BYTES }, prepared.context.leaseMemory);
  if (read.kind === 'too_large') return failure(responseTooLarge(upstream));
  if (read.kind === 'memory_exhausted') return failure(memoryExhausted(upstream));
  if (read.kind !== 'text') return failure(brokenConnection(upstream));
  const { lease, text } = read;
  await lease.pause();
  const converted = convertEmbeddings(text, {
    model: facts.target.model,
    isBase64: prepared.isBase64,
    estimatedTokens: prepared.promptTokens,
  });
  if (converted === null) {
    lease.release();
    return failure(noEmbeddings(upstream.name));
  }
  attemptMeter.accumulator.usage({ prompt: converted.promptTokens, completion: 0 });
  return ok({
    send: () => {
      const bytes = new TextEncoder().encode(converted.json);
      meter.wrote(bytes.length);
      settle({ kind: 'finished' });
      return bodyOf(bytes, lease);
    },
    discard: lease.release,
  });
}

function noEmbeddings(name: string): ApiError {
  return apiError('upstream_invalid', `${name} sent a response without embeddings`);
}

/** Reads the start of the response. An error with a status of success, or anything but an object, fails the attempt before the client receives a byte. */
async function passEmbeddings(
  { body }: Response,
  attempt: Attempt,
  response: ResponseContext,
): Promise<Result<OpenEmbeddings, ApiError>> {
  const { upstream } = attempt;
  const reader = body?.getReader();
  const start = reader === undefined ? null : await readStart(reader);
  if (reader === undefined || start === null) return failure(brokenConnection(upstream));
  const discard = () => void reader.cancel().catch(() => {});
  const object = parseJson(start.text);
  const upstreamError = isObject(object) ? findUpstreamError(object) : null;
  const isList = start.isComplete
    ? isObject(object) && Array.isArray(object.data)
    : start.text.trimStart().startsWith('{');
  if (isList && upstreamError === null) {
    return ok({ send: () => meteredBody(start, reader, attempt, response), discard });
  }
  discard();
  return failure(errorBeforeHead({ error: noEmbeddings(upstream.name), upstreamError }, upstream));
}

/** How much of a response's start and end is read: for an error in a success, and for the usage. The vectors are between them. */
const EDGE_BYTES = 4096;

interface ResponseStart {
  readonly pieces: readonly Uint8Array[];
  readonly text: string;
  readonly isComplete: boolean;
}

/** Reads the first {@link EDGE_BYTES}, or the whole body if it has fewer; null if the connection broke. */
async function readStart(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ResponseStart | null> {
  const decoder = new TextDecoder();
  const pieces: Uint8Array[] = [];
  let text = '';
  while (text.length < EDGE_BYTES) {
    const read = await reader.read().catch(() => null);
    if (read === null) return null;
    if (read.value === undefined) return { pieces, text, isComplete: true };
    if (read.value.length > 0) pieces.push(read.value);
    text += decoder.decode(read.value.subarray(0, EDGE_BYTES), { stream: true });
  }
  return { pieces, text, isComplete: false };
}

const USAGE = /"usage"\s*:\s*(\{(?:[^{}]|\{[^{}]*\})*\})/;

/** Passes the bytes on. Settles the request after the last one, when the connection breaks, or when the deadline passes. */
function meteredBody(
  start: ResponseStart,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  attempt: Attempt,
  { prepared, meter, settle }: ResponseContext,
): ReadableStream<Uint8Array> {
  const { settings, ports, arrivedAt } = prepared.context;
  const { deadlineMs } = settings.timers;
  const { upstream } = attempt;
  const decoder = new TextDecoder();
  let end = '';
  let isLate = false;
  const pass = (bytes: Uint8Array, controller: ReadableStreamDefaultController<Uint8Array>) => {
    end = (end + decoder.decode(bytes.subarray(-EDGE_BYTES))).slice(-EDGE_BYTES);
    meter.wrote(bytes.length);
    controller.enqueue(bytes);
  };
  const countUsage = () =>
    attempt.meter.accumulator.usage({ ...readUsage(end, start.text, attempt), completion: 0 });
  const late = deadlineExceeded(upstream, deadlineMs);
  const onLate = () => {
    isLate = true;
    countUsage();
    settle({ kind: 'timed_out', error: late });
    void reader.cancel().catch(() => {});
  };
  // The request's own deadline ends with its head. Without a bound, an upstream that sends nothing more, or a client that reads
  // nothing more, would hold the reservation.
  const leftMs = Math.max(0, arrivedAt + deadlineMs - ports.clock.now());
  const cancelTimer = deadlineMs === 0 ? () => {} : ports.clock.startTimer(leftMs, onLate);
  return new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const piece of start.pieces) pass(piece, controller);
    },
    async pull(controller) {
      const read = await reader.read().catch(() => null);
      if (read?.value !== undefined) return pass(read.value, controller);
      cancelTimer();
      if (isLate) return controller.error(new Error(late.message));
      countUsage();
      if (read?.done === true && end.trimEnd().endsWith('}')) {
        settle({ kind: 'finished' });
        return controller.close();
      }
      const error = brokenConnection(upstream);
      settle({ kind: 'failed', error });
      controller.error(new Error(error.message));
    },
    cancel() {
      cancelTimer();
      settle({ kind: 'cancelled' });
    },
  });
}

/** The usage in one of the texts, as the provider's chats report it; empty if there is none. */
function readUsage(end: string, start: string, { facts }: Attempt) {
  const found = USAGE.exec(end) ?? USAGE.exec(start);
  const usage = parseJson(found?.[1] ?? '');
  const { provider, endpoint } = facts.target;
  const reader = endpoint.protocol.open(provider.quirks ?? {}, provider.id);
  return isObject(usage) ? (reader.response({ usage }).usage ?? {}) : {};
}
