/**
 * Writes a request of OpenAI's Responses. Field names: https://platform.openai.com/docs/api-reference/responses and the
 * types of openai 7.57.0 (2026-11-13).
 */
import type {
  Block,
  NativeRequest,
  RequestSettings,
  ResponseFormat,
  Tool,
  ToolCallBlock,
  ToolChoice,
  ToolResultBlock,
  Turn,
} from '../../canonical/conversation.ts';
import { MEDIA_PARTS, type Media } from '../../canonical/media.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { lowestLimit } from '../../fitting/output-limit.ts';
import { ENCRYPTED_REASONING } from '../../fitting/table.ts';
import {
  isDefault,
  reportUnreadKeys,
  type TranslationReport,
} from '../../request-translation/dropped-fields.ts';
import { reasoningFamily, reasonsAt } from '../../request-translation/effort.ts';
import { COMPETING_LIMITS, type MessageRules, type RequestRules } from '../../request-translation/rules.ts';
import { UniqueCallIds } from '../../request-translation/tool-results.ts';
import { NO_PARAMETERS, rewriteTool } from '../../request-translation/tools.ts';
import { type RequestForm, type WriteOptions, withoutNulls } from '../../request-translation/translate.ts';
import { append } from '../../shared/append.ts';
import { isObject, type JsonObject, objectOf, omit, readCount, readText } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';
import { REASONING_FORMAT } from './upstream-reader.ts';

/** What a provider's models accept through Responses: data in the provider's file. */
export interface ResponsesRules {
  /** Fields of chat that Responses lacks. They change the output, so the request is refused, unless the caller wants them dropped. */
  readonly absent: readonly string[];
  /**
   * Other fields that Responses refuses, and the families of models. Of `messages` only the keys of tools are read. A model that no family
   * matches, or that cannot reason, answers 400 to `include: ["reasoning.encrypted_content"]` and to `reasoning`.
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

/** Fields that have another form in Responses. All others are sent as the provider's table has them. */
const WRITTEN = words(`
  max_tokens max_completion_tokens response_format verbosity reasoning_effort logprobs top_logprobs
  web_search_options store
`);

/** The form of an endpoint whose provider has these rules. */
export function responsesForm(rules: ResponsesRules): RequestForm {
  return {
    kind: 'native',
    toolNames: TOOL_NAMES,
    rules: rules.request,
    fromSettings: WRITTEN,
    limit: { path: 'max_output_tokens', competing: [...COMPETING_LIMITS, 'n'] },
    takesPromptCacheKey: rules.takesPromptCacheKey === true,
    write: (request, options, report) => writeResponses(request, options, rules, report),
  };
}

function writeResponses(
  request: NativeRequest,
  options: WriteOptions,
  rules: ResponsesRules,
  report: TranslationReport,
): JsonObject {
  const { settings, extra, turns } = request;
  const { format, outputLimit, plain } = settings;
  for (const field of rules.absent) {
    const value = extra[field];
    if (value !== undefined && !isDefault(field, value, extra)) report.refuse(field);
  }
  const { promptCache, promptCacheKey } = options;
  const hasSessionKey = promptCache === 'auto' && promptCacheKey !== undefined;
  const input = new InputWriter(options.providerId, report);
  for (const turn of turns) input.add(turn);
  // The number of alternatives to each token; null where the caller wants no log probabilities.
  const logprobs = plain.logprobs === true ? (plain.top_logprobs ?? 0) : null;
  const family = reasoningFamily(rules.request.effort?.families ?? [], options.model);
  const reasons = family !== undefined && family.reasons !== 'never';
  const effort = plain.reasoning_effort;
  if (input.hasStepWithoutReasoning && family !== undefined && reasonsAt(family, readText(effort))) {
    report.change('reasoning');
  }
  if (plain.store === true) report.drop('store');
  const include = [
    ...(reasons ? [ENCRYPTED_REASONING] : []),
    ...(logprobs === null ? [] : ['message.output_text.logprobs']),
  ];
  return {
    ...(hasSessionKey ? { prompt_cache_key: promptCacheKey } : {}),
    // The client's own key wins.
    ...omit(extra, ...rules.absent),
    input: input.items,
    ...writeTools(request, rules.request.messages, report),
    ...writeText(format, plain.verbosity),
    ...writeReasoning(effort, options, reasons && family.refusesSummary !== true),
    ...writeOutputLimit(outputLimit, extra.max_output_tokens, report),
    ...(logprobs === null ? {} : { top_logprobs: logprobs }),
    // Chat Completions stores nothing unless the caller asks; Responses stores by default.
    store: false,
    ...(include.length === 0 ? {} : { include }),
  };
}

/**
 * Collects the items of a conversation. No item has an id: ids are optional where nothing is stored, and the provider checks the pairing
 * of reasoning and calls by id alone (codex and opencode send none, read 2026-11-22). The items of a message depend on this message and
 * the calls before it, so a longer conversation begins with the same items and the provider's prompt cache hits.
 */
class InputWriter {
  readonly items: JsonObject[] = [];
  /** A step after the last user message has calls, and none of this provider's reasoning: the model continues without it. */
  hasStepWithoutReasoning = false;
  readonly #providerId: string;
  readonly #report: TranslationReport;
  /**
   * 400 "Duplicate function_call_output for call_id", for each further request of the session: NousResearch/hermes-agent#102629,
   * 2026-09-04.
   */
  readonly #callIds = new UniqueCallIds(validCallId);
  /** The ids of calls of custom tools, whose results have a type of their own. */
  readonly #customCalls = new Set<string>();
  #isInStep = false;

