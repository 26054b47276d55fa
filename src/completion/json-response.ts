/** Responds with one JSON object, whether the upstream sends an object or an event stream. */
import { type Answer, JSON_TYPE } from '../http/respond.ts';
import { PassthroughJsonWriter } from '../protocols/shared/passthrough-writer.ts';
import type { JsonObject } from '../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../shared/limits.ts';
import { EventReader } from '../stream/event-reader.ts';
import { type MemoryGrant, SMALL_BYTES, SMALL_GRANT } from '../stream/memory.ts';
import type { RelayOutput } from '../stream/relay.ts';
import { failedWith, type JsonWriter } from '../stream/types.ts';
import { memoryExhausted, responseTooLarge } from '../upstream/fetch.ts';
import type { Attempt, AttemptRunner, Delivered, Delivery } from './attempt-runner.ts';
import type { CompletionRequest } from './prepare.ts';
import { readResponse } from './read-response.ts';
import {
  eventReaderOptions,
  passthroughOptions,
  responseHeaders,
  runToDeadline,
  writerOptions,
} from './response-context.ts';

/** The bound on a stream that is collected into one object. Most of its bytes are the frames around the text. */
const MAX_COLLECTED_STREAM_BYTES = 64 * 1024 * 1024;

const encoder = new TextEncoder();

/** Never rejects for what an upstream does. The request is settled when its response is there. */
export async function respondWithJson(runner: AttemptRunner): Promise<Answer> {
  const outcome = await runToDeadline(runner, new JsonDelivery(runner.request));
  if (outcome.kind === 'error') return outcome.error;
  const collected = outcome.value;
  const headers = responseHeaders(runner);
  const bytes = encoder.encode(collected.take());
  runner.meter.wrote(bytes.length);
  runner.settle({ kind: 'finished' });
  headers['content-type'] = JSON_TYPE;
  return new Response(bodyOf(bytes, collected.grant), { headers });
}

class JsonDelivery implements Delivery<Collector> {
  readonly #request: CompletionRequest;

  constructor(request: CompletionRequest) {
    this.#request = request;
  }

  async deliver(attempt: Attempt): Promise<Delivered<Collector>> {
    const collector = new Collector(this.#request, attempt);
    const outcome = await collector.collect();
    return { outcome, isCommitted: attempt.relay.hasOutput, value: collector };
  }

  discard(collector: Collector | null): void {
    collector?.grant?.release();
  }
}

/** Collects an attempt's response into one object, in place of a client's stream. */
class Collector implements RelayOutput {
  readonly #request: CompletionRequest;
  readonly #attempt: Attempt;
  readonly #writer: JsonWriter;
  /** The memory of the object; null if it is small. */
  grant: MemoryGrant | null = null;
  #bytes = 0;

  constructor(request: CompletionRequest, attempt: Attempt) {
    this.#request = request;
    this.#attempt = attempt;
    this.#writer = jsonWriter(request, attempt);
  }

  async collect() {
    const attempt = this.#attempt;
    try {
      const { outcome, value } = await readResponse(
        attempt,
        this.#request,
        this,
        () => new EventReader(eventReaderOptions(this.#request, attempt), this.#writer),
      );
      this.grant ??= value;
      await value?.pause();
      if (outcome.kind === 'failed') this.grant?.release();
      return outcome;
    } catch (error) {
      this.grant?.release();
      throw error;
    }
  }

  /** The object's JSON. Only of a complete output. */
  take(): string {
    return this.#writer.take();
  }

  /** The grant of the collected object covers its events. */
  takeMemory(): Promise<MemoryGrant> {
    return Promise.resolve(SMALL_GRANT);
  }

  flush(): Promise<void> | undefined {
    const { relay, upstream } = this.#attempt;
    if (relay.hasOutput) this.#attempt.stopTimeout();
    if (this.#writer.heldChars <= SMALL_BYTES || this.grant !== null) return undefined;
    return this.#request.context.takeMemory(MAX_RESPONSE_BYTES).then((grant) => {
      this.grant = grant;
      if (grant === null) relay.end(failedWith(memoryExhausted(upstream)));
      else grant.markReceived();
    });
  }

  onRead(_hasEvent: boolean, bytes: number): void {
    const { relay, upstream } = this.#attempt;
    this.#bytes += bytes;
    if (this.#bytes > MAX_COLLECTED_STREAM_BYTES) relay.end(failedWith(responseTooLarge(upstream)));
  }
}

function jsonWriter(request: CompletionRequest, attempt: Attempt): JsonWriter {
  const { client } = request;
  const writer = client.jsonWriter(writerOptions(request));
  if (attempt.traits.passthrough === null) return writer;
  const options = passthroughOptions(request, attempt);
  const write = (object: JsonObject) => client.passthrough?.writeJson(object, options) ?? object;
  return new PassthroughJsonWriter(writer, write);
}

/** A large body keeps its memory until the client has taken the last byte or has disconnected. */
export function bodyOf(
  bytes: Uint8Array,
  grant: MemoryGrant | null,
): Uint8Array | ReadableStream<Uint8Array> {
  grant?.endWork();
  if (grant === null || bytes.length <= SMALL_BYTES) {
    grant?.release();
    return bytes;
  }
  const { readable, writable } = new FixedLengthStream(bytes.length);
  const writer = writable.getWriter();
  writer
    .write(bytes)
    .then(() => writer.close())
    .catch(() => {})
    .finally(grant.release);
  return readable;
}
