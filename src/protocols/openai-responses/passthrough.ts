/** Passthrough of Responses: which fields of a request matter to the gateway, and how a provider's events and responses change. */

import { isCode } from '../../canonical/fault.ts';
import { type ChunkPart, mayBePlaceholder } from '../../canonical/part.ts';
import { readProviderTag } from '../../canonical/reasoning-details.ts';
import type { Usage } from '../../canonical/usage.ts';
import { ENCRYPTED_REASONING } from '../../fitting/table.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  omit,
  parseJsonExactly,
  readArray,
  readCount,
  readText,
  writeJson,
} from '../../shared/json.ts';
import { JsonProgress } from '../../shared/json-progress.ts';
import { DONE_FRAME, HEARTBEAT_FRAME, isEventName } from '../../stream/sse-frame.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { Passthrough, PassthroughOptions, PassthroughTarget } from '../shared/client-protocol.ts';
import { type PassedEvent, type PassthroughFormat, PassthroughWriter } from '../shared/passthrough-writer.ts';
import { streamErrorOf } from './client-errors.ts';
import { eventFrame } from './client-writer.ts';
import { passedItemId, restoreItems } from './item-ids.ts';
import { isOwnReasoningId } from './items.ts';
import { type OpenPassedItem, PassedItems } from './passed-items.ts';
import { ResponseObject, responseIdOf, writeUsage } from './response-object.ts';
import { type KeptState, MAX_ECHO_CHARS, readShortText, withoutUser, writeEcho } from './session.ts';
import { itemKey } from './upstream-items.ts';

/** @param kept what the gateway keeps of the response; null: nothing, so that the provider's ids and state are used */
export function responsesPassthrough(kept: KeptState | null): Passthrough {
  return {
    protocol: 'responses',
    outputLimitField: 'max_output_tokens',
    // Items and tools of unknown types.
    promptFields: /^(?:input|tools)\./,
    compactsContext: ({ context_management: management }) =>
      Array.isArray(management) && management.length > 0,
    // Codex sends the id of its installation (openai/codex#16912, 2026-04-06). "Unknown parameter" at OpenAI:
    // SEMOSS/Semoss#2532, 2026-05-18.
    clientFields: ['client_metadata'],
    requestHeaders: [],
    responseHeaders: [],
    upstreamBody: (body, target) => {
      const restored = upstreamBody(body, target);
      return kept === null || !target.encryptsReasoning ? restored : withEncryptedReasoning(restored);
    },
    streamWriter: (options) =>
      new PassthroughWriter(() => new ResponsesFormat({ ...options, kept }), options.maxEventBytes),
    writeJson: (response, options) =>
      response.object === 'response' ? convertResponse(response, { ...options, kept }) : response,
  };
}

interface FormatOptions extends PassthroughOptions {
  readonly kept: KeptState | null;
}

/** Removes the reasoning items of other providers: without its encoded state, an item is of no use to this one. */
function upstreamBody(body: JsonObject, { provider, readsReasoning }: PassthroughTarget): JsonObject {
  const { input } = body;
  if (!Array.isArray(input)) return body;
  const own = input.some(isOwnReasoning) ? input.filter((item) => !isOwnReasoning(item)) : input;
  const readable = readsReasoning === undefined ? own : withoutForeign(own, readsReasoning);
  const restored = restoreItems(readable, provider);
  return restored === input ? body : { ...body, input: restored };
}

/** Without reasoning that another provider encrypted. Then other items have no ids, by which a provider finds their reasoning. */
function withoutForeign(
  items: readonly unknown[],
  readsReasoning: (data: string) => boolean,
): readonly unknown[] {
  const isForeign = (item: unknown) => {
    const { type, encrypted_content } = objectOf(item);
    const data = readText(encrypted_content);
    return type === 'reasoning' && data !== undefined && !readsReasoning(data);
  };
  if (!items.some(isForeign)) return items;
  return items.flatMap((item) => (isForeign(item) ? [] : isObject(item) ? omit(item, 'id') : item));
}

