/** The state that a request continues: the items of earlier responses, and the items that it refers to. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, type JsonObject, parseJsonExactly, readArray, readText } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Conversation, ResponseNamespace } from './response-calls.ts';

/** Earlier responses of one conversation. */
const MAX_LINKS = 1000;
/** Objects that are read at once. */
const BATCH = 16;

const RESPONSE_ID = /^resp_[0-9a-f]{32}$/;
/** An item's id contains that of its response. */
const ITEM_ID = /^[a-z]+_([0-9a-f]{32})_/;

export function isResponseId(id: string): boolean {
  return RESPONSE_ID.test(id);
}

/** A request with everything that it continues. */
export interface Continued {
  /** The body with all items in its input. */
  readonly body: JsonObject;
  /** The request's own items: a JSON list. */
  readonly input: string;
  /** The ids of the earlier responses, oldest first. */
  readonly chain: readonly string[];
}

interface Scope {
  readonly objects: ResponseNamespace;
  readonly owner: string;
  /** The bound on all items, in UTF-16 units of JSON (`MAX_REQUEST_BYTES`). */
  readonly maxChars: number;
  /** The id of the response to this request, which the ids of its own items contain. */
  readonly responseId: string;
}

/** Reads what the request continues. An object that can't be reached is an exception. */
export async function continueConversation(
  body: JsonObject,
  scope: Scope,
): Promise<Result<Continued, ApiError>> {
  const reader = new ConversationReader(scope);
  const previousId = readText(body.previous_response_id);
  const chain = previousId === undefined ? ok([]) : await reader.chain(previousId);
  if (chain.kind === 'error') return chain;
  const earlier = await reader.items(chain.value);
  if (earlier.kind === 'error') return earlier;
  const own = await reader.own(body.input);
  if (own.kind === 'error') return own;
  const input = own.value;
  if (earlier.value.length === 0 && !Array.isArray(body.input)) {
    return ok({ body, input: JSON.stringify(input), chain: chain.value });
  }
  const continued = { ...body, input: [...earlier.value, ...input] };
  return ok({ body: continued, input: JSON.stringify(input), chain: chain.value });
}

class ConversationReader {
  readonly #scope: Scope;
  /** By the id of the response. */
  readonly #read = new Map<string, Conversation | null>();
  #chars = 0;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** The ids of the responses up to this one, oldest first. */
  async chain(previousId: string): Promise<Result<readonly string[], ApiError>> {
    const previous = await this.#conversation(previousId);
    if (previous === null) return failure(previousNotFound(previousId));
    if (!previous.isOver) {
      const message = `Previous response with id '${previousId}' is still in progress: wait until it has ended`;
      return failure(apiError('invalid_request', message, 'previous_response_id'));
    }
    const chain = [...previous.chain, previousId];
    if (chain.length <= MAX_LINKS) return ok(chain);
    const message = `The conversation has more than ${MAX_LINKS} responses: send its items in input`;
    return failure(apiError('invalid_request', message, 'previous_response_id'));
  }

  /** The items of these responses. */
  async items(chain: readonly string[]): Promise<Result<readonly unknown[], ApiError>> {
    const items: unknown[] = [];
    for (let from = 0; from < chain.length; from += BATCH) {
      const ids = chain.slice(from, from + BATCH);
      const conversations = await Promise.all(ids.map((id) => this.#conversation(id)));
      for (const [index, conversation] of conversations.entries()) {
        if (conversation === null) return failure(previousNotFound(ids[index] ?? ''));
        this.#chars += conversation.input.length + conversation.output.length;
        if (this.#chars > this.#scope.maxChars) return failure(tooLong(this.#scope.maxChars));
        items.push(...readList(conversation.input), ...readList(conversation.output));
      }
    }
    return ok(items);
  }

  /** The request's own items, each with an id, and in place of each reference its item. */
  async own(input: unknown): Promise<Result<readonly unknown[], ApiError>> {
    const given = typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;
    const items: unknown[] = [];
    for (const item of readArray(given)) {
      if (!isReference(item)) {
        items.push(this.#withId(item, items.length));
        continue;
      }
      const id = readText(item.id) ?? '';
      const found = await this.#item(id);
      if (found === undefined) {
        return failure(apiError('invalid_request', `Item with id '${id}' not found.`, 'input'));
      }
      items.push(found);
    }
    return ok(items);
  }

  #withId(item: unknown, index: number): unknown {
    if (!isObject(item) || readText(item.id) !== undefined) return item;
    const type = readText(item.type) ?? 'message';
    const base = this.#scope.responseId.slice('resp_'.length);
    return { id: `${PREFIXES[type] ?? 'item'}_${base}_in${index}`, type, ...item };
  }

  async #item(id: string): Promise<JsonObject | undefined> {
    const [, hex] = ITEM_ID.exec(id) ?? [];
    const conversation = hex === undefined ? null : await this.#conversation(`resp_${hex}`);
    if (conversation === null) return undefined;
    const items = [...readList(conversation.output), ...readList(conversation.input)].filter(isObject);
    return items.find((item) => item.id === id);
  }

  async #conversation(id: string): Promise<Conversation | null> {
    const known = this.#read.get(id);
    if (known !== undefined) return known;
    const { objects, owner } = this.#scope;
    const conversation = isResponseId(id) ? await objects.getByName(id).conversation(owner) : null;
    this.#read.set(id, conversation);
    return conversation;
  }
}

const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  reasoning: 'rs',
};

/** An item without a type and a role is a reference, too. */
export function isReference(item: unknown): item is JsonObject {
  if (!isObject(item)) return false;
  return item.type === 'item_reference' || (item.type == null && item.role === undefined);
}

function readList(json: string): readonly unknown[] {
  return readArray(parseJsonExactly(json));
}

/** OpenAI's words and code (openai-node 7.57.0; Agents SDKs look for the code). */
function previousNotFound(id: string): ApiError {
  const message = `Previous response with id '${id.slice(0, MAX_ID_CHARS)}' not found.`;
  const error = apiError('invalid_request', message, 'previous_response_id');
  return { ...error, code: 'previous_response_not_found' };
}

const MAX_ID_CHARS = 100;

function tooLong(maxChars: number): ApiError {
  const message = `The items of the conversation are larger than ${maxChars} bytes: start a new one`;
  return apiError('request_too_large', message, 'previous_response_id');
}

const MAX_PAGE = 100;
const DEFAULT_PAGE = 20;

/** A page of the input items, newest first unless `order=asc`. */
export function pageOfItems(json: string, query: URLSearchParams): JsonObject {
  const all = readList(json).filter(isObject);
  const items = query.get('order') === 'asc' ? all : all.toReversed();
  const asked = Number(query.get('limit') ?? DEFAULT_PAGE);
  const limit = Number.isInteger(asked) && asked > 0 ? Math.min(asked, MAX_PAGE) : DEFAULT_PAGE;
  const after = query.get('after');
  const from = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1;
  const data = items.slice(from, from + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + limit < items.length,
  };
}
