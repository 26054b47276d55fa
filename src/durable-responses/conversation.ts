/** The state that a request continues: the items of earlier responses, and the items that it refers to. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { inputItemId, responseOfItem } from '../protocols/openai-responses/item-ids.ts';
import type { KeptState } from '../protocols/openai-responses/session.ts';
import { isObject, type JsonObject, omit, parseJsonExactly, readArray, readText } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { SMALL_BYTES } from '../stream/memory.ts';
import type { Conversation, ResponseNamespace } from './response-calls.ts';

/** Earlier responses of one conversation. */
const MAX_LINKS = 1000;
/** Objects that are read at once for a chain, whose size is known before. */
const CHAIN_BATCH = 16;
/** Objects that are read at once for references. Each may return as much as a whole request may have. */
const ITEM_BATCH = 4;

const RESPONSE_ID = /^resp_[0-9a-f]{32}$/;

export function isResponseId(id: string): boolean {
  return RESPONSE_ID.test(id);
}

/** A request with everything that it continues. */
export interface Continued {
  /** The body for the provider: with all items in its input, and without the fields about state. */
  readonly body: JsonObject;
  readonly kept: KeptState;
  /** The request's own items: a JSON list. */
  readonly input: string;
  /** The ids of the earlier responses, oldest first. */
  readonly chain: readonly string[];
  /** The size of their items, and of the body with all of its items, in UTF-16 units of JSON. */
  readonly earlierChars: number;
  readonly chars: number;
  /** The size of the texts of the earlier items, in bytes of UTF-8. */
  readonly earlierTextBytes: number;
}

interface Scope {
  readonly objects: ResponseNamespace;
  readonly owner: string;
  /** The size of the request's own body. */
  readonly ownBytes: number;
  /** The bound on the body with all items, in UTF-16 units of JSON (`MAX_REQUEST_BYTES`). */
  readonly maxChars: number;
  /** Nothing that is stored names the user. */
  readonly hidesUser: boolean;
}

/** Whether the request continues a response or refers to items. */
export function continuesState(body: JsonObject): boolean {
  return readText(body.previous_response_id) !== undefined || readArray(body.input).some(isReference);
}

/** What a request without earlier items is, in the form of one that continues something. */
export function ownConversation(body: JsonObject, hidesUser: boolean, ownBytes: number): Continued {
  const inputItems = itemsOf(body.input);
  return {
    body: { ...omit(body, 'previous_response_id', 'background'), store: false },
    kept: keptState(body, hidesUser),
    input: JSON.stringify(inputItems),
    chain: [],
    earlierChars: 0,
    earlierTextBytes: 0,
    chars: ownBytes,
  };
}

function keptState(body: JsonObject, hidesUser: boolean): KeptState {
  return {
    previousId: readText(body.previous_response_id) ?? null,
    isStored: body.store !== false,
    isBackground: body.background === true,
    hidesUser,
  };
}

export function itemsOf(input: unknown): readonly unknown[] {
  return readArray(typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input);
}

const encoder = new TextEncoder();

/**
 * The size of the texts that every provider reads, in bytes of UTF-8: of messages, of calls and of their results. Reasoning, media and
 * items of hosted tools are not counted, because some providers do not get them.
 */
export function textBytesOf(items: readonly unknown[]): number {
  let bytes = 0;
  const add = (text: unknown) => {
    if (typeof text === 'string') bytes += encoder.encode(text).length;
  };
  for (const item of items.filter(isObject)) {
    const type = readText(item.type) ?? 'message';
    if (type === 'message') {
      add(item.content);
      for (const part of readArray(item.content).filter(isObject)) if (isTextPart(part)) add(part.text);
    } else if (type === 'function_call') add(item.arguments);
    else if (type === 'function_call_output') add(item.output);
  }
  return bytes;
}

function isTextPart({ type }: JsonObject): boolean {
  return type === 'input_text' || type === 'output_text';
}

interface Chain {
  /** The ids of the responses, oldest first. */
  readonly ids: readonly string[];
  /** The size of their items, in UTF-16 units of JSON. */
  readonly chars: number;
  /** The size of their texts, in bytes of UTF-8. */
  readonly textBytes: number;
}

interface EarlierItems {
  readonly items: readonly unknown[];
  /** Their size, in UTF-16 units of JSON. */
  readonly chars: number;
}

/**
 * Reads what a request continues, in three steps: how long and how large the chain is, how large the items are that it refers to, and then
 * all of them. Between the steps, the caller takes the memory and checks the limits. An object that can't be reached is an exception.
 */
export class ConversationReader {
  readonly #scope: Scope;
  /** The previous response, if it is so small that it came with its size. */
  #previous: { readonly id: string; readonly conversation: Conversation } | null = null;
  #chars: number;

  constructor(scope: Scope) {
    this.#scope = scope;
    this.#chars = scope.ownBytes;
  }

