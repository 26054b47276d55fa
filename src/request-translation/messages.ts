/** Rewrites a conversation into what a provider accepts: roles, content, tool-call ids, system messages, reasoning and signatures. */
import type { ToolCallBlock } from '../canonical/conversation.ts';
import {
  readProviderTag,
  readReasoningDetails,
  reasoningOfProvider,
} from '../canonical/reasoning-details.ts';
import { toolCallId } from '../canonical/tool-call-id.ts';
import {
  hasItems,
  isObject,
  type JsonObject,
  keepEntries,
  mapObjects,
  objectOf,
  omit,
  ownValue,
  readArray,
  readText,
} from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';
import { losesNothing, type TranslationReport } from './dropped-fields.ts';
import type { MessageRules, ReasoningForm, SignaturePlace, SystemRule } from './rules.ts';
import { moveMediaBehindResults, partsOf, withUniqueIdsInSteps } from './tool-results.ts';

/** What the messages depend on, besides the body and the provider's table. */
export interface MessageTarget {
  /** The model's name at the provider. */
  readonly model: string;
  /** The provider's id, with which Weir tags reasoning and signatures that the provider made. */
  readonly providerId: string;
  /**
   * The client used another protocol than Chat Completions. Its effort is then a preference: such clients send one to every model.
   * Absent: false.
   */
  readonly isFromOtherProtocol?: boolean;
}

/**
 * Rewrites the messages of a chat request as the provider takes them: roles, content, late system messages.
 * @param report gets what was changed or dropped
 */
export function rewriteMessages(
  body: JsonObject,
  target: MessageTarget,
  rules: MessageRules,
  report: TranslationReport,
): readonly unknown[] {
  const rewriter = new MessageRewriter(body, target, rules, report);
  const { mediaInResults } = rules;
  const given = withUniqueIdsInSteps(readArray(body.messages));
  // A chat client knows its server: where nothing is known of it, its tool messages are sent as they came.
  const isKept = mediaInResults === undefined && target.isFromOtherProtocol !== true;
  const ordered = isKept ? given : moveMediaBehindResults(given, mediaInResults ?? []);
  const placed = placeSystemMessages(ordered, target.model, rules.system);
  const messages = mapObjects(placed, (message) => rewriter.rewrite(message));
  return rules.continuesPrefix ? withPrefix(messages) : messages;
}

/** Marks a last message of the assistant as one to continue. A model cannot continue an empty message or one with tool calls. */
function withPrefix(messages: readonly unknown[]): readonly unknown[] {
  const last = messages.at(-1);
  if (!isObject(last) || last.role !== 'assistant' || !last.content || hasItems(last.tool_calls))
    return messages;
  return [...messages.slice(0, -1), { prefix: true, ...last }];
}

/** Rewrites one message at a time. */
class MessageRewriter {
  readonly #rules: MessageRules;
  readonly #report: TranslationReport;
  readonly #form: ReasoningForm;
  readonly #requiredReasoning: string | undefined;
  readonly #signaturePlace: SignaturePlace | null;
  readonly #providerId: string;

  constructor(
    body: JsonObject,
    { model, providerId }: MessageTarget,
    rules: MessageRules,
    report: TranslationReport,
  ) {
    const { reasoning, missingSignature } = rules;
    const rule = reasoning.find(({ models, when }) => matchesModel(models, model) && (when?.(body) ?? true));
    const needsSignature =
      missingSignature !== undefined &&
      matchesModel(missingSignature.models, model) &&
      !matchesModel(missingSignature.except, model);
    this.#rules = rules;
    this.#report = report;
    this.#providerId = providerId;
    this.#form = rule?.form ?? 'both';
    this.#requiredReasoning = rule?.required?.when(body) ? rule.required.text : undefined;
    this.#signaturePlace = needsSignature ? missingSignature.at : null;
  }

