/**
 * Writes a chat request as a request of OpenAI's Responses. Field names: https://platform.openai.com/docs/api-reference/responses and the
 * types of openai 7.57.0 (2026-11-13).
 */
import { readProviderTag } from '../../canonical/reasoning-details.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { isDefault, TranslationReport } from '../../request-translation/dropped-fields.ts';
import { reasoningFamily, reasonsAt } from '../../request-translation/effort.ts';
import { append, reportUnreadKeys } from '../../request-translation/native-messages.ts';
import { readOutputLimit, withOnlyLimit } from '../../request-translation/output-limit.ts';
import { COMPETING_LIMITS, type RequestRules } from '../../request-translation/rules.ts';
import { convertLegacyFunctions } from '../../request-translation/tools.ts';
import {
  type RequestForm,
  type TranslatedRequest,
  translateRequest,
  type WriteOptions,
  withoutNulls,
} from '../../request-translation/translate.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  omit,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import { failure, ok } from '../../shared/result.ts';
import { REASONING_FORMAT } from './upstream-reader.ts';

/** What a provider's models accept through Responses: data in the provider's file. */
export interface ResponsesRules {
  /** Fields of chat that Responses lacks. They change the output, so the request is refused, unless the caller wants them dropped. */
  readonly absent: readonly string[];
  /**
   * Other fields that Responses refuses, and the families of models. `messages` is not read. A model that no family matches, or that
   * cannot reason, answers 400 to `include: ["reasoning.encrypted_content"]` and to `reasoning`.
   */
  readonly request: RequestRules;
  /** A request without `prompt_cache_key` gets one that is derived from the session. Absent: false. */
  readonly takesPromptCacheKey?: boolean;
}

/**
 * "Expected a string with maximum length 128": measured at gpt-6-luna on 2026-10-05, Codex backend and opencode Zen. The letters are
 * those of Chat Completions.
 */
const TOOL_NAMES = /^[a-zA-Z0-9_-]{1,128}$/;

/** "Invalid 'input[95].call_id': string too long. Expected a string with maximum length 64": 9router#393, 2026-03-23. */
const MAX_CALL_ID_CHARS = 64;

/** "Expected a value >= 16": earendil-works/pi#6265, 2026-07-02. */
const MIN_OUTPUT_TOKENS = 16;

/** Fields that have another form in Responses. All others are translated by the provider's table. */
const WRITTEN = [
  ...[
    'messages',
    'max_tokens',
    'max_completion_tokens',
    'tools',
    'tool_choice',
    'response_format',
    'verbosity',
  ],
  ...['reasoning_effort', 'logprobs', 'top_logprobs', 'web_search_options', 'store', 'stream_options'],
];

/** The form of an endpoint whose provider has these rules. */
export function responsesForm(rules: ResponsesRules): RequestForm {
  return {
    kind: 'native',
    toolNames: TOOL_NAMES,
    write: (body, options) => writeResponses(body, options, rules),
    // A limit of 0 does not bound a response that budget is reserved for.
    outputLimit: (body) => readCount(body.max_output_tokens) || null,
    withLimit: (body, tokens) => withOnlyLimit(body, 'max_output_tokens', tokens, [...COMPETING_LIMITS, 'n']),
    limitName: 'max_output_tokens',
    takesPromptCacheKey: rules.takesPromptCacheKey === true,
  };
}

