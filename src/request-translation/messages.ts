/** Rewrites a conversation, message by message, into what the provider takes (Q1-Q5). */

import { isOfText, readProviderTag } from '../canonical/provider-tag.ts';
import { ReasoningDetails } from '../canonical/reasoning-details.ts';
import { toolCallId } from '../canonical/tool-call-id.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  omit,
  ownValue,
  readArray,
  readText,
} from '../shared/json.ts';
import { isFromAnswer, type TranslationReport } from './dropped-fields.ts';
import { hasItems, type MessageRules, type ReasoningForm, type SystemRule } from './rules.ts';

interface MessageTarget {
  readonly model: string;
  readonly providerId: string;
}

export function rewriteMessages(
  body: JsonObject,
  target: MessageTarget,
  rules: MessageRules,
  report: TranslationReport,
): readonly unknown[] {
  const rewriter = new MessageRewriter(body, target, rules, report);
  const placed = placeSystemMessages(readArray(body.messages), target.model, rules.system);
  const written = placed.map((message) => (isObject(message) ? rewriter.rewrite(message) : message));
  return rules.continuesPrefix ? withPrefix(written) : written;
}

/** A message without content, or with calls, is none that a model could go on with. */
function withPrefix(messages: readonly unknown[]): readonly unknown[] {
  const last = messages.at(-1);
  if (!isObject(last) || last.role !== 'assistant' || !last.content || hasItems(last.tool_calls))
    return messages;
  return [...messages.slice(0, -1), { prefix: true, ...last }];
}

function fits(models: readonly string[] | undefined, model: string): boolean {
  return models === undefined || matchesAnyGlob(models, model);
}

class MessageRewriter {
  readonly #rules: MessageRules;
  readonly #report: TranslationReport;
  readonly #form: ReasoningForm;
  readonly #requiredReasoning: string | undefined;
  readonly #standIn: SignaturePlace | null;
  readonly #providerId: string;

  constructor(body: JsonObject, target: MessageTarget, rules: MessageRules, report: TranslationReport) {
    const { model, providerId } = target;
    const { reasoning, missingSignature } = rules;
    const rule = reasoning.find(({ models, when }) => fits(models, model) && (when?.(body) ?? true));
    this.#rules = rules;
    this.#report = report;
    this.#providerId = providerId;
    this.#form = rule?.form ?? 'both';
    this.#requiredReasoning = rule?.required?.when(body) ? rule.required.text : undefined;
    this.#standIn =
      missingSignature !== undefined && fits(missingSignature.models, model) ? missingSignature.at : null;
  }

  rewrite(message: JsonObject): JsonObject {
    const named = this.#withRole(message);
    const own = named.role === 'assistant' ? this.#assistant(named) : named;
    const answered = typeof own.tool_call_id === 'string' ? this.#withId(own, 'tool_call_id') : own;
    return this.#withKnownKeys(this.#withContent(answered));
  }

  #withRole(message: JsonObject): JsonObject {
    const role = ownValue(this.#rules.roles, readText(message.role) ?? '');
    return role === undefined ? message : { ...message, role };
  }

  #assistant(message: JsonObject): JsonObject {
    const thought = rewriteReasoning(message, this.#form, this.#requiredReasoning);
    const opaque = this.#rules.takesDetails
      ? withOwnDetails(thought, this.#providerId)
      : omit(thought, 'reasoning_details');
    const refused = this.#takes('assistant', 'refusal') ? opaque : withRefusalAsContent(opaque);
    return this.#withToolCalls(refused);
  }

  /** Whether a message of that role may have the key. */
  #takes(role: string, key: string): boolean {
    const { closed, refused } = this.#rules;
    return (ownValue(closed?.roles, role)?.includes(key) ?? true) && !refused?.includes(key);
  }

  #withToolCalls(message: JsonObject): JsonObject {
    if (!Array.isArray(message.tool_calls)) return message;
    const calls: unknown[] = message.tool_calls.map((call: unknown) =>
      isObject(call) ? this.#toolCall(call) : call,
    );
    return withSignature({ ...message, tool_calls: calls }, this.#standIn);
  }

  #toolCall(call: JsonObject): JsonObject {
    const named = typeof call.id === 'string' ? this.#withId(call, 'id') : call;
    const own = withOwnExtra(named, this.#rules.takesExtraContent ? this.#providerId : null);
    const known = this.#keep(own, this.#rules.closed?.toolCall, 'messages.tool_calls');
    const keys = this.#rules.closed?.function;
    return keys !== undefined && isObject(known.function)
      ? {
          ...known,
          function: this.#keep(known.function, ['name', 'arguments'], 'messages.tool_calls.function'),
        }
      : known;
  }

