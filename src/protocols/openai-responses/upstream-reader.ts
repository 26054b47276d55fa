/** OpenAI's Responses as a provider protocol: reads its events, or a non-streaming response, into canonical parts. */
import { MAX_CITATIONS } from '../../canonical/citations.ts';
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
import { findUpstreamError, readUpstreamError, unfinished } from '../../canonical/upstream-error.ts';
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
import { ownCallId, readArguments, readCreated, readUsage } from '../openai-chat/upstream-reader.ts';
import { OmittedEvents, type SentPlace } from './omitted-events.ts';
import { citationsIn, readCitations } from './upstream-citations.ts';
import {
  type FinalText,
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

const SEARCH_CALL = 'web_search_call';

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
interface ClientToolCall {
  /** The index among the calls. */
  readonly index: number;
  readonly isCustom: boolean;
  readonly sent: SentArguments;
  readonly hasName: boolean;
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
  #calls = new Map<unknown, ClientToolCall>();
  #callsById = new Map<string, ClientToolCall>();
  /** The number of calls so far: an index may have several, one after the other. */
  #callCount = 0;
  /** The number of final items so far, of the types that must not count twice. */
  #done: Record<string, number> = { ...NONE_DONE };
  #searches = 0;
  /** Searches that have begun and are not done. */
  #openSearches = 0;
  /** Of both, as the last part had them. */
  #begunSearches = 0;
  #announcedChars = 0;
  readonly #omitted = new OmittedEvents();
  /** The keys of items whose citations were read. */
  readonly #citingItems = new Set<unknown>();
  /** Encrypted reasoning whose following item has not come yet. */
  #reasoning: readonly JsonObject[] = [];

  constructor(quirks: ProtocolQuirks, provider: string) {
    this.#quirks = quirks;
    this.#provider = provider;
  }

  event(event: JsonObject): ChunkPart | null {
    const part = this.#withSearches(this.#read(event));
    if (this.#omitted.count === 0) return part;
    return { ...(part ?? EMPTY_PART), omitted: this.#omitted.take(), isRemembered: true };
  }

  #withSearches(part: ChunkPart | null): ChunkPart | null {
    const searches = this.#searches + this.#openSearches;
    if (searches <= this.#begunSearches) return part;
    this.#begunSearches = searches;
    return { ...(part ?? EMPTY_PART), searches, isRemembered: true };
  }

  #read(event: JsonObject): ChunkPart | null {
    const type = readText(event.type) ?? '';
    if (DELTAS.has(type)) return this.#delta(event, true);
    const key = this.#items.keyOf(event, type === 'response.output_item.added');
    this.#hasIndexes ||= typeof key === 'number';
    const isOfCall = CALL_DELTAS.includes(type) || CALLS_DONE.includes(type);
    if (isOfCall && !this.#items.at(key).hasBegun) return { ...EMPTY_PART, isOrphan: true };
    if (CALL_DELTAS.includes(type)) return choicePart(this.#arguments(event, key));
    if (CALLS_DONE.includes(type)) return choicePart(this.#argumentsDone(event, key));
    if (type === 'response.output_text.annotation.added') return choicePart(this.#citation(event, key));
    if (type.endsWith('.done')) {
      if (type === 'response.output_item.done') {
        const item = objectOf(event.item);
        return choicePart(...this.#itemDone(item, key), this.#citations(item, key));
      }
      return choicePart(this.#textDone(type, event, key));
    }
    if (type === 'response.output_item.added')
      return choicePart(...this.#announce(objectOf(event.item), key));
    if (PARTS_ADDED.includes(type)) return choicePart(this.#partAdded(event, key));
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
    const reported = Array.isArray(response.output) ? null : findUpstreamError(response);
    if (reported !== null) return { ...EMPTY_PART, error: reported };
    const finish = finishOf(response, false);
    const part = this.#ending(response, finish);
    this.#omitted.take();
    return {
      ...part,
      error:
        part.error ??
        (finish === null
          ? unfinished(`while its response was ${readText(response.status) ?? 'without a status'}`)
          : null),
    };
  }

  #delta(event: JsonObject, counts: boolean): ChunkPart {
    const kind = DELTAS.get(readText(event.type) ?? '') ?? 'text';
    const delta = readText(event.delta) ?? '';
    const key = this.#items.keyOf(event);
    const item = this.#items.at(key);
    const sent = item.count(kind, partIndex(event));
    const text = counts ? item.before(sent, delta) + delta : delta;
    if (counts) sent.units += text.length;
    // A server that sends deltas of what it did not announce is passed on as it is (N1).
    if (counts) item.isPassedAsIs ||= !sent.isAdded;
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
    if (item.isSentOtherwise(final.kind) || item.mayBeElsewhere(final)) return null;
    const missing = this.#rest(item, final, placeOf(item, key, event.item_id));
    const sent = item.count(final.kind, final.index);
    if (kind === undefined) sent.isPartDone = true;
    else sent.isTextDone = true;
    return missing;
  }

  /**
   * What was not sent of a final text. Its logprobs count if nothing was.
   * @param place null if no events can be added
   */
  #rest(item: SentItem, final: FinalText, place: SentPlace | null): Partial<ChoicePart> | null {
    const sent = item.count(final.kind, final.index);
    const isKnown = sent.isShown;
    const text = item.rest(final);
    if (place !== null && !this.#omitted.isFull && (text !== '' || final.text === '')) {
      const part = { ...place, kind: final.kind, index: final.index };
      this.#omitted.part(item, sent, part);
      if (text !== '' && !isKnown) this.#omitted.delta(part, text);
    }
    if (text === '') return null;
    const logprobs = text === final.text ? logprobsOf({ logprobs: final.logprobs }) : null;
    return { [MEMBERS[final.kind]]: text, logprobs };
  }

  /** The same at the end of the text's item: the events that end the text are added, too. */
  #restOfItem(item: SentItem, final: FinalText, place: SentPlace | null): Partial<ChoicePart> | null {
    const before = this.#omitted.count;
    const missing = this.#rest(item, final, place);
    if (place !== null && this.#omitted.count > before) {
      const sent = item.count(final.kind, final.index);
      this.#omitted.textDone(sent, { ...place, kind: final.kind, index: final.index }, final.text);
    }
    return missing;
  }

  /** A citation of the text that is being sent. */
  #citation(event: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const item = this.#items.at(key);
    const { units, start } = item.count('text', partIndex(event));
    const length = units > start ? units - start : item.units('text', true);
    const annotations = readCitations([event.annotation], this.#items.units('text') - length);
    return annotations.length === 0 ? null : { annotations };
  }

  /** The citations of an item that is done, with which the text so far ends. Some servers repeat an item later. */
  #citations(item: JsonObject, key: unknown): Partial<ChoicePart> | null {
    if (item.type !== 'message' || this.#citingItems.has(key) || this.#citingItems.size === MAX_CITATIONS)
      return null;
    const length = lengthOf(textsOf(item), 'text');
    const annotations = citationsIn([item], Math.max(0, this.#items.units('text') - length));
    if (annotations.length === 0) return null;
    this.#citingItems.add(key);
    return { annotations };
  }

  #partAdded(event: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const item = this.#items.at(key);
    const { type } = objectOf(event.part);
    const kind = type === 'refusal' ? 'refusal' : (PARTS.get(type) ?? 'text');
    const place = placeOf(item, key, event.item_id);
    const sent = item.count(kind, partIndex(event));
    sent.isAdded = true;
    if (place !== null) this.#omitted.part(item, sent, { ...place, kind, index: partIndex(event) });
    return this.#announceText(partOf(event), key);
  }

  /** An item begins. Some servers use one index for several items. */
  #announce(item: JsonObject, key: unknown): (Partial<ChoicePart> | null)[] {
    if (item.type === SEARCH_CALL) this.#openSearches++;
    const sent = this.#items.at(key);
    const id = readText(item.id);
    if (sent.isOpen && id !== undefined && id === sent.id) return [];
    if (sent.isOpen) sent.restart();
    sent.isAdded = true;
    sent.addedId = id;
    for (const { kind, index } of textsOf(item)) sent.count(kind, index).isAdded = true;
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
    if (!this.#mayHold(text.text)) {
      item.count(text.kind, text.index).isShown = true;
      return this.#rest(item, text, null);
    }
    item.announce(text);
    return null;
  }

  #announceCall(item: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const call = this.#calls.get(key);
    const text = call === undefined ? '' : inputOf(item, call);
    if (call === undefined || text === '') return null;
    if (!this.#mayHold(text)) {
      call.sent.isShown = true;
      return restOf(call, text);
    }
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
    if (typeof key === 'number') this.#omitted.item(sent, key, item);
    const place = placeOf(sent, key, item.id);
    const texts = textsOf(item);
    const missing = this.#complete(item, key, texts, place);
    return [...missing, ...sent.announced(texts).map((text) => this.#rest(sent, text, null))];
  }

  /** Sends what the events of an item did not have. */
  #complete(
    item: JsonObject,
    key: unknown,
    texts: readonly FinalText[],
    place: SentPlace | null,
  ): (Partial<ChoicePart> | null)[] {
    const sent = this.#items.at(key);
    return [
      ...sent.missing(texts).map((text) => this.#restOfItem(sent, text, place)),
      sent.isOpen ? null : this.#open(item, key),
      this.#close(item, key, place),
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
    const name = readName(item.name);
    const call = {
      index: this.#callCount++,
      isCustom,
      sent: new SentArguments(),
      hasName: name !== undefined,
      isClosed: false,
    };
    this.#calls.set(key, call);
    if (id !== undefined) this.#callsById.set(id, call);
    const head = { ...fragment(call, ''), id: ownCallId(id, this.#quirks), name };
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
    return { toolCalls: [fragment(call, text)] };
  }

  /** What the deltas of a call did not have. Without a call, the item's end has it. */
  #argumentsDone({ arguments: json, input }: JsonObject, key: unknown): Partial<ChoicePart> | null {
    const call = this.#calls.get(key);
    if (call === undefined) return null;
    const place = placeOf(this.#items.at(key), key, undefined);
    const missing = this.#restOfCall(call, readText(json) ?? readText(input) ?? '', place);
    call.sent.isDone = true;
    return missing;
  }

  #restOfCall(call: ClientToolCall, final: string, place: SentPlace | null): Partial<ChoicePart> | null {
    const text = call.sent.rest(final);
    if (text === '') return null;
    if (place !== null && !call.sent.isShown) this.#omitted.input(place, call.isCustom, text);
    return { toolCalls: [fragment(call, text)] };
  }

  /** The end of an item. A repetition has nothing new. */
  #close(item: JsonObject, key: unknown, place: SentPlace | null): Partial<ChoicePart> | null {
    const sent = this.#items.at(key);
    sent.isDone = true;
    sent.id = readText(item.id) ?? sent.id;
    this.#countDone(item);
    if (item.type === SEARCH_CALL) this.#openSearches = Math.max(0, this.#openSearches - 1);
    if (item.type === SEARCH_CALL && item.status !== 'failed') {
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
    const before = this.#omitted.count;
    const { toolCalls: [rest] = [] } = this.#restOfCall(call, inputOf(item, call), place) ?? {};
    const text = rest?.arguments ?? '';
    if (place !== null && this.#omitted.count > before && !call.sent.isDone)
      this.#omitted.inputDone(place, call.isCustom, inputOf(item, call));
    // A server may name the tool in the final form only.
    const name = call.hasName ? undefined : readName(item.name);
    const isCut = item.status === 'incomplete';
    const isAbsent = !call.isCustom && call.sent.length === 0 && !isCut;
    if (!call.isCustom && text === '' && !isAbsent && name === undefined) return null;
    const last = { ...fragment(call, isAbsent ? '{}' : text), name };
    return { toolCalls: [isCut && call.isCustom ? last : { ...last, isWhole: true }] };
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
    const missing = choicePart(...this.#missing(output), ...announced)?.choices ?? [];
    const state = this.#state(response, finish);
    const annotations = citationsIn(output, 0);
    const last =
      annotations.length === 0 ? state.choices : state.choices.map((one) => ({ ...one, annotations }));
    return { ...state, choices: [...missing, ...last] };
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
    const isFirst = ![...this.#items.all].some(({ isAdded, isOpen }) => isAdded || isOpen);
    return output.flatMap((item, at) => {
      const key = this.#hasIndexes ? at : (readText(item.id) ?? at);
      const itemTexts = (texts[at] ?? []).filter(({ kind }) => kinds.includes(kind));
      const sent = this.#items.at(key);
      const isCall = CALL_TYPES.includes(item.type);
      const isKnown = isCall && (hasAllCalls || this.#callsById.has(readName(item.call_id) ?? ''));
      const isRead = isCall
        ? isKnown && this.#isClosed(item, key)
        : sent.isDone || isComplete.has(readText(item.type) ?? '');
      const place = this.#omitted.isFull ? null : this.#placeAtEnd(item, at, isFirst);
      const before = this.#omitted.count;
      if (place !== null && isFirst) this.#omitted.item(sent, place.outputIndex, item);
      const missing = isRead
        ? sent.missing(itemTexts).map((text) => this.#restOfItem(sent, text, place))
        : isKnown
          ? [this.#close(item, key, place)]
          : this.#completeAtEnd(item, key, itemTexts, place);
      if (place !== null && this.#omitted.count > before && !isRead) this.#omitted.itemDone(place, item);
      return missing;
    });
  }

  /** Where an item of the complete output is, or null: another item is there, or the server sends no indexes. */
  #placeAtEnd(item: JsonObject, at: number, isFirst: boolean): SentPlace | null {
    if (!isFirst && !this.#hasIndexes) return null;
    const sent = this.#items.at(isFirst && !this.#hasIndexes ? (readText(item.id) ?? at) : at);
    const isOther = sent.isAdded && sent.addedId !== readText(item.id);
    return isOther ? null : placeOf(sent, at, item.id);
  }

  /** An item that no event had. */
  #completeAtEnd(
    item: JsonObject,
    key: unknown,
    texts: readonly FinalText[],
    place: SentPlace | null,
  ): (Partial<ChoicePart> | null)[] {
    const isCall = CALL_TYPES.includes(item.type);
    if (place !== null && isCall) this.#omitted.item(this.#items.at(key), place.outputIndex, item);
    return this.#complete(item, key, texts, place);
  }

  /** What only the beginnings of items and parts had, and what no final item has decided. */
  *#announced(): Generator<Partial<ChoicePart> | null> {
    for (const item of this.#items.all) {
      const texts = item.isDone ? [] : item.undecided();
      for (const text of [...texts, ...item.announced()]) yield this.#rest(item, text, null);
    }
    for (const call of this.#calls.values()) if (!call.isClosed) yield restOf(call, '');
  }

  #isClosed(item: JsonObject, key: unknown): boolean {
    return (this.#callsById.get(readName(item.call_id) ?? '') ?? this.#calls.get(key))?.isClosed !== false;
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
  const upstreamError = readUpstreamError(error);
  return { ...upstreamError, message: upstreamError.message ?? 'the response failed, and names no error' };
}

/** Where an update has each kind of text. */
const MEMBERS = { text: 'content', refusal: 'refusal', summary: 'reasoning', thoughts: 'reasoning' } as const;

/**
 * Where an item's events are, or null if none are added: the server sends no index, or no id that a client could know it by.
 * @param id the item's id in the event, for an item that did not begin
 */
function placeOf(item: SentItem, key: unknown, id: unknown): SentPlace | null {
  if (item.isPassedAsIs) return null;
  const itemId = item.isAdded ? item.addedId : readText(id);
  return typeof key === 'number' && itemId !== undefined ? { outputIndex: key, itemId } : null;
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

function choicePart(...choices: readonly (Partial<ChoicePart> | null)[]): ChunkPart | null {
  const updates = choices.flatMap((choice) => (choice === null ? [] : [{ ...EMPTY_CHOICE, ...choice }]));
  return updates.length === 0 ? null : { ...EMPTY_PART, choices: updates };
}

/** The text of an event's part. */
function partOf(event: JsonObject): FinalText | null {
  const { part } = event;
  return partText(part, partIndex(event), PARTS.get(objectOf(part).type) ?? 'text');
}

function inputOf(item: JsonObject, { isCustom }: ClientToolCall): string {
  return isCustom ? (readText(item.input) ?? '') : readArguments(item.arguments);
}

/** What was not sent of a call's complete arguments. */
function restOf(call: ClientToolCall, final: string): Partial<ChoicePart> | null {
  const text = call.sent.rest(final);
  return text === '' ? null : { toolCalls: [fragment(call, text)] };
}

function fragment({ index, isCustom }: ClientToolCall, args: string): ToolCallPart {
  const head = { index, id: undefined, name: undefined, arguments: args, extraContent: undefined };
  return isCustom ? { ...head, isCustom } : head;
}
