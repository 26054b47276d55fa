/** Responds with a stream. The headers are sent with the first output or heartbeat; an error before the first of these is an HTTP error. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type Answer, internalError, refused } from '../http/respond.ts';
import type { RequestEnd } from '../metering/request-meter.ts';
import { EventReader } from '../stream/event-reader.ts';
import type { MemoryGrant } from '../stream/memory.ts';
import { ClientStream, type StreamEnd } from '../stream/relay.ts';
import {
  type Attempt,
  type AttemptRunner,
  type Delivered,
  type Delivery,
  httpErrorOf,
} from './attempt-runner.ts';
import { OutputPacer } from './output-pacer.ts';
import { readResponse } from './read-response.ts';
import {
  eventReaderOptions,
  passthroughOptions,
  responseHeaders,
  writerOptions,
} from './response-context.ts';

const BUDGET_USED_UP = apiError('budget_exceeded', "The key's budget is used up");

const STREAM_TYPE = 'text/event-stream; charset=utf-8';

/**
 * Never rejects. The request is settled when the stream has ended.
 * @returns the response, as soon as its status is known
 */
export async function respondWithStream(runner: AttemptRunner): Promise<Answer> {
  const { request, meter } = runner;
  const { context, client } = request;
  // The stream has its own deadline timer.
  context.deadline.stop();
  const stream = new ClientStream({
    writer: client.streamWriter(writerOptions(request)),
    limits: context.settings.timers,
    clock: context.ports.clock,
    arrivedAt: context.arrivedAt,
    pipe: new IdentityTransformStream(),
    takeMemory: context.takeMemory,
    onWrite: (bytes) => {
      meter.wrote(bytes);
      pacer?.check();
    },
  });
  let isUsedUp = false;
  const { slices = null } = runner.admission ?? {};
  const endByBudget = () => {
    // Between two attempts, the next one finds that there is no room.
    isUsedUp = stream.limit(BUDGET_USED_UP);
    if (isUsedUp) runner.stop();
  };
  const paced = { seenTokens: () => meter.seenTokens, onUsedUp: endByBudget };
  const pacer = slices === null ? null : new OutputPacer(slices, paced, context.ports.clock);
  // The runtime waits for the meter, which settles after both have ended.
  void stream.ended.then((end) => {
    pacer?.stop();
    const ended = requestEnd(end);
    const isEnded = isUsedUp && ended.kind === 'finished';
    if (isEnded) logEnded(runner);
    runner.settle(isEnded ? { kind: 'finished', endedBy: 'budget' } : ended);
  });
  void runAttempts(stream, runner);
  const early = await stream.opened;
  if (early !== null) {
    return refused(client, httpErrorOf(early), responseHeaders(runner));
  }
  const headers = responseHeaders(runner, runner.isDecided);
  headers['content-type'] = client.streamType ?? STREAM_TYPE;
  headers['cache-control'] = 'no-cache, no-transform';
  return new Response(stream.readable, { headers });
}

function logEnded({ request: { context, caller }, meter }: AttemptRunner): void {
  const { ports, requestId } = context;
  ports.log({
    event: 'budget_ended',
    request_id: requestId,
    key_id: caller.keyId,
    output_tokens: meter.seenTokens,
  });
}

/** Never rejects. */
async function runAttempts(stream: ClientStream, runner: AttemptRunner): Promise<void> {
  try {
    const outcome = await runner.run(new StreamDelivery(stream, runner));
    await stream.finish(outcome);
    outcome.value?.release();
  } catch (error) {
    stream.fail(internalError(runner.request.context, error), 'stopped');
  }
}

/** Its value is the memory of a JSON response. */
class StreamDelivery implements Delivery<MemoryGrant> {
  readonly #stream: ClientStream;
  readonly #runner: AttemptRunner;

  constructor(stream: ClientStream, runner: AttemptRunner) {
    this.#stream = stream;
    this.#runner = runner;
  }

  /** The budget of the key may end the stream. */
  get #mayEnd(): boolean {
    return (this.#runner.admission?.slices ?? null) !== null;
  }

  async deliver(attempt: Attempt): Promise<Delivered<MemoryGrant>> {
    const runner = this.#runner;
    const { request } = runner;
    const stream = this.#stream;
    const { relay, traits } = attempt;
    const passthroughWriter =
      traits.passthrough === null
        ? undefined
        : request.client.passthrough?.streamWriter(passthroughOptions(request, attempt, this.#mayEnd));
    const { isIdleTimeoutSet } = request.context.settings;
    const silenceMs = isIdleTimeoutSet ? undefined : traits.target.provider.longestSilenceMs;
    stream.begin({ relay, onOutput: () => runner.succeeded(attempt), silenceMs }, passthroughWriter);
    const outcome = await readResponse(attempt, request, stream, (kind) => {
      const writer = kind === 'events' && passthroughWriter ? passthroughWriter : stream.useOwnWriter();
      return new EventReader(eventReaderOptions(request, attempt), writer, writer);
    });
    outcome.value?.endWork();
    return { ...outcome, isCommitted: relay.hasOutput || stream.isCommitted };
  }

  discard(grant: MemoryGrant | null): void {
    grant?.release();
    this.#stream.wait();
  }
}

/** An error in place of a response means that only the reported tokens were used. A timeout does not mean this. */
function requestEnd({ outcome, isOpen }: StreamEnd): RequestEnd {
  if (outcome.kind === 'cancelled') return { kind: 'cancelled' };
  if (outcome.kind !== 'failed') return { kind: 'finished' };
  const { failure, reason } = outcome;
  const error = httpErrorOf(outcome);
  const isTimedOut = reason === 'idle' || reason === 'deadline';
  if (!isOpen) return { kind: isTimedOut ? 'timed_out' : 'refused', error };
  // The client has the frame's code; whose fault it is follows from the refusal.
  return { kind: isTimedOut ? 'timed_out' : 'failed', error: { ...failure.error, ...classOf(error) } };
}

function classOf({ refusal, weirCode }: ApiError): Pick<ApiError, 'refusal' | 'weirCode'> {
  return { ...(refusal && { refusal }), ...(weirCode && { weirCode }) };
}
