/** Responds with one JSON object, whether the upstream sends an object or an event stream. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { deadlineExceeded } from '../canonical/upstream-error.ts';
import { clientError, JSON_TYPE } from '../http/respond.ts';
import type { RequestEnd } from '../metering/request-meter.ts';
import { PassthroughJsonWriter } from '../protocols/shared/passthrough-writer.ts';
import type { JsonObject } from '../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { type Lease, SMALL_BYTES, SMALL_LEASE } from '../stream/memory.ts';
import { UpstreamPump } from '../stream/pipeline.ts';
import type { JsonWriter } from '../stream/types.ts';
import { errorBeforeHead } from '../upstream/errors.ts';
import { memoryExhausted, openResponse, responseTooLarge } from '../upstream/fetch.ts';
import type { Attempt } from './attempt-runner.ts';
import type { PreparedCompletion } from './prepare.ts';
import {
  eventReaderOptions,
  passthroughOptions,
  type ResponseContext,
  responseHeaders,
  writerOptions,
} from './response-context.ts';

interface Collected {
  readonly json: string;
  /** The memory of the object; null if it is small. */
  readonly lease: Lease | null;
}

type FailedEnd = Extract<RequestEnd, { error: ApiError }>;

/** The bound on a stream that is collected into one object. Most of its bytes are the frames around the text. */
const MAX_COLLECTED_STREAM_BYTES = 64 * 1024 * 1024;

const encoder = new TextEncoder();

export async function respondWithJson(response: ResponseContext): Promise<Response> {
  const { prepared, meter, runner, settle } = response;
  const { deadline, settings } = prepared.context;
  deadline.watch(() => runner.stop());
  const collected = await collectAttempts(response);
  deadline.stop();
  const headers = responseHeaders(response);
  if (collected.kind === 'error') {
    const { deadlineMs } = settings.timers;
    const end: FailedEnd = deadline.isOver
      ? { kind: 'timed_out', error: deadlineExceeded(runner.current.upstream, deadlineMs) }
      : collected.error;
    settle(end);
    return clientError(prepared.client, prepared.context, end.error, headers);
  }
  const { json, lease } = collected.value;
  const bytes = encoder.encode(json);
  meter.wrote(bytes.length);
  settle({ kind: 'finished' });
  headers['content-type'] = JSON_TYPE;
  return new Response(bodyOf(bytes, lease), { headers });
}

/** The object of the first attempt that has one, or the last error. */
async function collectAttempts({ prepared, runner }: ResponseContext): Promise<Result<Collected, FailedEnd>> {
  for await (const attempt of runner.attempts()) {
    const { result, hasOutput } = await collectAttempt(prepared, attempt);
    if (result.kind === 'ok') {
      if (hasOutput) runner.succeeded(attempt);
      if (hasOutput || !runner.endedEmpty(attempt)) return result;
      result.value.lease?.release();
    } else {
      const last = hasOutput ? result.error.error : runner.failed(attempt, result.error.error);
      if (last !== null) return failure({ ...result.error, error: last });
    }
  }
  // The deadline passed or the client disconnected between two attempts.
  return failure({ kind: 'failed', error: apiError('timeout', 'The request is over') });
}

interface CollectedAttempt {
  readonly result: Result<Collected, FailedEnd>;
  /** Whether the upstream sent output. No other target is then tried. */
  readonly hasOutput: boolean;
}

async function collectAttempt(prepared: PreparedCompletion, attempt: Attempt): Promise<CollectedAttempt> {
  const collector = new Collector(prepared, attempt);
  attempt.startTimeout(
    () => attempt.cancel(),
    () => collector.hasOutput,
  );
  const result = await collector.collect();
  attempt.stopTimeout();
  const { timeoutError } = attempt;
  if (timeoutError === null) return { result, hasOutput: collector.hasOutput };
  if (result.kind === 'ok') result.value.lease?.release();
  return { result: failure({ kind: 'refused', error: timeoutError }), hasOutput: false };
}

/** Reads an attempt's response with the pump of streams, into one object in place of a client's stream. */
class Collector {
  readonly #prepared: PreparedCompletion;
  readonly #attempt: Attempt;
  readonly #writer: JsonWriter;
  readonly #pump: UpstreamPump;
  #lease: Lease | null = null;
  #bytes = 0;

  constructor(prepared: PreparedCompletion, attempt: Attempt) {
    this.#prepared = prepared;
    this.#attempt = attempt;
    this.#writer = jsonWriter(prepared, attempt);
    this.#pump = new UpstreamPump(eventReaderOptions(prepared, attempt), this.#writer, null, {
      clock: prepared.context.ports.clock,
      // The lease of the collected object covers its events.
      leaseMemory: () => Promise.resolve(SMALL_LEASE),
      flush: () => this.#reserveMemory(),
      onRead: (_hasEvent, bytes) => this.#count(bytes),
    });
  }

  get hasOutput(): boolean {
    return this.#pump.hasOutput;
  }

  async collect(): Promise<Result<Collected, FailedEnd>> {
    const { upstream } = this.#attempt;
    const response = await this.#attempt.response;
    if (response.kind === 'error') return failure({ kind: 'refused', error: response.error.error });
    const { leaseMemory } = this.#prepared.context;
    const opened = await openResponse(response.value, upstream, false, leaseMemory);
    if (opened.kind === 'error') return failure({ kind: 'refused', error: opened.error });
    const body = opened.value;
    try {
      if (body.kind === 'events') {
        await this.#pump.pump(body.events);
        this.#pump.cancel();
      } else {
        this.#lease = body.lease;
        await this.#pump.sendResponse(body.object);
        await body.lease.pause();
      }
      if (this.#writer.failure === null) return ok({ json: this.#writer.take(), lease: this.#lease });
    } catch (error) {
      this.#lease?.release();
      throw error;
    }
    this.#lease?.release();
    return failure({ kind: 'failed', error: errorBeforeHead(this.#writer.failure, upstream) });
  }

  #reserveMemory(): Promise<void> | undefined {
    const isSmall = this.#writer.heldChars <= SMALL_BYTES;
    if (isSmall || this.#lease !== null || this.#pump.isOver) return undefined;
    return this.#prepared.context.leaseMemory(MAX_RESPONSE_BYTES).then((lease) => {
      this.#lease = lease;
      if (lease === null) this.#pump.fail(memoryExhausted(this.#attempt.upstream));
      else lease.markReceived();
    });
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_COLLECTED_STREAM_BYTES) this.#pump.fail(responseTooLarge(this.#attempt.upstream));
  }
}

function jsonWriter(prepared: PreparedCompletion, attempt: Attempt): JsonWriter {
  const { client } = prepared;
  const writer = client.jsonWriter(writerOptions(prepared));
  if (attempt.facts.passthrough === null) return writer;
  const options = passthroughOptions(prepared, attempt);
  const write = (object: JsonObject) => client.passthrough?.writeJson(object, options) ?? object;
  return new PassthroughJsonWriter(writer, write);
}

/** A large body keeps its memory until the client has taken the last byte or has disconnected. */
export function bodyOf(bytes: Uint8Array, lease: Lease | null): Uint8Array | ReadableStream<Uint8Array> {
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
