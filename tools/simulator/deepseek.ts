/**
 * Simulates DeepSeek: JSON with spaces, `role` on every chunk, usage on the finish chunk, reasoning as `reasoning_content`, counts of cache
 * hits and misses, `: keep-alive` comments, prefix and FIM on the beta base URL only, and the current models, which think.
 *
 * Tokens (completion): deepseek-flash 19 (8 of them reasoning; 11 without thinking), deepseek-v4-pro 17 (7; 10); models of the
 * seed recordings: deepseek-chat 16, deepseek-reasoner 20 (9), FIM 11, and deepseek-chat-busy 6, which then stops with
 * `insufficient_system_resource`.
 */
import { check, MODELS, modelOf, refusal, thinks } from './deepseek-check.ts';
import { compact, type Json, type JsonObject, objectOf, objectsOf, spaced } from './json.ts';
import { chatOf, type ResponsesOptions, responsesObject, responsesStream } from './responses.ts';
import type { Call, Scene, WireEvent } from './scene.ts';
import { CREATED_SECONDS, comment, DONE, event } from './scene.ts';
import {
  costOf,
  isWords,
  joined,
  logprobEntries,
  type Piece,
  type Script,
  scriptFor,
  wordsOf,
} from './script.ts';
import { callDelta, messageCalls } from './tool-calls.ts';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'deepseek-flash': [
    ...wordsOf('reasoning', 'Gates first, then water; count each lock once.'),
    ...wordsOf('text', 'Open the lower gate last: the chamber empties, the boat leaves.'),
  ],
  'deepseek-v4-pro': [
    ...wordsOf('reasoning', 'Flow over a crest: width, height, gravity.'),
    ...wordsOf('text', 'Discharge grows with head to the power of three halves.'),
  ],
  'deepseek-chat': wordsOf(
    'text',
    'A weir holds the river back just enough that every boat may pass in turn. 🌊',
  ),
  'deepseek-reasoner': [
    ...wordsOf('reasoning', 'Seventeen is odd, and nothing up to four divides…'),
    ...wordsOf('text', 'Yes: 17 is prime, for neither 2 nor 3 divides it.'),
  ],
  'deepseek-chat-busy': wordsOf('text', 'The answer begins well, but then'),
};
const MIDDLE = wordsOf('text', '    if n < 2:\n        return n\n    previous = fib(n - 1)');

export const deepseek: Scene = {
  id: 'deepseek',
  routes: {
    '/deepseek/chat/completions': 'chat',
    '/deepseek/responses': 'responses',
    '/deepseek/beta/chat/completions': 'chat',
    '/deepseek/beta/completions': 'completions',
    '/deepseek/models': 'models',
  },
  models: MODELS,
  comment: 'keep-alive',
  streamError: {
    message: 'Insufficient resources',
    type: 'server_error',
    param: null,
    code: 'server_overloaded',
  },
  refusal,
  check,
  *stream(call) {
    yield comment('keep-alive');
    if (call.operation === 'responses') return yield* responsesStream(call, responsesOf(call));
    yield* call.operation === 'chat' ? chat(call) : fim(call);
    yield DONE;
  },
  object: (call) => {
    if (call.operation === 'responses') return compact(responsesObject(call, responsesOf(call)));
    return `\n${spaced(call.operation === 'chat' ? chatObject(call) : fimObject(call))}`;
  },
};

function responsesOf(call: Call): ResponsesOptions {
  const script = chatScript(chatOf(call));
  return { model: modelOf(call), script, hidden: 0, form: 'deepseek', callId };
}

function head(call: Call) {
  const id = call.serial.toString(16).padStart(32, '0');
  return { id, created: CREATED_SECONDS, model: modelOf(call), system_fingerprint: 'fp_sim_a49d71b8a1' };
}

/** The documentation shows `"usage": null` on the first chunk only. With `stream_options` it is on all chunks. */
function usageNull(call: Call, first: boolean): JsonObject {
  return first || objectOf(call.body.stream_options).include_usage === true ? { usage: null } : {};
}

