/**
 * Translates a Responses request into the canonical request: its fields, its tools and the choice of a tool. Its input
 * is parsed beside it.
 */

import { type ApiError, apiError } from '../../canonical/error.ts';
import { ENCRYPTED_REASONING } from '../../fitting/table.ts';
import { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { sizeOfNames, unreadToolKeys } from '../../request-translation/tools.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  objectOf,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import { MAX_TOOL_NAMES_CHARS } from '../../shared/limits.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { wordSet } from '../../shared/words.ts';
import type { ClientRequest } from '../shared/client-protocol.ts';
import { isPresent, isString, type ValueTypes, validateTypes } from '../shared/validate-types.ts';
import {
  functionName,
  isClientSearch,
  MAX_FUNCTION_NAME_CHARS,
  readInput,
  TOOL_SEARCH,
  textBlock,
  turnOf,
  typeName,
} from './client-request-input.ts';
import {
  type KeptState,
  type ResponsesSession,
  readShortText,
  type ToolOrigin,
  writeEcho,
} from './session.ts';

/**
 * What can't be translated has a `translationError`, and may still pass to a provider of the same protocol. Only `background` is an
 * error at every provider if the gateway keeps no responses: the provider would run and bill a response that the gateway can neither
 * return nor meter.
 * @param kept what the gateway keeps of the response; null: nothing
 */
export function readResponsesRequest(
  body: JsonObject,
  kept: KeptState | null = null,
): Result<ClientRequest<ResponsesSession>, ApiError> {
  // A value of another type is refused, too: a lenient provider may take it for true.
  const isBackground = isPresent(body.background) && body.background !== false;
  if (kept === null && isBackground) return failure(notKept('background', false));
  const translated = translate(body, kept);
  const isOk = translated.kind === 'ok';
  return ok({
    ...(isOk ? translated.value : untranslated(body, kept)),
    translationError: isOk ? null : translated.error,
    isPinned: isPresent(body.previous_response_id) || isPresent(body.conversation),
  });
}

type TranslatedBody = Pick<ClientRequest<ResponsesSession>, 'fields' | 'turns' | 'dropped' | 'session'>;

function translate(body: JsonObject, kept: KeptState | null): Result<TranslatedBody, ApiError> {
  const stateful = findStateful(body, kept !== null);
  if (stateful !== null) return failure(stateful);
  const input = readInput(body.input);
  if (input.kind === 'error') return input;
  const mismatch = validateTypes(body, FIELD_TYPES);
  if (mismatch !== null) return failure(mismatch);
  const tools = readTools([...readArray(body.tools), ...input.value.tools]);
  const names = Array.from(tools.origins, ([flat, { name, namespace = '' }]) => [flat, name, namespace]);
  if (sizeOfNames(names) > MAX_TOOL_NAMES_CHARS) return failure(TOO_MANY_TOOLS);
  const choice = readToolChoice(body.tool_choice, tools);
  if (choice.kind === 'error') return choice;
  const instructions = readText(body.instructions);
  const system = instructions === undefined ? [] : [turnOf('system', [textBlock(instructions)])];
  const turns = [...system, ...input.value.turns];
  if (turns.length === 0) return failure(NO_MESSAGE);
  const fields: JsonObject = {
    ...keepEntries(body, (name, value) => !OWN_FIELDS.has(name) && value !== null),
    messages: [],
    ...toolFields(choice.value, body.parallel_tool_calls),
    ...textFields(body.text),
    ...reasoningFields(body.reasoning),
    ...logprobsFields(body),
    ...(body.max_output_tokens == null ? {} : { max_completion_tokens: body.max_output_tokens }),
    // The last event of a Responses stream has the usage.
    ...(body.stream === true ? { stream_options: { include_usage: true } } : {}),
  };
  const dropped = new ReportedFields();
  dropped.addAll([...input.value.dropped, ...tools.dropped]);
  return ok({ fields, turns, dropped: dropped.list, session: sessionOf(body, tools, kept) });
}

/** Fields that are translated or handled here. All others are copied. */
const OWN_FIELDS: ReadonlySet<string> = wordSet(`
  input instructions tools tool_choice text reasoning max_output_tokens top_logprobs include store
  truncation client_metadata stream_options max_tool_calls parallel_tool_calls previous_response_id
  conversation background prompt context_management access_programs image
`);

const TOO_MANY_TOOLS = apiError(
  'invalid_request',
  `The names of custom tools and of tools in namespaces have more than ${MAX_TOOL_NAMES_CHARS} characters together: send fewer`,
  'tools',
);

const NO_MESSAGE = apiError('invalid_request', 'input must have at least one message', 'input');

/** Enough to select the targets and to bound the tokens: all texts of the prompt are in one turn. */
function untranslated(body: JsonObject, kept: KeptState | null): TranslatedBody {
  const { model, models, route, stream, max_output_tokens, service_tier, input, instructions, tools } = body;
  const text = JSON.stringify([instructions, input, tools]);
  const chat = { model, models, route, stream, service_tier, max_completion_tokens: max_output_tokens };
  return {
    fields: { ...keepEntries(chat, (_, value) => isPresent(value)), messages: [] },
    turns: [turnOf('user', [textBlock(text)])],
    dropped: [],
    session: sessionOf(body, readTools([]), kept),
  };
}

function sessionOf(body: JsonObject, tools: ReadTools, kept: KeptState | null): ResponsesSession {
  return {
    echo: writeEcho(body, tools.echo, kept),
    tools: tools.origins,
    wantsEncrypted: readArray(body.include).includes(ENCRYPTED_REASONING),
    serviceTier: readShortText(body.service_tier) ?? 'default',
    createdAt: kept?.createdAt,
  };
}

/**
 * A request for state that this gateway does not keep: an earlier response, or one to be fetched later (I5).
 * @param keepsResponses whether the gateway keeps responses, and has resolved those that the request names
 */
function findStateful(body: JsonObject, keepsResponses: boolean): ApiError | null {
  const name = STATEFUL.find((field) => isPresent(body[field]));
  if (name === undefined) return null;
  return keepsResponses && name === 'conversation' ? CONVERSATION : notKept(name, keepsResponses);
}

function notKept(name: string, keepsResponses: boolean): ApiError {
  const reason = keepsResponses ? 'no prompts' : 'no responses';
  const message = `This gateway keeps ${reason}, so it can't take ${name}: ${ALTERNATIVES[name] ?? SEND_ITEMS}`;
  return apiError('unsupported_parameter', message, name);
}

/** Of a gateway that keeps responses. */
export const CONVERSATION = apiError(
  'unsupported_parameter',
  'This gateway keeps responses, but no conversations: send the id of the last response in previous_response_id, or the items in input',
  'conversation',
);

const STATEFUL = ['previous_response_id', 'conversation', 'prompt'];

const SEND_ITEMS =
  'send the items of the whole conversation in input, and store: false to an SDK that would refer to them';
const ALTERNATIVES: Readonly<Record<string, string>> = {
  prompt: 'send its text in instructions and input',
  background: 'leave it out, and read the response while it is open',
};

/** The types of the fields that are read here. */
const FIELD_TYPES: ValueTypes = {
  stream: { name: 'true or false', fits: (value) => typeof value === 'boolean' },
  instructions: { name: 'a text: send items in input', fits: isString },
  tools: { name: 'a list of tools; a function has its name beside its type', fits: isToolList },
  text: { name: 'an object, as {"format":…}', fits: isObject },
  reasoning: { name: 'an object, as {"effort":"low"}', fits: isObject },
};

/** A function in the form of Chat Completions is an error: its name is in an inner object. */
function isToolList(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((tool) => isObject(tool) && (tool.type !== 'function' || readText(tool.name) !== undefined))
  );
}

