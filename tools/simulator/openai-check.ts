/** What OpenAI refuses today (2026-11-21). The keys are those of the `openai` package 7.55 and of recorded requests that it took. */
import { embeddingsProblem, OPENAI_FORM } from './embeddings.ts';
import { isObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import { findModel, type Model, type ModelApi } from './openai-models.ts';
import { listed, responsesProblem } from './openai-responses-check.ts';
import { checkItems, checkResponses } from './responses.ts';
import { type Call, errorType, openaiRefusal, type Refusal } from './scene.ts';
import { bracketed, firstMismatch, roles, type Shape, TOOLS, types } from './schema.ts';
import { TOOL_CHOICES, tooLong, toolNamesIn, unknownChoice } from './tool-calls.ts';

const SHARED = [
  ...['model', 'max_tokens', 'temperature', 'top_p', 'n', 'stream', 'stream_options', 'stop', 'user', 'seed'],
  ...['presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs'],
];
const CHAT = [
  ...SHARED,
  ...['messages', 'max_completion_tokens', 'top_logprobs', 'response_format', 'modalities', 'audio'],
  ...['tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call', 'prediction'],
  ...['store', 'metadata', 'service_tier', 'safety_identifier', 'verbosity', 'reasoning_effort'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'moderation'],
  'web_search_options',
];

const breakable = ['prompt_cache_breakpoint'];
const PARTS = types({
  text: ['text', ...breakable],
  image_url: ['image_url', ...breakable],
  input_audio: ['input_audio', ...breakable],
  file: ['file', ...breakable],
  refusal: ['refusal'],
});
const CALLS: Shape = {
  // one-api#1319: `messages[1].tool_calls[0].index` is refused.
  keys: ['id', 'type', 'function', 'custom'],
  inner: { function: { keys: ['name', 'arguments'] } },
};
const named = ['role', 'content', 'name'];
/** Unknown ones are refused: "Unknown parameter: 'messages[0].id'" in many threads of replayed answers, 2024 to 2026-09. */
const MESSAGES = roles(
  {
    system: named,
    developer: named,
    user: named,
    // `annotations` beside the package's: R openai--annotations-and-tool-name, 2025-07, as is `name` below.
    assistant: [...named, 'refusal', 'tool_calls', 'function_call', 'audio', 'annotations'],
    tool: [...named, 'tool_call_id'],
    function: named,
  },
  { content: PARTS, tool_calls: CALLS },
);

const SHAPES: Readonly<Record<'chat' | 'completions', Shape>> = {
  chat: {
    keys: CHAT,
    inner: {
      messages: MESSAGES,
      stream_options: { keys: ['include_usage', 'include_obfuscation'] },
      tools: { by: { key: 'type', shapes: { function: TOOLS, custom: {} } } },
    },
  },
  completions: { keys: [...SHARED, 'prompt', 'suffix', 'echo', 'best_of'] },
};

export function failure(status: number, message: string, param: string | null, code: string | null): Refusal {
  const type = status === 401 ? 'invalid_request_error' : errorType(status);
  return openaiRefusal(status, { message, type, param, code });
}

export function check(call: Call): Refusal | undefined {
  const { body, operation } = call;
  if (operation === 'embeddings') {
    const problem = embeddingsProblem(call, OPENAI_FORM);
    return problem === undefined ? undefined : failure(400, problem, null, null);
  }
  const model = findModel(call.model);
  if (!model) return failure(404, `The model \`${call.model}\` does not exist`, null, 'model_not_found');
  if (model.legacy !== (operation === 'completions')) {
    return failure(404, 'This model is not supported in this endpoint.', 'model', null);
  }
  if (operation === 'responses') {
    return (
      checkResponses(call, failure) ??
      checkItems(call, failure) ??
      responsesProblem(call, model, failure) ??
      lengthProblem(body)
    );
  }
  return unknown(call) ?? (operation === 'chat' ? chatProblem(body, model) : undefined) ?? anyProblem(body);
}

/** `thinking` and others at the top: chathub 2026-08-28 and five more. */
function unknown(call: Call): Refusal | undefined {
  const mismatch = firstMismatch(call.body, SHAPES[call.operation === 'chat' ? 'chat' : 'completions']);
  if (!mismatch) return undefined;
  const at = bracketed(mismatch.path);
  if (mismatch.kind === 'extra') return failure(400, `Unknown parameter: '${at}'.`, at, 'unknown_parameter');
  const known = mismatch.known.map((name) => `'${name}'`).join(', ');
  const message = `Invalid value: '${String(mismatch.value)}'. Supported values are: ${known}.`;
  return failure(400, message, at, 'invalid_value');
}

function chatProblem(body: JsonObject, model: Model): Refusal | undefined {
  if (body.messages === undefined) {
    return failure(400, "Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter');
  }
  if (objectsOf(body.messages).length === 0) {
    // R openai--refused-empty-messages, 2026-08.
    const message =
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    return failure(400, message, 'messages', 'empty_array');
  }
  const choice = toolChoiceProblem(body);
  if (choice !== undefined) return choice;
  if (body.parallel_tool_calls !== undefined && body.tools === undefined) {
    // openai-agents-python, 2026-08.
    const message =
      "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.";
    return failure(400, message, 'parallel_tool_calls', null);
  }
  const named = nameProblem(body) ?? imageProblem(body) ?? idProblem(body);
  if (named !== undefined) return named;
  if (isObject(body.web_search_options)) {
    // R openai--refused-web-search-options, 2025: on search models only.
    const message = 'Web search options not supported with this model.';
    return failure(400, message, 'web_search_options', null);
  }
  const { api } = model;
  if (api !== undefined) return apiProblem(body, api) ?? whileReasoning(body);
  return model.hidden > 0 ? whileReasoning(body) : withoutReasoning(body);
}

/** JetBrains/koog#786, 2025-09-12; `tool_choice`: the types of openai 7.59.0, and LangChain's issues of 2024. */
function toolChoiceProblem({ tools, tool_choice: choice, stop }: JsonObject): Refusal | undefined {
  if (stop === '') {
    const message =
      "Invalid 'stop': empty string. Expected a string with minimum length 1, but got an empty string instead.";
    return failure(400, message, 'stop', 'empty_string');
  }
  if (Array.isArray(tools) && tools.length === 0) {
    return failure(400, "[] is too short - 'tools'", null, null);
  }
  if (choice === undefined || choice === null) return undefined;
  if (tools === undefined) {
    const message =
      "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
    return failure(400, message, 'tool_choice', null);
  }
  const word = unknownChoice(choice);
  if (word === undefined) return undefined;
  const message = `Invalid value: '${word}'. Supported values are: ${listed(TOOL_CHOICES)}.`;
  return failure(400, message, 'tool_choice', 'invalid_value');
}

/** ravitemer/mcphub.nvim#243, 2025-09-08; redhat-community-ai-tools/UnifAI#266, 2026-09-03; in history: BerriAI/litellm#17904. */
function nameProblem(body: JsonObject): Refusal | undefined {
  for (const { name, at } of toolNamesIn(body)) {
    if (name.length > 64) return failure(400, tooLong(name, at), at, 'string_above_max_length');
    if (!/^[a-zA-Z0-9_-]+$/.test(name)) {
      const message = `Invalid '${at}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
      return failure(400, message, at, 'invalid_value');
    }
  }
  return undefined;
}

/** OpenHands/OpenHands#7700, 2025-04-22. */
function imageProblem({ messages }: JsonObject): Refusal | undefined {
  for (const [at, { role, content }] of objectsOf(messages).entries()) {
    if (role === 'user' || !objectsOf(content).some(({ type }) => type === 'image_url')) continue;
    const message = `Invalid 'messages[${at}]'. Image URLs are only allowed for messages with role 'user', but this message with role '${textOf(role)}' contains an image URL.`;
    return failure(400, message, `messages[${at}]`, 'invalid_value');
  }
  return undefined;
}

/** agno-agi/agno#5116, 2025-10. Ids of different steps may be equal. */
function idProblem({ messages }: JsonObject): Refusal | undefined {
  let results = new Map<string, number>();
  for (const [at, { role, tool_call_id }] of objectsOf(messages).entries()) {
    if (role === 'assistant') results = new Map();
    if (role !== 'tool') continue;
    const id = textOf(tool_call_id);
    const before = results.get(id);
    if (before !== undefined) {
      const message = `Invalid parameter: Duplicate value for 'tool_call_id' of '${id}', in messages[${before}] and messages[${at}].`;
      return failure(400, message, `messages.[${at}].tool_call_id`, null);
    }
    results.set(id, at);
  }
  return undefined;
}

/** Refused while a model reasons: pydantic-ai profiles/openai.py, live 2026-07. The defaults are taken. */
const UNSUPPORTED: Readonly<Record<string, (value: unknown) => boolean>> = {
  temperature: (value) => value !== 1,
  top_p: (value) => value !== 1,
  presence_penalty: (value) => value !== 0,
  frequency_penalty: (value) => value !== 0,
  logprobs: (value) => value !== false,
  top_logprobs: () => true,
  logit_bias: () => true,
  // huggingface/smolagents#1671, 2025-08-11.
  stop: () => true,
};

function whileReasoning(body: JsonObject): Refusal | undefined {
  if (body.max_tokens !== undefined && body.max_tokens !== null) {
    // R openai--refused-max-tokens, 2026-08.
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    return failure(400, message, 'max_tokens', 'unsupported_parameter');
  }
  for (const [name, refuses] of Object.entries(UNSUPPORTED)) {
    const value = body[name];
    if (value === undefined || value === null || !refuses(value)) continue;
    const message = `Unsupported parameter: '${name}' is not supported with this model.`;
    return failure(400, message, name, 'unsupported_parameter');
  }
  return undefined;
}

/** What chat refuses of models that want Responses. */
function apiProblem(body: JsonObject, { toolsOnChat, chatEfforts }: ModelApi): Refusal | undefined {
  if (toolsOnChat === null) {
    // openai/codex#1306, 2025-06-11; docker/docker-agent#313, 2025-09-26.
    const message = 'This model is only supported in v1/responses and not in v1/chat/completions.';
    return failure(404, message, 'model', null);
  }
  const effort = textOf(body.reasoning_effort);
  if (objectsOf(body.tools).length > 0 && !toolsOnChat.includes(effort)) {
    // joplin#16451, 2026-09-08; docker/docker-agent#4162, 2026-09-04. The same words where `none` is refused, too.
    const message = `Function tools with reasoning_effort are not supported for ${textOf(body.model)} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`;
    return failure(400, message, 'reasoning_effort', null);
  }
  if (effort === '' || chatEfforts.includes(effort)) return undefined;
  // Measured at gpt-5.6-terra, 2026-08-30; at gpt-6-astra: firebase/genkit#6303, 2026-09-08.
  const message = `Unsupported value: 'reasoning_effort' does not support '${effort}' with this model. Supported values are: ${listed(chatEfforts)}.`;
  return failure(400, message, 'reasoning_effort', 'unsupported_value');
}

/** litellm#40470, 2026-09-09. */
function withoutReasoning(body: JsonObject): Refusal | undefined {
  if (!body.reasoning_effort) return undefined;
  const message = 'Unrecognized request argument supplied: reasoning_effort';
  return failure(400, message, 'reasoning_effort', null);
}

function anyProblem(body: JsonObject): Refusal | undefined {
  const temperature = numberOf(body.temperature) ?? 1;
  if (temperature > 2) {
    // R openai--refused-temperature, 2026-08.
    const message = `Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got ${temperature} instead.`;
    return failure(400, message, 'temperature', 'decimal_above_max_value');
  }
  if (body.stream_options && body.stream !== true) {
    // BerriAI/litellm#5803, 2024-09-20.
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    return failure(400, message, 'stream_options', null);
  }
  const n = numberOf(body.n) ?? 1;
  if (n > 128) {
    // thisisartium/continuous-alignment-testing#25, 2025-03-11.
    const message = `Invalid 'n': integer above maximum value. Expected a value <= 128, but got ${n} instead.`;
    return failure(400, message, 'n', 'integer_above_max_value');
  }
  if (isObject(body.metadata) && body.store !== true) {
    // QwenLM/qwen-code#243, 2025-08-09; Responses are stored by default.
    const message = "The 'metadata' parameter is only allowed when 'store' is enabled.";
    return failure(400, message, 'metadata', null);
  }
  return lengthProblem(body);
}

function lengthProblem(body: JsonObject): Refusal | undefined {
  if (Array.isArray(body.stop) && body.stop.length > 4) {
    // continuedev/continue#2461, 2024-10-04.
    const message = `Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length ${body.stop.length} instead.`;
    return failure(400, message, 'stop', 'array_above_max_length');
  }
  const properties = Object.keys(objectOf(body.metadata)).length;
  if (properties > 16) {
    // thiswillbeyourgithub/openwebui_custom_pipes_filters#3, 2025-03-04.
    const message = `Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with ${properties} properties instead.`;
    return failure(400, message, 'metadata', 'object_above_max_properties');
  }
  const key = textOf(body.prompt_cache_key);
  // vybestack/llxprt-code#2135, 2026-06-23.
  if (key.length > 64) {
    const at = 'prompt_cache_key';
    return failure(400, tooLong(key, at), at, 'string_above_max_length');
  }
  for (const [index, { tool_calls }] of objectsOf(body.messages).entries()) {
    for (const [position, call] of objectsOf(tool_calls).entries()) {
      const id = textOf(call.id);
      if (id.length <= 40) continue;
      // langgenius/dify#28987, 2025-12-01; anomalyco/opencode#12653, 2026-02-08.
      const at = `messages[${index}].tool_calls[${position}].id`;
      return failure(400, tooLong(id, at, 40), at, 'string_above_max_length');
    }
  }
  return undefined;
}
