/** Anthropic Messages as a client protocol: checks requests, and translates their fields and tools into those of Chat Completions. */
import { type ApiError, apiError } from '../../canonical/error.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { NO_PARAMETERS, unreadToolKeys } from '../../request-translation/tools.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import type { ClientProtocol, ClientRequest } from '../shared/client-protocol.ts';
import {
  isPresent,
  isString,
  type ValueType,
  type ValueTypes,
  validateTypes,
} from '../shared/validate-types.ts';
import { errorResponse } from './client-errors.ts';
import { readTurns } from './client-request-messages.ts';
import { MessagesWriter } from './client-writer.ts';
import { MessagesJsonWriter } from './json-writer.ts';
import { messagesPassthrough } from './passthrough.ts';

export const messages: ClientProtocol<null> = {
  id: 'messages',
  passthrough: messagesPassthrough,
  takesVendorEvents: false,
  fieldNames: { stop: 'stop_sequences' },
  readRequest,
  streamWriter: (_, options) => new MessagesWriter(options),
  jsonWriter: (_, options) => new MessagesJsonWriter(options),
  errorResponse,
};

/** Fields that the canonical request has with the same name and meaning. */
const SAME_FIELDS = [
  ...['model', 'models', 'max_tokens', 'temperature', 'top_p', 'top_k', 'stream'],
  // Of Bedrock: a target that cannot take it refuses it.
  'guardrailConfig',
];
/** All fields that are read. Others are dropped. */
const READ_FIELDS = [
  ...[...SAME_FIELDS, 'messages', 'system', 'tools', 'tool_choice', 'stop_sequences'],
  ...['thinking', 'output_config', 'output_format', 'metadata'],
];

function readRequest(body: JsonObject): Result<ClientRequest<null>, ApiError> {
  const error = requestError(body);
  if (error !== null) return failure(error);
  const dropped = new ReportedFields();
  const tools = readTools(body, dropped);
  for (const [field, value] of Object.entries(body)) {
    if (!READ_FIELDS.includes(field) && isPresent(value)) dropped.add(field);
  }
  const same = SAME_FIELDS.filter((field) => isPresent(body[field]));
  const fields = {
    ...Object.fromEntries(same.map((field) => [field, body[field]])),
    ...(body.stream === true ? { stream_options: { include_usage: true } } : {}),
    messages: [],
    ...(tools.kind === 'ok' ? tools.value : {}),
    ...readStop(body.stop_sequences),
    ...readEffort(body),
    ...readFormat(body),
    ...readUser(body.metadata),
  };
  const turns = readTurns(body.system, readArray(body.messages).filter(isObject), dropped);
  const bodyError = tools.kind === 'ok' ? typeError(body) : tools.error;
  return ok({
    fields,
    turns,
    thinking: readThinking(body.thinking),
    dropped: dropped.list,
    translationError: isPresent(body.thread) ? NO_THREADS : bodyError,
    isPinned: isPresent(body.thread),
    session: null,
  });
}

/** An error that no provider would accept. */
function requestError(body: JsonObject): ApiError | null {
  const { messages, thread } = body;
  // A thread whose turn was paused continues without a message.
  const isEmpty = readArray(messages).length === 0 && !isPresent(thread);
  if (!isObjects(messages) || isEmpty) {
    return apiError('invalid_request', 'messages must be a list with at least one message', 'messages');
  }
  return validateTypes(body, STREAM_TYPE);
}

/** The code makes the SDK's tool runner send the whole conversation. Without it, the runner would loop. */
const NO_THREADS: ApiError = {
  ...apiError(
    'invalid_request',
    'This gateway keeps no threads: send all messages, without thread',
    'thread',
  ),
  code: 'thread_unsupported_request',
};

function readStop(sequences: unknown): JsonObject {
  const texts = readArray(sequences).filter((text) => readText(text) !== undefined);
  return texts.length === 0 ? {} : { stop: texts };
}

/** Its type, its budget and its `display` are kept for providers of Messages. */
function readThinking(thinking: unknown): JsonObject | undefined {
  const isOn = isObject(thinking) && (thinking.type === 'adaptive' || thinking.type === 'enabled');
  return isOn ? thinking : undefined;
}

/** A thinking budget is kept, because each provider has its own form for it. For `adaptive` the model's default applies. */
function readEffort({ thinking, output_config }: JsonObject): JsonObject {
  const effort = readText(objectOf(output_config).effort);
  const { type, budget_tokens } = objectOf(thinking);
  if (type === 'disabled') return { reasoning_effort: 'none' };
  if (effort !== undefined) return { reasoning_effort: effort };
  return type === 'enabled' ? { thinking: { type, budget_tokens } } : {};
}

function readFormat({ output_config, output_format }: JsonObject): JsonObject {
  const format = objectOf(output_config).format ?? output_format;
  if (!isObject(format) || format.type !== 'json_schema') return {};
  const json_schema = { name: 'output', schema: format.schema, strict: true };
  return { response_format: { type: 'json_schema', json_schema } };
}

