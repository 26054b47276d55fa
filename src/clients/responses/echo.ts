/** What of its request a response object repeats: every key that Open Responses requires, with OpenAI's default where the request has none. */
import { isObject, type JsonObject, objectOf, readCount, readText } from '../../canonical/json.ts';
import { MAX_ECHO_CHARS } from '../../canonical/limits.ts';

/**
 * The members of a response object that are the same in each of its stream, as JSON text without braces. Instructions and
 * tools beyond {@link MAX_ECHO_CHARS} are left out: a stream has them three times.
 * @param tools those that are served, in the form of a response object
 */
export function writeEcho(body: JsonObject, tools: readonly JsonObject[]): string {
  const instructions = readText(body.instructions) ?? null;
  const whole = membersOf(body, instructions, tools);
  return whole.length <= MAX_ECHO_CHARS ? whole : membersOf(body, null, []);
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
    user: readText(body.user) ?? null,
    max_output_tokens: readCount(body.max_output_tokens) ?? null,
    max_tool_calls: readCount(body.max_tool_calls) ?? null,
    // Nothing is kept, whatever was asked (I5).
    store: false,
    background: false,
    metadata: objectOf(metadata),
    safety_identifier: readText(body.safety_identifier) ?? null,
    prompt_cache_key: readText(body.prompt_cache_key) ?? null,
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
  return { effort: readText(effort) ?? null, summary: readText(summary) ?? null };
}

function readNumber(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