  rewrite(message: JsonObject): JsonObject {
    const role = ownValue(this.#rules.roles, readText(message.role) ?? '');
    const named = role === undefined ? message : { ...message, role };
    const reasoned = named.role === 'assistant' ? this.#assistant(named) : named;
    const result = this.#withContent(this.#withId(reasoned, 'tool_call_id'));
    return this.#keep(result, ownValue(this.#rules.closed?.roles, readText(result.role) ?? ''), 'messages');
  }

  #assistant(message: JsonObject): JsonObject {
    const { closed, refused, takesDetails } = this.#rules;
    const reasoned = rewriteReasoning(message, this.#form, this.#requiredReasoning);
    const detailed = takesDetails
      ? withDetailsOfProvider(reasoned, this.#providerId)
      : omit(reasoned, 'reasoning_details');
    const isRefusalKnown = ownValue(closed?.roles, 'assistant')?.includes('refusal') ?? true;
    const takesRefusal = isRefusalKnown && !refused?.includes('refusal');
    return this.#withToolCalls(takesRefusal ? detailed : withRefusalAsContent(detailed));
  }

  #withToolCalls(message: JsonObject): JsonObject {
    if (!Array.isArray(message.tool_calls)) return message;
    const calls = mapObjects(message.tool_calls, (call) => this.#toolCall(call));
    return withSignature({ ...message, tool_calls: calls }, this.#signaturePlace);
  }

  #toolCall(call: JsonObject): JsonObject {
    const { closed, takesExtraContent } = this.#rules;
    const identified = this.#withId(call, 'id');
    const targetMessage = takesExtraContent
      ? withExtraOfProvider(identified, this.#providerId)
      : omit(identified, 'extra_content');
    const keptCall = this.#keep(targetMessage, closed?.toolCall, 'messages.tool_calls');
    if (closed === undefined || !isObject(keptCall.function)) return keptCall;
    const called = this.#keep(keptCall.function, ['name', 'arguments'], 'messages.tool_calls.function');
    return { ...keptCall, function: called };
  }

  #withId(object: JsonObject, key: string): JsonObject {
    const id = readText(object[key]);
    const accepted = this.#rules.toolCallIds;
    return accepted === undefined || id === undefined || accepted.test(id)
      ? object
      : { ...object, [key]: toolCallId(id) };
  }

  #withContent(message: JsonObject): JsonObject {
    const { content } = message;
    const { joinsText, needsContent } = this.#rules;
    const isNull = needsContent === 'text' && content === null;
    if (needsContent && message.role === 'assistant' && (isNull || isContentMissing(message)))
      return { ...message, content: '' };
    if (!Array.isArray(content)) return message;
    const parts = mapObjects(content, (part) => this.#part(part));
    const isJoined = joinsText?.includes(readText(message.role) ?? '') ?? false;
    return { ...message, content: (isJoined ? joinText(parts) : undefined) ?? parts };
  }

  #part(part: JsonObject): JsonObject {
    const written = this.#rules.part?.(part) ?? part;
    // SDKs that write every key write nulls, as Hugging Face's does.
    const targetPart =
      this.#rules.closed === undefined ? written : keepEntries(written, (_, value) => value !== null);
    return this.#keep(
      targetPart,
      ownValue(this.#rules.closed?.parts, readText(targetPart.type) ?? ''),
      'messages.content',
    );
  }

  /**
   * Drops and reports unknown keys.
   * @param keys the known keys, in a closed schema; absent: all but the refused ones
   */
  #keep(object: JsonObject, keys: readonly string[] | undefined, path: string): JsonObject {
    const { refused } = this.#rules;
    if (keys === undefined && refused === undefined) return object;
    const isKept = (key: string, value: unknown) =>
      keys === undefined
        ? !refused?.includes(key)
        : keys.includes(key) && (value !== null || key === 'content');
    return keepEntries(object, isKept, (key, value) => {
      if (!losesNothing(key, value)) this.#report.drop(`${path}.${key}`);
    });
  }
}

