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
import { isObject, type JsonObject, objectOf, readArray, readCount, readText } from '../../shared/json.ts';
import type { ProtocolQuirks, ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { readCreated, readUsage } from '../openai-chat/upstream-reader.ts';

export const openaiResponses: UpstreamProtocol = {
  id: 'responses',
  open: (quirks, provider) => new ResponsesReader(quirks, provider),
};

/** The events with a piece of text. */
const TEXTS: Readonly<Record<string, (delta: string) => Partial<ChoicePart>>> = {
  'response.output_text.delta': (content) => ({ content }),
  'response.refusal.delta': (refusal) => ({ refusal }),
  'response.reasoning_summary_text.delta': (reasoning) => ({ reasoning }),
  'response.reasoning_text.delta': (reasoning) => ({ reasoning }),
};

const ARGUMENTS = ['response.function_call_arguments.delta', 'response.custom_tool_call_input.delta'];

/** The last events. Some upstreams send `[DONE]` after them. */
const ENDINGS: readonly string[] = ['response.completed', 'response.incomplete', 'response.failed'];

/** OpenRouter's name for encrypted reasoning of OpenAI's Responses. */
export const REASONING_FORMAT = 'openai-responses-v1';

/** A call of a client's tool. Calls of the provider's own tools are skipped. */
interface Call {
  /** The index among the calls. */
  readonly index: number;
  readonly isCustom: boolean;
  hasArguments: boolean;
}

class ResponsesReader implements ProtocolReader {
  readonly #quirks: ProtocolQuirks;
  readonly #provider: string;
  /** By `output_index`: some upstreams change an item's id within the item. */
  readonly #calls = new Map<unknown, Call>();
  #searches = 0;
  /** Encrypted reasoning whose following item has not come yet. */
  #reasoning: readonly JsonObject[] = [];

  constructor(quirks: ProtocolQuirks, provider: string) {
    this.#quirks = quirks;
    this.#provider = provider;
  }

  event(event: JsonObject): ChunkPart | null {
    const type = readText(event.type) ?? '';
    const delta = readText(event.delta) ?? '';
    const text = TEXTS[type];
    if (text !== undefined) return choicePart({ ...text(delta), logprobs: logprobsOf(event) });
    if (ARGUMENTS.includes(type)) return choicePart(this.#arguments(delta, event.output_index));
    if (type === 'response.output_item.added') {
      return choicePart(this.#open(objectOf(event.item), event.output_index));
    }
    if (type === 'response.output_item.done') {
      return choicePart(this.#close(objectOf(event.item), event.output_index));
    }
    if (type === 'error' || type === '') return { ...EMPTY_PART, error: findUpstreamError(event) };
    if (!isObject(event.response)) return null;
    if (!ENDINGS.includes(type)) return this.#state(event.response, null);
    const saysIncomplete = type === 'response.incomplete';
    return { ...this.#state(event.response, finishOf(event.response, saysIncomplete)), ends: true };
  }

  response(response: JsonObject): ChunkPart {
    const items = readArray(response.output).filter(isObject);
    const updates = items.flatMap((item, at) => [textsOf(item), this.#open(item, at), this.#close(item, at)]);
    const finish = finishOf(response, false);
    const state = this.#state(response, finish);
    const choices = updates.flatMap((choice) => (choice === null ? [] : [{ ...EMPTY_CHOICE, ...choice }]));
    const error = state.error ?? (finish === null ? unfinished(response) : null);
    return { ...state, choices: [...choices, ...state.choices], error };
  }

  #open(item: JsonObject, at: unknown): Partial<ChoicePart> | null {
    const isCustom = item.type === 'custom_tool_call';
    const isCall = item.type === 'function_call' || isCustom;
    const details = this.#placeReasoning(item, isCall);
    if (!isCall) return details;
    const call = { index: this.#calls.size, isCustom, hasArguments: false };
    this.#calls.set(at, call);
    const head = { id: readName(item.call_id), name: readName(item.name) };
    // The input of a custom tool is one text. In the canonical form it is the only argument of a function.
    return { ...details, toolCalls: [{ ...fragment(call, isCustom ? '{"input":"' : ''), ...head }] };
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
    return withIndex(pending, isCall ? this.#calls.size + 1 : 0);
  }

  #arguments(delta: string, at: unknown): Partial<ChoicePart> | null {
    const call = this.#calls.get(at);
    if (call === undefined || delta === '') return null;
    call.hasArguments = true;
    return { toolCalls: [fragment(call, call.isCustom ? insideJson(delta) : delta)] };
  }

  /** What the item's deltas did not have. */
  #close(item: JsonObject, at: unknown): Partial<ChoicePart> | null {
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
    const call = this.#calls.get(at);
    if (call === undefined) return null;
    const input = call.hasArguments ? '' : insideJson(readText(item.input) ?? '');
    if (call.isCustom) return { toolCalls: [fragment(call, `${input}"}`)] };
    return call.hasArguments ? null : { toolCalls: [fragment(call, readText(item.arguments) ?? '{}')] };
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
    const rest = finish === null ? null : withIndex(this.#reasoning, this.#calls.size + 1);
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

/** The texts of a complete item. */
function textsOf(item: JsonObject): Partial<ChoicePart> {
  const parts = [...readArray(item.content), ...readArray(item.summary)].filter(isObject);
  const texts = (key: string) => parts.map((part) => readText(part[key]) ?? '').join('');
  if (item.type === 'reasoning') return { reasoning: texts('text') };
  const logprobs = logprobsOf({ logprobs: parts.flatMap((part) => readArray(part.logprobs)) });
  return { content: texts('text'), refusal: texts('refusal'), logprobs };
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

function choicePart(choice: Partial<ChoicePart> | null): ChunkPart | null {
  return choice === null ? null : { ...EMPTY_PART, choices: [{ ...EMPTY_CHOICE, ...choice }] };
}

function fragment({ index }: Call, args: string): ToolCallPart {
  return { index, id: undefined, name: undefined, arguments: args, extraContent: undefined };
}

/** The text as the content of a JSON string. */
function insideJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
