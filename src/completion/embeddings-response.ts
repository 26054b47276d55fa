/** Responds with embeddings: passes the provider's bytes on and reads only the usage in them, or converts a response in another form. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { brokenConnection, deadlineExceeded, findUpstreamError } from '../canonical/upstream-error.ts';
import { type Answer, JSON_TYPE } from '../http/respond.ts';
import type { BoundProtocol } from '../protocols/shared/client-protocol.ts';
import type { Endpoint } from '../providers/provider.ts';
import { disconnection } from '../shared/disconnection.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { readBodyText } from '../stream/read-body.ts';
import { DONE, type Failed, failed, failedWith } from '../stream/types.ts';
import { memoryExhausted, responseTooLarge } from '../upstream/fetch.ts';
import type { Attempt, AttemptRunner, Delivered, Delivery } from './attempt-runner.ts';
import { bodyOf } from './json-response.ts';
import { responseHeaders, runToDeadline } from './response-context.ts';

/** A response that can be sent. Exactly one of the two must be called. */
interface OpenEmbeddings {
  /** Starts the response's body. */
  readonly send: () => Uint8Array | ReadableStream<Uint8Array>;
  /** Frees the memory, or cancels the body. */
  readonly release: () => void;
}

/** Never rejects for what an upstream does. The request is settled with the last byte of the response. */
export async function respondWithEmbeddings(runner: AttemptRunner): Promise<Answer> {
  const opened = await runToDeadline(runner, new EmbeddingsDelivery(runner));
  if (opened.kind === 'error') return opened.error;
  const headers = { ...responseHeaders(runner), 'content-type': JSON_TYPE };
  return new Response(opened.value.send(), { headers });
}

class EmbeddingsDelivery implements Delivery<OpenEmbeddings> {
  readonly #runner: AttemptRunner;

  constructor(runner: AttemptRunner) {
    this.#runner = runner;
  }

  async deliver(attempt: Attempt): Promise<Delivered<OpenEmbeddings>> {
    const { relay } = attempt;
    const head = await attempt.head();
    if (head.kind === 'error') return { outcome: head.error, isCommitted: false, value: null };
    const opening = openEmbeddings(head.value, attempt, this.#runner);
    const opened = await relay.until(opening, (late) => late.kind === 'ok' && late.value.release());
    if (opened === null) return { outcome: relay.outcome, isCommitted: false, value: null };
    if (opened.kind === 'error') return { outcome: opened.error, isCommitted: false, value: null };
    return { outcome: DONE, isCommitted: true, value: opened.value };
  }

  discard(opened: OpenEmbeddings | null): void {
    opened?.release();
  }
}

function openEmbeddings(
  message: Response,
  attempt: Attempt,
  runner: AttemptRunner,
): Promise<Result<OpenEmbeddings, Failed>> {
  const converter = converterOf(attempt, runner.request.client.embeddings);
  return converter === null
    ? passEmbeddings(message, attempt, runner)
    : convert(message, converter, attempt, runner);
}

/** What makes the client's form of a provider's response; null: the provider has it. */
function converterOf(
  { traits: { passthrough, target } }: Attempt,
  client: BoundProtocol['embeddings'],
): NonNullable<Endpoint['convertEmbeddings']> | null {
  const { convertEmbeddings } = target.endpoint;
  if (client === undefined) return convertEmbeddings ?? null;
  if (passthrough !== null) return client.passed;
  return (text, options) => {
    const standard = convertEmbeddings === undefined ? { json: text } : convertEmbeddings(text, options);
    return standard === null ? null : client.converted(standard.json);
  };
}

function refuse(error: ApiError): Result<never, Failed> {
  return failure(failedWith(error, 'no_response'));
}

async function convert(
  message: Response,
  convertEmbeddings: NonNullable<Endpoint['convertEmbeddings']>,
  { upstream, traits, meter: attemptMeter }: Attempt,
  runner: AttemptRunner,
): Promise<Result<OpenEmbeddings, Failed>> {
  const { context, isBase64, promptTokens } = runner.request;
  const bodyText = await readBodyText({ message, maxBytes: MAX_RESPONSE_BYTES }, context.takeMemory);
  if (bodyText.kind === 'too_large') return refuse(responseTooLarge(upstream));
  if (bodyText.kind === 'memory_exhausted') return refuse(memoryExhausted(upstream));
  if (bodyText.kind !== 'text') return refuse(brokenConnection(upstream));
  const { grant, text } = bodyText;
  await grant.pause();
  const upstreamError = embeddingsError(text);
  const converted =
    upstreamError !== null
      ? null
      : convertEmbeddings(text, {
          model: traits.target.model,
          isBase64,
          estimatedTokens: promptTokens,
        });
  if (converted === null) {
    grant.release();
    return failure(failed({ error: noEmbeddings(upstream.name), upstreamError }, 'no_response'));
  }
  attemptMeter.accumulator.usage({ prompt: converted.promptTokens, completion: 0 });
  return ok({
    send: () => {
      const bytes = new TextEncoder().encode(converted.json);
      runner.meter.wrote(bytes.length);
      runner.settle({ kind: 'finished' });
      return bodyOf(bytes, grant);
    },
    release: grant.release,
  });
}

/** The error in a response with a status of success; null: there is none. */
function embeddingsError(text: string) {
  // Vectors are long, and an error is short.
  const object = text.length > EDGE_BYTES ? undefined : parseJson(text);
  return isObject(object) ? findUpstreamError(object) : null;
}

function noEmbeddings(name: string): ApiError {
  return apiError('upstream_invalid', `${name} sent a response without embeddings`);
}

/**
 * Reads the start of the response. An error with a status of success, or anything but an object, fails the attempt
 * before the client receives a byte.
 */
async function passEmbeddings(
  { body }: Response,
  attempt: Attempt,
  runner: AttemptRunner,
): Promise<Result<OpenEmbeddings, Failed>> {
  const { upstream } = attempt;
  const reader = body?.getReader();
  const start = reader === undefined ? null : await readStart(reader);
  if (reader === undefined || start === null) return refuse(brokenConnection(upstream));
  const release = () => void reader.cancel().catch(() => {});
  const object = parseJson(start.text);
  const upstreamError = isObject(object) ? findUpstreamError(object) : null;
  const isList = start.isComplete
    ? isObject(object) && Array.isArray(object.data)
    : start.text.trimStart().startsWith('{');
  if (isList && upstreamError === null) {
    return ok({ send: () => meteredBody(start, reader, attempt, runner), release });
  }
  release();
  return failure(failed({ error: noEmbeddings(upstream.name), upstreamError }, 'no_response'));
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
    const chunk = await reader.read().catch(() => null);
    if (chunk === null) return null;
    if (chunk.value === undefined) return { pieces, text, isComplete: true };
    if (chunk.value.length > 0) pieces.push(chunk.value);
    text += decoder.decode(chunk.value.subarray(0, EDGE_BYTES), { stream: true });
  }
  return { pieces, text, isComplete: false };
}