/** Without tool calls, DeepSeek refuses `content: null` as it refuses a missing key. */
function isContentMissing(message: JsonObject): boolean {
  const hasCalls = readArray(message.tool_calls).length > 0;
  return message.content === undefined || (message.content === null && !hasCalls);
}

/** A provider without `refusal` gets the refusal of an earlier turn as the assistant's text. */
function withRefusalAsContent(message: JsonObject): JsonObject {
  const refusal = readText(message.refusal);
  const rest = omit(message, 'refusal');
  return refusal === undefined || readText(message.content) !== undefined
    ? rest
    : { ...rest, content: refusal };
}

/** The text of a list of text parts; undefined if the list has other parts. */
function joinText(parts: readonly unknown[]): string | undefined {
  const texts = parts.filter(isObject).filter(isTextPart);
  return texts.length === parts.length ? texts.map(({ text }) => text).join('\n') : undefined;
}

// System messages

/**
 * Places system messages by the first rule that matches the model. A late system message becomes a user message at its position. It
 * is not moved to the beginning, because a changed beginning invalidates the provider's prompt cache.
 */
function placeSystemMessages(
  messages: readonly unknown[],
  model: string,
  rules: readonly SystemRule[] = [],
): readonly unknown[] {
  const rule = rules.find(({ models }) => matchesModel(models, model));
  if (rule === undefined) return messages;
  const first = messages.findIndex((message) => !isSystem(message));
  // In a conversation of system messages alone, the last one becomes the user's.
  const leadingCount = first < 0 ? messages.length - 1 : first;
  const leading = messages.slice(0, leadingCount).filter(isObject);
  const isJoined = rule.place === 'first' && leading.length > 1;
  return [
    ...(isJoined ? [joinMessages(leading)] : leading),
    ...withoutSystemMessages(messages.slice(leadingCount)),
  ];
}

function isSystem(message: unknown): message is JsonObject {
  return isObject(message) && (message.role === 'system' || message.role === 'developer');
}

/**
 * Late system messages as user messages. Each is joined with a user message beside it, so that roles still alternate. One between tool
 * calls and their results moves behind the results: providers accept nothing in between.
 */
function withoutSystemMessages(messages: readonly unknown[]): readonly unknown[] {
  /** A run becomes one user message: late system messages, and at most one message of the user. */
  const runs: (JsonObject[] | { readonly other: unknown })[] = [];
  const late: JsonObject[] = [];
  const add = (message: JsonObject) => {
    const last = runs.at(-1);
    if (Array.isArray(last) && (isSystem(message) || last.every(isSystem))) last.push(message);
    else runs.push([message]);
  };
  for (const message of messages) {
    if (isSystem(message)) {
      late.push(message);
      continue;
    }
    const { role } = objectOf(message);
    if (role !== 'tool') late.splice(0).forEach(add);
    if (isObject(message) && role === 'user') add(message);
    else runs.push({ other: message });
  }
  late.forEach(add);
  // Each run is joined once. Joining at every message would take quadratic time.
  return runs.map((run) => (Array.isArray(run) ? joinRun(run) : run.other));
}

/** The other members are those of the user's message, if there is one. */
function joinRun(run: readonly JsonObject[]): JsonObject {
  const base = { ...(run.find((message) => !isSystem(message)) ?? run.at(-1)), role: 'user' };
  return run.length === 1 ? base : { ...base, content: joinMessages(run).content };
}

/**
 * The first message with the contents of all. Texts become one text, also where a cache mark makes one of them a list: the mark moves on
 * with the next request, and the text must stay the same.
 */
function joinMessages(messages: readonly JsonObject[]): JsonObject {
  const contents = messages.map(({ content }) => content);
  const parts = contents.flatMap(partsOf).filter(isObject);
  const isText =
    contents.every((content) => partsOf(content).length === 1) &&
    parts.length === contents.length &&
    parts.every(isTextPart);
  if (!isText) return { ...messages[0], content: contents.flatMap(partsOf) };
  const text = parts.map((part) => part.text).join('\n\n');
  const isPlain = contents.every((content) => typeof content === 'string');
  return { ...messages[0], content: isPlain ? text : [Object.assign({}, ...parts, { text })] };
}

