/** OpenAI's Responses as a provider protocol: reads its events, or a non-streaming response, into canonical parts. */
import type { UpstreamError } from '../../canonical/error.ts';
import { finishMeaning } from '../../canonical/finish-reason.ts';
import { readLogprobs } from '../../canonical/logprobs.ts';
import {
  type ChoicePart,
  type ChunkPart,
  EMPTY_CHOICE,
  EMPTY_PART,
  readName,
  type ToolCallPart,
} from '../../canonical/part.ts';
import { tagProvider } from '../../canonical/reasoning-details.ts';
import { findUpstreamError, readUpstreamError } from '../../canonical/upstream-error.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  ownValue,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import type { ProtocolQuirks, ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { readArguments, readCreated, readUsage } from '../openai-chat/upstream-reader.ts';
import {
  type FinalText,
  itemKey,
  lengthOf,
  partText,
  SentArguments,
  type SentItem,
  SentItems,
  type TextKind,
  textsOf,
} from './upstream-items.ts';

export const openaiResponses: UpstreamProtocol = {
  id: 'responses',
  open: (quirks, provider) => new ResponsesReader(quirks, provider),
};

/** The events with a piece of text. */
const DELTAS: ReadonlyMap<string, TextKind> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.reasoning_summary_text.delta', 'summary'],
  ['response.reasoning_text.delta', 'thoughts'],
]);

/** The events that repeat a text. */
const TEXTS_DONE: ReadonlyMap<string, TextKind> = new Map([
  ['response.output_text.done', 'text'],
  ['response.refusal.done', 'refusal'],
  ['response.reasoning_summary_text.done', 'summary'],
  ['response.reasoning_text.done', 'thoughts'],
]);

/** The kinds of text by the types of their parts. */
const PARTS: ReadonlyMap<unknown, TextKind> = new Map([
  ['reasoning_text', 'thoughts'],
  ['summary_text', 'summary'],
]);

/** The events that begin a part. Some servers put its text here. */
const PARTS_ADDED = ['response.content_part.added', 'response.reasoning_summary_part.added'];

/** UTF-16 units of what the beginnings of items and parts have, which waits for deltas or a final form. More is sent at once. */
const MAX_ANNOUNCED_CHARS = 1024 * 1024;

const KINDS = ['text', 'refusal', 'summary', 'thoughts'] as const;

/** The names of arguments in events. The input of a custom tool is one text. */
const CALL_DELTAS = ['response.function_call_arguments.delta', 'response.custom_tool_call_input.delta'];
const CALLS_DONE = ['response.function_call_arguments.done', 'response.custom_tool_call_input.done'];

/** The last events. Some upstreams send `[DONE]` after them. */
const ENDINGS: readonly string[] = ['response.completed', 'response.incomplete', 'response.failed'];

/** OpenRouter's name for encrypted reasoning of OpenAI's Responses. */
export const REASONING_FORMAT = 'openai-responses-v1';

/** A call of a client's tool. Calls of the provider's own tools are skipped. */
interface Call {
  /** The index among the calls. */
  readonly index: number;
  readonly isCustom: boolean;
  readonly sent: SentArguments;
  isClosed: boolean;
}

const CALL_TYPES: readonly unknown[] = ['function_call', 'custom_tool_call'];
const NONE_DONE = { reasoning: 0, web_search_call: 0 };

class ResponsesReader implements ProtocolReader {
  readonly #quirks: ProtocolQuirks;
  readonly #provider: string;
  #items = new SentItems();
  /** Some servers send no `output_index`. */
  #hasIndexes = false;
  /** By the key of their item. */
  #calls = new Map<unknown, Call>();
  #callsById = new Map<string, Call>();
  /** The number of calls so far: an index may have several, one after the other. */
  #callCount = 0;
  /** The number of final items so far, of the types that must not count twice. */
  #done: Record<string, number> = { ...NONE_DONE };
  #searches = 0;
  #announcedChars = 0;
  /** Encrypted reasoning whose following item has not come yet. */
  #reasoning: readonly JsonObject[] = [];

  constructor(quirks: ProtocolQuirks, provider: string) {
    this.#quirks = quirks;
    this.#provider = provider;
  }

