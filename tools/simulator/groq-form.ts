/**
 * Groq's wire format: `x_groq` on the first and the finish chunk, usage inside it (and in a separate chunk when requested),
 * `reasoning` with a `channel`, tool calls in one delta.
 */
import { compact, type JsonObject, objectOf } from './json.ts';
import { type Call, CREATED_SECONDS, DONE, event, type WireEvent } from './scene.ts';
import { costOf, isWords, joined, type Script } from './script.ts';
import { messageCalls } from './tool-calls.ts';

function base(call: Call, object: string) {
  const id = `chatcmpl-${String(call.serial).padStart(8, '0')}-51b0-4ab0-8000-000000000000`;
  return { id, object, created: CREATED_SECONDS, model: call.model, system_fingerprint: 'fp_sim00c37775' };
}

export function* groqStream(call: Call, script: Script): Generator<WireEvent> {
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

function callId(number: number): string {
  return `fc_sim${number}`;
}

export function groqObject(call: Call, script: Script): JsonObject {
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

/** The times are floats beside the counts, as Groq reports them. */
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