function isTextPart({ type, text }: JsonObject): boolean {
  return type === 'text' && typeof text === 'string';
}

// Reasoning of earlier turns

/** The fields in which clients send reasoning text back. */
const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'thinking_blocks'];

/**
 * Converts the reasoning of an assistant message.
 * @param required the text for a message without reasoning, if the provider requires the field
 */
export function rewriteReasoning(message: JsonObject, form: ReasoningForm, required?: string): JsonObject {
  if (form === 'both') return withBothFields(message);
  if (form === 'thinking_parts') return withThinkingParts(message);
  const text = readReasoning(message);
  const rest = withoutThinkingParts(omit(message, ...REASONING_FIELDS));
  if (form === 'none') return rest;
  const sent = text ?? required ?? (typeof message[form] === 'string' ? '' : undefined);
  return sent === undefined ? rest : { ...rest, [form]: sent };
}

/** The reasoning text of a message, in any of its forms; undefined without one. */
function readReasoning(message: JsonObject): string | undefined {
  return (
    readText(message.reasoning_content) ??
    readText(message.reasoning) ??
    joinTexts(readArray(message.reasoning_details), ['text', 'summary']) ??
    joinTexts(readArray(message.thinking_blocks), ['thinking']) ??
    joinTexts(readArray(message.content).filter(isThinkingPart).flatMap(thinkingTexts), ['text'])
  );
}

function joinTexts(items: readonly unknown[], keys: readonly string[]): string | undefined {
  const texts = items
    .filter(isObject)
    .map((item) => keys.map((key) => readText(item[key])).find(Boolean) ?? '');
  return readText(texts.join(''));
}

function isThinkingPart(part: unknown): part is JsonObject {
  return isObject(part) && part.type === 'thinking';
}

/** Mistral's `thinking` is a list of text parts, Anthropic's is a string. */
function thinkingTexts(part: JsonObject): readonly unknown[] {
  return typeof part.thinking === 'string' ? [{ text: part.thinking }] : readArray(part.thinking);
}

function withBothFields(message: JsonObject): JsonObject {
  const text = readText(message.reasoning_content) ?? readText(message.reasoning);
  return text === undefined ? message : { ...message, reasoning: text, reasoning_content: text };
}

function withThinkingParts(message: JsonObject): JsonObject {
  const rest = omit(message, ...REASONING_FIELDS);
  const text = readReasoning(message);
  if (text === undefined || readArray(message.content).some(isThinkingPart)) return rest;
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text }], closed: true };
  const { content } = message;
  const parts = readText(content) === undefined ? readArray(content) : [{ type: 'text', text: content }];
  return { ...rest, content: [thinking, ...parts] };
}

function withoutThinkingParts(message: JsonObject): JsonObject {
  const parts = message.content;
  if (!Array.isArray(parts) || !parts.some(isThinkingPart)) return message;
  const rest = parts.filter((part) => !isThinkingPart(part));
  return { ...message, content: rest.length === 0 ? '' : rest };
}

// Details of reasoning: signed or encrypted, so only the provider that made them can read them (A7)

/** Drops the details of other providers and those that lost their text. A message without either is returned unchanged. */
export function withDetailsOfProvider(message: JsonObject, providerId: string): JsonObject {
  const all = readReasoningDetails(message.reasoning_details);
  const text = readText(message.reasoning_content) ?? readText(message.reasoning);
  const texts = text === undefined ? [] : [{ kind: 'reasoning', text } as const];
  const details = reasoningOfProvider([...texts, ...all], providerId).map(({ detail = {} }) =>
    withoutTag(detail),
  );
  const isTagged = all.some(({ detail }) => readProviderTag(detail?.id) !== null);
  if (!isTagged && details.length === all.length) return message;
  return details.length === 0
    ? omit(message, 'reasoning_details')
    : { ...message, reasoning_details: details };
}

