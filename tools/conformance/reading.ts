/** What a client has of a response so far, in one form for all client protocols. It reads as the SDKs of the protocols' vendors do. */
import type { Client, Finish } from './case.ts';
import { eventsOf } from './contract/content.ts';
import { type Json, type JsonObject, objectOf, parseJson, textOf } from './contract/json.ts';

export interface Call {
  id: string;
  name: string;
  /** Fragments that have a name. */
  names: number;
  arguments: string;
}

export interface ChoiceReading {
  text: string;
  reasoning: string;
  refusal: string;
  readonly calls: Call[];
  /** In Chat Completions' words where the protocol has an equivalent. */
  readonly finishes: string[];
  roles: number;
}

export interface UsageReading {
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly total: number | null;
  readonly cached: number | null;
  readonly reasoning: number | null;
}

export interface Failure {
  /** `status`: an HTTP status. `event`: an error in the stream. `connection`: it broke. */
  readonly kind: 'status' | 'event' | 'connection';
  readonly message: string;
}

/** Undefined: the protocol has no equivalent, so the word counts as it is. */
function finishOf(word: string): Finish | undefined {
  return FINISHES.get(word);
}

const FINISHES: ReadonlyMap<string, Finish> = new Map([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['completed', 'stop'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['content_filter', 'content_filter'],
  ['safety', 'content_filter'],
  ['refusal', 'content_filter'],
  ['tool_calls', 'tool_calls'],
  ['tool_use', 'tool_calls'],
]);

export class Reading {
  status = 0;
  headers = new Headers();
  readonly choices = new Map<number, ChoiceReading>();
  /** Each report, in order. */
  readonly usages: UsageReading[] = [];
  readonly ids = new Set<string>();
  chunksWithoutChoice = 0;
  emptyFinishes = 0;
  blocks = 0;
  failure: Failure | undefined;
  /** The protocol's last event arrived. */
  isOver = false;
  /** The body ended by itself. */
  isClosed = false;
  /** Departures from the protocol, as sentences. */
  readonly problems: string[] = [];
  /** All output in the order of its arrival, with the time of each piece. */
  readonly arrivals: { readonly at: number; readonly text: string }[] = [];
  readonly bytes: Uint8Array[] = [];
  #output = '';
  #sequence = -1;
  #rest = '';
  readonly #decoder = new TextDecoder();
  readonly #changes = new EventTarget();
  readonly #openBlocks = new Set<number>();
  readonly #callOfBlock = new Map<Json, Call>();
  readonly client: Client;

  constructor(client: Client) {
    this.client = client;
  }

  choice(index: number): ChoiceReading {
    const known = this.choices.get(index);
    if (known !== undefined) return known;
    const made = { text: '', reasoning: '', refusal: '', calls: [], finishes: [], roles: 0 };
    this.choices.set(index, made);
    return made;
  }

  /** Whether the output has this text before the time is over. */
  async has(text: string, limitMs: number): Promise<boolean> {
    if (this.#output.includes(text)) return true;
    const late = AbortSignal.timeout(limitMs);
    return new Promise((resolve) => {
      const finish = (hasIt: boolean) => {
        this.#changes.removeEventListener('output', look);
        resolve(hasIt);
      };
      const look = () => this.#output.includes(text) && finish(true);
      this.#changes.addEventListener('output', look);
      late.addEventListener('abort', () => finish(false), { once: true });
    });
  }

  /** The bytes of a stream. */
  push(bytes: Uint8Array): void {
    this.bytes.push(bytes);
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const end = endOfEvents(this.#rest);
    if (end === 0) return;
    const whole = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end);
    for (const { name, data } of eventsOf(whole)) this.#event(name, data);
  }

  /** A response that is not streamed. */
  whole(text: string): void {
    this.bytes.push(new TextEncoder().encode(text));
    const value = parseJson(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.fail({ kind: 'connection', message: 'the body is no JSON object' });
      return;
    }
    if (this.status >= 400 || (isSet(value.error) && textOf(value.object) !== 'response')) {
      this.fail({ kind: this.status >= 400 ? 'status' : 'event', message: messageOf(value) });
    } else if (this.client === 'chat') this.#wholeChat(value);
    else if (this.client === 'messages') this.#wholeMessage(value);
    else if (this.client === 'gemini') this.#element(value);
    else this.#wholeResponse(value);
  }

  fail(failure: Failure): void {
    this.failure ??= failure;
  }

  #add(text: string): void {
    if (text === '') return;
    this.#output += text;
    this.arrivals.push({ at: performance.now(), text });
    this.#changes.dispatchEvent(new Event('output'));
  }

  #event(name: string, data: string): void {
    if (data.trim() === '[DONE]') {
      if (this.client === 'chat') this.isOver = true;
      return;
    }
    const value = parseJson(data);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.problems.push(`no JSON object in an event: ${data.slice(0, 40)}`);
      return;
    }
    if (this.client === 'chat') this.#chatEvent(name, value);
    else if (this.client === 'messages') this.#messagesEvent(name, value);
    else if (this.client === 'gemini') this.#element(value);
    else this.#responsesEvent(name, value);
  }

  /** As openai-node's ChatCompletionStream: an index that is missing or no number loses the fragment. */
  #chatEvent(name: string, value: JsonObject): void {
    if (isSet(value.error) || name === 'error') {
      this.fail({ kind: 'event', message: messageOf(value) });
      return;
    }
    if (textOf(value.id) !== '') this.ids.add(textOf(value.id));
    if (!Array.isArray(value.choices)) this.problems.push('a chunk without choices');
    for (const choice of objects(value.choices)) this.#chatChoice(choice);
    if (objects(value.choices).length === 0) this.chunksWithoutChoice += 1;
    if (isSet(value.usage)) this.usages.push(chatUsage(objectOf(value.usage)));
  }

  #chatChoice(choice: JsonObject): void {
    if (typeof choice.index !== 'number') {
      this.problems.push('a choice without index');
      return;
    }
    const into = this.choice(choice.index);
    const delta = objectOf(choice.delta);
    if (into.finishes.length > 0 && hasOutput(delta)) this.problems.push('output after its finish reason');
    if (isSet(delta.role)) into.roles += 1;
    for (const [field, key] of [
      ['content', 'text'],
      ['reasoning_content', 'reasoning'],
      ['reasoning', 'reasoning'],
      ['refusal', 'refusal'],
    ] as const) {
      // Servers that send both names send the same text twice.
      if (field === 'reasoning' && isSet(delta.reasoning_content)) continue;
      const text = joined(delta[field]);
      if (isSet(delta[field]) && typeof delta[field] !== 'string') this.problems.push(`${field} is no text`);
      into[key] += text;
      this.#add(text);
    }
    for (const fragment of objects(delta.tool_calls)) this.#chatCall(into, fragment);
    if (choice.finish_reason === '') this.emptyFinishes += 1;
    if (textOf(choice.finish_reason) !== '') into.finishes.push(textOf(choice.finish_reason));
  }

  #chatCall(into: ChoiceReading, fragment: JsonObject): void {
    const { index } = fragment;
    if (typeof index !== 'number') {
      this.problems.push('a fragment of a call without index');
      return;
    }
    const { name, arguments: json } = objectOf(fragment.function);
    const call = into.calls[index] ?? { id: '', name: '', names: 0, arguments: '' };
    into.calls[index] = call;
    if (textOf(fragment.id) !== '') call.id = textOf(fragment.id);
    if (textOf(name) !== '') {
      call.name = textOf(name);
      call.names += 1;
    }
    if (isSet(json) && typeof json !== 'string') this.problems.push('arguments are no text');
    const text = joined(json);
    call.arguments += text;
    this.#add(text);
  }

  #wholeChat(value: JsonObject): void {
    if (textOf(value.id) !== '') this.ids.add(textOf(value.id));
    for (const choice of objects(value.choices)) {
      const message = objectOf(choice.message);
      const calls = objects(message.tool_calls).map((call, index) => ({ index, ...call }));
      this.#chatChoice({ index: choice.index ?? 0, delta: { ...message, tool_calls: calls } });
      const reason = textOf(choice.finish_reason);
      if (reason !== '') this.choice(Number(choice.index ?? 0)).finishes.push(reason);
    }
    if (isSet(value.usage)) this.usages.push(chatUsage(objectOf(value.usage)));
    this.isOver = true;
  }

  /** As @google/genai: an element with an error is thrown. */
  #element(value: JsonObject): void {
    if (isSet(value.error)) return this.fail({ kind: 'event', message: messageOf(value) });
    if (textOf(value.responseId) !== '') this.ids.add(textOf(value.responseId));
    for (const candidate of objects(value.candidates)) this.#candidate(candidate);
    if (isSet(value.usageMetadata)) this.usages.push(geminiUsage(objectOf(value.usageMetadata)));
  }

  #candidate({ index, content, finishReason }: JsonObject): void {
    const choice = this.choice(typeof index === 'number' ? index : 0);
    if (choice.finishes.length > 0) this.problems.push('output after its finish reason');
    for (const { text, thought, functionCall } of objects(objectOf(content).parts)) {
      choice[thought === true ? 'reasoning' : 'text'] += textOf(text);
      this.#add(textOf(text));
      if (!isSet(functionCall)) continue;
      const { id, name, args } = objectOf(functionCall);
      const json = JSON.stringify(objectOf(args));
      choice.calls.push({ id: textOf(id), name: textOf(name), names: 1, arguments: json });
      this.#add(json);
    }
    const word = textOf(finishReason);
    const reason = word === 'STOP' && choice.calls.length > 0 ? 'tool_calls' : finishOf(word.toLowerCase());
    if (word !== '') choice.finishes.push(reason ?? word);
  }

  /** As Anthropic's MessageStream and Claude Code: a delta for a block that is not open is an error. */
  #messagesEvent(name: string, value: JsonObject): void {
    const type = textOf(value.type);
    if (name !== type) this.problems.push(`the event ${name} has the type ${type}`);
    if (this.isOver) this.problems.push(`${type} after the end`);
    const index = typeof value.index === 'number' ? value.index : -1;
    const choice = this.choice(0);
    if (type === 'error') this.fail({ kind: 'event', message: messageOf(value) });
    else if (type === 'message_start') {
      choice.roles += 1;
      this.ids.add(textOf(objectOf(value.message).id));
    } else if (type === 'content_block_start') this.#openBlock(index, objectOf(value.content_block));
    else if (type === 'content_block_delta') this.#blockDelta(index, objectOf(value.delta));
    else if (type === 'content_block_stop') {
      if (!this.#openBlocks.delete(index)) this.problems.push('a block that is not open is closed');
    } else if (type === 'message_delta') {
      if (this.#openBlocks.size > 0) this.problems.push('message_delta while a block is open');
      const reason = textOf(objectOf(value.delta).stop_reason);
      if (reason !== '') choice.finishes.push(finishOf(reason) ?? reason);
      this.usages.push(messagesUsage(objectOf(value.usage)));
    } else if (type === 'message_stop') this.isOver = true;
  }

  #openBlock(index: number, block: JsonObject): void {
    if (this.#openBlocks.size > 0) this.problems.push('a block opens while another is open');
    this.#openBlocks.add(index);
    this.blocks += 1;
    const choice = this.choice(0);
    if (block.type === 'tool_use') {
      const call = { id: textOf(block.id), name: textOf(block.name), names: 1, arguments: '' };
      choice.calls.push(call);
      this.#callOfBlock.set(index, call);
    } else this.#blockText(block.type === 'thinking' ? 'reasoning' : 'text', textOf(block.text));
  }

  #blockDelta(index: number, delta: JsonObject): void {
    if (!this.#openBlocks.has(index)) this.problems.push('a delta for a block that is not open');
    const call = this.#callOfBlock.get(index);
    if (delta.type === 'text_delta') this.#blockText('text', textOf(delta.text));
    else if (delta.type === 'thinking_delta') this.#blockText('reasoning', textOf(delta.thinking));
    else if (delta.type === 'input_json_delta') {
      if (call === undefined) this.problems.push('arguments in a block that is no call');
      else call.arguments += textOf(delta.partial_json);
      this.#add(textOf(delta.partial_json));
    }
  }

  #blockText(key: 'text' | 'reasoning', text: string): void {
    this.choice(0)[key] += text;
    this.#add(text);
  }

  #wholeMessage(value: JsonObject): void {
    const choice = this.choice(0);
    this.ids.add(textOf(value.id));
    for (const block of objects(value.content)) {
      choice.text += textOf(block.text);
      choice.reasoning += textOf(block.thinking);
      if (block.type !== 'tool_use') continue;
      const json = JSON.stringify(objectOf(block.input));
      choice.calls.push({ id: textOf(block.id), name: textOf(block.name), names: 1, arguments: json });
    }
    const reason = textOf(value.stop_reason);
    if (reason !== '') choice.finishes.push(finishOf(reason) ?? reason);
    if (isSet(value.usage)) this.usages.push(messagesUsage(objectOf(value.usage)));
    this.isOver = true;
  }

  /** As openai-node and Codex: a delta needs an announced item, and the last event has the whole output. */
  #responsesEvent(name: string, value: JsonObject): void {
    const type = textOf(value.type);
    if (name !== '' && name !== type) this.problems.push(`the event ${name} has the type ${type}`);
    if (value.sequence_number !== this.#sequence + 1) this.problems.push(`${type} is out of sequence`);
    this.#sequence += 1;
    const id = textOf(objectOf(value.response).id);
    if (id !== '') this.ids.add(id);
    const choice = this.choice(0);
    if (type === 'error') this.fail({ kind: 'event', message: messageOf(value) });
    else if (type === 'response.output_item.added') this.#addItem(value);
    else if (type === 'response.output_item.done') this.#callOfBlock.delete(value.output_index ?? null);
    else if (type === 'response.completed' || type === 'response.incomplete') this.#endResponse(value);
    else if (type === 'response.failed') {
      this.isOver = true;
      this.fail({ kind: 'event', message: messageOf(objectOf(value.response)) });
    } else if (type.endsWith('.delta')) {
      if (!this.#openBlocks.has(Number(value.output_index))) this.problems.push(`${type} for no item`);
      const text = textOf(value.delta);
      const call = this.#callOfBlock.get(value.output_index ?? null);
      if (type === 'response.output_text.delta') choice.text += text;
      else if (type === 'response.refusal.delta') choice.refusal += text;
      else if (type.startsWith('response.reasoning')) choice.reasoning += text;
      else if (call !== undefined) call.arguments += text;
      this.#add(text);
    }
  }

  #addItem(value: JsonObject): void {
    const item = objectOf(value.item);
    this.#openBlocks.add(Number(value.output_index));
    if (item.type === 'message') this.choice(0).roles += 1;
    if (item.type !== 'function_call') return;
    const call = { id: textOf(item.call_id), name: textOf(item.name), names: 1, arguments: '' };
    this.choice(0).calls.push(call);
    this.#callOfBlock.set(value.output_index ?? null, call);
  }

  #endResponse(value: JsonObject): void {
    this.isOver = true;
    const end = new Reading('responses');
    end.#wholeResponse(objectOf(value.response));
    const [streamed, last] = [this.choice(0), end.choice(0)];
    for (const key of ['text', 'reasoning'] as const) {
      if (streamed[key] !== last[key])
        this.problems.push(`the last event has another ${key} than the deltas`);
    }
    const calls = (one: ChoiceReading) => JSON.stringify(one.calls);
    if (calls(streamed) !== calls(last)) this.problems.push('the last event has other calls than the deltas');
    streamed.finishes.push(...last.finishes);
    this.usages.push(...end.usages);
  }

  #wholeResponse(response: JsonObject): void {
    const choice = this.choice(0);
    this.ids.add(textOf(response.id));
    if (response.status === 'failed') this.fail({ kind: 'event', message: messageOf(response) });
    for (const item of objects(response.output)) {
      for (const part of objects(item.content)) {
        choice.text += textOf(part.text);
        choice.refusal += textOf(part.refusal);
      }
      for (const part of objects(item.summary)) choice.reasoning += textOf(part.text);
      if (item.type !== 'function_call') continue;
      const [id, name, json] = [textOf(item.call_id), textOf(item.name), textOf(item.arguments)];
      choice.calls.push({ id, name, names: 1, arguments: json });
    }
    const word = textOf(objectOf(response.incomplete_details).reason) || textOf(response.status);
    const isCall = word === 'completed' && choice.calls.length > 0;
    if (word !== '' && word !== 'failed')
      choice.finishes.push(isCall ? 'tool_calls' : (finishOf(word) ?? word));
    if (isSet(response.usage)) this.usages.push(responsesUsage(objectOf(response.usage)));
    this.isOver = true;
  }
}

