/** Writes canonical chunks as SSE frames of OpenAI's chat and text completions. */
import type { ChatChoice, Chunk, ToolCallDelta } from '../../canonical/chunk.ts';
import { type ApiError, errorBody } from '../../canonical/error.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import { DONE_FRAME, frame, frameHead, HEARTBEAT_FRAME } from '../../stream/sse-frame.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';

function isCustom({ custom }: ToolCallDelta): boolean {
  return custom !== undefined;
}

function hasOtherForm({ delta, stop_sequence }: ChatChoice): boolean {
  return stop_sequence !== undefined || delta.tool_calls?.some(isCustom) === true;
}

/**
 * The chunk as a chat client gets it: calls of custom tools in their own form, without the fragments that only end their arguments as
 * JSON, and no stop sequence. Null: nothing is left (C5).
 */
function chatForm(chunk: Chunk): object | null {
  if (chunk.object !== 'chat.completion.chunk' || !chunk.choices.some(hasOtherForm)) return chunk;
  const choices = chunk.choices.map(chatChoice).filter(hasUpdate);
  return choices.length === 0 && chunk.usage === undefined ? null : { ...chunk, choices };
}

interface SentChoice extends Pick<ChatChoice, 'logprobs' | 'finish_reason'> {
  readonly delta: object;
}

function chatChoice({ stop_sequence: _, ...choice }: ChatChoice): SentChoice {
  const { tool_calls, ...rest } = choice.delta;
  if (tool_calls === undefined) return choice;
  const calls = tool_calls.flatMap(customForm);
  // The position of a key stays where its value is replaced (C4).
  return { ...choice, delta: calls.length === 0 ? rest : { ...choice.delta, tool_calls: calls } };
}

function customForm(call: ToolCallDelta): object[] {
  const { index, custom } = call;
  if (custom === undefined) return [call];
  if ('id' in call) return [{ index, id: call.id, type: 'custom', custom }];
  return custom.input === '' ? [] : [{ index, custom }];
}

function hasUpdate({ delta, logprobs, finish_reason }: SentChoice): boolean {
  return Object.keys(delta).length > 0 || logprobs !== null || finish_reason !== null;
}

/** The start of a frame: `data: `, one line of compact JSON, two LFs. */
const DATA = frameHead('');

/** Writes one stream of chat or text completion chunks, which are the canonical ones, and `[DONE]`. */
export class ChatWriter implements StreamWriter {
  readonly output: FrameBuffer;
  /** Constant: a chunk's frame depends only on the chunk. */
  readonly revision = 0;
  readonly #errorFrames: 'data' | 'event';

  /** @param errorFrames whether an error's data line has `event: error` before it (`ERROR_FRAMES`) */
  constructor(errorFrames: 'data' | 'event', maxEventBytes: number) {
    this.#errorFrames = errorFrames;
    this.output = new FrameBuffer(maxEventBytes);
  }

  /** JSON.stringify keeps the order in which the chunk's keys were set, which is the canonical one. */
  chunk(chunk: Chunk): boolean {
    const sent = chatForm(chunk);
    return sent === null || this.output.frame(DATA, JSON.stringify(sent));
  }

  /** Writes the upstream's own JSON. An LF between its data lines is only white space, so it is removed. */
  vendor(json: string, name: string): void {
    this.output.text(frame(name, json.replaceAll('\n', '')));
  }

  end(failure: StreamFailure | null): void {
    if (failure !== null) this.output.text(errorFrame(failure.error, this.#errorFrames));
    this.output.text(DONE_FRAME);
  }

  heartbeat(): void {
    this.output.text(HEARTBEAT_FRAME);
  }

  restart(): void {}

  textFrame(chunk: Chunk): string {
    return frame('', JSON.stringify(chunk));
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
  }
}

/** The types that an error may have after the head, beside `server_error` (E2). */
const STREAM_ERROR_TYPES = ['timeout_error', 'stream_idle_timeout'];

function errorFrame(error: ApiError, form: 'data' | 'event'): string {
  const framed = STREAM_ERROR_TYPES.includes(error.type) ? error : { ...error, type: 'server_error' };
  return frame(form === 'event' ? 'error' : '', errorBody(framed));
}
