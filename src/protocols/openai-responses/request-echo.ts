/** What of its request a response object repeats: every key that Open Responses requires, with OpenAI's default where the request has none. */
import { isObject, type JsonObject, objectOf, omit, readCount, readText } from '../../shared/json.ts';
import { MAX_ECHO_CHARS, MAX_NAME_CHARS } from '../../shared/limits.ts';

/**
 * "Set of 16 key-value pairs … Keys are strings with a maximum length of 64 characters. Values are strings with a maximum length of
 * 512 characters": openai-node 7.55.0, resources/shared.ts (2026-11-22).
 */
const MAX_METADATA = { pairs: 16, keyChars: 64, valueChars: 512 } as const;

/**
 * The members of a response object that are the same in each of its stream, as JSON text without braces. Where they are longer than
 * {@link MAX_ECHO_CHARS}, instructions and tools are left out, and then what else has no bound of its own: a stream has them three
 * times, and they are held until its end.
 * @param tools those that are served, in the form of a response object
 */
export function writeEcho(body: JsonObject, tools: readonly JsonObject[]): string {
  const whole = membersOf(body, readText(body.instructions) ?? null, tools);
  if (whole.length <= MAX_ECHO_CHARS) return whole;
  const without = membersOf(body, null, []);
  if (without.length <= MAX_ECHO_CHARS) return without;
  return membersOf(omit(body, 'tool_choice', 'text'), null, []);
}

function membersOf(body: JsonObject, instructions: string | null, tools: readonly JsonObject[]): string {
  const { tool_choice, text, reasoning, metadata } = body;
  const members = {
    previous_response_id: null,
    instructions,
    tools,
    tool_choice: typeof tool_choice === 'string' || isObject(tool_choice) ? tool_choice : 'auto',
    truncation: body.truncation === 'auto' ? 'auto' : 'disabled',
    parallel_tool_calls: body.parallel_tool_calls !== false,
    text: writeText(objectOf(text)),
    top_p: readNumber(body.top_p) ?? 1,
    presence_penalty: readNumber(body.presence_penalty) ?? 0,
    frequency_penalty: readNumber(body.frequency_penalty) ?? 0,
    top_logprobs: readCount(body.top_logprobs) ?? 0,
    temperature: readNumber(body.temperature) ?? 1,
    reasoning: writeReasoning(objectOf(reasoning)),
    user: readName(body.user),
    max_output_tokens: readCount(body.max_output_tokens) ?? null,
    max_tool_calls: readCount(body.max_tool_calls) ?? null,
    // Nothing is kept, whatever was asked (I5).
    store: false,
    background: false,
    metadata: isMetadata(metadata) ? metadata : {},
    safety_identifier: readName(body.safety_identifier),
    prompt_cache_key: readName(body.prompt_cache_key),
  };
  return JSON.stringify(members).slice(1, -1);
}

function writeText({ format, verbosity }: JsonObject): JsonObject {
  const word = readText(verbosity);
  return { format: writeFormat(format), ...(word === undefined ? {} : { verbosity: word }) };
}

function writeFormat(format: unknown): JsonObject {
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

function writeReasoning({ effort, summary }: JsonObject): JsonObject {
  return { effort: readName(effort), summary: readName(summary) };
}

/** A text that may be repeated: a longer one is held for no answer. */
export function readName(value: unknown): string | null {
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