  constructor(providerId: string, report: TranslationReport) {
    this.#providerId = providerId;
    this.#report = report;
  }

  add(turn: Turn): void {
    const { role, blocks, extra } = turn;
    const isStep = role === 'assistant';
    if (isStep && !this.#isInStep) this.#callIds.begin();
    this.#isInStep = isStep;
    if (isStep) return this.#addStep(turn);
    const results = blocks.filter((block) => block.kind === 'tool_result');
    for (const result of results) this.#addResult(result);
    if (results.length > 0 && results.length === blocks.length) return;
    if (role === 'user') this.hasStepWithoutReasoning = false;
    reportUnreadKeys(extra, ['role', 'content'], this.#report);
    // What is no role and no content is the provider's to refuse.
    const { role: givenRole = role, content = this.#parts(blocks) } = extra;
    this.items.push({ type: 'message', role: givenRole === 'system' ? 'developer' : givenRole, content });
  }

  #parts(blocks: readonly Block[]): readonly JsonObject[] {
    return blocks.flatMap((block) => {
      const part = this.#part(block);
      const { prompt_cache_breakpoint } = (block.kind === 'unknown' ? block.raw : block.extra) ?? {};
      if (part === null) return [];
      return [isObject(prompt_cache_breakpoint) ? { ...part, prompt_cache_breakpoint } : part];
    });
  }

  /** @returns null for a block that is no content, or is refused */
  #part(block: Block): JsonObject | null {
    switch (block.kind) {
      case 'text':
        return { type: 'input_text', text: block.text };
      case 'media':
        return mediaPart(block.media) ?? this.#refusePart(MEDIA_PARTS[block.media.type]);
      case 'unknown': {
        const { type = 'text', text } = block.raw;
        return type === 'text' ? { type: 'input_text', text } : this.#refusePart(readText(type) ?? 'type');
      }
      default:
        return null;
    }
  }

  #refusePart(type: string): null {
    this.#report.refuse(`messages.content.${type}`);
    return null;
  }

  /** One step of the model: its text and its calls, each behind the reasoning that came directly before it. */
  #addStep({ blocks, refusal, extra }: Turn): void {
    reportUnreadKeys(extra, ['role', 'content'], this.#report);
    const reasoning = this.#reasoningOf(blocks);
    const texts = outputParts(blocks, refusal);
    const calls = blocks.filter((block) => block.kind === 'tool_call');
    let hasReasoning = false;
    const push = (place: number, item: JsonObject) => {
      const before = reasoning.get(place) ?? [];
      hasReasoning ||= before.length > 0;
      append(this.items, before);
      this.items.push(item);
    };
    if (texts.length > 0) push(0, { type: 'message', role: 'assistant', content: texts });
    for (const [at, call] of calls.entries()) push(at + 1, this.#call(call));
    if (calls.length > 0 && !hasReasoning) this.hasStepWithoutReasoning = true;
  }

  /** This provider's encrypted reasoning, by the index of the item that it precedes: 0 for the text, 1 for the first call. */
  #reasoningOf(blocks: readonly Block[]): ReadonlyMap<number, readonly JsonObject[]> {
    const byPlace = new Map<number, JsonObject[]>();
    for (const block of blocks) {
      if (block.kind !== 'reasoning') continue;
      const { signature, detail } = block;
      const place = readCount(detail?.index);
      const isOwn = signature?.format === REASONING_FORMAT && signature.provider === this.#providerId;
      if (!isOwn || !signature.isEncrypted || place === undefined) continue;
      const items = byPlace.get(place) ?? [];
      items.push({ type: 'reasoning', summary: [], encrypted_content: signature.value });
      byPlace.set(place, items);
    }
    return byPlace;
  }

  #call({ id, name, input, isCustom }: ToolCallBlock): JsonObject {
    const call_id = this.#callIds.call(id);
    if (isCustom !== true) return { type: 'function_call', call_id, name, arguments: input };
    this.#customCalls.add(call_id);
    return { type: 'custom_tool_call', call_id, name, input };
  }

