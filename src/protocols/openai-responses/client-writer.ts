/** Writes a Responses stream: named events with their numbers, the answer's items one after the other, and `[DONE]` (I4). */
import type { ChatChunk, Chunk } from '../../canonical/chunk.ts';
import { type ApiError, apiError } from '../../canonical/error.ts';
import { MAX_REPEATED_ANSWER_CHARS } from '../../shared/limits.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import { streamErrorOf } from './client-errors.ts';
import { DONE_FRAME, eventFrame, HEARTBEAT_FRAME } from './client-events.ts';
import type { ResponsesSession } from './request-session.ts';
import { ResponseObject } from './response-object.ts';

/** A number of at most 16 digits, and what ends a frame behind it. */
const NUMBER_END = new TextEncoder().encode('0000000000000000}\n\n');
const MAX_DIGITS = 16;
const ZERO = 0x30;

export class ResponsesWriter implements StreamWriter {
  readonly output: FrameBuffer;
  readonly #session: ResponsesSession;
  readonly #options: WriterOptions;
  #answer: ResponseObject | null = null;
  #nextNumber = 0;
  /** Of answers that were thrown away. */
  #revisionsBefore = 0;

  constructor(session: ResponsesSession, options: WriterOptions) {
    this.#session = session;
    this.#options = options;
    this.output = new FrameBuffer(options.maxEventBytes);
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    const answer = this.#answer ?? this.#begin(chunk);
    answer.add(chunk);
    return !this.#isFull;
  }

  vendor(): void {}

  end(failure: StreamFailure | null): void {
    const answer = this.#answer ?? this.#begin(null);
    if (failure === null) {
      const { status, json } = answer.ending;
      this.#event(`response.${status}`, `"response":${json}`);
    } else {
      const error = streamErrorOf(this.#isFull ? { error: TOO_LONG, upstreamError: null } : failure);
      this.#event('error', `"error":${JSON.stringify(error)}`);
      this.#event('response.failed', `"response":${answer.failed(error)}`);
    }
    this.output.text(DONE_FRAME);
  }

  heartbeat(): void {
    this.output.text(HEARTBEAT_FRAME);
  }

  restart(): void {
    this.#revisionsBefore = this.revision + 1;
    this.#answer = null;
    this.#nextNumber = 0;
  }

  /** Changes with the place that texts go to, and when no more of them may come. */
  get revision(): number {
    const changes = this.#answer?.output.revision ?? 0;
    return this.#revisionsBefore + changes + (this.#isFull ? 1 : 0);
  }

  textFrame(chunk: Chunk): string | null {
    const open = this.#answer?.output.openText ?? null;
    const text = onlyText(chunk);
    if (open === null || text === null || text.of !== open.of || this.#isFull) return null;
    return `${open.head}${JSON.stringify(text.text).slice(1, -1)}${open.tail}`;
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
    this.#writeNumber();
    const output = this.#answer?.output;
    if (output === undefined) return;
    output.openText?.held.addRaw(source, from, to);
    output.heldChars += to - from;
  }

  get #isFull(): boolean {
    return (this.#answer?.output.heldChars ?? 0) > MAX_REPEATED_ANSWER_CHARS;
  }

  #begin(first: ChatChunk | null): ResponseObject {
    const events = { event: (type: string, members: string) => this.#event(`response.${type}`, members) };
    const answer = new ResponseObject({ session: this.#session, writer: this.#options, events }, first);
    this.#answer = answer;
    for (const type of ['response.created', 'response.in_progress']) {
      this.#event(type, `"response":${answer.inProgress}`);
    }
    return answer;
  }

  /** @param type the whole of it */
  #event(type: string, members: string): void {
    this.output.text(eventFrame(type, members, this.#nextNumber++));
  }

  /** As bytes: a call into the encoder costs as much as the frame. */
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

/** The text of a chunk that holds nothing else. */
function onlyText(chunk: Chunk): { readonly of: 'message' | 'reasoning'; readonly text: string } | null {
  if (chunk.object !== 'chat.completion.chunk' || chunk.usage !== undefined) return null;
  const [choice, ...others] = chunk.choices;
  if (choice?.index !== 0 || others.length > 0) return null;
  const { delta, logprobs, finish_reason } = choice;
  const { content, reasoning_content, ...rest } = delta;
  if (logprobs !== null || finish_reason !== null || Object.keys(rest).length > 0) return null;
  if (content !== undefined && reasoning_content === undefined) return { of: 'message', text: content };
  if (reasoning_content !== undefined && content === undefined)
    return { of: 'reasoning', text: reasoning_content };
  return null;
}

const TOO_LONG: ApiError = apiError(
  'upstream_event_too_large',
  `The answer is longer than the ${MAX_REPEATED_ANSWER_CHARS} characters that a Responses stream may have, as it repeats them: ask for less at once, or use /v1/chat/completions`,
);
