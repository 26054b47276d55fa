/** A strict simulated chat provider that rejects the requests that its provider's table declares as rejected. */

import type { RequestRules } from '../../src/request-translation/rules.ts';
import { type JsonObject as Body, isObject, readArray, readText } from '../../src/shared/json.ts';
import { compact, type JsonObject, objectOf, objectsOf } from './json.ts';
import {
  type Call,
  CREATED_SECONDS,
  chatRoutes,
  DONE,
  errorType,
  event,
  openaiRefusal,
  type Refusal,
  type Scene,
  type WireEvent,
} from './scene.ts';
import { costOf, isWords, joined, type Piece, type Script, scriptFor } from './script.ts';
import { callDelta, messageCalls } from './tool-calls.ts';

/** The reason for which a provider with this table rejects a body, or undefined. */
export function tableRefusal(rules: RequestRules, body: Body): string | undefined {
  for (const [field, rule] of Object.entries(rules.fields)) {
    if (body[field] === undefined) continue;
    if (rule.kind === 'renamed') return `Unknown field \`${field}\`: it is \`${rule.to}\` here`;
    const holds = rule.kind === 'refused' && (rule.when?.(body) ?? true);
    if (holds) return `Unknown field \`${field}\``;
  }
  return readArray(body.messages)
    .filter(isObject)
    .map((message) => messageRefusal(rules, message))
    .find((reason) => reason !== undefined);
}

function messageRefusal({ messages }: RequestRules, message: Body): string | undefined {
  const { roles = {}, refused = [], closed, needsContent, joinsText = [] } = messages;
  const role = readText(message.role) ?? '';
  if (Object.hasOwn(roles, role)) return `Unknown role \`${role}\`: it is \`${roles[role]}\` here`;
  const known = closed?.roles[role];
  const unknown = Object.keys(message).find(
    (key) => refused.includes(key) || (known !== undefined && !known.includes(key)),
  );
  if (unknown !== undefined) return `Unknown key \`${unknown}\` in a message of ${role}`;
  if (joinsText.includes(role) && Array.isArray(message.content))
    return `The content of ${role} must be a text`;
  if (needsContent && role === 'assistant' && message.content === undefined) return '`content` is missing';
  const forms = messages.reasoning.filter(({ models, when }) => models === undefined && when === undefined);
  return forms[0]?.form === 'none' && (message.reasoning ?? message.reasoning_content) !== undefined
    ? 'Reasoning is not taken back'
    : undefined;
}

interface TableSceneOptions {
  readonly id: string;
  /** The provider's table. */
  readonly rules: RequestRules;
  /** The output of each model. */
  readonly answers: Readonly<Record<string, readonly Piece[]>>;
  /** The field that limits the output. */
  readonly limit: string;
}

/**
 * Sends plain OpenAI chunks below `/<id>/v1`, usage as the table says, and OpenAI's error texts.
 * @public the rows of `npm run new-provider` use it
 */
export function tableScene({ id, rules, answers, limit }: TableSceneOptions): Scene {
  const scriptOf = (call: Call): Script => scriptFor(call, answers[call.model] ?? [], { limits: [limit] });
  const callId = (number: number) => `call_${id}_${number}`;
  const base = (call: Call, object: string) => {
    return { id: `chatcmpl-${call.serial}`, object, created: CREATED_SECONDS, model: call.model };
  };
  const refusal = (status: number, message: string): Refusal => {
    return openaiRefusal(status, { message, type: errorType(status), code: null });
  };
  function* stream(call: Call): Generator<WireEvent> {
    const script = scriptOf(call);
    const write = (kind: WireEvent['kind'], delta: JsonObject, finish_reason: string | null = null) => {
      const choices = [{ index: 0, delta, finish_reason }];
      return event(kind, compact({ ...base(call, 'chat.completion.chunk'), choices }));
    };
    yield write('role', { role: 'assistant', content: '' });
    for (const piece of script.pieces) {
      yield write('piece', isWords(piece) ? { content: piece.text } : callDelta(piece, callId));
    }
    yield write('finish', {}, script.finish);
    if (rules.streamUsage === 'always' || objectOf(call.body.stream_options).include_usage === true) {
      const chunk = { ...base(call, 'chat.completion.chunk'), choices: [], usage: usageOf(call, script) };
      yield event('usage', compact(chunk));
    }
    yield DONE;
  }
  return {
    id,
    routes: chatRoutes(id),
    models: Object.keys(answers),
    comment: 'ping',
    streamError: { message: 'The provider failed midway', type: 'api_error', code: 'provider_error' },
    refusal,
    check: (call) => {
      if (objectsOf(call.body.messages).length === 0) return refusal(400, '`messages` is required');
      if (!(call.model in answers)) return refusal(404, `Unknown model: ${call.model}`);
      const reason = tableRefusal(rules, call.body);
      return reason === undefined ? undefined : refusal(400, reason);
    },
    stream,
    object: (call) => {
      const script = scriptOf(call);
      const content = joined(script, 'text') || null;
      const message = { role: 'assistant', content, ...messageCalls(script, callId) };
      const choices = [{ index: 0, message, finish_reason: script.finish }];
      return compact({ ...base(call, 'chat.completion'), choices, usage: usageOf(call, script) });
    },
  };
}

function usageOf(call: Call, script: Script): JsonObject {
  const { prompt, completion, total } = costOf(call, [script]);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total };
}
