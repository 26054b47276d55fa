/** Translates a request in OpenAI's form into the body that a provider accepts, with the same meaning (Q1-Q8). */

import type { NativeRequest } from '../canonical/conversation.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  mapObjects,
  mapValues,
  objectOf,
  omit,
  ownValue,
  readArray,
} from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';
import {
  isAboutRequest,
  isDefault,
  isEmptySetting,
  isSampling,
  type TranslationReport,
} from './dropped-fields.ts';
import { requestedEffort, rewriteEffort } from './effort.ts';
import { followsUnsignedStep, type MessageTarget, rewriteMessages } from './messages.ts';
import type { FieldRule, PromptCache, RequestRules, Unsupported } from './rules.ts';
import { convertLegacyFunctions, rewriteTool } from './tools.ts';

/** In which form a provider accepts requests: Chat Completions with the differences of a table, or the provider's native API. */
export type RequestForm =
  | { readonly kind: 'chat'; readonly rules: RequestRules }
  | {
      readonly kind: 'native';
      /** What is done to the fields before they are read; absent: nothing. */
      readonly rules?: RequestRules;
      /** The fields that `write` writes from the settings. All others are its `extra`. */
      readonly fromSettings: readonly string[];
      /** Writes the native body. It is not sent if the report has an error. */
      readonly write: (
        request: NativeRequest,
        options: WriteOptions,
        report: TranslationReport,
      ) => JsonObject;
      /** The tool names that the provider accepts; absent: all. */
      readonly toolNames?: RegExp;
      /** What the provider takes as tools; absent: everything. */
      readonly tools?: ToolRules;
      /** Where a native body has its output limit; null: it has none. */
      readonly limit: LimitPlace | null;
      /** It has `guardrailConfig`; absent: false. */
      readonly takesGuardrails?: true;
      /** The provider's prompt cache uses a key that {@link WriteOptions} has; absent: false. */
      readonly takesPromptCacheKey?: boolean;
    };

/** The provider refuses two tools with one name. */
export interface ToolRules {
  /** The schema of parameters is an object without combinators at its root. Absent: false. */
  readonly plainRoots?: true;
  /** The keys of parameters that it accepts. Others are replaced, and restored in the response. Absent: all. */
  readonly keys?: RegExp;
}

/** Where a written body has its output limit. */
export interface LimitPlace {
  /** With dots. */
  readonly path: string;
  /** The name that clients know; absent: the path. */
  readonly name?: string;
  /** Fields that could take precedence over it, with dots for nested ones: they go where a key limits the output. */
  readonly competing: readonly string[];
}

/** What a translation depends on, besides the body. */
export interface WriteOptions extends MessageTarget {
  /** The provider's name, for messages. */
  readonly provider: string;
  readonly promptCache: PromptCache;
  /** The same text for all requests of a session, of which it is a hash. Absent: no session is known, or the form does not take it. */
  readonly promptCacheKey?: string;
  readonly unsupported: Unsupported;
  /** The client's names of fields, by those of Chat Completions, for messages. Absent: they are the same. */
  readonly fieldNames?: Readonly<Record<string, string>>;
  /** The client gets no reasoning, so the request tells the provider to omit its text if possible. Absent: false. */
  readonly hidesReasoning?: boolean;
}

export interface Translation {
  readonly body: JsonObject;
  /** Names of the fields that were dropped or changed in a way that may matter to the client: `x-weir-dropped`, `x-weir-changed`. */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
}

/** Applies a provider's table to a body in OpenAI's form. The steps depend on their order: later ones read what earlier ones wrote. */
export function translateRequest(
  given: JsonObject,
  rules: RequestRules,
  options: WriteOptions,
  report: TranslationReport,
): JsonObject {
  const { model, provider, isFromOtherProtocol } = options;
  let body = withKnownChoice(withoutOffSearch(withoutNulls(given)));
  if (rules.refusesEmpty) body = withoutEmptySettings(body);
  if (rules.legacyFunctions === 'converted') body = convertLegacyFunctions(body);
  if (rules.effort !== undefined)
    body = rewriteEffort(body, model, rules.effort, report, isFromOtherProtocol);
  body = adjustFields(body, rules, report);
  body = rewriteFields(body, rules, report);
  if (rules.words !== undefined) body = withOwnWords(body, rules.words);
  if (rules.needsTextPrompt) body = withTextPrompt(body, provider, report);
  if (Array.isArray(body.tools)) {
    const tools = mapObjects(body.tools, (tool) => rewriteTool(tool, rules.messages, report));
    body = { ...body, tools };
  }
  if (Array.isArray(body.messages)) {
    body = { ...body, messages: rewriteMessages(body, options, rules.messages, report) };
  }
  body = withoutUnsignedReasoning(body, model, rules, report);
  if (rules.takesUsageInclude !== true && isUsageInclude(given.usage)) body = omit(body, 'usage');
  return withStreamUsage(body, rules);
}

/** A null at the top level means the same as no field. */
export function withoutNulls(body: JsonObject): JsonObject {
  return keepEntries(body, (_, value) => value !== null);
}

