/** Reads a Responses request into the canonical chat request; what only a keeper of responses could answer is refused by name (I2, I5). */

import { type ApiError, apiError } from '../../canonical/error.ts';
import { ReportedFields } from '../../canonical/reported-fields.ts';
import { isObject, type JsonObject, readArray, readCount, readText } from '../../shared/json.ts';
import { MAX_TOOL_NAMES_CHARS } from '../../shared/limits.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import type { ClientRequest } from '../shared/client-protocol.ts';
import { isString, type ValueTypes, validateTypes } from '../shared/validate-types.ts';
import { readInput } from './client-request-input.ts';
import { charsOfOrigins, type ReadTools, readToolChoice, readTools } from './client-request-tools.ts';
import type { ResponsesSession } from './session.ts';
import { readShortText, writeEcho } from './session.ts';

type Translation = Pick<ClientRequest<ResponsesSession>, 'body' | 'dropped' | 'session'>;

/** Fields of Responses that chat has under another name, or that are answered here: every other one goes on as it is (Q7). */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'text',
  'reasoning',
  'max_output_tokens',
  'top_logprobs',
  'include',
  'store',
  'truncation',
  'client_metadata',
  'stream_options',
  'max_tool_calls',
  'parallel_tool_calls',
  'previous_response_id',
  'conversation',
  'background',
  'prompt',
  'context_management',
  'access_programs',
  'image',
]);

/** What can't be told in chat's words is for a provider that speaks Responses itself, and an error for each other (N1). */
export function readResponsesRequest(body: JsonObject): ClientRequest<ResponsesSession> {
  const translated = translate(body);
  const translationError = translated.kind === 'error' ? translated.error : null;
  const read = translated.kind === 'error' ? untranslated(body) : translated.value;
  const isPinned = isThere(body.previous_response_id) || isThere(body.conversation);
  return { ...read, translationError, isPinned };
}

/** Enough to find its targets, and to count its tokens: its texts stand in one message. */
function untranslated(body: JsonObject): Translation {
  const { model, models, route, stream, max_output_tokens, service_tier, input, instructions, tools } = body;
  const content = JSON.stringify([instructions, input, tools]);
  const chat = { model, models, route, stream, service_tier, max_completion_tokens: max_output_tokens };
  const asked = Object.entries(chat).filter(([, value]) => isThere(value));
  return {
    body: { ...Object.fromEntries(asked), messages: [{ role: 'user', content }] },
    dropped: [],
    session: sessionOf(body, readTools([])),
  };
}

function translate(body: JsonObject): Result<Translation, ApiError> {
  const stateful = findStateful(body);
  if (stateful !== null) return failure(stateful);
  const read = readInput(body.input);
  if (read.kind === 'error') return failure(apiError(read.code, read.message, 'input'));
  const mismatch = validateTypes(body, KINDS);
  if (mismatch !== null) return failure(mismatch);
  const tools = readTools([...readArray(body.tools), ...read.tools]);
  if (charsOfOrigins(tools.origins) > MAX_TOOL_NAMES_CHARS) return failure(TOO_MANY_TOOLS);
  const choice = readToolChoice(body.tool_choice, tools);
  if (choice.kind === 'error') return choice;
  const instructions = readText(body.instructions);
  const system = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
  const messages = [...system, ...read.messages];
  if (messages.length === 0) return failure(NOTHING_SAID);
  const chat: JsonObject = {
    ...Object.fromEntries(
      Object.entries(body).filter(([name, value]) => !OWN_FIELDS.has(name) && value !== null),
    ),
    messages,
    ...toolFields(choice.tools, choice.choice, body.parallel_tool_calls),
    ...textFields(body.text),
    ...reasoningFields(body.reasoning),
    ...logprobsFields(body),
    ...(body.max_output_tokens == null ? {} : { max_completion_tokens: body.max_output_tokens }),
    // The answer's last event has the usage.
    ...(body.stream === true ? { stream_options: { include_usage: true } } : {}),
  };
  const dropped = new ReportedFields();
  dropped.addAll([...read.dropped, ...tools.dropped]);
  return ok({ body: chat, dropped: dropped.list, session: sessionOf(body, tools) });
}