function writeResponses(given: JsonObject, options: WriteOptions, rules: ResponsesRules): TranslatedRequest {
  const legacyFree = convertLegacyFunctions(withoutNulls(given));
  const report = new TranslationReport(options.provider, options.unsupported);
  for (const field of rules.absent) {
    const value = legacyFree[field];
    if (value !== undefined && !isDefault(field, value, legacyFree)) report.refuse(field);
  }
  const { messages, ...fields } = omit(legacyFree, ...rules.absent);
  const translated = translateRequest(fields, rules.request, options);
  if (translated.kind === 'error') return translated;
  const { body } = translated.value;
  const { promptCache, promptCacheKey } = options;
  const hasSessionKey = promptCache === 'auto' && promptCacheKey !== undefined;
  const input = new InputWriter(options.providerId, report);
  for (const message of readArray(messages)) if (isObject(message)) input.add(message);
  const logprobs = writeLogprobs(body);
  const family = reasoningFamily(rules.request.effort?.families ?? [], options.model);
  const reasons = family !== undefined && family.reasons !== 'never';
  const effort = readText(body.reasoning_effort);
  if (input.hasStepWithoutReasoning && family !== undefined && reasonsAt(family, effort)) {
    report.change('reasoning');
  }
  const include = [
    ...(reasons ? ['reasoning.encrypted_content'] : []),
    ...(logprobs === null ? [] : ['message.output_text.logprobs']),
  ];
  const written: JsonObject = {
    ...(hasSessionKey ? { prompt_cache_key: promptCacheKey } : {}),
    // The client's own key wins.
    ...omit(body, ...WRITTEN),
    input: input.items,
    ...writeTools(body),
    ...writeText(body),
    ...writeReasoning(body.reasoning_effort, options, reasons && family.refusesSummary !== true),
    ...writeOutputLimit(body, report),
    ...(logprobs === null ? {} : { top_logprobs: logprobs }),
    // Chat Completions stores nothing unless the caller asks; Responses stores by default.
    store: false,
    ...(include.length === 0 ? {} : { include }),
  };
  if (body.store === true) report.drop('store');
  const { error, dropped, changed } = report;
  if (error !== null) return failure(error);
  return ok({
    body: written,
    dropped: [...translated.value.dropped, ...dropped],
    changed: [...translated.value.changed, ...changed],
  });
}

/**
 * Collects the items of a conversation. No item has an id: ids are optional where nothing is stored, and the provider checks the pairing
 * of reasoning and calls by id alone (codex and opencode send none, read 2026-11-22). The items of a message depend on this message and
 * the calls before it, so a longer conversation begins with the same items and the provider's prompt cache hits.
 */
class InputWriter {
  readonly items: JsonObject[] = [];
  readonly #providerId: string;
  readonly #report: TranslationReport;
  /** The ids of calls of custom tools, whose results have a type of their own. */
  readonly #customCalls = new Set<string>();
  #hasStepWithoutReasoning = false;

  constructor(providerId: string, report: TranslationReport) {
    this.#providerId = providerId;
    this.#report = report;
  }

  /** Whether a step after the last user message has calls, and none of this provider's reasoning: the model continues without it. */
  get hasStepWithoutReasoning(): boolean {
    return this.#hasStepWithoutReasoning;
  }

  add(message: JsonObject): void {
    if (message.role === 'user') this.#hasStepWithoutReasoning = false;
    switch (message.role) {
      case 'assistant':
        return this.#addStep(message);
      case 'tool':
        return this.#addResult(message);
      case 'system':
      case 'developer':
        return this.#addMessage('developer', message);
      default:
        return this.#addMessage(message.role, message);
    }
  }

  #addMessage(role: unknown, message: JsonObject): void {
    reportUnreadKeys(message, ['role', 'content'], this.#report);
    const { content } = message;
    // What is no content is the provider's to refuse.
    const parts = typeof content === 'string' || Array.isArray(content) ? this.#parts(content) : content;
    this.items.push({ type: 'message', role, content: parts });
  }

  #parts(content: string | readonly unknown[]): readonly JsonObject[] {
    if (typeof content === 'string') return [{ type: 'input_text', text: content }];
    return content.flatMap((part) => (isObject(part) ? this.#part(part) : []));
  }

  #part(part: JsonObject): readonly JsonObject[] {
    const mark = isObject(part.prompt_cache_breakpoint)
      ? { prompt_cache_breakpoint: part.prompt_cache_breakpoint }
      : {};
    switch (part.type) {
      case 'text':
      case undefined:
        return [{ type: 'input_text', text: part.text, ...mark }];
      case 'image_url':
        return [{ type: 'input_image', ...imageOf(part.image_url), ...mark }];
      case 'file': {
        const { file_data, file_id, filename } = objectOf(part.file);
        const file = withoutUndefined({ file_data, file_id, filename });
        return [{ type: 'input_file', ...file, ...mark }];
      }
      default:
        this.#report.refuse(`messages.content.${readText(part.type) ?? 'type'}`);
        return [];
    }
  }