function* chat(call: Call): Generator<WireEvent> {
  const { id, created, model, system_fingerprint } = head(call);
  const script = chatScript(call);
  const write = (
    kind: WireEvent['kind'],
    delta: JsonObject,
    finish: string | null,
    logprobs: Json,
    usage: JsonObject,
  ) => {
    const choices = [{ delta, finish_reason: finish, index: 0, logprobs }];
    const object = 'chat.completion.chunk';
    return event(kind, spaced({ choices, created, id, model, object, system_fingerprint, ...usage }));
  };
  const opening = thinks(call) ? { content: null, reasoning_content: '' } : { content: '' };
  yield write('role', { ...opening, role: 'assistant' }, null, null, usageNull(call, true));
  for (const piece of script.pieces) {
    const logprobs = call.body.logprobs === true && isWords(piece) ? entries(call, piece.text) : null;
    yield write(
      'piece',
      { ...delta(call, piece), role: 'assistant' },
      null,
      logprobs,
      usageNull(call, false),
    );
  }
  yield write('finish', { content: '', role: null }, script.finish, null, { usage: usage(call, script) });
}

/** `max_completion_tokens` is ignored, so the output has no limit: earendil-works/pi#7811, 2026-08-08. */
const LIMITS = ['max_tokens'];

function chatScript(call: Call): Script {
  const answer = ANSWERS[modelOf(call)] ?? [];
  const pieces = thinks(call) ? answer : answer.filter((piece) => piece.kind !== 'reasoning');
  const finish = call.model.endsWith('-busy') ? 'insufficient_system_resource' : 'stop';
  return scriptFor(call, pieces, { finish, limits: LIMITS });
}

function delta(call: Call, piece: Piece): JsonObject {
  if (!isWords(piece)) return callDelta(piece, callId);
  if (!thinks(call)) return { content: piece.text };
  const thought = piece.kind === 'reasoning';
  return { content: thought ? null : piece.text, reasoning_content: thought ? piece.text : null };
}

function callId(number: number): string {
  return `call_${number}_sim00000000000000000000`;
}

function entries(call: Call, text: string): JsonObject {
  return { content: logprobEntries(text, Number(call.body.top_logprobs ?? 0)) };
}

function* fim(call: Call): Generator<WireEvent> {
  const script = scriptFor(call, MIDDLE, { limits: LIMITS });
  for (const piece of script.pieces) {
    if (isWords(piece)) yield event('piece', spaced(fimChunk(call, piece.text, null)));
  }
  yield event('finish', spaced({ ...fimChunk(call, '', script.finish), usage: usage(call, script) }));
}

function fimChunk(call: Call, text: string, finish: string | null): JsonObject {
  const { created, model } = head(call);
  const choices = [{ index: 0, text, finish_reason: finish, logprobs: null }];
  return { id: `cmpl-fim-${call.serial}`, object: 'text_completion', created, model, choices };
}

function fimObject(call: Call): JsonObject {
  const script = scriptFor(call, MIDDLE, { limits: LIMITS });
  return { ...fimChunk(call, joined(script, 'text'), script.finish), usage: usage(call, script) };
}

function chatObject(call: Call): JsonObject {
  const script = chatScript(call);
  const reasoning = joined(script, 'reasoning');
  const message = {
    content: joined(script, 'text'),
    ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...messageCalls(script, callId),
    role: 'assistant',
  };
  const words = script.pieces.filter(isWords).flatMap(({ text }) => objectsOf(entries(call, text).content));
  const logprobs = call.body.logprobs === true && words.length > 0 ? { content: words } : null;
  const choices = [{ finish_reason: script.finish, index: 0, message, logprobs }];
  return { ...head(call), object: 'chat.completion', choices, usage: usage(call, script) };
}

function usage(call: Call, script: Script): JsonObject {
  const cost = costOf(call, [script]);
  const counts = { prompt_tokens: cost.prompt, completion_tokens: cost.completion, total_tokens: cost.total };
  const cache = { prompt_cache_hit_tokens: cost.cached, prompt_cache_miss_tokens: cost.prompt - cost.cached };
  // Both forms of cached tokens since 2026: R deepseek--reasoner-parallel-tools.
  const cached = { prompt_tokens_details: { cached_tokens: cost.cached } };
  const details = { completion_tokens_details: { reasoning_tokens: cost.reasoning } };
  return { ...counts, ...cached, ...cache, ...(cost.reasoning > 0 ? details : {}) };
}