/** Claude Code's `user_id` has device and account ids, so providers get only a hash that tells users apart. */
function readUser(metadata: unknown): JsonObject {
  const id = readText(objectOf(metadata).user_id);
  return id === undefined ? {} : { user: `user_${toolCallId(id)}` };
}

/**
 * Reads `tools`, `tool_choice` and `parallel_tool_calls`. Tools that Anthropic runs have no equivalent: an error if `tool_choice`
 * requires one.
 */
function readTools(
  { tools, tool_choice }: JsonObject,
  dropped: ReportedFields,
): Result<JsonObject, ApiError> {
  const all = readArray(tools).filter(isObject);
  const functions = all.filter(isFunction);
  for (const tool of all) if (!isFunction(tool)) dropped.add(`tools.${readText(tool.type) ?? 'unknown'}`);
  const choice = objectOf(tool_choice);
  const isHosted =
    choice.type === 'tool' && all.some((tool) => tool.name === choice.name && !isFunction(tool));
  if (isHosted) return toolChoiceError(`names ${String(choice.name)}, a tool that only Anthropic runs`);
  if (functions.length === 0) {
    const isForced = choice.type === 'any' || choice.type === 'tool';
    return isForced ? toolChoiceError('requires a call, but tools has no tool that the client runs') : ok({});
  }
  const toolChoice = readToolChoice(choice);
  return ok({
    tools: functions.map((tool) => readTool(tool, dropped)),
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...(choice.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}),
  });
}

function toolChoiceError(reason: string): Result<never, ApiError> {
  return failure(apiError('unsupported_parameter', `tool_choice ${reason}`, 'tool_choice'));
}

/** The client runs tools without a type or with the type `custom`. */
function isFunction({ type }: JsonObject): boolean {
  return type === undefined || type === null || type === 'custom';
}

const TOOL_KEYS = ['type', 'name', 'description', 'input_schema', 'strict', 'cache_control'];

function readTool(tool: JsonObject, dropped: ReportedFields): JsonObject {
  const { name, description, input_schema, strict, cache_control } = tool;
  dropped.addAll(unreadToolKeys(tool, TOOL_KEYS, 'tools'));
  return {
    type: 'function',
    function: {
      name,
      ...(readText(description) === undefined ? {} : { description }),
      parameters: isObject(input_schema) ? input_schema : NO_PARAMETERS,
      ...(typeof strict === 'boolean' ? { strict } : {}),
    },
    ...(isObject(cache_control) ? { cache_control } : {}),
  };
}

function readToolChoice({ type, name }: JsonObject): unknown {
  if (type === 'any') return 'required';
  if (type === 'tool') return { type: 'function', function: { name } };
  return type === 'auto' || type === 'none' ? type : undefined;
}

const STREAM_TYPE: ValueTypes = {
  stream: { name: 'true or false', fits: (value) => typeof value === 'boolean' },
};

const TEXT: ValueType = { name: 'a text', fits: isString };
const TEXTS: ValueType = {
  name: 'a list of texts',
  fits: (value) => Array.isArray(value) && value.every(isString),
};
const OBJECT: ValueType = { name: 'an object', fits: isObject };
const OBJECTS: ValueType = { name: 'a list of objects', fits: isObjects };
const CONTENT: ValueType = {
  name: 'a text or a list of blocks',
  fits: (value) => isString(value) || isObjects(value),
};

const FIELD_TYPES: ValueTypes = {
  system: CONTENT,
  tools: OBJECTS,
  tool_choice: OBJECT,
  stop_sequences: TEXTS,
  thinking: OBJECT,
  output_config: OBJECT,
};

/** The fields of each block type that is read. Unknown blocks are dropped. */
const BLOCK_FIELD_TYPES: ReadonlyMap<unknown, ValueTypes> = new Map([
  ['text', { text: TEXT }],
  ['thinking', { thinking: TEXT }],
  ['tool_result', { content: CONTENT }],
]);

/** The first value of a wrong type. The translation would drop it without a trace. */
function typeError(body: JsonObject): ApiError | null {
  return validateTypes(body, FIELD_TYPES) ?? firstError(body.messages, 'messages', messageTypeError);
}

function messageTypeError(message: JsonObject, path: string): ApiError | null {
  return (
    validateTypes(message, { content: CONTENT }, `${path}.`) ??
    firstError(message.content, `${path}.content`, (block, at) =>
      validateTypes(block, BLOCK_FIELD_TYPES.get(block.type) ?? {}, `${at}.`),
    )
  );
}

function firstError(
  list: unknown,
  path: string,
  check: (object: JsonObject, path: string) => ApiError | null,
): ApiError | null {
  for (const [at, object] of readArray(list).entries()) {
    const error = isObject(object) ? check(object, `${path}.${at}`) : null;
    if (error !== null) return error;
  }
  return null;
}

function isObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every(isObject);
}
