/** The schema of Open Responses, written from its specification (openresponses.org, 2026-04-24, read 2026-11-22). */
import { isCount, isObject, type Json, type JsonObject, listOf } from './json.ts';

/** Lists the faults of a value. */
type Check = (value: Json | undefined) => string[];

function when(isValid: (value: Json | undefined) => boolean, wanted: string): Check {
  return (value) => (isValid(value) ? [] : [`is no ${wanted}: ${JSON.stringify(value)?.slice(0, 60)}`]);
}

const text = when((value) => typeof value === 'string', 'text');
const id = when((value) => typeof value === 'string' && value !== '', 'id');
const number = when((value) => typeof value === 'number', 'number');
const count = when(isCount, 'count');
const flag = when((value) => typeof value === 'boolean', 'boolean');
const anything: Check = (value) => (value === undefined ? ['is missing'] : []);
const object = when(isObject, 'object');

function orNull(check: Check): Check {
  return (value) => (value === null ? [] : check(value));
}

function optional(check: Check): Check {
  return (value) => (value === undefined ? [] : check(value));
}

function oneOf(...values: readonly Json[]): Check {
  return when((value) => values.some((known) => known === value), `one of ${values.join(', ')}`);
}

function list(check: Check): Check {
  return (value) =>
    Array.isArray(value)
      ? value.flatMap((item, position) => check(item).map((fault) => `[${position}] ${fault}`))
      : ['is no list'];
}

/** A key that is not named is a fault. */
function shape(keys: Readonly<Record<string, Check>>): Check {
  return (value) => {
    if (!isObject(value)) return ['is no object'];
    const unknown = Object.keys(value).filter((key) => !(key in keys));
    return [
      ...Object.entries(keys).flatMap(([key, check]) => check(value[key]).map((fault) => `${key} ${fault}`)),
      ...unknown.map((key) => `${key} is no key of it`),
    ];
  };
}

/** By its `type`. */
function kinds(known: Readonly<Record<string, Check>>): Check {
  return (value) => {
    const type = isObject(value) && typeof value.type === 'string' ? value.type : '';
    const check = known[type];
    return check === undefined ? [`has the unknown type ${JSON.stringify(type)}`] : check(value);
  };
}

const topLogprob = { token: text, logprob: number, bytes: list(count) };
const logprobs = list(shape({ ...topLogprob, top_logprobs: list(shape(topLogprob)) }));

const outputText = shape({ type: anything, text, annotations: list(object), logprobs: optional(logprobs) });
const refusal = shape({ type: anything, refusal: text });
const summary = shape({ type: oneOf('summary_text'), text });
/** Reasoning in full, as DeepSeek sends it through the passthrough. */
const reasoningText = shape({ type: oneOf('reasoning_text'), text });
const contentPart = kinds({ output_text: outputText, refusal, reasoning_text: reasoningText });

const status = oneOf('in_progress', 'completed', 'incomplete');

const item = kinds({
  message: shape({
    type: anything,
    id,
    status,
    role: oneOf('assistant'),
    content: list(kinds({ output_text: outputText, refusal })),
  }),
  reasoning: shape({
    type: anything,
    id,
    // OpenAI sends none.
    status: optional(status),
    summary: list(summary),
    content: optional(list(reasoningText)),
    encrypted_content: optional(id),
  }),
  function_call: shape({
    type: anything,
    id,
    call_id: id,
    name: id,
    arguments: text,
    status,
    namespace: optional(id),
  }),
  // From openai-node, ResponseCustomToolCall: Open Responses leaves it to extensions.
  custom_tool_call: shape({
    type: anything,
    id,
    call_id: id,
    name: id,
    input: text,
    status,
    namespace: optional(id),
  }),
  // ResponseToolSearchCall, of a search that the client runs.
  tool_search_call: shape({ type: anything, id, call_id: id, execution: id, arguments: object, status }),
});

const usage = shape({
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  input_tokens_details: shape({ cached_tokens: count, cache_write_tokens: optional(count) }),
  output_tokens_details: shape({ reasoning_tokens: count }),
});