const TOO_MANY_TOOLS = apiError(
  'invalid_request',
  `The names of custom tools and of tools in namespaces have more than ${MAX_TOOL_NAMES_CHARS} characters together: send fewer`,
  'tools',
);

const NOTHING_SAID = apiError('invalid_request', 'input must hold at least one message', 'input');

/** Of the fields that are read here. */
const KINDS: ValueTypes = {
  stream: { name: 'true or false', fits: (value) => typeof value === 'boolean' },
  instructions: { name: 'a text: send items in input', fits: isString },
  tools: { name: 'a list of tools; a function has its name beside its type', fits: isTools },
  text: { name: 'an object, as {"format":…}', fits: isObject },
  reasoning: { name: 'an object, as {"effort":"low"}', fits: isObject },
};

/** Chat's own form of a function has its name further in. */
function isTools(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((tool) => isObject(tool) && (tool.type !== 'function' || readText(tool.name) !== undefined))
  );
}

function sessionOf(body: JsonObject, tools: ReadTools): ResponsesSession {
  return {
    echo: writeEcho(body, tools.echo),
    tools: tools.origins,
    wantsEncrypted: readArray(body.include).includes(ENCRYPTED),
    serviceTier: readShortText(body.service_tier) ?? 'default',
  };
}

/** What would need an earlier response, or one that is kept for later (I5). */
const STATEFUL: Readonly<Record<string, (value: unknown) => boolean>> = {
  previous_response_id: isThere,
  conversation: isThere,
  prompt: isThere,
  background: (value) => value === true,
};

function findStateful(body: JsonObject): ApiError | null {
  const name = Object.keys(STATEFUL).find((field) => STATEFUL[field]?.(body[field]));
  if (name === undefined) return null;
  const message = `This gateway keeps no responses, so it can't take ${name}: ${WAYS_OUT[name] ?? SEND_ITEMS}`;
  return apiError('unsupported_parameter', message, name);
}

const SEND_ITEMS =
  'send the items of the whole conversation in input, and store: false to an SDK that would refer to them';
const WAYS_OUT: Readonly<Record<string, string>> = {
  prompt: 'send its text in instructions and input',
  background: 'leave it out, and read the answer as it comes',
};

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function toolFields(tools: readonly JsonObject[], choice: unknown, parallel: unknown): JsonObject {
  if (tools.length === 0) return {};
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(typeof parallel === 'boolean' ? { parallel_tool_calls: parallel } : {}),
  };
}

function textFields(text: unknown): JsonObject {
  if (!isObject(text)) return {};
  const verbosity = readText(text.verbosity);
  return { ...formatField(text.format), ...(verbosity === undefined ? {} : { verbosity }) };
}

function formatField(format: unknown): JsonObject {
  if (!isObject(format) || format.type === 'text') return {};
  if (format.type !== 'json_schema') return { response_format: format };
  const { type, ...json_schema } = format;
  return { response_format: { type, json_schema } };
}

/** A summary's length is no request of chat's: the reasoning comes as its upstream tells it. */
function reasoningFields(reasoning: unknown): JsonObject {
  const effort = isObject(reasoning) ? readText(reasoning.effort) : undefined;
  return effort === undefined ? {} : { reasoning_effort: effort };
}

const ENCRYPTED = 'reasoning.encrypted_content';
const LOGPROBS = 'message.output_text.logprobs';

function logprobsFields({ include, top_logprobs }: JsonObject): JsonObject {
  const tops = readCount(top_logprobs) ?? 0;
  if (tops === 0 && !readArray(include).includes(LOGPROBS)) return {};
  return { logprobs: true, ...(tops === 0 ? {} : { top_logprobs: tops }) };
}