/** A provider that stores nothing returns reasoning in no other form. */
function withEncryptedReasoning(body: JsonObject): JsonObject {
  const include = readArray(body.include);
  return include.includes(ENCRYPTED_REASONING)
    ? body
    : { ...body, include: [...include, ENCRYPTED_REASONING] };
}

/** Whether an item is reasoning that this gateway wrote. */
function isOwnReasoning(item: unknown): boolean {
  if (!isObject(item) || item.type !== 'reasoning') return false;
  return readProviderTag(item.encrypted_content) !== null || isOwnReasoningId(item.id);
}

/**
 * OpenAI's names of events that vLLM's servers, such as AWS's, call otherwise: its SDK fails on them
 * (bedrock-mantle--responses-ruby, 2026-08).
 */
const PART_EVENTS: Readonly<Record<string, string>> = {
  'response.reasoning_part.added': 'response.content_part.added',
  'response.reasoning_part.done': 'response.content_part.done',
};

/** Items whose parts are numbered anew. */
const MAX_NUMBERED_ITEMS = 1024;

/** Gives events of parts OpenAI's names, and numbers the parts of each item from 0: the same servers count those of all items. */
class PartEvents {
  /** By item: the client's index of each part, by the upstream's. */
  readonly #indexes = new Map<unknown, Map<number, number>>();
  /** An index of the client's differs from the upstream's. */
  isChanging = false;

  /** @returns `event` itself if nothing changes */
  standard(event: JsonObject): JsonObject {
    const type = PART_EVENTS[readText(event.type) ?? ''];
    const index = readCount(event.content_index);
    const own = index === undefined ? undefined : this.#indexOf(itemKey(event), index);
    if (own !== index) this.isChanging = true;
    if (own === index && type === undefined) return event;
    return {
      ...event,
      ...(type !== undefined && { type }),
      ...(own !== undefined && { content_index: own }),
    };
  }

  #indexOf(item: unknown, index: number): number {
    const indexes = this.#indexes.get(item) ?? new Map<number, number>();
    const known = indexes.get(index);
    if (known !== undefined) return known;
    if (!this.#indexes.has(item) && this.#indexes.size >= MAX_NUMBERED_ITEMS) return index;
    this.#indexes.set(item, indexes.set(index, indexes.size));
    return indexes.size - 1;
  }
}

/** Keeps track of the numbers of a stream's events and of its response, so that a failure can end the stream consistently. */
class ResponsesFormat implements PassthroughFormat {
  readonly #options: FormatOptions;
  /** The number of the client's next event. */
  #nextNumber = 0;
  /** By how much the client's numbers exceed the upstream's: the events that were added, less those that were left out. */
  #shift = 0;
  /** The client's last event with the response, as JSON, for a failure. */
  #lastResponse = '{}';
  readonly #placeholders = new Placeholders();
  readonly #parts = new PartEvents();
  /** Null: the gateway does not end the response. */
  readonly #sent: PassedItems | null;

  constructor(options: FormatOptions) {
    this.#options = options;
    this.#sent = options.mayEnd === true ? new PassedItems() : null;
  }

  /** After an event that was added or left out the numbers differ from the upstream's. In kept events the ids do. */
  get canCopyEvents(): boolean {
    const isPlain = this.#options.kept === null && this.#sent === null;
    return this.#shift === 0 && isPlain && !this.#placeholders.isHolding && !this.#parts.isChanging;
  }

  heartbeat(): string {
    return HEARTBEAT_FRAME;
  }