/** xAI's field for searches, which says that there are none: @vibe-kit/grok-cli 0.0.34 sends it with each request (2026-11-23). */
function withoutOffSearch(body: JsonObject): JsonObject {
  const { search_parameters: search } = body;
  return isObject(search) && search.mode === 'off' ? omit(body, 'search_parameters') : body;
}

/** OpenAI's word for Mistral's `any`, which Mistral takes, too. */
function withKnownChoice(body: JsonObject): JsonObject {
  return body.tool_choice === 'any' ? { ...body, tool_choice: 'required' } : body;
}

/** Without settings that say nothing, and that strict providers refuse. */
export function withoutEmptySettings(body: JsonObject): JsonObject {
  return keepEntries(body, (field, value) => !isEmptySetting(field, value, body));
}

/** The provider's words for OpenAI's values. */
function withOwnWords(body: JsonObject, words: NonNullable<RequestRules['words']>): JsonObject {
  return mapValues(
    body,
    (value, field) =>
      (typeof value === 'string' ? ownValue(ownValue(words, field), value) : undefined) ?? value,
  );
}

function adjustFields(
  body: JsonObject,
  { adjustments = [] }: RequestRules,
  report: TranslationReport,
): JsonObject {
  let adjusted = body;
  for (const { when, set, reports } of adjustments) {
    if (!when(adjusted)) continue;
    adjusted = { ...adjusted, ...set(adjusted) };
    if (reports !== null) report.change(reports);
  }
  return adjusted;
}

function rewriteFields(body: JsonObject, { fields }: RequestRules, report: TranslationReport): JsonObject {
  if (!Object.keys(body).some((field) => ownValue(fields, field) !== undefined)) return body;
  const sent: [string, unknown][] = [];
  for (const [field, value] of Object.entries(body)) {
    const rule = ownValue(fields, field);
    if (rule === undefined) sent.push([field, value]);
    else if (rule.kind === 'renamed') {
      // A value under the provider's own name takes precedence.
      if (body[rule.to] === undefined) sent.push([rule.to, value]);
    } else if (rule.kind === 'dropped') {
      if (!isDefault(field, value, body)) report.drop(field);
    } else if (rule.kind !== 'implied' && isSent(field, rule, body, report)) {
      sent.push([field, value]);
    }
  }
  return Object.fromEntries(sent);
}

/** A native body without the fields that the table refuses and that a client may miss: those about the request, and sampling. */
export function withoutRefusedOptions(
  body: JsonObject,
  { fields }: RequestRules,
  report: TranslationReport,
): JsonObject {
  return keepEntries(body, (field, value) => {
    const rule = ownValue(fields, field);
    const isOptional = isAboutRequest(field) || isSampling(field);
    if (rule?.kind !== 'refused' || !isOptional || value === null) return true;
    return isSent(field, rule, body, report);
  });
}

/** Whether a field is sent although the provider refuses or ignores it. {@link FieldRule} describes the cases. */
function isSent(
  field: string,
  rule: Extract<FieldRule, { kind: 'refused' | 'ignored' }>,
  body: JsonObject,
  report: TranslationReport,
): boolean {
  if (rule.when !== undefined && !rule.when(body)) return true;
  if (isDefault(field, body[field], body)) return false;
  if (isAboutRequest(field) || isSampling(field)) {
    if (rule.kind === 'refused') report.drop(field);
    return rule.kind === 'ignored';
  }
  if (rule.kind === 'refused' && report.mode !== 'drop') return true;
  report.refuse(field);
  return false;
}

function withTextPrompt(body: JsonObject, provider: string, report: TranslationReport): JsonObject {
  const [first, ...others] = readArray(body.prompt);
  if (!Array.isArray(body.prompt)) return body;
  if (typeof first === 'string' && others.length === 0) return { ...body, prompt: first };
  report.fail('prompt', `${provider} accepts one prompt in a request: send one request for each prompt`);
  return body;
}

/** Turns reasoning off where the model would refuse the last step of a tool loop, because its signed reasoning is missing. */
function withoutUnsignedReasoning(
  body: JsonObject,
  model: string,
  { messages: { signedSteps } }: RequestRules,
  report: TranslationReport,
): JsonObject {
  if (signedSteps === undefined || !matchesModel(signedSteps, model)) return body;
  const effort = requestedEffort(body)?.level ?? 'none';
  if (effort === 'none' || !followsUnsignedStep(readArray(body.messages))) return body;
  report.change('reasoning');
  return omit(body, 'reasoning', 'reasoning_effort');
}

/** OpenAI refuses `stream_options` in a request without `stream`. */
function withStreamUsage(body: JsonObject, { streamUsage }: RequestRules): JsonObject {
  if (streamUsage === 'always' || body.stream !== true) return omit(body, 'stream_options');
  return { ...body, stream_options: { ...objectOf(body.stream_options), include_usage: true } };
}

/** Whether the client requests the cost of the response, with OpenRouter's `usage: {"include": true}`. */
export function requestsCost({ usage }: JsonObject): boolean {
  return isUsageInclude(usage) && usage.include;
}

function isUsageInclude(usage: unknown): usage is { readonly include: boolean } {
  return isObject(usage) && typeof usage.include === 'boolean';
}