/** Where the last complete event ends; 0 if none is complete. */
function endOfEvents(text: string): number {
  let end = 0;
  for (const { index, 0: blank } of text.matchAll(/\r\n\r\n|\n\n|\r\r/g)) end = index + blank.length;
  return end;
}

function isSet(value: Json | undefined): boolean {
  return value !== undefined && value !== null;
}

function hasOutput(delta: JsonObject): boolean {
  return ['content', 'reasoning_content', 'tool_calls'].some((key) => joined(delta[key]) !== '');
}

function objects(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

/** As JavaScript joins it to a text. */
function joined(value: Json | undefined): string {
  return isSet(value) ? String(value) : '';
}

function messageOf(value: JsonObject): string {
  const error = value.error ?? value.message ?? value.detail ?? null;
  return typeof error === 'string' ? error : textOf(objectOf(error).message) || JSON.stringify(value);
}

function count(value: Json | undefined): number | null {
  return typeof value === 'number' ? value : null;
}

function chatUsage(usage: JsonObject): UsageReading {
  return {
    prompt: count(usage.prompt_tokens),
    completion: count(usage.completion_tokens),
    total: count(usage.total_tokens),
    cached: count(objectOf(usage.prompt_tokens_details).cached_tokens),
    reasoning: count(objectOf(usage.completion_tokens_details).reasoning_tokens),
  };
}

/** Thoughts count beside the candidates. */
function geminiUsage(usage: JsonObject): UsageReading {
  const candidates = count(usage.candidatesTokenCount);
  const reasoning = count(usage.thoughtsTokenCount);
  return {
    prompt: count(usage.promptTokenCount),
    completion: candidates === null ? null : candidates + (reasoning ?? 0),
    total: count(usage.totalTokenCount),
    cached: count(usage.cachedContentTokenCount),
    reasoning,
  };
}

/** Anthropic counts what a cache was read from or written to apart from `input_tokens`. */
function messagesUsage(usage: JsonObject): UsageReading {
  const parts = [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens].map(
    count,
  );
  const prompt = parts.every((part) => part === null)
    ? null
    : parts.reduce<number>((sum, part) => sum + (part ?? 0), 0);
  const completion = count(usage.output_tokens);
  return {
    prompt,
    completion,
    total: prompt === null || completion === null ? null : prompt + completion,
    cached: count(usage.cache_read_input_tokens),
    reasoning: count(objectOf(usage.output_tokens_details).thinking_tokens),
  };
}

function responsesUsage(usage: JsonObject): UsageReading {
  return {
    prompt: count(usage.input_tokens),
    completion: count(usage.output_tokens),
    total: count(usage.total_tokens),
    cached: count(objectOf(usage.input_tokens_details).cached_tokens),
    reasoning: count(objectOf(usage.output_tokens_details).reasoning_tokens),
  };
}
