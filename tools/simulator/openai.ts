/**
 * OpenAI: dated model names, `service_tier`, `obfuscation`, `usage: null` on each chunk when usage was requested and then
 * a chunk of its own, several choices in turn, log probabilities.
 */

import { embeddingsObject, OPENAI_FORM } from './embeddings.ts';
import { compact, type Json, type JsonObject, numberOf, objectOf, objectsOf } from './json.ts';
import { check, failure } from './openai-check.ts';
import { legacyObject, legacyStream } from './openai-legacy.ts';
import { hiddenOf, MODELS, modelOf, scriptsOf, usage } from './openai-models.ts';
import { chatOf, type ResponsesOptions, responsesObject, responsesStream } from './responses.ts';
import type { Call, Scene, WireEvent } from './scene.ts';
import { CREATED_SECONDS, DONE, event } from './scene.ts';
import { isWords, joined, logprobEntries, type Piece, scriptFor } from './script.ts';
import { callDelta, messageCalls } from './tool-calls.ts';

export const openai: Scene = {
  id: 'openai',
  routes: {
    '/openai/v1/chat/completions': 'chat',
    '/openai/v1/responses': 'responses',
    '/openai/v1/completions': 'completions',
    '/openai/v1/embeddings': 'embeddings',
    '/openai/v1/models': 'models',
  },
  models: Object.keys(MODELS),
  embeddingModels: ['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002'],
  comment: 'ping',
  streamError: { message: 'The server had an error', type: 'server_error', param: null, code: null },
  refusal: (status, message) => failure(status, message, null, status === 401 ? 'invalid_api_key' : null),
  check,
  *stream(call) {
    // It has an ending of its own, and no `[DONE]`: R openai--responses-text.
    if (call.operation === 'responses') return yield* responsesStream(call, responsesOf(call));
    yield* call.operation === 'chat' ? chat(call) : legacyStream(call);
    yield DONE;
  },
  object: (call) => {
    if (call.operation === 'embeddings') return compact(embeddingsObject(call, OPENAI_FORM));
    if (call.operation === 'responses') return compact(responsesObject(call, responsesOf(call)));
    return compact(call.operation === 'chat' ? chatObject(call) : legacyObject(call));
  },
};

function responsesOf(call: Call): ResponsesOptions {
  const { dated, pieces } = modelOf(call);
  const hidden = hiddenOf(call);
  const isShown = hidden > 0 && objectOf(call.body.reasoning).summary === 'auto';
  const shown = pieces.filter(({ kind }) => isShown || kind !== 'reasoning');
  return { model: dated, script: scriptFor(chatOf(call), shown), hidden, form: 'openai', callId };
}

function base(call: Call, object: string): JsonObject {
  const id = `chatcmpl-Sim${String(call.serial).padStart(26, '0')}`;
  const tier = { service_tier: 'default', system_fingerprint: 'fp_sim86f87dc6' };
  return { id, object, created: CREATED_SECONDS, model: modelOf(call).dated, ...tier };
}

function* chat(call: Call): Generator<WireEvent> {
  const scripts = scriptsOf(call);
  const options = objectOf(call.body.stream_options);
  const usageNull = options.include_usage === true ? { usage: null } : {};
  const hide = options.include_obfuscation !== false;
  let events = 0;
  const write = (kind: WireEvent['kind'], rest: JsonObject) => {
    const obfuscation = hide ? { obfuscation: 'q0Zx7Lm2vB4tYw9c'.slice(0, (events++ * 7) % 17) } : {};
    return event(kind, compact({ ...base(call, 'chat.completion.chunk'), ...rest, ...obfuscation }));
  };
  const choice = (index: number, delta: JsonObject, logprobs: Json, finish_reason: string | null) => ({
    choices: [{ index, delta, logprobs, finish_reason }],
    ...usageNull,
  });
  for (const [index, script] of scripts.entries()) {
    const content = script.finish === 'tool_calls' ? null : '';
    yield write('role', choice(index, { role: 'assistant', content, refusal: null }, null, null));
  }
  for (const [at] of (scripts[0]?.pieces ?? []).entries()) {
    for (const [index, script] of scripts.entries()) {
      const piece = script.pieces[at];
      if (piece) yield write('piece', choice(index, deltaOf(piece), logprobs(call, piece), null));
    }
  }
  for (const [index, script] of scripts.entries())
    yield write('finish', choice(index, {}, null, script.finish));
  if (options.include_usage === true) yield write('usage', { choices: [], usage: usage(call, scripts) });
}

function deltaOf(piece: Piece): JsonObject {
  return isWords(piece) ? { content: piece.text } : callDelta(piece, callId);
}

function callId(number: number): string {
  return `call_sim${String(number).padStart(21, '0')}`;
}

function logprobs(call: Call, piece: Piece): JsonObject | null {
  if (call.body.logprobs !== true || piece.kind !== 'text') return null;
  return { content: logprobEntries(piece.text, numberOf(call.body.top_logprobs) ?? 0), refusal: null };
}

function chatObject(call: Call): JsonObject {
  const scripts = scriptsOf(call);
  const choices = scripts.map((script, index) => {
    const content = joined(script, 'text') || null;
    const message = { role: 'assistant', content, ...messageCalls(script, callId), refusal: null };
    const entries = script.pieces.flatMap((piece) => objectsOf(logprobs(call, piece)?.content));
    const whole = entries.length > 0 ? { content: entries, refusal: null } : null;
    return { index, message, logprobs: whole, finish_reason: script.finish };
  });
  return { ...base(call, 'chat.completion'), choices, usage: usage(call, scripts) };
}
