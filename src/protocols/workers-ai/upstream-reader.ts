/**
 * Reads Workers AI: its own form, `{"response": …}`, as OpenAI's, which newer models have. Examples: packages/workers-ai-provider/test of
 * cloudflare/ai (2026-07-30).
 */
import { type ChoicePart, type ChunkPart, EMPTY_CHOICE, EMPTY_PART } from '../../canonical/part.ts';
import { isObject, type JsonObject, objectOf, parseJson, readArray, readText } from '../../shared/json.ts';
import type { ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { openaiChat } from '../openai-chat/upstream-reader.ts';

export const workersAi: UpstreamProtocol = {
  ...openaiChat,
  open: (quirks, provider) => {
    const chat = openaiChat.open(quirks, provider);
    const { forcedTools = [] } = quirks;
    return forcedTools.length === 0 ? new WorkersAiReader(chat) : new ForcedCallReader(chat, forcedTools);
  },
};

/** The largest text that is held, because it may be a call. In characters. */
const MAX_CALL_CHARS = 64 * 1024;

class WorkersAiReader implements ProtocolReader {
  readonly copiesArguments = true;
  readonly #chat: ProtocolReader;
  #isFinished = false;
  /** The last chunk has the usage of all and no choice: the output is complete, also without a finish and `[DONE]`. */
  #isClosed = false;

  constructor(chat: ProtocolReader) {
    this.#chat = chat;
  }

  event(event: JsonObject, name: string): ChunkPart | null {
    const chunk = asChat(event, 'delta');
    const part = this.#chat.event(chunk, name);
    if (part === null) return null;
    this.#isFinished ||= part.choices.some(({ finishWord }) => finishWord !== null);
    const isClosed = isObject(chunk.usage) && Array.isArray(chunk.choices) && chunk.choices.length === 0;
    if (isClosed === this.#isClosed) return part;
    this.#isClosed = isClosed;
    return { ...part, isRemembered: true };
  }

  response(response: JsonObject): ChunkPart {
    return this.#chat.response(asChat(response, 'message'));
  }

  end(): ChunkPart | null {
    if (this.#isFinished || !this.#isClosed) return null;
    return { ...EMPTY_PART, choices: [{ ...EMPTY_CHOICE, finishWord: 'stop' }] };
  }
}

/**
 * Of a request that forces a call: gpt-oss may write the call as text (cloudflare/ai#560). Text that begins as JSON is held until it can
 * be told, up to {@link MAX_CALL_CHARS}.
 */
class ForcedCallReader extends WorkersAiReader {
  readonly #tools: readonly string[];
  #held = '';
  #isText = false;

  constructor(chat: ProtocolReader, tools: readonly string[]) {
    super(chat);
    this.#tools = tools;
  }

  override event(event: JsonObject, name: string): ChunkPart | null {
    const part = super.event(event, name);
    if (part === null || this.#isText) return part;
    return { ...part, choices: part.choices.map((choice) => this.#read(choice)), isRemembered: true };
  }

  override response(response: JsonObject): ChunkPart {
    const part = super.response(response);
    return { ...part, choices: part.choices.map((choice) => this.#called(choice, choice.content)) };
  }

  override end(): ChunkPart | null {
    const last = super.end();
    if (this.#held === '') return last;
    const choice = this.#called(last?.choices[0] ?? EMPTY_CHOICE, this.#take());
    return { ...(last ?? EMPTY_PART), choices: [choice] };
  }

  #read(choice: ChoicePart): ChoicePart {
    this.#held += choice.content;
    const begin = /^\s*(\S?)/.exec(this.#held)?.[1] ?? '';
    const isCall = begin === '' || begin === '{' || begin === '[';
    if (!isCall || choice.toolCalls.length > 0 || this.#held.length > MAX_CALL_CHARS) {
      this.#isText = true;
      return withText(choice, this.#take());
    }
    return choice.finishWord === null ? withText(choice, '') : this.#called(choice, this.#take());
  }

  #take(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }

  /** The choice with the call that its text is; else with the text. */
  #called(choice: ChoicePart, text: string): ChoicePart {
    const called = choice.toolCalls.length > 0 ? [] : callsIn(text, this.#tools);
    if (called.length === 0) return withText(choice, text);
    return { ...withText(choice, ''), toolCalls: called, finishWord: choice.finishWord && 'tool_calls' };
  }
}

function withText(choice: ChoicePart, content: string): ChoicePart {
  return { ...choice, content, hasContent: content !== '' };
}

/** The calls that a text is: `{"name": …, "arguments": {…}}`, with `parameters`, or with the arguments beside the name. */
function callsIn(text: string, tools: readonly string[]): ChoicePart['toolCalls'] {
  const value = parseJson(text.trim());
  const calls = (Array.isArray(value) ? value : [value]).filter(isObject);
  const isKnown = calls.every(({ name }) => tools.includes(readText(name) ?? ''));
  if (calls.length === 0 || !isKnown) return [];
  return calls.map(({ name, arguments: args, parameters, ...beside }, index) => {
    const given = args ?? parameters ?? beside;
    return {
      ...{ index, id: undefined, name: readText(name), extraContent: undefined },
      arguments: typeof given === 'string' ? given : JSON.stringify(given),
    };
  });
}

/** A chunk or a response in OpenAI's form. @param member what a choice has in it */
function asChat(received: JsonObject, member: 'delta' | 'message'): JsonObject {
  // REST wraps whole responses: `{"result": {…}, "success": true}`.
  const event = isObject(received.result) && received.choices === undefined ? received.result : received;
  if (Array.isArray(event.choices)) return withoutFinalizers(event);
  const { response, tool_calls: listed, finish_reason: finish, ...rest } = event;
  if (response === undefined && listed === undefined && finish === undefined) return event;
  const tool_calls = readCalls(listed);
  // A whole response has no finish of its own.
  const end = tool_calls.length > 0 ? 'tool_calls' : 'stop';
  const isWhole = member === 'message' && (tool_calls.length > 0 || (response ?? null) !== null);
  const output = {
    ...((response ?? null) === null ? {} : { content: contentOf(response) }),
    ...(tool_calls.length > 0 && { tool_calls }),
  };
  const word = finish ?? (isWhole ? end : undefined);
  const choice = { index: 0, [member]: output, ...(word !== undefined && { finish_reason: word }) };
  return { ...rest, choices: [choice] };
}

/** A structured output may come as the value itself. */
function contentOf(response: unknown): string {
  return typeof response === 'string' ? response : JSON.stringify(response);
}

/** Calls in OpenAI's form, or flat: `{"name": …, "arguments": {…}}`. */
function readCalls(listed: unknown): readonly JsonObject[] {
  const calls = readArray(listed).filter(isObject).filter(saysSomething);
  return calls.map((call) => {
    if (isObject(call.function)) return call;
    const { name, arguments: args, ...rest } = call;
    return { ...rest, function: { name, arguments: args } };
  });
}

/** The last of a call's fragments may be empty: `{"id": null, "type": null, "function": {"name": null, "arguments": ""}}`. */
function saysSomething(call: JsonObject): boolean {
  const { name, arguments: args } = objectOf(call.function);
  return [call.id, call.name, call.arguments, name, args].some((value) => (value ?? '') !== '');
}

function withoutFinalizers(event: JsonObject): JsonObject {
  const hasCalls = readArray(event.choices).some((choice) => objectOf(objectOf(choice).delta).tool_calls);
  if (!hasCalls) return event;
  const choices = readArray(event.choices).map((choice) => {
    const { delta, ...rest } = objectOf(choice);
    const { tool_calls, ...others } = objectOf(delta);
    return { ...rest, delta: { ...others, tool_calls: readCalls(tool_calls) } };
  });
  return { ...event, choices };
}