  #withId(object: JsonObject, key: string): JsonObject {
    const id = readText(object[key]);
    const form = this.#rules.toolCallIds;
    return form === undefined || id === undefined || form.test(id)
      ? object
      : { ...object, [key]: toolCallId(id) };
  }

  #withContent(message: JsonObject): JsonObject {
    const { content } = message;
    const { joinsText, needsContent } = this.#rules;
    if (needsContent && message.role === 'assistant' && isMissing(message))
      return { ...message, content: '' };
    if (!Array.isArray(content)) return message;
    const parts = content.map((part: unknown) => (isObject(part) ? this.#part(part) : part));
    const isJoined = joinsText?.includes(readText(message.role) ?? '') ?? false;
    return { ...message, content: (isJoined ? joinText(parts) : undefined) ?? parts };
  }

  #part(part: JsonObject): JsonObject {
    const own = this.#rules.part?.(part) ?? part;
    return this.#keep(own, ownValue(this.#rules.closed?.parts, readText(own.type) ?? ''), 'messages.content');
  }

  #withKnownKeys(message: JsonObject): JsonObject {
    return this.#keep(message, ownValue(this.#rules.closed?.roles, readText(message.role) ?? ''), 'messages');
  }

  /** The object with nothing but those keys, or without what an open schema refuses; what is lost by it is reported. */
  #keep(object: JsonObject, keys: readonly string[] | undefined, place: string): JsonObject {
    const { refused } = this.#rules;
    if (keys === undefined && refused === undefined) return object;
    const isKept = (key: string, value: unknown) =>
      keys === undefined
        ? !refused?.includes(key)
        : keys.includes(key) && (value !== null || key === 'content');
    return keepEntries(object, isKept, (key, value) => {
      const isSilent = value === null || value === undefined || isFromAnswer(key);
      if (!isSilent) this.#report.drop(`${place}.${key}`);
    });
  }
}

/** No content where DeepSeek demands one: the key has to be there, and null is not enough without tool calls. */
function isMissing(message: JsonObject): boolean {
  const hasCalls = readArray(message.tool_calls).length > 0;
  return message.content === undefined || (message.content === null && !hasCalls);
}

/** A provider that knows no refusals reads an earlier one as what it is: the assistant's text. */
function withRefusalAsContent(message: JsonObject): JsonObject {
  const refusal = readText(message.refusal);
  const rest = omit(message, 'refusal');
  return refusal === undefined || readText(message.content) !== undefined
    ? rest
    : { ...rest, content: refusal };
}

/** One text, where the list holds nothing else; undefined where it does. */
function joinText(parts: readonly unknown[]): string | undefined {
  const texts: string[] = [];
  for (const part of parts) {
    if (!isObject(part) || part.type !== 'text' || typeof part.text !== 'string') return undefined;
    texts.push(part.text);
  }
  return texts.join('\n');
}

/**
 * The conversation by the first rule that names the model: itself where none does. A late system message becomes the user's where it
 * stands, and no part of the first one: a prompt cache knows a conversation by its beginning.
 */
function placeSystemMessages(
  messages: readonly unknown[],
  model: string,
  rules: readonly SystemRule[] = [],
): readonly unknown[] {
  const rule = rules.find(({ models }) => models === undefined || matchesAnyGlob(models, model));
  if (rule === undefined) return messages;
  const first = messages.findIndex((message) => !isSystem(message));
  // Of system messages alone the last one asks.
  const at = first < 0 ? messages.length - 1 : first;
  const leading = messages.slice(0, at).filter(isObject);
  const isJoined = rule.place === 'first' && leading.length > 1;
  return [...(isJoined ? [join(leading)] : leading), ...withoutSystem(messages.slice(at))];
}

function isSystem(message: unknown): message is JsonObject {
  return isObject(message) && (message.role === 'system' || message.role === 'developer');
}

interface Turn {
  readonly message: unknown;
  /** It was a system message, and nothing else. */
  readonly isLate: boolean;
}

/** What becomes one message of the user's: at most one of them is the user's own, and all others were system messages. */
interface Run {
  readonly messages: JsonObject[];
  /** It gives the message its other members. */
  whose: JsonObject;
  isLate: boolean;
}