  /** A placeholder of a call's arguments waits for the next event: the deltas form the JSON of the final item. */
  events(passed: PassedEvent, event: JsonObject, part: ChunkPart | null): readonly PassedEvent[] {
    const { held, isDropped } = this.#placeholders.release(event);
    if (isDropped) this.#shift--;
    const frames = held === null || isDropped ? [] : [...this.#write(held.passed, held.event)];
    if (part?.isOrphan === true) this.#shift--;
    else if (!this.#placeholders.hold(passed, event)) {
      for (const omitted of part?.omitted ?? []) frames.push(...this.#add(omitted));
      frames.push(...this.#write(passed, event));
    }
    return frames;
  }

  /** An event that the upstream left out. */
  #add(event: JsonObject): readonly PassedEvent[] {
    this.#shift++;
    const numbered = { ...event, sequence_number: this.#nextNumber - this.#shift };
    return this.#write({ name: readText(event.type) ?? '', data: JSON.stringify(numbered) }, numbered);
  }

  #write(passed: PassedEvent, given: JsonObject): readonly PassedEvent[] {
    const event = this.#parts.standard(given);
    const { name, data } =
      event === given
        ? passed
        : {
            name: passed.name === '' ? '' : (readText(event.type) ?? ''),
            data: writeJson(event) ?? passed.data,
          };
    if (this.#options.reasoning === 'strip' && isReasoningText(event)) {
      this.#shift--;
      return [];
    }
    if (this.#options.kept !== null && !canKeep(event)) return [];
    this.#sent?.read(event);
    const { sequence_number, response } = event;
    const number = readCount(sequence_number);
    const expected = this.#nextNumber;
    this.#nextNumber = (number === undefined ? expected : number + this.#shift) + 1;
    const isKept = this.#options.kept !== null;
    // A reader's cursor counts the events one by one.
    if (isKept) this.#nextNumber = expected + 1;
    const frames = isKept
      ? keptEvent(data, event, expected, this.#options)
      : convertEvent(data, event, this.#shift, this.#options);
    // A response that has ended can't fail any more.
    if (isObject(response) && !TERMINAL.includes(event.type)) this.#lastResponse = boundResponse(frames);
    // The event log finds kept events by their names.
    return [{ name: isKept ? (readText(event.type) ?? name) : name, data: frames }];
  }

  /** The fast path does not read the number, but the protocol counts events one by one. */
  eventCopied(): void {
    this.#nextNumber++;
  }

  /** Its error may contain credentials: the response is sent with the gateway's error. */
  failedEvent(data: string, event: JsonObject): void {
    if (isObject(event.response)) this.#lastResponse = convertEvent(data, event, 0, this.#options);
  }

  /** Ends the items that are open, and the response as one that has reached its limit, with the items that were sent. */
  limit(usage: Usage): string {
    const response = this.#ownResponse();
    const begin = this.#nextNumber === 0 ? this.#beginFrames(response) : '';
    const ends = (this.#sent?.open ?? []).map((open) => {
      const [item = {}] = this.#shown([open.item]);
      const { output_index } = open;
      const done = membersOf({ output_index, item });
      return this.#endTexts({ ...open, item }) + this.#frame('response.output_item.done', done);
    });
    const startedResponse = objectOf(parseJsonExactly(response.inProgress));
    const incomplete = {
      ...{ ...startedResponse, ...this.#said, status: 'incomplete', completed_at: null, error: null },
      incomplete_details: { reason: 'max_output_tokens' },
      usage: writeUsage(usage),
      output: this.#shown(this.#sent?.all ?? []),
    };
    const end = this.#frame('response.incomplete', membersOf({ response: incomplete }));
    return begin + ends.join('') + end + DONE_FRAME;
  }

  /** Ends the texts of an open message. */
  #endTexts({ output_index, item }: OpenPassedItem): string {
    if (item.type !== 'message') return '';
    const ends = readArray(item.content).map((part, content_index) => {
      const { type, text = '', refusal = '' } = objectOf(part);
      const place = { item_id: item.id, output_index, content_index };
      const end =
        type === 'output_text'
          ? this.#frame('response.output_text.done', membersOf({ ...place, text, logprobs: [] }))
          : this.#frame('response.refusal.done', membersOf({ ...place, refusal }));
      return end + this.#frame('response.content_part.done', membersOf({ ...place, part }));
    });
    return ends.join('');
  }

  /** Items as the client knows them. */
  #shown(items: readonly JsonObject[]): readonly JsonObject[] {
    return readArray(convertResponse({ output: items }, this.#options).output).map(objectOf);
  }

  /** The response before anything is known of it. */
  #ownResponse(): ResponseObject {
    const { kept } = this.#options;
    const session = {
      echo: writeEcho({}, [], kept),
      tools: new Map(),
      wantsEncrypted: false,
      serviceTier: 'default',
      createdAt: kept?.createdAt,
    };
    return new ResponseObject({ session, writer: this.#options, events: null }, null);
  }

  /** What the provider has said of the response. */
  get #said(): JsonObject {
    return objectOf(objectOf(parseJsonExactly(this.#lastResponse)).response);
  }

  /** The failed response has what the provider has said of it. Without its own event of the failure it has no output items. */
  failure(failure: StreamFailure): string {
    const error = streamErrorOf(failure);
    const response = this.#ownResponse();
    // A stream that only had heartbeats lacks the first two events.
    const begin = this.#nextNumber === 0 ? this.#beginFrames(response) : '';
    const errorFrame = this.#frame('error', `"error":${JSON.stringify(error)}`);
    const failedResponse = objectOf(parseJsonExactly(response.failed(error)));
    const { status, completed_at, incomplete_details } = failedResponse;
    const failed = {
      ...failedResponse,
      ...this.#said,
      status,
      completed_at,
      incomplete_details,
      error: failedResponse.error,
    };
    return (
      begin + errorFrame + this.#frame('response.failed', `"response":${JSON.stringify(failed)}`) + DONE_FRAME
    );
  }

  #beginFrames({ inProgress }: ResponseObject): string {
    const members = `"response":${inProgress}`;
    return this.#frame('response.created', members) + this.#frame('response.in_progress', members);
  }

  #frame(type: string, members: string): string {
    return eventFrame(type, members, this.#nextNumber++);
  }
}

/** The members of an object, as JSON without its braces. */
function membersOf(object: JsonObject): string {
  return JSON.stringify(object).slice(1, -1);
}

const ARGUMENTS_DELTA = 'response.function_call_arguments.delta';

/** Calls whose arguments are followed. The first delta of a further one is no placeholder. */
const MAX_FOLLOWED_CALLS = 1024;

interface HeldEvent {
  readonly passed: PassedEvent;
  readonly event: JsonObject;
}

/** Finds the first deltas of calls' arguments that may be placeholders (C7), and holds each until the next event. */
class Placeholders {
  /** The calls whose arguments have begun. */
  readonly #begun = new Set<unknown>();
  #held: HeldEvent | null = null;

  get isHolding(): boolean {
    return this.#held !== null;
  }

  /** Holds an event that may be a placeholder. */
  hold(passed: PassedEvent, event: JsonObject): boolean {
    const delta = event.type === ARGUMENTS_DELTA ? readText(event.delta) : undefined;
    const key = itemKey(event);
    if (delta === undefined || this.#begun.has(key) || this.#begun.size >= MAX_FOLLOWED_CALLS) return false;
    this.#begun.add(key);
    if (mayBePlaceholder(delta)) this.#held = { passed, event };
    return this.#held !== null;
  }

  /** The event that was held, and whether the next one shows that it is a placeholder: it has the arguments, or all of them. */
  release(next: JsonObject): { readonly held: HeldEvent | null; readonly isDropped: boolean } {
    const held = this.#held;
    this.#held = null;
    if (held === null || itemKey(next) !== itemKey(held.event)) return { held, isDropped: false };
    const { delta, arguments: whole, item } = next;
    const all = readText(whole) ?? readText(objectOf(item).arguments);
    const isReplaced = next.type === ARGUMENTS_DELTA && readText(delta)?.trimStart().startsWith('{') === true;
    const isDropped = isReplaced || (all !== undefined && !mayBePlaceholder(all));
    // What follows may be one, too.
    if (isDropped) this.#begun.delete(itemKey(held.event));
    return { held, isDropped };
  }
}

/** The fields of a response that are kept of one that is too large. */
const SHORT_FIELDS = [
  'id',
  'created_at',
  'model',
  'service_tier',
  'store',
  'background',
  'previous_response_id',
];

/**
 * The event without the response's largest fields, if it exceeds what a stream holds of a response until its end.
 * @param json an event with a response
 */
function boundResponse(json: string): string {
  if (json.length <= MAX_ECHO_CHARS) return json;
  const response = objectOf(objectOf(parseJsonExactly(json)).response);
  const bounded = JSON.stringify({ response: omit(response, 'instructions', 'tools', 'output') });
  if (bounded.length <= MAX_ECHO_CHARS) return bounded;
  const short = SHORT_FIELDS.map((name) => [name, response[name]]).filter(
    ([, value]) => typeof value === 'number' || typeof value === 'boolean' || readShortText(value) !== null,
  );
  return JSON.stringify({ response: Object.fromEntries(short) });
}

/** The events that end a response. */
const TERMINAL: readonly unknown[] = ['response.completed', 'response.incomplete', 'response.failed'];

/** Readers of a kept response find its events by their types, and its state in the event that ends it. */
function canKeep({ type, response }: JsonObject): boolean {
  const isNamed = isEventName(readText(type) ?? '');
  return isNamed && (isObject(response) || !TERMINAL.includes(type));
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
 * @param shift by how much the client's number exceeds the upstream's
 */
function convertEvent(data: string, event: JsonObject, shift: number, options: FormatOptions): string {
  const isStripped = options.reasoning === 'strip' && objectOf(event.item).type === 'reasoning';
  const isCut = isCutCall(event.item);
  if (!isObject(event.response) && !isStripped && !isCut && shift === 0) return data;
  const exact = objectOf(parseJsonExactly(data));
  const { response, item } = exact;
  const number = readCount(exact.sequence_number);
  return JSON.stringify({
    ...exact,
    ...(isObject(response) ? { response: convertResponse(response, options) } : {}),
    ...(isStripped && isObject(item) ? { item: withoutReasoningText(item) } : {}),
    ...(isCut && isObject(item) ? { item: incomplete(item) } : {}),
    ...(number === undefined ? {} : { sequence_number: number + shift }),
  });
}

/**
 * An event of a response that the gateway keeps: with its ids and the given number, on one line.
 * @param data as it came
 */
function keptEvent(data: string, event: JsonObject, number: number, options: FormatOptions): string {
  const converted = convertEvent(data, event, 0, options);
  let json = converted;
  let isKept = event.sequence_number === number && !converted.includes('\n');
  for (const [name, value] of [
    ['item_id', event.item_id],
    ['id', objectOf(event.item).id],
  ] as const) {
    const id = readText(value);
    if (id === undefined) continue;
    // As text, so that all other bytes stay.
    const member = `"${name}":${JSON.stringify(id)}`;
    isKept &&= json.includes(member);
    json = json.replaceAll(member, () => `"${name}":${JSON.stringify(keptId(id, options))}`);
  }
  if (isKept) return json;
  const exact = objectOf(parseJsonExactly(converted));
  const { item_id, item } = exact;
  return JSON.stringify({
    ...exact,
    ...(typeof item_id === 'string' ? { item_id: keptId(item_id, options) } : {}),
    ...(isObject(item) ? { item: withKeptId(item, options) } : {}),
    sequence_number: number,
  });
}

function withKeptId(item: JsonObject, options: FormatOptions): JsonObject {
  return typeof item.id === 'string' ? { ...item, id: keptId(item.id, options) } : item;
}

function keptId(id: string, { requestId, provider }: FormatOptions): string {
  return passedItemId(id, responseIdOf(requestId), provider);
}

function convertResponse(response: JsonObject, options: FormatOptions): JsonObject {
  const { provider, reasoning, kept } = options;
  const model = readText(response.model);
  const counted = withConsistentUsage(response);
  const named = model === undefined ? counted : { ...counted, model: `${provider}/${model}` };
  const timed = hasOwnTime(named, kept) ? { ...named, created_at: kept?.createdAt } : named;
  const shown = kept?.hidesUser === true ? withoutUser(timed) : timed;
  const shownMembers =
    kept === null ? shown : { ...withCodedReason(shown), ...keptMembers(options.requestId, kept) };
  if (!Array.isArray(response.output)) return shownMembers;
  if (reasoning === 'pass' && kept === null && !response.output.some(isCutCall)) return shownMembers;
  const output = response.output.map((item: unknown) => {
    if (!isObject(item)) return item;
    const whole = isCutCall(item) ? incomplete(item) : item;
    const shown = reasoning === 'pass' ? whole : withoutReasoningText(whole);
    return kept === null ? shown : withKeptId(shown, options);
  });
  return { ...shownMembers, output };
}

/** The reason for which a response is incomplete is kept where it has the form of a code (E5). */
function withCodedReason(response: JsonObject): JsonObject {
  const { incomplete_details } = response;
  const reason = isObject(incomplete_details) ? incomplete_details.reason : undefined;
  if (typeof reason !== 'string' || isCode(reason)) return response;
  return { ...response, incomplete_details: { reason: 'other' } };
}

/**
 * The response with at most as many tokens from and to the cache as its prompt has. Clients subtract the one from the other: Azure's Grok
 * reported 161 of 7 (recorded 2026-08).
 */
function withConsistentUsage(response: JsonObject): JsonObject {
  const { usage } = response;
  const details = isObject(usage) ? usage.input_tokens_details : undefined;
  if (!isObject(usage) || !isObject(details)) return response;
  const prompt = readCount(usage.input_tokens);
  const cached = readCount(details.cached_tokens) ?? 0;
  const cacheWrites = readCount(details.cache_write_tokens) ?? 0;
  if (prompt === undefined || cached + cacheWrites <= prompt) return response;
  const cacheReads = Math.min(cached, prompt);
  const input_tokens_details = {
    ...details,
    ...(cached > cacheReads ? { cached_tokens: cacheReads } : {}),
    ...(cacheWrites > prompt - cacheReads ? { cache_write_tokens: prompt - cacheReads } : {}),
  };
  return { ...response, usage: { ...usage, input_tokens_details } };
}

/** Whether an item is a call that its status calls complete, and whose arguments are only the beginning of JSON. */
function isCutCall(item: unknown): boolean {
  if (!isObject(item) || item.type !== 'function_call' || typeof item.arguments !== 'string') return false;
  if (item.status !== undefined && item.status !== 'completed') return false;
  const progress = new JsonProgress();
  progress.push(item.arguments);
  return progress.endsCut;
}

/** Clients run calls as their items are done, before the response ends. */
function incomplete(item: JsonObject): JsonObject {
  return { ...item, status: 'incomplete' };
}

function hasOwnTime({ created_at }: JsonObject, kept: KeptState | null): boolean {
  return created_at !== undefined && kept?.createdAt !== undefined;
}

/** The id and the state of a kept response, which are the gateway's. */
function keptMembers(requestId: string, { previousId, isStored, isBackground }: KeptState): JsonObject {
  return {
    id: responseIdOf(requestId),
    previous_response_id: previousId,
    store: isStored,
    background: isBackground,
  };
}

/** The provider only needs the id and `encrypted_content` back. */
function withoutReasoningText(item: JsonObject): JsonObject {
  if (item.type !== 'reasoning') return item;
  const content = readArray(item.content).length === 0 ? {} : { content: [] };
  return { ...item, summary: [], ...content };
}
