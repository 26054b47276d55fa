/**
 * Simulates OpenRouter (2026-11-21): ignores unknown fields and sends reasoning as `reasoning` and as `reasoning_details`, which the models
 * of Google and Anthropic sign. The upstream provider rejects a step of a tool loop without the details of earlier steps.
 *
 * Tokens (completion): google/gemini-3-flash-preview 15 (6 of them reasoning), anthropic/claude-haiku-4.5 9 (14 with 5
 * of reasoning on request), moonshotai/kimi-k2.5 13 (5, unsigned).
 */
import { compact, type JsonObject } from './json.ts';
import { callId, check, isQuiet, MODELS, refusal, signatureOf } from './openrouter-check.ts';
import {
  type Call,
  CREATED_SECONDS,
  chatRoutes,
  comment,
  DONE,
  event,
  type Scene,
  type WireEvent,
} from './scene.ts';
import { costOf, isWords, joined, type Script, scriptFor, wholeCalls } from './script.ts';
import { callDelta, messageCalls } from './tool-calls.ts';

export const openrouter: Scene = {
  id: 'openrouter',
  routes: chatRoutes('openrouter'),
  models: Object.keys(MODELS),
  comment: 'OPENROUTER PROCESSING',
  streamError: { message: 'Provider disconnected', code: 502 },
  refusal,
  check,
  stream,
  object: (call) => compact(object(call)),
};

function scriptOf(call: Call): Script {
  const answer = MODELS[call.model]?.answer ?? [];
  return scriptFor(call, isQuiet(call) ? answer.filter((piece) => piece.kind !== 'reasoning') : answer);
}

/** After the texts: Gemini sends the signature in a separate detail with the same index; Claude adds it to the existing detail. */
function lastDetail(call: Call, script: Script): JsonObject | undefined {
  const format = MODELS[call.model]?.format ?? '';
  const number = wholeCalls(script)[0]?.number;
  const id = number === undefined ? '' : callId(number);
  const base = { format, index: 0 };
  if (format === 'google-gemini-v1') {
    // Only calls are signed; R openrouter--gemini-tool-call, 2026-04.
    const data = signatureOf(call.model, id, '');
    return id ? { type: 'reasoning.encrypted', data, ...base, id } : undefined;
  }
  const text = joined(script, 'reasoning');
  if (format === 'unknown' || text === '') return undefined;
  return { type: 'reasoning.text', signature: signatureOf(call.model, id, text), ...base };
}

function head(call: Call, name: string) {
  const { provider = '' } = MODELS[call.model] ?? {};
  const id = `gen-${CREATED_SECONDS}-sim${String(call.serial).padStart(17, '0')}`;
  return { id, object: name, created: CREATED_SECONDS, model: call.model, provider };
}

/** R openrouter--kimi-reasoning and --gemini-tool-call, 2026-04: the role is on every chunk, and the usage chunk repeats the finish. */
function* stream(call: Call): Generator<WireEvent> {
  const script = scriptOf(call);
  const format = MODELS[call.model]?.format ?? '';
  const write = (
    kind: WireEvent['kind'],
    delta: JsonObject,
    finish: string | null,
    extra: JsonObject = {},
  ) => {
    const reasons = { finish_reason: finish, native_finish_reason: finish };
    const choices = [{ index: 0, delta: { role: 'assistant', ...delta }, ...reasons }];
    return event(kind, compact({ ...head(call, 'chat.completion.chunk'), choices, ...extra }));
  };
  const thought = script.pieces.filter(isWords).filter((piece) => piece.kind === 'reasoning');
  yield comment('OPENROUTER PROCESSING');
  yield write('role', { content: '' }, null);
  for (const { text } of thought) {
    const reasoning_details = [{ type: 'reasoning.text', text, format, index: 0 }];
    yield write('piece', { content: '', reasoning: text, reasoning_details }, null);
  }
  const last = lastDetail(call, script);
  if (last) yield write('piece', { content: '', reasoning: null, reasoning_details: [last] }, null);
  for (const piece of script.pieces.slice(thought.length)) {
    const delta = isWords(piece) ? { content: piece.text } : { content: null, ...callDelta(piece, callId) };
    yield write('piece', delta, null);
  }
  yield write('finish', { content: '', reasoning: null }, script.finish);
  // Sent always: `include_usage` is deprecated and has no effect (docs chatstreamoptions.md, 2026-08).
  yield write('usage', { content: '' }, script.finish, { usage: usage(call, script) });
  yield DONE;
}

function object(call: Call): JsonObject {
  const script = scriptOf(call);
  const format = MODELS[call.model]?.format ?? '';
  const reasoning = joined(script, 'reasoning');
  const last = lastDetail(call, script);
  const text: JsonObject = { type: 'reasoning.text', text: reasoning, format, index: 0 };
  const merged = last?.type === 'reasoning.text' ? [{ ...text, ...last }] : [text, ...(last ? [last] : [])];
  const reasoning_details = reasoning ? merged : last ? [last] : [];
  const message = {
    role: 'assistant',
    content: joined(script, 'text'),
    refusal: null,
    reasoning: reasoning || null,
    ...messageCalls(script, callId),
    reasoning_details,
  };
  const reasons = { finish_reason: script.finish, native_finish_reason: script.finish };
  const choices = [{ logprobs: null, ...reasons, index: 0, message }];
  return { ...head(call, 'chat.completion'), choices, usage: usage(call, script) };
}

function usage(call: Call, script: Script): JsonObject {
  const cost = costOf(call, [script]);
  return {
    prompt_tokens: cost.prompt,
    completion_tokens: cost.completion,
    total_tokens: cost.total,
    cost: 0.00004025,
    is_byok: false,
    prompt_tokens_details: { cached_tokens: cost.cached, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: cost.reasoning },
  };
}