/** With the user's message beside it, a late one makes one message, so that roles go on to alternate. */
function withoutSystem(messages: readonly unknown[]): readonly unknown[] {
  const runs: (Run | { readonly other: unknown })[] = [];
  for (const { message, isLate } of behindResults(messages)) {
    const last = runs.at(-1);
    if (!isUser(message)) runs.push({ other: message });
    else if (last === undefined || 'other' in last || !(last.isLate || isLate)) {
      runs.push({ messages: [message], whose: message, isLate });
    } else {
      last.messages.push(message);
      if (last.isLate) last.whose = message;
      last.isLate &&= isLate;
    }
  }
  // Joined once: at every message it would cost the square of them.
  return runs.map((run) => ('other' in run ? run.other : messageOf(run)));
}

function messageOf({ messages, whose }: Run): JsonObject {
  return messages.length === 1 ? whose : { ...whose, content: join(messages).content };
}

/** Late system messages as the user's: between a call and its results nothing else is taken, so they stand behind those. */
function behindResults(messages: readonly unknown[]): readonly Turn[] {
  const turns: Turn[] = [];
  const late: Turn[] = [];
  for (const message of messages) {
    if (isSystem(message)) late.push({ message: { ...message, role: 'user' }, isLate: true });
    else {
      const isResult = isObject(message) && message.role === 'tool';
      if (!isResult) for (const turn of late.splice(0)) turns.push(turn);
      turns.push({ message, isLate: false });
    }
  }
  return [...turns, ...late];
}

function isUser(message: unknown): message is JsonObject {
  return isObject(message) && message.role === 'user';
}

/** The first one, with the contents of all. */
function join(messages: readonly JsonObject[]): JsonObject {
  const contents = messages.map(({ content }) => content);
  const isText = contents.every((content) => typeof content === 'string');
  return { ...messages[0], content: isText ? contents.join('\n\n') : contents.flatMap(partsOf) };
}

function partsOf(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : readArray(content);
}

/** Every name under which clients send reasoning text back. */
const NAMES = ['reasoning_content', 'reasoning', 'thinking_blocks'];

/**
 * An assistant message with its reasoning in that form.
 * @param required the text for a message without reasoning, where the provider demands the field
 */
export function rewriteReasoning(message: JsonObject, form: ReasoningForm, required?: string): JsonObject {
  if (form === 'both') return withBothNames(message);
  if (form === 'thinking_parts') return withThinkingParts(message);
  const text = readReasoning(message);
  const rest = withoutThinkingParts(omit(message, ...NAMES));
  if (form === 'none') return rest;
  const sent = text ?? required ?? (typeof message[form] === 'string' ? '' : undefined);
  return sent === undefined ? rest : { ...rest, [form]: sent };
}

/** The reasoning's text, whichever name and form it has; undefined where there is none. */
function readReasoning(message: JsonObject): string | undefined {
  return (
    readText(message.reasoning_content) ??
    readText(message.reasoning) ??
    joinTexts(readArray(message.reasoning_details), ['text', 'summary']) ??
    joinTexts(readArray(message.thinking_blocks), ['thinking']) ??
    joinTexts(readArray(message.content).filter(isThinkingPart).flatMap(thoughtsOf), ['text'])
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

/** Mistral's thoughts are a list of text parts; Anthropic's are one text. */
function thoughtsOf(part: JsonObject): readonly unknown[] {
  return typeof part.thinking === 'string' ? [{ text: part.thinking }] : readArray(part.thinking);
}

function withBothNames(message: JsonObject): JsonObject {
  const text = readText(message.reasoning_content) ?? readText(message.reasoning);
  return text === undefined ? message : { ...message, reasoning: text, reasoning_content: text };
}

function withThinkingParts(message: JsonObject): JsonObject {
  const rest = omit(message, ...NAMES);
  const text = readReasoning(message);
  if (text === undefined || readArray(message.content).some(isThinkingPart)) return rest;
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text }], closed: true };
  const { content } = message;
  const answer = readText(content) === undefined ? readArray(content) : [{ type: 'text', text: content }];
  return { ...rest, content: [thinking, ...answer] };
}

function withoutThinkingParts(message: JsonObject): JsonObject {
  const parts = message.content;
  if (!Array.isArray(parts) || !parts.some(isThinkingPart)) return message;
  const rest = parts.filter((part) => !isThinkingPart(part));
  return { ...message, content: rest.length === 0 ? '' : rest };
}

/**
 * Its own by their mark, and those without one; a client may have kept the pieces of one detail apart. None where a signature lost its
 * text: they go back whole, or not at all.
 */
export function ownDetails(message: JsonObject, providerId: string): readonly JsonObject[] {
  const details = new ReasoningDetails();
  details.add(readArray(message.reasoning_details).filter(isObject));
  const own = details.list.filter(({ id }) => (readProviderTag(id)?.provider ?? providerId) === providerId);
  return hasLostText(own, message) ? [] : own;
}

