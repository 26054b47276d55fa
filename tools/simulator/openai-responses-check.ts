/** What OpenAI's Responses refuse (2026-11-22), in their words. Measured: gpt-5.6-terra on 2026-08-30, gpt-6-astra on 2026-09-04. */
import { isObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import type { Model } from './openai-models.ts';
import type { Call, Refusal } from './scene.ts';
import { tooLong } from './tool-calls.ts';

type Refuse = (status: number, message: string, param: string | null, code: string | null) => Refusal;

/** `ResponseCreateParams` of openai 7.57.0 (2026-11-13), and what the API knows beside it. */
const KNOWN = [
  ...['access_programs', 'background', 'context_management', 'conversation', 'image', 'include', 'input'],
  ...['instructions', 'max_output_tokens', 'max_tool_calls', 'metadata', 'model', 'moderation'],
  ...['parallel_tool_calls', 'previous_response_id', 'prompt', 'prompt_cache_key', 'prompt_cache_options'],
  ...['prompt_cache_retention', 'reasoning', 'safety_identifier', 'service_tier', 'store', 'stream'],
  ...['stream_options', 'temperature', 'text', 'tool_choice', 'tools', 'top_logprobs', 'top_p', 'truncation'],
  ...['user', 'presence_penalty', 'frequency_penalty'],
];

/** What a message's content may hold, by its role. */
const INPUT_PARTS = ['input_text', 'input_image', 'input_file'];
const OUTPUT_PARTS = ['output_text', 'refusal'];

export function responsesProblem(call: Call, model: Model, refuse: Refuse): Refusal | undefined {
  const { body } = call;
  const unknown = Object.keys(body).find((key) => !KNOWN.includes(key));
  if (unknown !== undefined)
    return refuse(400, `Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter');
  return (
    inputProblem(body, refuse) ??
    toolProblem(body, refuse) ??
    limitProblem(body, refuse) ??
    (model.hidden > 0 ? whileReasoning(call, model, refuse) : withoutReasoning(body, refuse))
  );
}

function inputProblem(body: JsonObject, refuse: Refuse): Refusal | undefined {
  const items = objectsOf(body.input);
  const answered = new Set(
    items.map(({ type, call_id }) => (textOf(type).endsWith('_output') ? call_id : null)),
  );
  const ids = new Set<string>();
  for (const [index, { type, call_id, role, content, output }] of items.entries()) {
    if (textOf(type).endsWith('_call_output')) {
      const id = textOf(call_id);
      if (ids.has(id)) {
        // NousResearch/hermes-agent#102629, 2026-09-04.
        const message = `Duplicate function_call_output for call_id ${id}. Each function_call must have exactly one matching function_call_output.`;
        return refuse(400, message, 'input', null);
      }
      ids.add(id);
    }
    if ((type === 'function_call' || type === 'custom_tool_call') && !answered.has(call_id)) {
      const message = `No tool output found for ${type === 'function_call' ? 'function' : 'custom tool'} call ${textOf(call_id)}.`;
      return refuse(400, message, 'input', null);
    }
    const isOutput = textOf(type).endsWith('_call_output');
    if (type !== 'message' && role === undefined && !isOutput) continue;
    const known = role === 'assistant' ? OUTPUT_PARTS : INPUT_PARTS;
    for (const [part, { type: kind }] of objectsOf(isOutput ? output : content).entries()) {
      if (known.includes(textOf(kind))) continue;
      const at = `input[${index}].${isOutput ? 'output' : 'content'}[${part}]`;
      const message = `Invalid value: '${textOf(kind)}'. Supported values are: ${listed(known)}.`;
      return refuse(400, message, at, 'invalid_value');
    }
  }
  return undefined;
}

/** `FunctionTool` of openai 7.59.0. */
const FUNCTION_KEYS = [
  ...['type', 'name', 'description', 'parameters', 'strict'],
  ...['defer_loading', 'allowed_callers', 'output_schema'],
];

function toolProblem({ tools, tool_choice: choice }: JsonObject, refuse: Refuse): Refusal | undefined {
  for (const [index, tool] of objectsOf(tools).entries()) {
    const { type, name } = tool;
    if (type !== 'function' && type !== 'custom') continue;
    const unknown = Object.keys(tool).find((key) => type === 'function' && !FUNCTION_KEYS.includes(key));
    if (unknown !== undefined) {
      const place = `tools[${index}].${unknown}`;
      return refuse(400, `Unknown parameter: '${place}'.`, place, 'unknown_parameter');
    }
    const at = `tools[${index}].name`;
    if (name === undefined) {
      return refuse(400, `Missing required parameter: '${at}'.`, at, 'missing_required_parameter');
    }
    // Measured at gpt-6-luna, 2026-10-05.
    if (textOf(name).length > 128) {
      return refuse(400, tooLong(textOf(name), at, 128), at, 'string_above_max_length');
    }
  }
  if (
    isObject(choice) &&
    (choice.type === 'function' || choice.type === 'custom') &&
    choice.name === undefined
  ) {
    const message = "Missing required parameter: 'tool_choice.name'.";
    return refuse(400, message, 'tool_choice.name', 'missing_required_parameter');
  }
  return undefined;
}

function limitProblem({ max_output_tokens }: JsonObject, refuse: Refuse): Refusal | undefined {
  const tokens = numberOf(max_output_tokens);
  if (tokens === undefined || tokens >= 16) return undefined;
  const at = 'max_output_tokens';
  const message = `Invalid '${at}': integer below minimum value. Expected a value >= 16, but got ${tokens} instead.`;
  return refuse(400, message, at, 'integer_below_min_value');
}

function whileReasoning({ body, model }: Call, { api }: Model, refuse: Refuse): Refusal | undefined {
  const effort = textOf(objectOf(body.reasoning).effort);
  if (api !== undefined && effort !== '' && !api.efforts.includes(effort)) {
    const message = `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${listed(api.efforts)}.`;
    return refuse(400, message, 'reasoning.effort', 'unsupported_value');
  }
  if (effort === 'none') return undefined;
  for (const name of ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty']) {
    const isUsual =
      body[name] === undefined || body[name] === null || (name === 'temperature' && body[name] === 1);
    if (isUsual) continue;
    return refuse(400, `Unsupported parameter: '${name}' is not supported with this model.`, name, null);
  }
  const include = Array.isArray(body.include) ? body.include : [];
  const param = body.top_logprobs ? 'top_logprobs' : 'include';
  if (param === 'top_logprobs' || include.includes('message.output_text.logprobs')) {
    return refuse(400, 'logprobs are not supported with reasoning models.', param, 'unsupported_parameter');
  }
  return undefined;
}

/** RageAgainstThePixel/OpenAI-DotNet#500, 2025-10-24; pydantic/pydantic-ai#2865, 2025-09-11. */
function withoutReasoning(body: JsonObject, refuse: Refuse): Refusal | undefined {
  if (objectOf(body.reasoning).effort !== undefined && objectOf(body.reasoning).effort !== null) {
    const at = 'reasoning.effort';
    const message = `Unsupported parameter: '${at}' is not supported with this model.`;
    return refuse(400, message, at, 'unsupported_parameter');
  }
  const include = Array.isArray(body.include) ? body.include : [];
  return include.includes('reasoning.encrypted_content')
    ? refuse(400, 'Encrypted content is not supported with this model.', 'include', null)
    : undefined;
}

/** `'a', 'b', and 'c'`. */
export function listed(values: readonly string[]): string {
  const quoted = values.map((value) => `'${value}'`);
  const last = quoted.pop() ?? '';
  if (quoted.length === 0) return last;
  return quoted.length === 1 ? `${quoted[0]} and ${last}` : `${quoted.join(', ')}, and ${last}`;
}