const USAGE = /"usage"\s*:\s*(\{(?:[^{}]|\{[^{}]*\})*\})/;

/** Passes the bytes on. Settles the request after the last one, when the connection breaks, or when the deadline passes. */
function meteredBody(
  start: ResponseStart,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  attempt: Attempt,
  runner: AttemptRunner,
): ReadableStream<Uint8Array> {
  const { settings, ports, arrivedAt } = runner.request.context;
  const { deadlineMs } = settings.timers;
  const { upstream } = attempt;
  const decoder = new TextDecoder();
  let end = '';
  let isLate = false;
  const pass = (bytes: Uint8Array, controller: ReadableStreamDefaultController<Uint8Array>) => {
    end = (end + decoder.decode(bytes.subarray(-EDGE_BYTES))).slice(-EDGE_BYTES);
    runner.meter.wrote(bytes.length);
    controller.enqueue(bytes);
  };
  const countUsage = () =>
    attempt.meter.accumulator.usage({ ...readUsage(end, start.text, attempt), completion: 0 });
  const late = deadlineExceeded(upstream, deadlineMs);
  const onLate = () => {
    isLate = true;
    countUsage();
    runner.settle({ kind: 'timed_out', error: late });
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
      const chunk = await reader.read().catch(() => null);
      if (chunk?.value !== undefined) return pass(chunk.value, controller);
      cancelTimer();
      if (isLate) return controller.error(disconnection(late.message));
      countUsage();
      if (chunk?.done === true && end.trimEnd().endsWith('}')) {
        runner.settle({ kind: 'finished' });
        return controller.close();
      }
      const error = brokenConnection(upstream);
      runner.settle({ kind: 'failed', error });
      controller.error(disconnection(error.message));
    },
    cancel() {
      cancelTimer();
      runner.settle({ kind: 'cancelled' });
    },
  });
}

/** The usage in one of the texts, as the provider's chats report it; empty if there is none. */
function readUsage(end: string, start: string, { traits }: Attempt) {
  const found = USAGE.exec(end) ?? USAGE.exec(start);
  const usage = parseJson(found?.[1] ?? '');
  const { provider, endpoint } = traits.target;
  const reader = endpoint.protocol.open(provider.quirks ?? {}, provider.id);
  return isObject(usage) ? (reader.response({ usage }).usage ?? {}) : {};
}