  /** One step of the model: its text and its calls, each behind the reasoning that came directly before it. */
  #addStep(message: JsonObject): void {
    reportUnreadKeys(message, ['role', 'content'], this.#report);
    const reasoning = this.#reasoningOf(message);
    const texts = outputParts(message);
    if (texts.length > 0) {
      append(this.items, reasoning.get(0) ?? []);
      this.items.push({ type: 'message', role: 'assistant', content: texts });
    }
    const calls = readArray(message.tool_calls).filter(isObject);
    for (const [at, call] of calls.entries()) {
      append(this.items, reasoning.get(at + 1) ?? []);
      this.items.push(this.#call(call));
    }
    const places = [...Array(calls.length + 1).keys()];
    const hasReasoning = places.some((place) => reasoning.has(place) && (place > 0 || texts.length > 0));
    if (calls.length > 0 && !hasReasoning) this.#hasStepWithoutReasoning = true;
  }

  /** This provider's encrypted reasoning, by the index of the item that it precedes: 0 for the text, 1 for the first call. */
  #reasoningOf(message: JsonObject): ReadonlyMap<number, readonly JsonObject[]> {
    const byPlace = new Map<number, JsonObject[]>();
    for (const detail of readArray(message.reasoning_details).filter(isObject)) {
      const place = readCount(detail.index);
      const data = readText(detail.data);
      const isOwn =
        detail.format === REASONING_FORMAT && readProviderTag(detail.id)?.provider === this.#providerId;
      if (!isOwn || place === undefined || data === undefined) continue;
      const items = byPlace.get(place) ?? [];
      items.push({ type: 'reasoning', summary: [], encrypted_content: data });
      byPlace.set(place, items);
    }
    return byPlace;
  }

  #call(call: JsonObject): JsonObject {
    const call_id = callId(call.id);
    const custom = objectOf(call.custom);
    if (call.type === 'custom') {
      this.#customCalls.add(call_id);
      return { type: 'custom_tool_call', call_id, name: custom.name, input: custom.input ?? '' };
    }
    const { name, arguments: text } = objectOf(call.function);
    return { type: 'function_call', call_id, name, arguments: text ?? '{}' };
  }

  #addResult(message: JsonObject): void {
    // A result is matched by its id alone, so the tool's name is not needed.
    reportUnreadKeys(message, ['role', 'content', 'tool_call_id', 'name'], this.#report);
    const { tool_call_id, content } = message;
    const call_id = callId(tool_call_id);
    const type = this.#customCalls.has(call_id) ? 'custom_tool_call_output' : 'function_call_output';
    const output = Array.isArray(content) ? onlyText(this.#parts(content)) : (content ?? '');
    this.items.push({ type, call_id, output });
  }
}

/**
 * One text part becomes a string. Claude Code 2.1.330 (2026-11-22) sends the last result as a list, for its cache mark, and the same result
 * as a string in the next request: the input would differ there.
 */
function onlyText(parts: readonly JsonObject[]): unknown {
  const [{ type, text, ...rest } = {}, ...others] = parts;
  const isPlain = type === 'input_text' && others.length === 0 && Object.keys(rest).length === 0;
  return isPlain ? text : parts;
}

/** An assistant's text and refusal, in their order. */
function outputParts({ content, refusal }: JsonObject): readonly JsonObject[] {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : readArray(content);
  const written = parts.filter(isObject).flatMap((part): JsonObject[] => {
    if (part.type === 'refusal') return [{ type: 'refusal', refusal: part.refusal }];
    const text = readText(part.text);
    return part.type === 'text' && text !== undefined ? [{ type: 'output_text', text }] : [];
  });
  const refused = readText(refusal);
  return refused === undefined ? written : [...written, { type: 'refusal', refusal: refused }];
}

/** A longer id, as other providers have them, becomes a hash: the same for a call and its result, in every request. */
function callId(id: unknown): string {
  const text = readText(id) ?? '';
  return text.length <= MAX_CALL_ID_CHARS ? text : toolCallId(text);
}

/** The URL is a string in Responses, and `detail` is required by its types. */
function imageOf(image: unknown): JsonObject {
  const { url, detail = 'auto' } = isObject(image) ? image : { url: image };
  return { image_url: url, detail };
}

