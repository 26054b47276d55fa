/** Writes canonical chunks as a Responses stream: named, numbered events, then `[DONE]`. */
import type { ChatChunk, Chunk } from '../../canonical/chunk.ts';
import { type ApiError, apiError } from '../../canonical/error.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import { DONE_FRAME, frame, HEARTBEAT_FRAME } from '../../stream/sse-frame.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import { streamErrorOf } from './client-errors.ts';
import { BEFORE_NUMBER, type OpenText } from './items.ts';
import { ResponseObject } from './response-object.ts';
import type { ResponsesSession } from './session.ts';

/**
 * The bound on an output, which stays in memory because the last event repeats it: 8 times the text of 64,000 tokens. In UTF-16 units,
 * or in bytes of JSON for text that was never decoded.
 */
export const MAX_REPEATED_TEXT_CHARS = 2 * 1024 * 1024;

/**
 * An event's frame.
 * @param type the full type, with `response.`
 * @param members the JSON members between the type and the number, without braces
 */
export function eventFrame(type: string, members: string, number: number): string {
  return frame(type, `{"type":"${type}",${members}${BEFORE_NUMBER}${number}}`);
}

/** Writes one stream of Responses events. It keeps the output, which the last event repeats, up to {@link MAX_REPEATED_TEXT_CHARS}. */
export class ResponsesWriter implements StreamWriter {
  readonly output: FrameBuffer;
  readonly #session: ResponsesSession;
  readonly #options: WriterOptions;
  #response: ResponseObject | null = null;
  #nextNumber = 0;
  /** The sum of the revisions of discarded responses. */
  #discardedRevisions = 0;

  constructor(session: ResponsesSession, options: WriterOptions) {
    this.#session = session;
    this.#options = options;
    this.output = new FrameBuffer(options.maxEventBytes);
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    const response = this.#response ?? this.#begin(chunk);
    response.add(chunk);
    return !this.#isFull;
  }

  /** The protocol has no vendor events. */
  vendor(): void {}

  end(failure: StreamFailure | null): void {
    const response = this.#response ?? this.#begin(null);
    if (failure === null) {
      const { status, json } = response.ending;
      this.#event(`response.${status}`, `"response":${json}`);
    } else {
      const error = streamErrorOf(this.#isFull ? { error: TOO_LONG, upstreamError: null } : failure);
      this.#event('error', `"error":${JSON.stringify(error)}`);
      this.#event('response.failed', `"response":${response.failed(error)}`);
    }
    // Open Responses requires it. OpenAI does not send it, and clients stop at it or before.
    this.output.text(DONE_FRAME);
  }

  heartbeat(): void {
    // A comment, because clients fail on events that they do not know.
    this.output.text(HEARTBEAT_FRAME);
  }

  restart(): void {
    this.#discardedRevisions = this.revision + 1;
    this.#response = null;
    this.#nextNumber = 0;
  }

  get revision(): number {
    const changes = this.#response?.output.revision ?? 0;
    return this.#discardedRevisions + changes + (this.#isFull ? 1 : 0);
  }

  textFrame(chunk: Chunk): string | null {
    const open = this.#response?.output.openText ?? null;
    const only = onlyText(chunk);
    if (open === null || only === null || only.of !== open.of || this.#isFull) return null;
    if (only.index !== null && this.#response?.output.openCall?.index !== only.index) return null;
    return `${open.head}${JSON.stringify(only.text).slice(1, -1)}${open.tail}`;
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
    this.#writeNumber();
    const output = this.#response?.output;
    if (output === undefined) return;
    output.openText?.text.addRaw(source, from, to);
    output.heldChars += to - from;
  }

  get #isFull(): boolean {
    return (this.#response?.output.heldChars ?? 0) > MAX_REPEATED_TEXT_CHARS;
  }

  #begin(first: ChatChunk | null): ResponseObject {
    const events = { event: (type: string, members: string) => this.#event(`response.${type}`, members) };
    const response = new ResponseObject({ session: this.#session, writer: this.#options, events }, first);
    this.#response = response;
    for (const type of ['response.created', 'response.in_progress']) {
      this.#event(type, `"response":${response.inProgress}`);
    }
    return response;
  }

  #event(type: string, members: string): void {
    this.output.text(eventFrame(type, members, this.#nextNumber++));
  }

  /** Writes bytes: a call of the encoder would cost as much as the rest of the frame. */
  #writeNumber(): void {
    let at = MAX_DIGITS;
    let rest = this.#nextNumber++;
    do {
      NUMBER_END[--at] = ZERO + (rest % 10);
      rest = Math.floor(rest / 10);
    } while (rest > 0);
    this.output.bytes(NUMBER_END, at, NUMBER_END.length);
  }
}

/** Space for a number, and the end of a frame after it. */
const NUMBER_END = new TextEncoder().encode('0000000000000000}\n\n');
const MAX_DIGITS = 16;
const ZERO = 0x30;

interface OnlyText {
  readonly of: OpenText['of'];
  readonly text: string;
  /** The index of the call whose arguments it continues; null: it is not a call's. */
  readonly index: number | null;
}

/** The text of a chunk that has nothing else, or null. */
function onlyText(chunk: Chunk): OnlyText | null {
  if (chunk.object !== 'chat.completion.chunk' || chunk.usage !== undefined) return null;
  const [choice, ...others] = chunk.choices;
  if (choice?.index !== 0 || others.length > 0) return null;
  const { delta, logprobs, finish_reason } = choice;
  const { content, reasoning_content, tool_calls } = delta;
  if (logprobs !== null || finish_reason !== null || Object.keys(delta).length !== 1) return null;
  if (content !== undefined) return { of: 'message', text: content, index: null };
  if (reasoning_content !== undefined) return { of: 'reasoning', text: reasoning_content, index: null };
  const [call, ...otherCalls] = tool_calls ?? [];
  if (call === undefined || otherCalls.length > 0 || 'id' in call || call.extra_content !== undefined)
    return null;
  return { of: 'call', text: call.function.arguments, index: call.index };
}

const TOO_LONG: ApiError = apiError(
  'upstream_event_too_large',
  `The output is longer than ${MAX_REPEATED_TEXT_CHARS} characters, the limit of a Responses stream, whose last event repeats it: request a shorter output, or use /v1/chat/completions`,
);