/** The detail as its provider sent it. Weir's tag is a prefix of the provider's id, or replaces a missing id. */
function withoutTag(detail: JsonObject): JsonObject {
  const tag = readProviderTag(detail.id);
  if (tag === null) return detail;
  return tag.payload === '' ? omit(detail, 'id') : { ...detail, id: tag.payload };
}

// Signatures of tool calls

/** Google's placeholder for calls of other models: https://ai.google.dev/gemini-api/docs/thought-signatures (read 2026-11-21). */
export const PLACEHOLDER_SIGNATURE = 'skip_thought_signature_validator';

/** Google's signature of a call, from the call's `extra_content`. */
export function signatureOfCall(extra: unknown): ToolCallBlock['signature'] {
  const value = readText(objectOf(objectOf(extra).google).thought_signature);
  return value === undefined ? undefined : { value, provider: providerOfExtra(extra) };
}

/** The id of the provider that sent a call's `extra_content`, or null if Weir did not tag it. */
function providerOfExtra(extra: unknown): string | null {
  return readText(objectOf(objectOf(extra).weir).provider) ?? null;
}

/** Removes Weir's tag from a call's `extra_content`, or all of it if another provider sent it. */
function withExtraOfProvider(call: JsonObject, providerId: string): JsonObject {
  const { extra_content: extra } = call;
  const tagged = providerOfExtra(extra);
  if ((tagged ?? providerId) !== providerId) return omit(call, 'extra_content');
  return tagged === null || !isObject(extra) ? call : { ...call, extra_content: omit(extra, 'weir') };
}

/**
 * Adds the placeholder to a message with tool calls if none of them is signed. Of parallel calls only the first has a signature.
 * @param place null for a model that needs no signature
 */
function withSignature(message: JsonObject, place: SignaturePlace | null): JsonObject {
  const [first, ...others] = readArray(message.tool_calls);
  if (place === null || !isObject(first)) return message;
  if (place === 'extra_content') {
    const calls = [first, ...others].filter(isObject);
    if (calls.some((call) => signatureOfCall(call.extra_content) !== undefined)) return message;
    const signed = { ...first, extra_content: { google: { thought_signature: PLACEHOLDER_SIGNATURE } } };
    return { ...message, tool_calls: [signed, ...others] };
  }
  const details = readArray(message.reasoning_details);
  // One provider may have models of several makers, and a conversation has signatures of each.
  if (details.some(isSignedByGoogle)) return message;
  // The form that OpenRouter has for it: RooCodeInc/Roo-Code#10640, 2026-01-12.
  const detail = {
    type: 'reasoning.encrypted',
    data: PLACEHOLDER_SIGNATURE,
    format: GOOGLE_FORMAT,
    index: 0,
    id: readText(first.id),
  };
  return { ...message, reasoning_details: [...details, detail] };
}

/** Whether the last turn is the result of a tool call whose message has no signed reasoning. */
export function followsUnsignedStep(messages: readonly unknown[]): boolean {
  const all = messages.filter(isObject);
  const at = all.findLastIndex(({ role }) => role === 'assistant');
  return all[at + 1]?.role === 'tool' && !readArray(all[at]?.reasoning_details).some(isSignedDetail);
}

/** OpenRouter's name for the form of Google's signatures. */
export const GOOGLE_FORMAT = 'google-gemini-v1';

/** A detail without a format may be Google's. */
function isSignedByGoogle(detail: unknown): boolean {
  return isSignedDetail(detail) && (readText(objectOf(detail).format) ?? GOOGLE_FORMAT) === GOOGLE_FORMAT;
}

function isSignedDetail(detail: unknown): boolean {
  return isObject(detail) && (readText(detail.data) ?? readText(detail.signature)) !== undefined;
}