function writeTools(body: JsonObject): JsonObject {
  const tools = readArray(body.tools).map((tool) => (isObject(tool) ? flatTool(tool) : tool));
  const search = isObject(body.web_search_options) ? [searchTool(body.web_search_options)] : [];
  const { tool_choice: choice } = body;
  return {
    ...(body.tools === undefined && search.length === 0 ? {} : { tools: [...tools, ...search] }),
    ...(choice === undefined ? {} : { tool_choice: isObject(choice) ? flatChoice(choice) : choice }),
  };
}

/**
 * `strict` is always written: Responses makes a function strict by default and chat does not (router-for-me/CLIProxyAPI#5555,
 * 2026-09-06; #4497 measured 19 of 20 tasks with `false`, 8 of 20 without the key).
 */
function flatTool(tool: JsonObject): JsonObject {
  if (tool.type === 'function' && isObject(tool.function)) {
    const { strict = false, parameters = { type: 'object', properties: {} } } = withoutNulls(tool.function);
    return { type: 'function', ...tool.function, parameters, strict };
  }
  if (tool.type === 'custom' && isObject(tool.custom)) {
    const { format, ...rest } = tool.custom;
    const grammar = objectOf(objectOf(format).grammar);
    const flat = isObject(format) && isObject(format.grammar) ? { type: 'grammar', ...grammar } : format;
    return { type: 'custom', ...rest, ...(format === undefined ? {} : { format: flat }) };
  }
  // A tool that the provider runs has the same form in both APIs.
  return tool;
}

function searchTool({ search_context_size, user_location }: JsonObject): JsonObject {
  const approximate = objectOf(objectOf(user_location).approximate);
  return {
    type: 'web_search',
    ...(search_context_size === undefined ? {} : { search_context_size }),
    ...(isObject(user_location) ? { user_location: { type: 'approximate', ...approximate } } : {}),
  };
}

/** "Missing required parameter: 'tool_choice.name'": chat's nested form is refused (measured 2026-08-30). */
function flatChoice(choice: JsonObject): JsonObject {
  const { allowed_tools: allowed } = choice;
  if (isObject(allowed)) {
    const tools = readArray(allowed.tools).map((tool) => (isObject(tool) ? flatChoice(tool) : tool));
    return { type: 'allowed_tools', mode: allowed.mode, tools };
  }
  const { type } = choice;
  const named = type === 'custom' ? choice.custom : choice.function;
  return isObject(named) ? { type, name: named.name } : choice;
}

function writeText({ response_format: format, verbosity }: JsonObject): JsonObject {
  const text: JsonObject = {
    ...(isObject(format) && format.type !== 'text' ? { format: flatFormat(format) } : {}),
    ...(verbosity === undefined ? {} : { verbosity }),
  };
  return Object.keys(text).length === 0 ? {} : { text };
}

function flatFormat(format: JsonObject): JsonObject {
  return isObject(format.json_schema) ? { type: format.type, ...format.json_schema } : format;
}

function writeReasoning(
  effort: unknown,
  { hidesReasoning }: WriteOptions,
  canSummarize: boolean,
): JsonObject {
  const isShown = canSummarize && hidesReasoning !== true && effort !== 'none';
  const reasoning: JsonObject = {
    ...(effort === undefined ? {} : { effort }),
    ...(isShown ? { summary: 'auto' } : {}),
  };
  return Object.keys(reasoning).length === 0 ? {} : { reasoning };
}

function writeOutputLimit(body: JsonObject, report: TranslationReport): JsonObject {
  const tokens = readOutputLimit(body);
  if (tokens === null) return {};
  // What is no number of tokens is the provider's to refuse.
  if (tokens === undefined) return { max_output_tokens: body.max_completion_tokens ?? body.max_tokens };
  if (tokens < MIN_OUTPUT_TOKENS) report.change('max_tokens');
  return { max_output_tokens: Math.max(tokens, MIN_OUTPUT_TOKENS) };
}

/** The number of alternatives to each token; null where the caller wants no log probabilities. */
function writeLogprobs({ logprobs, top_logprobs }: JsonObject): unknown {
  return logprobs === true ? (top_logprobs ?? 0) : null;
}

function withoutUndefined(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}
