/** The engine: turns a request in OpenAI's form into one that a provider takes, and means the same (Q1-Q8). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  objectOf,
  omit,
  ownValue,
  readArray,
} from '../shared/json.ts';
import { MAX_TOOL_NAMES_CHARS } from '../shared/limits.ts';
import { isAboutRequest, isDefault, isSampling, TranslationReport } from './dropped-fields.ts';
import { askedEffort, rewriteEffort } from './effort.ts';
import { isBehindUnsignedStep, rewriteMessages } from './messages.ts';
import { type LimitedBody, outputLimitName, readOutputLimit, withLimitAlone } from './output-limit.ts';
import type { FieldRule, PromptCache, RequestRules, Unsupported } from './rules.ts';
import {
  charsOfNames,
  convertLegacyFunctions,
  rewriteTools,
  type ToolNames,
  withShortToolNames,
} from './tools.ts';

export interface TranslateOptions {
  readonly rules: RequestRules;
  /** The model's name at the provider, which some rules depend on. */
  readonly model: string;
  /** The provider's name in messages. */
  readonly provider: string;
  /** Its id, by which it knows what it made itself (A7). */
  readonly providerId: string;
  /** Whether a provider that caches only what it is told to is told so (A9). */
  readonly promptCache: PromptCache;
  readonly unsupported: Unsupported;
  /** Nothing of the model's reasoning is for the client: a provider that can keep its text to itself is told so (C6). Absent: it is. */
  readonly hidesReasoning?: boolean;
  /** The caller asked in another dialect's words, as its clients ask every model for an effort: that is a wish. Absent: it did not. */
  readonly isTranslated?: boolean;
}

export type TranslatedRequest =
  | {
      readonly kind: 'body';
      readonly body: JsonObject;
      /** Names of what was left out and of what was changed though it is not the same: for the caller to know (Q5, Q6). */
      readonly dropped: readonly string[];
      readonly changed: readonly string[];
    }
  | { readonly kind: 'error'; readonly error: ApiError };

/** The body as the provider takes it. The given body is not touched. */
export function translateRequest(body: JsonObject, options: TranslateOptions): TranslatedRequest {
  const { rules, model, provider, providerId, unsupported, isTranslated } = options;
  const report = new TranslationReport(provider, unsupported);
  let sent = withoutNulls(body);
  if (rules.legacyFunctions === 'converted') sent = convertLegacyFunctions(sent);
  if (rules.effort !== undefined) sent = rewriteEffort(sent, model, rules.effort, isTranslated);
  sent = adjust(sent, rules, report);
  sent = rewriteFields(sent, rules, provider, report);
  if (rules.needsTextPrompt) sent = withTextPrompt(sent, provider, report);
  if (Array.isArray(sent.tools)) sent = { ...sent, tools: rewriteTools(sent.tools, rules.messages, report) };
  if (Array.isArray(sent.messages)) {
    sent = { ...sent, messages: rewriteMessages(sent, { model, providerId }, rules.messages, report) };
  }
  if (isWithoutReasoning(sent, model, rules)) {
    sent = omit(sent, 'reasoning', 'reasoning_effort');
    report.change('reasoning');
  }
  if (rules.takesUsageInclude !== true && isUsageWord(body.usage)) sent = omit(sent, 'usage');
  sent = rules.streamUsage === 'asked' ? askForUsage(sent) : omit(sent, 'stream_options');
  const { error, dropped, changed } = report;
  return error === null ? { kind: 'body', body: sent, dropped, changed } : { kind: 'error', error };
}

function isWithoutReasoning(body: JsonObject, model: string, { messages }: RequestRules): boolean {
  if (messages.signedSteps === undefined || !matchesAnyGlob(messages.signedSteps, model)) return false;
  const effort = askedEffort(body)?.effort ?? 'none';
  return effort !== 'none' && isBehindUnsignedStep(readArray(body.messages));
}

/** Whether the caller wants to know what the answer costs, in OpenRouter's words (P5). */
export function asksForCost({ usage }: JsonObject): boolean {
  return isUsageWord(usage) && usage.include;
}

function isUsageWord(usage: unknown): usage is { readonly include: boolean } {
  return isObject(usage) && typeof usage.include === 'boolean';
}

/** A null means what the field's absence means (Q7). */
export function withoutNulls(body: JsonObject): JsonObject {
  return keepEntries(
    body,
    (_, value) => value !== null,
    () => {},
  );
}

function adjust(body: JsonObject, { adjustments = [] }: RequestRules, report: TranslationReport): JsonObject {
  let adjusted = body;
  for (const { field, value, when } of adjustments) {
    if (!when(adjusted)) continue;
    adjusted = { ...adjusted, [field]: value };
    report.change(field);
  }
  return adjusted;
}