  #addResult({ id, content, extra = {} }: ToolResultBlock): void {
    // A result is matched by its id alone, so the tool's name is not needed.
    reportUnreadKeys(extra, ['name'], this.#report);
    const call_id = this.#callIds.result(id);
    const type = this.#customCalls.has(call_id) ? 'custom_tool_call_output' : 'function_call_output';
    const output = typeof content === 'string' ? content : onlyText(this.#parts(content));
    this.items.push({ type, call_id, output });
  }
}

/** @returns null for media that Responses has no part for */
function mediaPart(media: Media): JsonObject | null {
  if (media.type === 'audio' || media.type === 'video') return null;
  const { type, url, fileId, name, detail = 'auto' } = media;
  // The URL is a string in Responses, and `detail` is required by its types.
  if (type === 'image') return { type: 'input_image', image_url: url, detail };
  const isAddress = url?.includes('://') === true && !url.startsWith('data:');
  return {
    type: 'input_file',
    ...(url === undefined ? {} : { [isAddress ? 'file_url' : 'file_data']: url }),
    ...(fileId === undefined ? {} : { file_id: fileId }),
    ...(name === undefined ? {} : { filename: name }),
  };
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

/** An assistant's texts and refusals, in their order. */
function outputParts(blocks: readonly Block[], refusal: string | undefined): readonly JsonObject[] {
  const parts = blocks.flatMap((block): JsonObject[] => {
    if (block.kind !== 'text' || block.text === '') return [];
    const { text } = block;
    return [block.isRefusal === true ? { type: 'refusal', refusal: text } : { type: 'output_text', text }];
  });
  return refusal === undefined ? parts : [...parts, { type: 'refusal', refusal }];
}

/** A longer id, as other providers have them, and an empty one become a hash: the same for a call and its result, in every request. */
function validCallId(id: string): string {
  return id !== '' && id.length <= MAX_CALL_ID_CHARS ? id : toolCallId(id);
}

function writeTools(
  { tools, toolChoice, settings: { search } }: NativeRequest,
  rules: MessageRules,
  report: TranslationReport,
): JsonObject {
  const searchTools = search === undefined ? [] : [searchTool(search)];
  const requestTools = [...(tools ?? []).map((tool) => flatTool(tool, rules, report)), ...searchTools];
  return {
    ...(tools === undefined && searchTools.length === 0 ? {} : { tools: requestTools }),
    ...(toolChoice === undefined ? {} : { tool_choice: writeToolChoice(toolChoice) }),
  };
}

/**
 * `strict` is always written: Responses makes a function strict by default and chat does not (router-for-me/CLIProxyAPI#5555,
 * 2026-09-06; #4497 measured 19 of 20 tasks with `false`, 8 of 20 without the key).
 */
function flatTool(tool: Tool, rules: MessageRules, report: TranslationReport): unknown {
  // A tool that the provider runs has the same form in both APIs.
  if (tool.kind === 'unknown') return tool.raw;
  const { kind: type, definition } = tool;
  if (type === 'function') {
    // Keys that the provider's chat refuses are refused here, too.
    const kept = rewriteTool({ ...tool.extra, type, function: definition }, rules, report);
    const definedFields = withoutNulls(objectOf(kept.function));
    const { strict = false, parameters = NO_PARAMETERS } = definedFields;
    return { ...omit(kept, 'function'), type, ...definedFields, parameters, strict };
  }
  const { format, ...rest } = definition;
  const grammar = objectOf(objectOf(format).grammar);
  const flat = isObject(format) && isObject(format.grammar) ? { type: 'grammar', ...grammar } : format;
  return { type, ...rest, ...(format === undefined ? {} : { format: flat }) };
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
function writeToolChoice(choice: ToolChoice): unknown {
  switch (choice.kind) {
    case 'tool':
      return { type: choice.type, name: choice.name };
    case 'allowed':
      return { type: 'allowed_tools', mode: choice.mode, tools: choice.tools };
    case 'unknown':
      return choice.raw;
    default:
      return choice.kind;
  }
}

function writeText(format: ResponseFormat | undefined, verbosity: unknown): JsonObject {
  const text: JsonObject = {
    ...(format === undefined ? {} : { format: flatFormat(format.raw) }),
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

/** @param native under the name of Responses. Alone it is sent as it came. */
function writeOutputLimit(
  limit: RequestSettings['outputLimit'],
  native: unknown,
  report: TranslationReport,
): JsonObject {
  if (limit === undefined) return {};
  if (typeof limit === 'object') return { max_output_tokens: limit.raw };
  const tokens = lowestLimit(limit, native) ?? limit;
  if (tokens < MIN_OUTPUT_TOKENS) report.change('max_tokens');
  return { max_output_tokens: Math.max(tokens, MIN_OUTPUT_TOKENS) };
}
