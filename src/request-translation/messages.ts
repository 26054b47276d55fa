/** Rewrites a conversation, message by message, into what the provider takes (Q1-Q5). */

import { toolCallId } from '../canonical/tool-call-id.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { keepEntries, omit, ownValue } from '../shared/objects.ts';
import { hasItems, isFromAnswer } from './openai-fields.ts';
import { rewriteReasoning } from './reasoning.ts';
import { withOwnDetails } from './reasoning-details.ts';
import type { MessageRules, ReasoningForm } from './rules.ts';
import { type SignaturePlace, withOwnExtra, withSignature } from './signatures.ts';
import { placeSystemMessages } from './system-messages.ts';
import type { TranslationReport } from './translation-report.ts';

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