function rewriteFields(
  body: JsonObject,
  rules: RequestRules,
  provider: string,
  report: TranslationReport,
): JsonObject {
  if (!Object.keys(body).some((field) => ownValue(rules.fields, field) !== undefined)) return body;
  const sent: [string, unknown][] = [];
  for (const [field, value] of Object.entries(body)) {
    const rule = ownValue(rules.fields, field);
    if (rule === undefined) sent.push([field, value]);
    else if (rule.kind === 'renamed') {
      // A value that already stands under the provider's own name stays.
      if (body[rule.to] === undefined) sent.push([rule.to, value]);
    } else if (rule.kind === 'left_out') {
      if (!isDefault(field, value, body)) report.drop(field);
    } else if (rule.kind !== 'dropped' && isSent(rule, field, body, provider, report)) {
      sent.push([field, value]);
    }
  }
  return Object.fromEntries(sent);
}

/** Whether a field goes up though the provider refuses or ignores it: its own refusal is then the answer (Q6). */
function isSent(
  rule: Extract<FieldRule, { kind: 'refused' | 'ignored' }>,
  field: string,
  body: JsonObject,
  provider: string,
  report: TranslationReport,
): boolean {
  if (rule.when !== undefined && !rule.when(body)) return true;
  if (isDefault(field, body[field], body)) return false;
  if (isAboutRequest(field) || isSampling(field)) {
    if (rule.kind === 'refused') report.drop(field);
    return rule.kind === 'ignored';
  }
  if (report.mode === 'drop') {
    report.dropAllowed(field);
    return false;
  }
  if (rule.kind === 'ignored') {
    report.fail(
      field,
      `${provider} would ignore ${field} here: leave it out, or send the header x-weir-unsupported: drop`,
    );
  }
  return true;
}

function withTextPrompt(body: JsonObject, provider: string, report: TranslationReport): JsonObject {
  const [first, ...others] = readArray(body.prompt);
  if (!Array.isArray(body.prompt)) return body;
  if (typeof first === 'string' && others.length === 0) return { ...body, prompt: first };
  report.fail('prompt', `${provider} takes one text as the prompt: send one request for each`);
  return body;
}

/** Asks for usage, so that metering does not depend on the client (U4). Only a stream may carry the option. */
function askForUsage(body: JsonObject): JsonObject {
  if (body.stream !== true) return omit(body, 'stream_options');
  const options = objectOf(body.stream_options);
  return { ...body, stream_options: { ...options, include_usage: true } };
}

/** What a request is written for. */
export type WriteOptions = Omit<TranslateOptions, 'rules'>;

/** OpenAI's form, but for the provider's rules, or a form of its own. */
export type RequestForm =
  | { readonly kind: 'chat'; readonly rules: RequestRules }
  | {
      readonly kind: 'native';
      /** The body that means the same as one in OpenAI's form. */
      readonly write: (body: JsonObject, options: WriteOptions) => TranslatedRequest;
      /** The form of tools' names; absent: any. */
      readonly toolNames?: RegExp;
      /** The most tokens that an answer to a body so written can have (G2), or null where it has no limit. */
      readonly outputLimit: (body: JsonObject) => number | null;
      /** A body so written with that limit and no rival of it. */
      readonly withLimit: (body: JsonObject, tokens: number) => LimitedBody;
      /** The name of that limit; absent: `max_tokens`. */
      readonly limitName?: string;
    };

/** Without names, each stands for itself. */
type Written = TranslatedRequest & { readonly toolNames?: ToolNames };

/** The body as the provider takes it, and what its tools' names stand for. The given body is not touched. */
export function writeRequest(form: RequestForm, given: JsonObject, options: WriteOptions): Written {
  const isNative = form.kind === 'native';
  const { body, names } = withShortToolNames(
    given,
    isNative ? form.toolNames : form.rules.messages.toolNames,
  );
  if (charsOfNames(names) > MAX_TOOL_NAMES_CHARS)
    return { kind: 'error', error: tooManyNames(options.provider) };
  const written = isNative
    ? form.write(body, options)
    : translateRequest(body, { rules: form.rules, ...options });
  return names.size === 0 ? written : { ...written, toolNames: names };
}

function tooManyNames(provider: string): ApiError {
  const message = `The names of tools that ${provider} does not take have more than ${MAX_TOOL_NAMES_CHARS} characters together: send fewer or shorter ones`;
  return apiError('invalid_request', message, 'tools');
}

/**
 * The limit of the answer's length in a body that was written so: null where there is none, undefined where it is no whole number
 * from 1 up.
 */
export function writtenLimit(form: RequestForm, body: JsonObject): number | null | undefined {
  return form.kind === 'native' ? form.outputLimit(body) : readOutputLimit(body);
}

/** What is sent, with an answer's length limited as its very last change: a limit of its own that is lower stays (G2). */
export function withWrittenLimit(form: RequestForm, body: JsonObject, atMost: number): LimitedBody {
  const tokens = Math.min(writtenLimit(form, body) ?? atMost, atMost);
  if (form.kind === 'native') return form.withLimit(body, tokens);
  return withLimitAlone(body, limitName(form), tokens, form.rules.rivalLimits ?? []);
}

/** The name under which the provider gets that limit. */
export function limitName(form: RequestForm): string {
  return form.kind === 'native' ? (form.limitName ?? 'max_tokens') : outputLimitName(form.rules);
}
