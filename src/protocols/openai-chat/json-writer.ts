/** Builds the one object of a non-streaming chat or text completion from canonical chunks. */
import type {
  ChatChoice,
  ChatChunk,
  Chunk,
  Delta,
  TextChoice,
  TextChunk,
  ToolCallDelta,
} from '../../canonical/chunk.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import { type ChatLogprobs, sizeOfLogprobs, type TextLogprobs } from '../../canonical/logprobs.ts';
import { ReasoningDetails } from '../../canonical/reasoning-details.ts';
import type { JsonObject } from '../../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../../shared/limits.ts';
import type { JsonWriter } from '../../stream/types.ts';

interface MessageToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; arguments: string };
  /** Of a custom tool: written instead of `function`. */
  readonly custom?: { readonly name: string; input: string };
  extra_content?: JsonObject;
}

interface ChatState {
  content: string;
  reasoning: string;
  /** The message has its reasoning also as `reasoning`. */
  hasOwnName: boolean;
  refusal: string;
  readonly toolCalls: Map<number, MessageToolCall>;
  readonly reasoningDetails: ReasoningDetails;
  readonly annotations: JsonObject[];
  readonly logprobs: ChatLogprobs[];
  finish: FinishReason | null;
}

interface TextState {
  text: string;
  readonly logprobs: TextLogprobs[];
  finish: FinishReason | null;
}

/** Collects the chunks of one output into a chat or text completion. */
export class ChatJsonWriter implements JsonWriter {
  readonly #chat = new Map<number, ChatState>();
  readonly #text = new Map<number, TextState>();
  #last: Chunk | undefined;
  #chars = 0;

  get heldChars(): number {
    return this.#chars;
  }

  chunk(chunk: Chunk): boolean {
    this.#last = chunk;
    this.#chars += sizeOf(chunk);
    if (this.#chars > MAX_RESPONSE_BYTES) return false;
    if (chunk.object === 'chat.completion.chunk') for (const choice of chunk.choices) this.#addChat(choice);
    else for (const choice of chunk.choices) this.#addText(choice);
    return true;
  }

  /** A non-streaming response has no vendor events. */
  vendor(): void {}

  take(): string {
    return JSON.stringify(this.#completion());
  }

  #completion(): unknown {
    const last = this.#last;
    if (last === undefined) return undefined;
    return last.object === 'chat.completion.chunk' ? this.#chatCompletion(last) : this.#textCompletion(last);
  }

  #chatCompletion(last: ChatChunk): unknown {
    const { id, created, model, service_tier, system_fingerprint, usage } = last;
    const choices = byIndex(this.#chat).map(([index, state]) => ({
      index,
      message: message(state),
      logprobs: joinChatLogprobs(state.logprobs),
      finish_reason: state.finish,
    }));
    return {
      id,
      object: 'chat.completion',
      created,
      model,
      service_tier,
      system_fingerprint,
      choices,
      usage,
    };
  }

  #textCompletion(last: TextChunk): unknown {
    const { id, object, created, model, system_fingerprint, usage } = last;
    const choices = byIndex(this.#text).map(([index, state]) => ({
      index,
      text: state.text,
      logprobs: joinTextLogprobs(state.logprobs),
      finish_reason: state.finish,
    }));
    return { id, object, created, model, system_fingerprint, choices, usage };
  }

  #addChat({ index, delta, logprobs, finish_reason }: ChatChoice): void {
    const state = this.#chat.get(index) ?? emptyChat();
    this.#chat.set(index, state);
    state.content += delta.content ?? '';
    state.reasoning += delta.reasoning_content ?? '';
    state.hasOwnName ||= delta.reasoning !== undefined;
    state.refusal += delta.refusal ?? '';
    state.annotations.push(...(delta.annotations ?? []));
    for (const fragment of delta.tool_calls ?? []) addToolCall(state.toolCalls, fragment);
    if (delta.reasoning_details !== undefined) state.reasoningDetails.add(delta.reasoning_details);
    if (logprobs !== null) state.logprobs.push(logprobs);
    state.finish ??= finish_reason;
  }

  #addText({ index, text, logprobs, finish_reason }: TextChoice): void {
    const state = this.#text.get(index) ?? { text: '', logprobs: [], finish: null };
    this.#text.set(index, state);
    state.text += text;
    if (logprobs !== null) state.logprobs.push(logprobs);
    state.finish ??= finish_reason;
  }
}