  event(event: JsonObject): ChunkPart | null {
    const type = readText(event.type) ?? '';
    if (DELTAS.has(type)) return this.#delta(event, true);
    const key = itemKey(event);
    this.#hasIndexes ||= typeof key === 'number';
    if (CALL_DELTAS.includes(type)) return choicePart(this.#arguments(event, key));
    if (CALLS_DONE.includes(type)) return choicePart(this.#argumentsDone(event, key));
    if (type.endsWith('.done')) {
      if (type === 'response.output_item.done')
        return choicePart(...this.#itemDone(objectOf(event.item), key));
      return choicePart(this.#textDone(type, event, key));
    }
    if (type === 'response.output_item.added')
      return choicePart(...this.#announce(objectOf(event.item), key));
    if (PARTS_ADDED.includes(type)) return choicePart(this.#announceText(partOf(event), key));
    if (type === 'error' || type === '') return { ...EMPTY_PART, error: findUpstreamError(event) };
    if (!isObject(event.response)) return null;
    if (!ENDINGS.includes(type)) return this.#state(event.response, null);
    return {
      ...this.#ending(event.response, finishOf(event.response, type === 'response.incomplete')),
      ends: true,
    };
  }

  /** The fast path reads text events again while it learns. */
  trial(event: JsonObject): ChunkPart | null {
    return DELTAS.has(readText(event.type) ?? '') ? this.#delta(event, false) : null;
  }

  response(response: JsonObject): ChunkPart {
    this.#items = new SentItems();
    this.#hasIndexes = true;
    this.#calls = new Map();
    this.#callsById = new Map();
    this.#callCount = 0;
    this.#done = { ...NONE_DONE };
    const finish = finishOf(response, false);
    const part = this.#ending(response, finish);
    return { ...part, error: part.error ?? (finish === null ? unfinished(response) : null) };
  }

  #delta(event: JsonObject, counts: boolean): ChunkPart {
    const kind = DELTAS.get(readText(event.type) ?? '') ?? 'text';
    const delta = readText(event.delta) ?? '';
    const key = itemKey(event);
    const item = this.#items.at(key);
    const sent = item.count(kind, partIndex(event));
    const text = counts ? item.before(sent, delta) + delta : delta;
    if (counts) sent.units += text.length;
    this.#hasIndexes ||= typeof key === 'number';
    const choice = { ...EMPTY_CHOICE, [MEMBERS[kind]]: text, logprobs: logprobsOf(event), sent };
    // Only what stands in every event of a text tells texts apart on the fast path.
    const isPlain = typeof key === 'number' && text.length === delta.length;
    return { ...EMPTY_PART, choices: [choice], ...(isPlain ? {} : { isRemembered: true }) };
  }

  /** What the deltas of a text did not have. Some servers send none. */
  #textDone(type: string, event: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const kind = TEXTS_DONE.get(type);
    const final = kind === undefined ? partOf(event) : partText(event, partIndex(event), kind);
    if (final === null) return null;
    const item = this.#items.at(key);
    return item.isSentOtherwise(final.kind) ? null : rest(item, final);
  }

  /** An item begins. Some servers use one index for several items. */
  #announce(item: JsonObject, key: unknown): (Partial<ChoicePart> | null)[] {
    const sent = this.#items.at(key);
    const id = readText(item.id);
    if (sent.isOpen && id !== undefined && id === sent.id) return [];
    if (sent.isOpen) sent.restart();
    const head = this.#open(item, key);
    return [
      head,
      ...textsOf(item).map((text) => this.#announceText(text, key)),
      this.#announceCall(item, key),
    ];
  }

  #announceText(text: FinalText | null, key: unknown): Partial<ChoicePart> | null {
    if (text === null || text.text === '') return null;
    const item = this.#items.at(key);
    if (!this.#mayHold(text.text)) return rest(item, text);
    item.announce(text);
    return null;
  }

  #announceCall(item: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const call = this.#calls.get(key);
    const text = call === undefined ? '' : inputOf(item, call);
    if (call === undefined || text === '') return null;
    if (!this.#mayHold(text)) return restOf(call, text);
    call.sent.announce(text);
    return null;
  }

  #mayHold(text: string): boolean {
    this.#announcedChars += text.length;
    return this.#announcedChars <= MAX_ANNOUNCED_CHARS;
  }

  #itemDone(item: JsonObject, key: unknown): (Partial<ChoicePart> | null)[] {
    const sent = this.#items.at(key);
    const id = readText(item.id);
    if (sent.isDone && (id === undefined || id === sent.id)) return [];
    if (item.type === 'reasoning' && id !== undefined && this.#items.isRepeated(id)) return [];
    if (sent.isDone) sent.restart();
    const missing = this.#complete(item, key, textsOf(item));
    return [...missing, ...sent.announced().map((text) => rest(sent, text))];
  }

  /** Sends what the events of an item did not have. */
  #complete(item: JsonObject, key: unknown, texts: readonly FinalText[]): (Partial<ChoicePart> | null)[] {
    const sent = this.#items.at(key);
    return [
      ...sent.missing(texts).map((text) => rest(sent, text)),
      sent.isOpen ? null : this.#open(item, key),
      this.#close(item, key),
    ];
  }

  #open(item: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const sent = this.#items.at(key);
    sent.isOpen = true;
    sent.id = readText(item.id);
    const isCustom = item.type === 'custom_tool_call';
    const isCall = item.type === 'function_call' || isCustom;
    const id = readName(item.call_id);
    if (isCall && id !== undefined && this.#callsById.has(id)) return null;
    const details = this.#placeReasoning(item, isCall);
    if (!isCall) return details;
    const call = { index: this.#callCount++, isCustom, sent: new SentArguments(), isClosed: false };
    this.#calls.set(key, call);
    if (id !== undefined) this.#callsById.set(id, call);
    // The input of a custom tool is one text. In the canonical form it is the only argument of a function.
    const head = { ...fragment(call, isCustom ? '{"input":"' : ''), id, name: readName(item.name) };
    return { ...details, toolCalls: [head] };
  }

  /**
   * Encrypted reasoning goes back directly before the item that followed it. Its index names that item: 0 is the text, 1 the first call.
   * Reasoning before a hosted tool's item, which the client does not get, can't go back.
   */
  #placeReasoning({ type }: JsonObject, isCall: boolean): Partial<ChoicePart> | null {
    if (type === 'reasoning') return null;
    const pending = this.#reasoning;
    this.#reasoning = [];
    if (!isCall && type !== 'message') return null;
    return withIndex(pending, isCall ? this.#callCount + 1 : 0);
  }

  #arguments({ delta }: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const call = this.#calls.get(key);
    const piece = readText(delta);
    if (call === undefined || piece === undefined) return null;
    const text = call.sent.before(piece) + piece;
    call.sent.add(text);
    return { toolCalls: [fragment(call, call.isCustom ? insideJson(text) : text)] };
  }

  /** What the deltas of a call did not have. Without a call, the item's end has it. */
  #argumentsDone({ arguments: json, input }: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const call = this.#calls.get(key);
    return call === undefined ? null : restOf(call, readText(json) ?? readText(input) ?? '');
  }

  /** The end of an item. A repetition has nothing new. */
  #close(item: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const sent = this.#items.at(key);
    sent.isDone = true;
    sent.id = readText(item.id) ?? sent.id;
    this.#countDone(item);
    if (item.type === 'web_search_call' && item.status !== 'failed') {
      this.#searches += (this.#quirks.searchesOf ?? oneSearch)(objectOf(item.action));
    }
    const data = readText(item.encrypted_content);
    if (item.type === 'reasoning' && data !== undefined) {
      const id = tagProvider({ provider: this.#provider, payload: readText(item.id) ?? '' });
      const detail = { type: 'reasoning.encrypted', data, id, format: REASONING_FORMAT };
      this.#reasoning = [...this.#reasoning, detail];
      return null;
    }
    const call = this.#callsById.get(readName(item.call_id) ?? '') ?? this.#calls.get(key);
    if (call === undefined || call.isClosed) return null;
    call.isClosed = true;
    const text = call.sent.rest(inputOf(item, call));
    if (call.isCustom) return whole(call, `${insideJson(text)}"}`);
    const isAbsent = call.sent.length === 0 && item.status !== 'incomplete';
    return text === '' && !isAbsent ? null : whole(call, text || '{}');
  }

  #countDone({ type }: JsonObject): void {
    const name = readText(type) ?? '';
    const count = ownValue(this.#done, name);
    if (count !== undefined) this.#done[name] = count + 1;
  }

  /** The end of a response. Its output repeats the items: what no event had is sent from there. */
  #ending(response: JsonObject, finish: Finish | null): ChunkPart {
    const output = finish === null ? [] : readArray(response.output).filter(isObject);
    const announced = finish === null || output.length > 0 ? [] : this.#announced();
    const missing =
      choicePart(...this.#missing(output), ...announced, ...this.#openInputs(finish))?.choices ?? [];
    const state = this.#state(response, finish);
    return { ...state, choices: [...missing, ...state.choices] };
  }

  /** What no event had of the complete output. Kinds and types of which nothing is missing are left out, however servers count items. */
  #missing(output: readonly JsonObject[]): (Partial<ChoicePart> | null)[] {
    const texts = output.map(textsOf);
    const all = texts.flat();
    const isMissing = (kind: TextKind) => lengthOf(all, kind) > this.#items.units(kind);
    const reasoning = this.#items.units('summary') + this.#items.units('thoughts');
    const hasReasoning = reasoning >= Math.max(lengthOf(all, 'summary'), lengthOf(all, 'thoughts'));
    const kinds = KINDS.filter(
      (kind) => isMissing(kind) && !(hasReasoning && MEMBERS[kind] === 'reasoning' && reasoning > 0),
    );
    const countOf = (type: string) => output.filter((item) => item.type === type).length;
    const isComplete = new Set(
      Object.entries(this.#done).flatMap(([type, done]) => (done >= countOf(type) ? [type] : [])),
    );
    const hasAllCalls = countOf('function_call') + countOf('custom_tool_call') <= this.#callCount;
    return output.flatMap((item, at) => {
      const key = this.#hasIndexes ? at : (readText(item.id) ?? at);
      const own = (texts[at] ?? []).filter(({ kind }) => kinds.includes(kind));
      const sent = this.#items.at(key);
      const isCall = CALL_TYPES.includes(item.type);
      const isKnown = isCall && (hasAllCalls || this.#callsById.has(readName(item.call_id) ?? ''));
      const isRead = isCall
        ? isKnown && this.#isClosed(item, key)
        : sent.isDone || isComplete.has(String(item.type));
      if (isRead) return sent.missing(own).map((text) => rest(sent, text));
      if (isKnown) return [this.#close(item, key)];
      return this.#complete(item, key, own);
    });
  }

  /** What only the beginnings of items and parts had. */
  *#announced(): Generator<Partial<ChoicePart> | null> {
    for (const item of this.#items.all) for (const text of item.announced()) yield rest(item, text);
    for (const call of this.#calls.values()) if (!call.isClosed) yield restOf(call, '');
  }

  #isClosed(item: JsonObject, key: unknown): boolean {
    return (this.#callsById.get(readName(item.call_id) ?? '') ?? this.#calls.get(key))?.isClosed !== false;
  }

  /** A complete response may lack the end of a custom tool's input. */
  #openInputs(finish: Finish | null): (Partial<ChoicePart> | null)[] {
    if (finish === null || finish.finishMeaning !== undefined) return [];
    const open = [...this.#calls.values()].filter((call) => call.isCustom && !call.isClosed);
    return open.map((call) => whole(call, '"}'));
  }

  /** `tool_usage` "counts billable searches": openai 7.57.0, `Response.ToolUsage` (2026-11-13). */
  #searchesIn({ tool_usage }: JsonObject): number | undefined {
    const reported = readCount(objectOf(objectOf(tool_usage).web_search).num_requests);
    return reported ?? (this.#searches === 0 ? undefined : this.#searches);
  }

  /** Reads a response object without its items, which have separate events. */
  #state(response: JsonObject, finish: Finish | null): ChunkPart {
    const { id, created_at, model, service_tier, usage, error, status } = response;
    const report = isObject(usage) ? { ...readUsage(usage), searches: this.#searchesIn(response) } : null;
    // A truncated response may end with reasoning. Its index names no item.
    const rest = finish === null ? null : withIndex(this.#reasoning, this.#callCount + 1);
    if (rest !== null) this.#reasoning = [];
    const removed = removedReasoning(response);
    return {
      ...EMPTY_PART,
      id: readName(id),
      created: readCreated(created_at),
      model: readName(model),
      serviceTier: readName(service_tier),
      choices: finish === null ? [] : [{ ...EMPTY_CHOICE, ...rest, ...finish }],
      usage: report === null || !isObject(usage) ? null : { ...report, cost: this.#quirks.costOf?.(usage) },
      error: status === 'failed' ? failureOf(objectOf(error)) : null,
      ...(removed.length === 0 ? {} : { removedReasoning: removed }),
    };
  }
}

/**
 * Reasoning that the provider removed from the input: `Response.InputTransformation` of openai 7.56.0 (2026-11-12). That of earlier turns
 * (`turn_boundary`) is always removed.
 */
function removedReasoning({ input_transformations: changes }: JsonObject): readonly string[] {
  const removed = readArray(changes).filter(
    (change) => isObject(change) && change.type === 'reasoning' && change.action === 'removed',
  );
  const reasons = removed.map((change) => readText(objectOf(change).reason) ?? 'other');
  return reasons.filter((reason) => reason !== 'turn_boundary');
}

function withIndex(details: readonly JsonObject[], index: number): Partial<ChoicePart> | null {
  return details.length === 0 ? null : { reasoningDetails: details.map((detail) => ({ ...detail, index })) };
}

/** Opened pages are not billed: https://developers.openai.com/api/docs/guides/tools-web-search (2026-11-22). */
function oneSearch({ type }: JsonObject): number {
  return type === 'search' || type === undefined ? 1 : 0;
}

/** A failed response may have no error. It has no HTTP status either. */
function failureOf(error: JsonObject): UpstreamError {
  const read = readUpstreamError(error);
  return { ...read, message: read.message ?? 'the response failed, and names no error' };
}

/** Where an update has each kind of text. */
const MEMBERS = { text: 'content', refusal: 'refusal', summary: 'reasoning', thoughts: 'reasoning' } as const;

/** What was not sent of a final text. Its logprobs count if nothing was. */
function rest(item: SentItem, final: FinalText): Partial<ChoicePart> | null {
  const text = item.rest(final);
  if (text === '') return null;
  const logprobs = text === final.text ? logprobsOf({ logprobs: final.logprobs }) : null;
  return { [MEMBERS[final.kind]]: text, logprobs };
}

function partIndex({ content_index, summary_index }: JsonObject): number {
  return readCount(content_index) ?? readCount(summary_index) ?? 0;
}

function logprobsOf({ logprobs }: JsonObject): ChoicePart['logprobs'] {
  return readArray(logprobs).length === 0 ? null : readLogprobs({ content: logprobs });
}

type Finish = Pick<ChoicePart, 'finishWord' | 'finishMeaning'>;

/**
 * How a response ended. Null: its status says that it has not, or that it failed. It may also call itself completed, and name the
 * reason why it is not.
 * @param saysIncomplete its last event says so
 */
function finishOf({ status, incomplete_details }: JsonObject, saysIncomplete: boolean): Finish | null {
  if (status !== 'completed' && status !== 'incomplete' && status !== undefined) return null;
  const reason = readText(objectOf(incomplete_details).reason);
  if (reason === undefined && status !== 'incomplete' && !saysIncomplete) return { finishWord: 'completed' };
  const word = reason ?? 'incomplete';
  const isFiltered = finishMeaning(word) === 'content_filter';
  return { finishWord: word, finishMeaning: isFiltered ? 'content_filter' : 'length' };
}

function unfinished({ status }: JsonObject): UpstreamError {
  const message = `the answer ended while its response was ${readText(status) ?? 'without a status'}`;
  return { message, type: undefined, code: 'upstream_truncated', param: undefined, status: undefined };
}

function choicePart(...choices: readonly (Partial<ChoicePart> | null)[]): ChunkPart | null {
  const updates = choices.flatMap((choice) => (choice === null ? [] : [{ ...EMPTY_CHOICE, ...choice }]));
  return updates.length === 0 ? null : { ...EMPTY_PART, choices: updates };
}

/** The text of an event's part. */
function partOf(event: JsonObject): FinalText | null {
  const part = objectOf(event.part);
  return partText(part, partIndex(event), PARTS.get(part.type) ?? 'text');
}

function inputOf(item: JsonObject, { isCustom }: Call): string {
  return isCustom ? (readText(item.input) ?? '') : readArguments(item.arguments);
}

/** What was not sent of a call's complete arguments. */
function restOf(call: Call, final: string): Partial<ChoicePart> | null {
  const text = call.sent.rest(final);
  return text === '' ? null : { toolCalls: [fragment(call, call.isCustom ? insideJson(text) : text)] };
}

function fragment({ index }: Call, args: string): ToolCallPart {
  return { index, id: undefined, name: undefined, arguments: args, extraContent: undefined };
}

/** The last piece of a call's arguments. */
function whole(call: Call, args: string): Partial<ChoicePart> {
  return { toolCalls: [{ ...fragment(call, args), isWhole: true }] };
}

/** The text as the content of a JSON string. */
function insideJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
