/**
 * An OpenAI-compatible provider with Groq's specifics: `x_groq` on the first and the finish chunk, usage inside
 * it (and in a chunk of its own when requested), `reasoning` with a `channel`, a whole tool call in one delta.
 *
 * Tokens (completion): llama-3.3-70b-versatile 10, openai/gpt-oss-20b 14 (8 of them reasoning).
 */
import { compact, type JsonObject, objectOf, objectsOf } from './json.ts';
import type { Call, Refusal, Scene, WireEvent } from './scene.ts';
import { CREATED_SECONDS, DONE, errorType, event, openaiRefusal } from './scene.ts';
import { costOf, isWords, joined, type Piece, type Script, scriptFor, wordsOf } from './script.ts';
import { messageCalls } from './tool-calls.ts';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'llama-3.3-70b-versatile': wordsOf(
    'text',
    'Fast water, same river: compatible is as compatible does, señor.',
  ),
  'openai/gpt-oss-20b': [
    ...wordsOf('reasoning', 'They ask for the shortest path; count edges.'),
    ...wordsOf('text', 'Three edges, through the second lock.'),
  ],
};

export const compatible: Scene = {
  id: 'compatible',
  routes: { '/compatible/v1/chat/completions': 'chat', '/compatible/v1/models': 'models' },
  models: Object.keys(ANSWERS),
  comment: 'ping',
  streamError: { message: 'Over capacity', type: 'internal_server_error', code: 'over_capacity' },
  refusal,
  check,
  stream,
  object: (call) => compact(object(call)),
};

function refusal(status: number, message: string): Refusal {
  const code = status === 401 ? { code: 'invalid_api_key' } : {};
  return openaiRefusal(status, { message, type: errorType(status), ...code });
}

function check(call: Call): Refusal | undefined {
  if (objectsOf(call.body.messages).length === 0)
    return refusal(400, "'messages' : minimum number of items is 1");
  if (call.body.logprobs) return refusal(400, 'property logprobs is unsupported');
  if (call.body.n !== undefined && call.body.n !== 1) return refusal(400, "'n' : number must be at most 1");
  return call.model in ANSWERS ? undefined : refusal(404, `The model \`${call.model}\` does not exist`);
}

function base(call: Call, object: string) {
  const id = `chatcmpl-${String(call.serial).padStart(8, '0')}-51b0-4ab0-8000-000000000000`;
  return { id, object, created: CREATED_SECONDS, model: call.model, system_fingerprint: 'fp_sim00c37775' };
}

function* stream(call: Call): Generator<WireEvent> {
  const script = scriptFor(call, ANSWERS[call.model] ?? []);
  const id = `req_sim${call.serial}`;
  const write = (kind: WireEvent['kind'], delta: JsonObject, finish: string | null, extra: JsonObject) => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return event(kind, compact({ ...base(call, 'chat.completion.chunk'), choices, ...extra }));
  };
  yield write('role', { role: 'assistant', content: '' }, null, { x_groq: { id, seed: call.serial } });
  for (const piece of script.pieces) {
    if (isWords(piece)) yield write('piece', delta(piece.kind, piece.text), null, {});
  }
  const calls = messageCalls(script, callId).tool_calls?.map((toolCall, index) => ({ ...toolCall, index }));
  if (calls) yield write('piece', { tool_calls: calls }, null, {});
  yield write('finish', {}, script.finish, { x_groq: { id, usage: usage(call, script) } });
  if (objectOf(call.body.stream_options).include_usage === true) {
    const counts = { choices: [], usage: usage(call, script), service_tier: 'on_demand' };
    yield event('usage', compact({ ...base(call, 'chat.completion.chunk'), ...counts }));
  }
  yield DONE;
}

function delta(kind: string, text: string): JsonObject {
  return kind === 'reasoning' ? { reasoning: text, channel: 'analysis' } : { content: text };
}

function callId(index: number): string {
  return `fc_sim${index}`;
}

function object(call: Call): JsonObject {
  const script = scriptFor(call, ANSWERS[call.model] ?? []);
  const reasoning = joined(script, 'reasoning');
  const text = joined(script, 'text');
  const message = {
    role: 'assistant',
    ...(text ? { content: text } : {}),
    ...(reasoning ? { reasoning } : {}),
    ...messageCalls(script, callId),
  };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: script.finish }];
  const x_groq = { id: `req_sim${call.serial}` };
  return { ...base(call, 'chat.completion'), choices, usage: usage(call, script), x_groq };
}

/** The times are floats beside the counts, as this provider reports them. */
function usage(call: Call, script: Script): JsonObject {
  const cost = costOf(call, [script]);
  return {
    queue_time: 0.125,
    prompt_tokens: cost.prompt,
    prompt_time: 0.0107,
    completion_tokens: cost.completion,
    completion_time: 0.0903,
    total_tokens: cost.total,
    total_time: 0.101,
    ...(cost.reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: cost.reasoning } } : {}),
  };
}