/**
 * The stream helper of OpenAI's SDK keeps the last fragment of a field alone: of a signed text, the signature. Thinking that was never
 * shown has no more than that, but then its message has no other text of it.
 */
function hasLostText(details: readonly JsonObject[], message: JsonObject): boolean {
  const texts = details.filter(({ type }) => type === 'reasoning.text');
  const without = texts.filter(({ text, signature }) => readText(signature) !== undefined && !readText(text));
  if (without.some(({ id }) => isOfTextById(id))) return true;
  const hasText = readText(message.reasoning_content) ?? readText(message.reasoning);
  return without.length > 0 && without.length === texts.length && hasText !== undefined;
}

function isOfTextById(id: unknown): boolean {
  const marked = readProviderTag(id);
  return marked !== null && isOfText(marked);
}

/** The message without the details of other makers, and without those that lost their text. One that has none leaves as it came. */
export function withOwnDetails(message: JsonObject, providerId: string): JsonObject {
  const details = readArray(message.reasoning_details).filter(isObject);
  const isMarked = details.some(({ id }) => readProviderTag(id) !== null);
  if (!isMarked && !hasLostText(details, message)) return message;
  const own = ownDetails(message, providerId).map(withoutMark);
  return own.length === 0 ? omit(message, 'reasoning_details') : { ...message, reasoning_details: own };
}

/** As its provider gave it: a mark stands before an id of its own, or in the place of one. */
function withoutMark(detail: JsonObject): JsonObject {
  const marked = readProviderTag(detail.id);
  if (marked === null) return detail;
  return marked.payload === '' ? omit(detail, 'id') : { ...detail, id: marked.payload };
}

/** Where an API has signatures: on a call, or among the details of the message's reasoning. */
type SignaturePlace = 'extra_content' | 'reasoning_details';

/** https://ai.google.dev/gemini-api/docs/thought-signatures, for calls that another model made (read 2026-11-21). */
export const STAND_IN = 'skip_thought_signature_validator';

/** Who made what came with a tool call, or null where Weir did not mark it. */
export function providerOfExtra(extra: unknown): string | null {
  const weir = isObject(extra) ? extra.weir : undefined;
  return isObject(weir) ? (readText(weir.provider) ?? null) : null;
}

/**
 * A tool call with what came with it, where that is the provider's own or nobody's by its mark, which stays here.
 * @param providerId null for a provider that takes nothing of the kind
 */
function withOwnExtra(call: JsonObject, providerId: string | null): JsonObject {
  const { extra_content: extra } = call;
  const maker = providerOfExtra(extra);
  if (providerId === null || (maker ?? providerId) !== providerId) return omit(call, 'extra_content');
  return maker === null || !isObject(extra) ? call : { ...call, extra_content: omit(extra, 'weir') };
}

/** A message with tool calls: itself where it is signed or needs no signature. Of parallel calls only the first has one. */
function withSignature(message: JsonObject, place: SignaturePlace | null): JsonObject {
  const [first, ...others] = readArray(message.tool_calls);
  if (place === null || !isObject(first)) return message;
  if (place === 'extra_content') {
    if ([first, ...others].some(isSignedCall)) return message;
    const signed = { ...first, extra_content: { google: { thought_signature: STAND_IN } } };
    return { ...message, tool_calls: [signed, ...others] };
  }
  const details = readArray(message.reasoning_details);
  if (details.some(isSignedDetail)) return message;
  // The form that OpenRouter has for it: RooCodeInc/Roo-Code#10640, 2026-01-12.
  const base = { type: 'reasoning.encrypted', data: STAND_IN, format: 'google-gemini-v1', index: 0 };
  return { ...message, reasoning_details: [...details, { ...base, id: readText(first.id) }] };
}

/** Whether a conversation goes on behind a step whose reasoning is not there, or not signed. */
export function isBehindUnsignedStep(messages: readonly unknown[]): boolean {
  const all = messages.filter(isObject);
  const at = all.findLastIndex(({ role }) => role === 'assistant');
  return all[at + 1]?.role === 'tool' && !readArray(all[at]?.reasoning_details).some(isSignedDetail);
}

function isSignedCall(call: unknown): boolean {
  const extra = isObject(call) ? call.extra_content : undefined;
  const google = isObject(extra) ? extra.google : undefined;
  return isObject(google) && readText(google.thought_signature) !== undefined;
}

function isSignedDetail(detail: unknown): boolean {
  return isObject(detail) && (readText(detail.data) ?? readText(detail.signature)) !== undefined;
}
