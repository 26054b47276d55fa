/** Passthrough of Responses: which fields of a request matter to the gateway, and how a provider's events and responses change. */

import { readProviderTag } from '../../canonical/reasoning-details.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJsonExactly,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { Passthrough, PassthroughOptions } from '../shared/client-protocol.ts';
import { type PassthroughFormat, PassthroughWriter } from '../shared/passthrough-writer.ts';
import { streamErrorOf } from './client-errors.ts';
import { DONE_FRAME, eventFrame, HEARTBEAT_FRAME } from './client-writer.ts';
import { isOwnReasoningId } from './items.ts';
import { ResponseObject, type UpstreamResponse } from './response-object.ts';
import { EMPTY_SESSION } from './session.ts';

export const responsesPassthrough: Passthrough = {
  protocol: 'responses',
  outputLimitField: 'max_output_tokens',
  // Items and tools of unknown types.
  promptFields: /^(?:input|tools)\./,
  compactsContext: ({ context_management: management }) => Array.isArray(management) && management.length > 0,
  backgroundField: 'background',
  requestHeaders: [],
  responseHeaders: [],
  withoutReasoningStates,
  streamWriter: (options) => new PassthroughWriter(() => new ResponsesFormat(options), options.maxEventBytes),
  writeJson: (response, options) =>
    response.object === 'response' ? convertResponse(response, options) : response,
};

/** Removes the reasoning items of other providers: without its encoded state, an item is of no use to this one. */
function withoutReasoningStates(body: JsonObject): JsonObject {
  const { input } = body;
  if (!Array.isArray(input) || !input.some(isOwnReasoning)) return body;
  return { ...body, input: input.filter((item) => !isOwnReasoning(item)) };
}

/** Whether an item is reasoning that this gateway wrote. */
function isOwnReasoning(item: unknown): boolean {
  if (!isObject(item) || item.type !== 'reasoning') return false;
  return readProviderTag(item.encrypted_content) !== null || isOwnReasoningId(item.id);
}

/** Keeps track of the numbers of a stream's events and of its response, so that a failure can end the stream consistently. */
class ResponsesFormat implements PassthroughFormat {
  readonly #options: PassthroughOptions;
  /** The number of the client's next event. */
  #nextNumber = 0;
  /** How many events the client did not receive. */
  #droppedEvents = 0;
  #response: UpstreamResponse | null = null;

  constructor(options: PassthroughOptions) {
    this.#options = options;
  }

  /** After a dropped event the numbers differ from the upstream's. */
  get canCopyEvents(): boolean {
    return this.#droppedEvents === 0;
  }

  heartbeat(): string {
    return HEARTBEAT_FRAME;
  }

  eventData(_: string, data: string, event: JsonObject): string | null {
    if (this.#options.reasoning === 'strip' && isReasoningText(event)) {
      this.#droppedEvents++;
      return null;
    }
    const { sequence_number, response } = event;
    const number = readCount(sequence_number);
    this.#nextNumber = (number === undefined ? this.#nextNumber : number - this.#droppedEvents) + 1;
    if (isObject(response)) this.#response = readResponse(convertResponse(response, this.#options));
    return convertEvent(data, event, this.#droppedEvents, this.#options);
  }

  /** The fast path does not read the number, but the protocol counts events one by one. */
  eventCopied(): void {
    this.#nextNumber++;
  }

  /** The failed response has no output items, because none are kept here. */
  failure(failure: StreamFailure): string {
    const error = streamErrorOf(failure);
    const upstream = this.#response ?? {};
    const options = { session: EMPTY_SESSION, writer: this.#options, events: null, upstream };
    const response = new ResponseObject(options, null);
    // A stream that only had heartbeats lacks the first two events.
    const begin = this.#nextNumber === 0 ? this.#beginFrames(response) : '';
    const errorFrame = this.#frame('error', `"error":${JSON.stringify(error)}`);
    const failed = this.#frame('response.failed', `"response":${response.failed(error)}`);
    return begin + errorFrame + failed + DONE_FRAME;
  }

  #beginFrames({ inProgress }: ResponseObject): string {
    const members = `"response":${inProgress}`;
    return this.#frame('response.created', members) + this.#frame('response.in_progress', members);
  }

  #frame(type: string, members: string): string {
    return eventFrame(type, members, this.#nextNumber++);
  }
}

function readResponse({ id, created_at, model }: JsonObject): UpstreamResponse {
  return { id: readText(id), created: readCount(created_at), model: readText(model) };
}

/** DeepSeek sends reasoning in `content_part` events with parts of these types (recorded 2026-08: deepseek--responses-*). */
const REASONING_PARTS: readonly unknown[] = ['reasoning_text', 'summary_text'];

/** Whether an event has only a text of reasoning, or announces one. */
function isReasoningText({ type, part }: JsonObject): boolean {
  return (
    (readText(type) ?? '').startsWith('response.reasoning') || REASONING_PARTS.includes(objectOf(part).type)
  );
}

/**
 * The event's data with the gateway's name of the model, and without the reasoning that the policy strips.
 * @param data as it came
 * @param droppedEvents how many earlier events the client did not receive: its numbers have no gaps
 */
function convertEvent(
  data: string,
  event: JsonObject,
  droppedEvents: number,
  options: PassthroughOptions,
): string {
  const isStripped = options.reasoning === 'strip' && objectOf(event.item).type === 'reasoning';
  if (!isObject(event.response) && !isStripped && droppedEvents === 0) return data;
  const exact = objectOf(parseJsonExactly(data));
  const { response, item } = exact;
  const number = readCount(exact.sequence_number);
  return JSON.stringify({
    ...exact,
    ...(isObject(response) ? { response: convertResponse(response, options) } : {}),
    ...(isStripped && isObject(item) ? { item: withoutReasoningText(item) } : {}),
    ...(number === undefined ? {} : { sequence_number: number - droppedEvents }),
  });
}

function convertResponse(response: JsonObject, { provider, reasoning }: PassthroughOptions): JsonObject {
  const model = readText(response.model);
  const named = model === undefined ? response : { ...response, model: `${provider}/${model}` };
  if (reasoning === 'pass' || !Array.isArray(response.output)) return named;
  const output = response.output.map((item: unknown) => (isObject(item) ? withoutReasoningText(item) : item));
  return { ...named, output };
}

/** The provider only needs the id and `encrypted_content` back. */
function withoutReasoningText(item: JsonObject): JsonObject {
  if (item.type !== 'reasoning') return item;
  const content = readArray(item.content).length === 0 ? {} : { content: [] };
  return { ...item, summary: [], ...content };
}