function toolFields({ tools, choice }: OfferedTools, parallel: unknown): JsonObject {
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

/** Chat has no field for `reasoning.summary`: the reasoning is returned as the upstream sends it. */
function reasoningFields(reasoning: unknown): JsonObject {
  const effort = readText(objectOf(reasoning).effort);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

const LOGPROBS = 'message.output_text.logprobs';

function logprobsFields({ include, top_logprobs }: JsonObject): JsonObject {
  const tops = readCount(top_logprobs) ?? 0;
  if (tops === 0 && !readArray(include).includes(LOGPROBS)) return {};
  return { logprobs: true, ...(tops === 0 ? {} : { top_logprobs: tops }) };
}

interface ReadTools {
  /** Chat's functions. */
  readonly tools: readonly JsonObject[];
  /** The tools that are not plain functions, by the name of their function. */
  readonly origins: ReadonlyMap<string, ToolOrigin>;
  /** The tools without the dropped ones, as a response object repeats them. */
  readonly echo: readonly JsonObject[];
  /** The types of the tools that a provider would have to run, as paths. */
  readonly dropped: readonly string[];
}

/** The keys of functions and custom tools that are read. */
const TOOL_KEYS = ['type', 'name', 'description', 'parameters', 'strict', 'format'];

/** Of a search that names no parameters. */
const SEARCH_PARAMETERS = {
  type: 'object',
  properties: { query: { type: 'string' } },
  required: ['query'],
};

/** Translates functions, custom tools, namespaces of both, and a search for tools that the client runs. */
function readTools(given: readonly unknown[]): ReadTools {
  // The last of several tools with one name counts.
  const tools = new Map<string, JsonObject>();
  const origins = new Map<string, ToolOrigin>();
  const echo: JsonObject[] = [];
  const dropped = new ReportedFields();
  const addSearch = ({ description, parameters }: JsonObject) => {
    const described = readText(description) === undefined ? {} : { description };
    const schema = isObject(parameters) ? parameters : SEARCH_PARAMETERS;
    tools.set(TOOL_SEARCH, {
      type: 'function',
      function: { name: TOOL_SEARCH, ...described, parameters: schema },
    });
    origins.set(TOOL_SEARCH, { kind: 'tool_search', name: TOOL_SEARCH, namespace: undefined });
  };
  const add = (tool: JsonObject, namespace?: string, namespaceDescription?: string): boolean => {
    const name = readText(tool.name);
    if (namespace === undefined && isClientSearch(tool)) {
      addSearch(tool);
      return true;
    }
    const kind = tool.type === 'function' || tool.type === 'custom' ? tool.type : null;
    if (name === undefined || kind === null) return false;
    const flatName = functionName(name, namespace);
    dropped.addAll(unreadToolKeys(tool, TOOL_KEYS, 'tools'));
    const translated = { type: 'function', function: toFunction(tool, flatName, namespaceDescription) };
    const before = tools.get(flatName);
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(translated)) {
      dropped.add(`tools.${kind}`);
    }
    tools.set(flatName, translated);
    if (kind === 'function' && namespace === undefined) origins.delete(flatName);
    else origins.set(flatName, { kind, name, namespace });
    return true;
  };
  for (const tool of given.filter(isObject)) {
    if (tool.type === 'namespace') {
      const [first, ...others] = readArray(tool.tools).filter(isObject);
      const namespace = readText(tool.name);
      // Only the first tool has the description of the namespace.
      const isAdded = first !== undefined && add(first, namespace, readText(tool.description));
      for (const other of others) add(other, namespace);
      if (isAdded) echo.push(tool);
    } else if (add(tool)) echo.push(tool.type === 'function' ? echoFunction(tool) : tool);
    else dropped.add(`tools.${typeName(tool)}`);
  }
  return { tools: [...tools.values()], origins, echo, dropped: dropped.list };
}

function toFunction(tool: JsonObject, name: string, namespaceDescription: string | undefined): JsonObject {
  const grammar = tool.type === 'custom' ? grammarOf(tool.format) : undefined;
  const description = [namespaceDescription, readText(tool.description), grammar]
    .filter(Boolean)
    .join('\n\n');
  const head = { name, ...(description === '' ? {} : { description }) };
  if (tool.type === 'custom') return { ...head, parameters: CUSTOM_TOOL_PARAMETERS };
  return {
    ...head,
    ...(isObject(tool.parameters) ? { parameters: tool.parameters } : {}),
    ...(typeof tool.strict === 'boolean' ? { strict: tool.strict } : {}),
  };
}

/** The input of a custom tool is one text. */
const CUSTOM_TOOL_PARAMETERS = {
  type: 'object',
  properties: { input: { type: 'string', description: 'All of the input: plain text' } },
  required: ['input'],
  additionalProperties: false,
};

function grammarOf(format: unknown): string | undefined {
  if (!isObject(format)) return undefined;
  const grammar = isObject(format.grammar) ? format.grammar : format;
  const definition = readText(grammar.definition);
  if (definition === undefined) return undefined;
  return `The input must follow this ${readText(grammar.syntax) ?? ''} grammar:\n${definition}`;
}

/** Open Responses requires all keys. */
function echoFunction({ name, description, parameters, strict }: JsonObject): JsonObject {
  return {
    type: 'function',
    name,
    description: readText(description) ?? null,
    parameters: isObject(parameters) ? parameters : null,
    strict: typeof strict === 'boolean' ? strict : null,
  };
}

interface OfferedTools {
  /** Chat's `tool_choice`, or undefined if there are no tools. */
  readonly choice: unknown;
  /** The allowed tools. */
  readonly tools: readonly JsonObject[];
}

/** A choice that requires a dropped tool is an error: without the tool the output would not be what the client requires. */
function readToolChoice(value: unknown, { tools }: ReadTools): Result<OfferedTools, ApiError> {
  if (value === undefined || value === null || value === 'auto' || value === 'none') {
    return ok({ choice: tools.length === 0 ? undefined : (value ?? undefined), tools });
  }
  if (value === 'required') return tools.length > 0 ? ok({ choice: value, tools }) : unavailableTool(value);
  if (!isObject(value)) return unavailableTool('unknown');
  if (value.type === 'allowed_tools') return readAllowedTools(value, tools);
  const name = chosenFunction(value);
  return name !== undefined && tools.some(({ function: called }) => objectOf(called).name === name)
    ? ok({ choice: { type: 'function', function: { name } }, tools })
    : unavailableTool(readText(value.name) ?? typeName(value));
}

function readAllowedTools(choice: JsonObject, tools: readonly JsonObject[]): Result<OfferedTools, ApiError> {
  const names = new Set<unknown>(readArray(choice.tools).filter(isObject).map(chosenFunction));
  names.delete(undefined);
  const allowed = tools.filter(({ function: called }) => names.has(objectOf(called).name));
  const mode = readText(choice.mode) ?? 'auto';
  if (allowed.length === 0 && mode === 'required') return unavailableTool('allowed_tools');
  return ok({ choice: allowed.length === 0 ? undefined : mode, tools: allowed });
}

function chosenFunction({ type, name, namespace }: JsonObject): string | undefined {
  if (type === TOOL_SEARCH) return TOOL_SEARCH;
  const tool = readText(name);
  const isTranslated = type === 'function' || type === 'custom';
  return isTranslated && tool !== undefined ? functionName(tool, readText(namespace)) : undefined;
}

function unavailableTool(name: string): { readonly kind: 'error'; readonly error: ApiError } {
  const message = `tool_choice requires ${name.slice(0, MAX_FUNCTION_NAME_CHARS)}, which is not available here: only functions and custom tools are, whose calls your client runs`;
  return failure(apiError('unsupported_parameter', message, 'tool_choice'));
}
