/**
 * Simulates OpenToken, as its streaming page documents: plain OpenAI chunks, first a role without content, and always a usage chunk,
 * even without `stream_options`.
 *
 * Tokens (completion): google/gemini-3-flash 10, google/gemini-3-pro 7 shown and 24 hidden thinking tokens, so 31.
 */
import { compact, type JsonObject } from './json.ts';
import type { Call, Refusal, Scene, WireEvent } from './scene.ts';
import { CREATED_SECONDS, DONE, event, openaiRefusal } from './scene.ts';
import { costOf, isWords, joined, type Piece, type Script, scriptFor, wordsOf } from './script.ts';
import { callDelta, messageCalls } from './tool-calls.ts';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'google/gemini-3-flash': wordsOf('text', 'Packets in flight, each with its blank line behind it.'),
  'google/gemini-3-pro': wordsOf('text', 'Thought over in silence: 水門 stays open.'),
};
const HIDDEN_THINKING_TOKENS = 24;

export const opentoken: Scene = {
  id: 'opentoken',
  routes: { '/opentoken/v1/chat/completions': 'chat', '/opentoken/v1/models': 'models' },
  models: Object.keys(ANSWERS),
  comment: 'ping',
  streamError: { message: 'The provider failed midway', type: 'api_error', code: 'provider_error' },
  refusal,
  check,
  stream,
  object: (call) => compact(object(call)),
};

function refusal(status: number, message: string): Refusal {
  const types: Readonly<Record<number, string>> = { 401: 'authentication_error', 429: 'rate_limit_error' };
  const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return openaiRefusal(status, { message, type, code: status === 401 ? 'invalid_api_key' : null });
}

function check(call: Call): Refusal | undefined {
  if (!Array.isArray(call.body.messages)) return refusal(400, '`messages` is required');
  return call.model in ANSWERS ? undefined : refusal(404, `Unknown model: ${call.model}`);
}

function base(call: Call, object: string) {
  return { id: `chatcmpl-${call.serial}`, object, created: CREATED_SECONDS, model: call.model };
}

function* stream(call: Call): Generator<WireEvent> {
  const script = scriptFor(call, ANSWERS[call.model] ?? []);
  const write = (kind: WireEvent['kind'], delta: JsonObject, finish: string | null) => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    return event(kind, compact({ ...base(call, 'chat.completion.chunk'), choices }));
  };
  yield write('role', { role: 'assistant' }, null);
  for (const piece of script.pieces) yield write('piece', delta(piece), null);
  yield write('finish', {}, script.finish);
  const counts = { choices: [], usage: usage(call, script) };
  yield event('usage', compact({ ...base(call, 'chat.completion.chunk'), ...counts }));
  yield DONE;
}

function delta(piece: Piece): JsonObject {
  return isWords(piece) ? { content: piece.text } : callDelta(piece, callId);
}

function callId(number: number): string {
  return `call_ot_${number}`;
}

function object(call: Call): JsonObject {
  const script = scriptFor(call, ANSWERS[call.model] ?? []);
  const message = {
    role: 'assistant',
    content: joined(script, 'text') || null,
    ...messageCalls(script, callId),
  };
  const choices = [{ index: 0, message, finish_reason: script.finish }];
  return { ...base(call, 'chat.completion'), choices, usage: usage(call, script) };
}

function usage(call: Call, script: Script): JsonObject {
  const hidden = call.model === 'google/gemini-3-pro' ? HIDDEN_THINKING_TOKENS : 0;
  const cost = costOf(call, [script], hidden);
  return {
    prompt_tokens: cost.prompt,
    completion_tokens: cost.completion,
    total_tokens: cost.total,
    prompt_tokens_details: { cached_tokens: cost.cached },
    completion_tokens_details: { reasoning_tokens: cost.reasoning },
  };
}