  /** Asks for the responses up to this one, oldest first, and the size of their items. */
  async chain(previousId: string): Promise<Result<Chain, ApiError>> {
    const previous = await this.#conversation(previousId, SMALL_BYTES);
    if (previous === null) return failure(previousNotFound(previousId));
    if (this.#scope.ownBytes + previous.chars > this.#scope.maxChars)
      return failure(tooLong(this.#scope.maxChars));
    if (!previous.isOver) {
      const message = `Previous response with id '${previousId}' is still in progress: wait until it has ended`;
      return failure(apiError('invalid_request', message, 'previous_response_id'));
    }
    const ids = [...previous.chain, previousId];
    if (ids.length > MAX_LINKS) {
      const message = `The conversation has more than ${MAX_LINKS} responses: send its items in input`;
      return failure(apiError('invalid_request', message, 'previous_response_id'));
    }
    if (previous.chars <= SMALL_BYTES) this.#previous = { id: previousId, conversation: previous };
    return ok({ ids, chars: previous.chars, textBytes: previous.textBytes });
  }

  /** Asks for the size of the items that the request refers to, in UTF-16 units of JSON. */
  async referredChars(input: unknown): Promise<Result<number, ApiError>> {
    const { objects, owner, maxChars } = this.#scope;
    let chars = 0;
    const found = await this.#eachResponse(referencesOf(input), async (id, wanted) => {
      const sizes = (await objects.getByName(id).itemChars(owner, wanted)) ?? [];
      for (const [, size] of sizes) chars += size;
      return sizes.map(([item]) => item);
    });
    if (found.kind === 'error') return found;
    return this.#scope.ownBytes + chars > maxChars ? failure(tooLong(maxChars)) : ok(chars);
  }

  /** Reads everything. */
  async read(body: JsonObject, { ids: chain, textBytes }: Chain): Promise<Result<Continued, ApiError>> {
    const earlier = await this.#earlier(chain);
    if (earlier.kind === 'error') return earlier;
    const inputItems = await this.#own(body.input);
    if (inputItems.kind === 'error') return inputItems;
    const isWhole = earlier.value.items.length === 0 && !Array.isArray(body.input);
    const items = isWhole ? {} : { input: [...earlier.value.items, ...inputItems.value] };
    return ok({
      body: { ...omit(body, 'previous_response_id', 'background'), ...items, store: false },
      kept: keptState(body, this.#scope.hidesUser),
      input: JSON.stringify(inputItems.value),
      chain,
      earlierChars: earlier.value.chars,
      earlierTextBytes: textBytes,
      chars: this.#chars,
    });
  }

  /** The items of these responses, and their size. */
  async #earlier(chain: readonly string[]): Promise<Result<EarlierItems, ApiError>> {
    const items: unknown[] = [];
    for (let from = 0; from < chain.length; from += CHAIN_BATCH) {
      const ids = chain.slice(from, from + CHAIN_BATCH);
      const conversations = await Promise.all(ids.map((id) => this.#conversation(id, this.#scope.maxChars)));
      for (const [index, conversation] of conversations.entries()) {
        if (conversation === null) return failure(previousNotFound(ids[index] ?? ''));
        this.#chars += conversation.input.length + conversation.output.length;
        if (this.#chars > this.#scope.maxChars) return failure(tooLong(this.#scope.maxChars));
        items.push(...readList(conversation.input), ...readList(conversation.output));
      }
    }
    return ok({ items, chars: this.#chars - this.#scope.ownBytes });
  }

  /** The request's own items, and in place of each reference its item. */
  async #own(input: unknown): Promise<Result<readonly unknown[], ApiError>> {
    const inputItems = itemsOf(input);
    const found = await this.#items(referencesOf(input));
    if (found.kind === 'error') return found;
    const items: unknown[] = [];
    for (const item of inputItems) {
      const json = isReference(item) ? found.value.get(readText(item.id) ?? '') : undefined;
      this.#chars += json?.length ?? 0;
      if (this.#chars > this.#scope.maxChars) return failure(tooLong(this.#scope.maxChars));
      items.push(json === undefined ? item : parseJsonExactly(json));
    }
    return ok(items);
  }

  /** The stored items with these ids, as JSON. */
  async #items(ids: readonly string[]): Promise<Result<ReadonlyMap<string, string>, ApiError>> {
    const { objects, owner, maxChars } = this.#scope;
    const items = new Map<string, string>();
    let isTooLong = false;
    const found = await this.#eachResponse(ids, async (id, wanted) => {
      const storedItems = (await objects.getByName(id).items(owner, wanted, maxChars)) ?? [];
      for (const [item, json] of storedItems) {
        isTooLong ||= json === null;
        items.set(item, json ?? '');
      }
      return storedItems.map(([item]) => item);
    });
    if (isTooLong) return failure(tooLong(maxChars));
    return found.kind === 'ok' ? ok(items) : found;
  }

  /**
   * Calls the response of each item, some at once.
   * @param call returns the ids that the response has
   */
  async #eachResponse(
    ids: readonly string[],
    call: (responseId: string, ids: readonly string[]) => Promise<readonly string[]>,
  ): Promise<Result<null, ApiError>> {
    const byResponse = [...Map.groupBy(ids, (id) => responseOfItem(id) ?? '')];
    if (byResponse.length > MAX_LINKS) {
      const message = `The items that input refers to belong to more than ${MAX_LINKS} responses: send the items themselves`;
      return failure(apiError('invalid_request', message, 'input'));
    }
    const found = new Set<string>();
    for (let from = 0; from < byResponse.length; from += ITEM_BATCH) {
      const batch = byResponse.slice(from, from + ITEM_BATCH);
      const lists = await Promise.all(batch.map(([id, wanted]) => (id === '' ? [] : call(id, wanted))));
      for (const id of lists.flat()) found.add(id);
    }
    const missing = ids.find((id) => !found.has(id));
    return missing === undefined ? ok(null) : failure(itemNotFound(missing));
  }

  async #conversation(id: string, maxChars: number): Promise<Conversation | null> {
    if (this.#previous?.id === id) return this.#previous.conversation;
    const { objects, owner } = this.#scope;
    return isResponseId(id) ? await objects.getByName(id).conversation(owner, maxChars) : null;
  }
}

/** The ids of the items to which an input refers, each once. */
function referencesOf(input: unknown): readonly string[] {
  return [
    ...new Set(
      itemsOf(input)
        .filter(isReference)
        .map(({ id }) => readText(id) ?? ''),
    ),
  ];
}

/** The items of a response that have these ids, as JSON. */
export function findItems(
  { input, output }: Pick<Conversation, 'input' | 'output'>,
  responseId: string,
  ids: readonly string[],
): readonly (readonly [id: string, json: string])[] {
  const wanted = new Set<unknown>(ids);
  const byInput = readList(input).map(
    (item, index) => [isObject(item) ? idOfInput(item, responseId, index) : '', item] as const,
  );
  const byOutput = readList(output).map(
    (item) => [isObject(item) ? (readText(item.id) ?? '') : '', item] as const,
  );
  return [...byInput, ...byOutput]
    .filter(([id]) => wanted.has(id))
    .map(([id, item]) => [id, JSON.stringify(item)] as const);
}

/** An item without a type and a role is also a reference. */
function isReference(item: unknown): item is JsonObject {
  if (!isObject(item)) return false;
  return item.type === 'item_reference' || (item.type == null && item.role === undefined);
}

export function readList(json: string): readonly unknown[] {
  return readArray(parseJsonExactly(json));
}

/**
 * OpenAI's message, code and parameter. Clients respond to them by sending the whole conversation:
 * router-for-me/CLIProxyAPI#2954 (2026-04-22).
 */
function previousNotFound(id: string): ApiError {
  const message = `Previous response with id '${id.slice(0, MAX_ID_CHARS)}' not found.`;
  const error = apiError('invalid_request', message, 'previous_response_id');
  return { ...error, code: 'previous_response_not_found' };
}

/** OpenAI's message: The-PR-Agent/pr-agent#2169 (2026-01-16). */
function itemNotFound(id: string): ApiError {
  return apiError('invalid_request', `Item with id '${id.slice(0, MAX_ID_CHARS)}' not found.`, 'input');
}

const MAX_ID_CHARS = 100;

function tooLong(maxChars: number): ApiError {
  const message = `The items of the conversation are larger than ${maxChars} bytes: start a new one`;
  return apiError('request_too_large', message, 'previous_response_id');
}

const MAX_PAGE = 100;
const DEFAULT_PAGE = 20;

/**
 * The id of an item of a request. Without one from the client, it is derived from the item's place, so that items are stored as they
 * were sent.
 */
function idOfInput({ id, type }: JsonObject, responseId: string, index: number): string {
  return readText(id) ?? inputItemId(readText(type) ?? 'message', responseId, index);
}

/** An item as OpenAI lists it: with an id and a type, and with parts in place of a text (openai-node 7.55, `ResponseItem`). */
function listedItem(item: JsonObject, responseId: string, index: number): JsonObject {
  const { content, role } = item;
  const part =
    role === 'assistant'
      ? { type: 'output_text', text: content, annotations: [] }
      : { type: 'input_text', text: content };
  return {
    id: idOfInput(item, responseId, index),
    type: 'message',
    ...omit(item, 'id'),
    ...(typeof content === 'string' ? { content: [part] } : {}),
  };
}

/** A page of the input items, newest first unless `order=asc`. */
export function pageOfItems(
  json: string,
  responseId: string,
  query: URLSearchParams,
): Result<JsonObject, ApiError> {
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') return invalidQuery('order', 'must be asc or desc');
  const limit = Number(query.get('limit') ?? DEFAULT_PAGE);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    return invalidQuery('limit', `must be a number from 1 to ${MAX_PAGE}`);
  const listed = readList(json)
    .filter(isObject)
    .map((item, index) => listedItem(item, responseId, index));
  const items = order === 'asc' ? listed : listed.toReversed();
  const after = query.get('after');
  const last = items.findIndex(({ id }) => id === after);
  if (after !== null && last < 0) return invalidQuery('after', 'must be the id of an item of this list');
  const data = items.slice(last + 1, last + 1 + limit);
  return ok({
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: last + 1 + limit < items.length,
  });
}

function invalidQuery(name: string, message: string): Result<never, ApiError> {
  return failure(apiError('invalid_request', `${name} ${message}`, name));
}