const tool = kinds({
  function: shape({
    type: anything,
    name: id,
    description: orNull(text),
    parameters: orNull(object),
    strict: orNull(flag),
  }),
  custom: object,
  namespace: object,
  tool_search: object,
});

const format = kinds({
  text: shape({ type: anything }),
  json_object: shape({ type: anything }),
  json_schema: shape({
    type: anything,
    name: id,
    description: orNull(text),
    schema: orNull(object),
    strict: flag,
  }),
});

const response = shape({
  id,
  object: oneOf('response'),
  created_at: count,
  completed_at: orNull(count),
  status: oneOf('in_progress', 'completed', 'incomplete', 'failed'),
  incomplete_details: orNull(shape({ reason: oneOf('max_output_tokens', 'content_filter') })),
  model: id,
  previous_response_id: oneOf(null),
  instructions: orNull(text),
  output: list(item),
  error: orNull(shape({ code: id, message: id })),
  tools: list(tool),
  tool_choice: (value) => (isObject(value) ? [] : oneOf('auto', 'none', 'required')(value)),
  truncation: oneOf('auto', 'disabled'),
  parallel_tool_calls: flag,
  text: shape({ format, verbosity: optional(text) }),
  top_p: number,
  presence_penalty: number,
  frequency_penalty: number,
  top_logprobs: count,
  temperature: number,
  reasoning: shape({ effort: orNull(text), summary: orNull(text) }),
  user: orNull(text),
  usage: orNull(usage),
  max_output_tokens: orNull(count),
  max_tool_calls: orNull(count),
  store: oneOf(false),
  background: oneOf(false),
  service_tier: text,
  metadata: object,
  safety_identifier: orNull(text),
  prompt_cache_key: orNull(text),
});

const base = { type: anything, sequence_number: count };
const ofItem = { ...base, output_index: count };
const within = { ...ofItem, item_id: id };
const inContent = { ...within, content_index: count };
const inSummary = { ...within, summary_index: count };
const ofResponse = shape({ ...base, response });

const EVENTS: Readonly<Record<string, Check>> = {
  'response.created': ofResponse,
  'response.in_progress': ofResponse,
  'response.completed': ofResponse,
  'response.incomplete': ofResponse,
  'response.failed': ofResponse,
  'response.output_item.added': shape({ ...ofItem, item }),
  'response.output_item.done': shape({ ...ofItem, item }),
  'response.content_part.added': shape({ ...inContent, part: contentPart }),
  'response.content_part.done': shape({ ...inContent, part: contentPart }),
  'response.output_text.delta': shape({ ...inContent, delta: id, logprobs: optional(logprobs) }),
  'response.output_text.done': shape({ ...inContent, text, logprobs: optional(logprobs) }),
  'response.refusal.delta': shape({ ...inContent, delta: id }),
  'response.refusal.done': shape({ ...inContent, refusal: text }),
  'response.reasoning_text.delta': shape({ ...inContent, delta: id }),
  'response.reasoning_text.done': shape({ ...inContent, text }),
  'response.reasoning_summary_part.added': shape({ ...inSummary, part: summary }),
  'response.reasoning_summary_part.done': shape({ ...inSummary, part: summary }),
  'response.reasoning_summary_text.delta': shape({ ...inSummary, delta: id }),
  'response.reasoning_summary_text.done': shape({ ...inSummary, text }),
  'response.function_call_arguments.delta': shape({ ...within, delta: id }),
  'response.function_call_arguments.done': shape({ ...within, arguments: text }),
  'response.custom_tool_call_input.delta': shape({ ...within, delta: id }),
  'response.custom_tool_call_input.done': shape({ ...within, input: text }),
  error: shape({ ...base, error: shape({ type: id, code: orNull(text), message: id, param: orNull(text) }) }),
};

/** The faults of an event. */
export function eventFaults(event: JsonObject): string[] {
  return kinds(EVENTS)(event);
}

/** The faults of a response object. */
export function responseFaults(value: Json | undefined): string[] {
  return response(value);
}

/** The items of a response object. */
export function itemsOf(value: Json | undefined): JsonObject[] {
  return isObject(value) ? listOf(value.output).filter(isObject) : [];
}
