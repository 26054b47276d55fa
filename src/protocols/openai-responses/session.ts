/** What a response needs of its request: the fields that it repeats, and the tool that each function stands for. */
import { isObject, type JsonObject, objectOf, omit, readCount, readText } from '../../shared/json.ts';
import { MAX_NAME_CHARS } from '../../shared/limits.ts';

/** The request's fields that a response object repeats, as JSON. Beyond it the largest fields are dropped. */
export const MAX_ECHO_CHARS = 64 * 1024;

export interface ResponsesSession {
  /** The members of each response object that depend only on the request, as JSON text without braces. */
  readonly echo: string;
  /** The tools that are not plain functions, by the name of their function. */
  readonly tools: ReadonlyMap<string, ToolOrigin>;
  /** Whether the request includes `encrypted_content`. Some clients only send reasoning back that has it. */
  readonly wantsEncrypted: boolean;
  /** The request's service tier, for upstreams that report none. */
  readonly serviceTier: string;
  /** When the response was created, in seconds; absent: when the upstream created it. */
  readonly createdAt?: number | undefined;
}

/** The tool of the request that a function of the canonical request stands for. */
export interface ToolOrigin {
  /** A call of a custom tool has one text as its input instead of JSON arguments; one of a search for tools has an object. */
  readonly kind: 'function' | 'custom' | 'tool_search';
  readonly name: string;
  readonly namespace: string | undefined;
}

/** What a response object reports about the state that the gateway keeps. */
export interface KeptState {
  readonly previousId: string | null;
  readonly isStored: boolean;
  readonly isBackground: boolean;
  /** When the response was queued, in seconds. Absent: it is not a background response, and begins with the upstream's. */
  readonly createdAt?: number;
  /** The response omits the names of the user in its request, because it is stored. Absent: it repeats them. */
  readonly hidesUser?: boolean;
}

/** The fields of a request or a response without names of its user and its session. */
export function withoutUser(fields: JsonObject): JsonObject {
  const { metadata } = fields;
  const unnamed = isObject(metadata) ? { metadata: omit(metadata, 'user_id', 'session_id') } : {};
  return { ...fields, ...unnamed, user: null, safety_identifier: null };
}

const NOTHING_KEPT: KeptState = { previousId: null, isStored: false, isBackground: false };

/**
 * "Set of 16 key-value pairs … Keys are strings with a maximum length of 64 characters. Values are strings with a maximum length of
 * 512 characters": openai-node 7.55.0, resources/shared.ts (2026-11-22).
 */
const MAX_METADATA = { pairs: 16, keyChars: 64, valueChars: 512 } as const;

/**
 * The request's fields as each response object repeats them, with every key that Open Responses requires and OpenAI's defaults. A
 * stream sends them three times and they stay in memory until its end. If they exceed {@link MAX_ECHO_CHARS}, instructions and tools
 * are omitted, and then the other fields without a bound.
 * @param tools the tools that the model can call, in the form of a response object
 * @param given what the gateway keeps of the response; null: nothing
 * @returns JSON members without braces
 */
export function writeEcho(
  body: JsonObject,
  tools: readonly JsonObject[],
  given: KeptState | null = null,
): string {
  const kept = given ?? NOTHING_KEPT;
  const shown = kept.hidesUser === true ? withoutUser(body) : body;
  const all = echoMembers(shown, readText(body.instructions) ?? null, tools, kept);
  if (all.length <= MAX_ECHO_CHARS) return all;
  const short = echoMembers(shown, null, [], kept);
  if (short.length <= MAX_ECHO_CHARS) return short;
  return echoMembers(omit(shown, 'tool_choice', 'text'), null, [], kept);
}

function echoMembers(
  body: JsonObject,
  instructions: string | null,
  tools: readonly JsonObject[],
  kept: KeptState,
): string {
  const { tool_choice, text, reasoning, metadata } = body;
  const members = {
    previous_response_id: kept.previousId,
    instructions,
    tools,
    tool_choice: typeof tool_choice === 'string' || isObject(tool_choice) ? tool_choice : 'auto',
    truncation: body.truncation === 'auto' ? 'auto' : 'disabled',
    parallel_tool_calls: body.parallel_tool_calls !== false,
    text: echoText(objectOf(text)),
    top_p: readNumber(body.top_p) ?? 1,
    presence_penalty: readNumber(body.presence_penalty) ?? 0,
    frequency_penalty: readNumber(body.frequency_penalty) ?? 0,
    top_logprobs: readCount(body.top_logprobs) ?? 0,
    temperature: readNumber(body.temperature) ?? 1,
    reasoning: echoReasoning(objectOf(reasoning)),
    user: readShortText(body.user),
    max_output_tokens: readCount(body.max_output_tokens) ?? null,
    max_tool_calls: readCount(body.max_tool_calls) ?? null,
    store: kept.isStored,
    background: kept.isBackground,
    metadata: isMetadata(metadata) ? metadata : {},
    safety_identifier: readShortText(body.safety_identifier),
    prompt_cache_key: readShortText(body.prompt_cache_key),
  };
  return JSON.stringify(members).slice(1, -1);
}

function echoText({ format, verbosity }: JsonObject): JsonObject {
  const word = readText(verbosity);
  return { format: echoFormat(format), ...(word === undefined ? {} : { verbosity: word }) };
}

function echoFormat(format: unknown): JsonObject {
  if (!isObject(format)) return { type: 'text' };
  if (format.type !== 'json_schema') return { type: format.type === 'json_object' ? 'json_object' : 'text' };
  return {
    type: 'json_schema',
    name: readText(format.name) ?? '',
    description: readText(format.description) ?? null,
    schema: isObject(format.schema) ? format.schema : null,
    strict: format.strict === true,
  };
}

function echoReasoning({ effort, summary }: JsonObject): JsonObject {
  return { effort: readShortText(effort), summary: readShortText(summary) };
}

/** A text that is short enough to be kept and repeated, or null. */
export function readShortText(value: unknown): string | null {
  const text = readText(value);
  return text === undefined || text.length > MAX_NAME_CHARS ? null : text;
}

function isMetadata(value: unknown): value is JsonObject {
  if (!isObject(value)) return false;
  const { pairs, keyChars, valueChars } = MAX_METADATA;
  const entries = Object.entries(value);
  return (
    entries.length <= pairs &&
    entries.every(
      ([key, text]) => key.length <= keyChars && typeof text === 'string' && text.length <= valueChars,
    )
  );
}

function readNumber(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