function emptyChat(): ChatState {
  return {
    content: '',
    reasoning: '',
    hasOwnName: false,
    refusal: '',
    toolCalls: new Map(),
    reasoningDetails: new ReasoningDetails(),
    annotations: [],
    logprobs: [],
    finish: null,
  };
}

/** `content` is null if it is empty beside tool calls or a refusal. `refusal` is always present, the other keys only if not empty. */
function message(state: ChatState) {
  const toolCalls = byIndex(state.toolCalls).map(([, call]) => ownForm(call));
  const details = state.reasoningDetails.list;
  const hasOther = toolCalls.length > 0 || state.refusal !== '';
  // `JSON.stringify` leaves out what is undefined.
  return {
    role: 'assistant',
    content: state.content === '' && hasOther ? null : state.content,
    reasoning_content: state.reasoning === '' ? undefined : state.reasoning,
    reasoning: state.hasOwnName ? state.reasoning : undefined,
    refusal: state.refusal === '' ? null : state.refusal,
    annotations: state.annotations.length === 0 ? undefined : state.annotations,
    tool_calls: toolCalls.length === 0 ? undefined : toolCalls,
    reasoning_details: details.length === 0 ? undefined : details,
  };
}

function addToolCall(calls: Map<number, MessageToolCall>, fragment: ToolCallDelta): void {
  const openCall = calls.get(fragment.index);
  const call = openCall ?? openToolCall(calls, fragment);
  if (openCall !== undefined) openCall.function.arguments += fragment.function.arguments;
  if (openCall?.custom !== undefined) openCall.custom.input += fragment.custom?.input ?? '';
  if (call !== undefined && fragment.extra_content !== undefined) call.extra_content = fragment.extra_content;
}

function ownForm({ id, custom, extra_content, ...call }: MessageToolCall): unknown {
  const customCall = custom === undefined ? call : { type: 'custom', custom };
  return { id, ...customCall, ...(extra_content === undefined ? {} : { extra_content }) };
}

function openToolCall(
  calls: Map<number, MessageToolCall>,
  fragment: ToolCallDelta,
): MessageToolCall | undefined {
  if (!('id' in fragment)) return undefined;
  const { id, type, function: fn, custom } = fragment;
  const customFields = custom === undefined ? {} : { custom: { name: fn.name, input: custom.input } };
  const call: MessageToolCall = { id, type, function: { ...fn }, ...customFields };
  calls.set(fragment.index, call);
  return call;
}

function joinChatLogprobs(pieces: readonly ChatLogprobs[]): ChatLogprobs | null {
  const [first] = pieces;
  if (first === undefined || pieces.length === 1) return first ?? null;
  const content = pieces.flatMap((piece) => piece.content ?? []);
  const refusal = pieces.flatMap((piece) => piece.refusal ?? []);
  return { content: content.length === 0 ? null : content, refusal: refusal.length === 0 ? null : refusal };
}

function joinTextLogprobs(pieces: readonly TextLogprobs[]): TextLogprobs | null {
  const [first] = pieces;
  if (first === undefined || pieces.length === 1) return first ?? null;
  const top = pieces.flatMap((piece) => piece.top_logprobs ?? []);
  return {
    tokens: pieces.flatMap((piece) => piece.tokens),
    token_logprobs: pieces.flatMap((piece) => piece.token_logprobs),
    top_logprobs: top.length === 0 ? null : top,
    text_offset: pieces.flatMap((piece) => piece.text_offset),
  };
}

function byIndex<Value>(map: ReadonlyMap<number, Value>): [number, Value][] {
  return [...map].sort(([a], [b]) => a - b);
}

/** The approximate size of what is kept of a chunk, in UTF-16 units of JSON. */
function sizeOf(chunk: Chunk): number {
  if (chunk.object === 'text_completion') {
    return chunk.choices.reduce((sum, { text, logprobs }) => sum + text.length + sizeOfLogprobs(logprobs), 0);
  }
  return chunk.choices.reduce(
    (sum, { delta, logprobs }) => sum + sizeOfDelta(delta) + sizeOfLogprobs(logprobs),
    0,
  );
}

function sizeOfDelta(delta: Delta): number {
  const { content, reasoning_content, refusal, annotations, tool_calls, reasoning_details } = delta;
  const texts = (content?.length ?? 0) + (reasoning_content?.length ?? 0) + (refusal?.length ?? 0);
  return texts + sizeOfJson(annotations) + sizeOfJson(tool_calls) + sizeOfJson(reasoning_details);
}

function sizeOfJson(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}
