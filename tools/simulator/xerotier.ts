/**
 * Simulates Xerotier, as its streaming page documents: every key always present, vendor events inline, refusals, log probabilities,
 * `: heartbeat` comments, usage on the finish chunk and only when requested.
 *
 * A message that contains "research" or "deep think" causes those events on any model; the models with these names always send them.
 * Tokens (completion): llama-3.1-8b 13, llama-3.1-8b-refusal 9. Research adds four vendor events; deep think adds
 * six, whose subtasks report 200 input and 75 output tokens beside the usage.
 */
import { compact, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import type { Call, Refusal, Scene, WireEvent } from './scene.ts';
import { CREATED_SECONDS, comment, DONE, errorType, event, openaiRefusal } from './scene.ts';
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

const ANSWER = wordsOf('text', 'A fixed weir needs no keeper; a movable one needs a good one.');
const REFUSAL = wordsOf('refusal', "I'm sorry, but I cannot help with that request.");
const MODELS = ['llama-3.1-8b', 'llama-3.1-8b-research', 'llama-3.1-8b-deep-think', 'llama-3.1-8b-refusal'];
const BASE = '/xerotier/proj_ABC123/my-endpoint/v1';

const RESEARCH: readonly JsonObject[] = [
  { type: 'x_research.searching', name: 'web_search', arguments: '{"query":"movable weir"}' },
  { type: 'x_research.reading', name: 'fetch_url', arguments: '{"url":"https://example.org/weirs"}' },
  {
    type: 'x_research.result',
    name: 'fetch_url',
    arguments: '{}',
    metadata: { summary: 'Three kinds of weir – see §2' },
  },
  { type: 'x_research.gap_analysis' },
];
const DEEP_THINK: readonly JsonObject[] = [
  { type: 'x_deep_think.planning_started' },
  { type: 'x_deep_think.plan_created', title: 'Weirs and their keepers', total_subtasks: 2 },
  {
    type: 'x_deep_think.subtask_started',
    subtask_id: 'st_1',
    subtask_index: 0,
    subtask_query: 'fixed',
    total_subtasks: 2,
  },
  { type: 'x_deep_think.subtask_completed', subtask_index: 0, input_tokens: 120, output_tokens: 45 },
  { type: 'x_deep_think.subtask_completed', subtask_index: 1, input_tokens: 80, output_tokens: 30 },
  { type: 'x_deep_think.synthesizing' },
];

export const xerotier: Scene = {
  id: 'xerotier',
  routes: { [`${BASE}/chat/completions`]: 'chat', [`${BASE}/models`]: 'models' },
  models: MODELS,
  comment: 'heartbeat',
  streamError: {
    message: 'Request timed out after 30s. Your Free tier has a 30-second timeout limit.',
    type: 'timeout_error',
    code: 'timeout',
  },
  refusal,
  check,
  stream,
  object: (call) => compact(object(call)),
};

function refusal(status: number, message: string): Refusal {
  const code = status === 401 ? 'invalid_api_key' : status === 404 ? 'model_not_found' : null;
  return openaiRefusal(status, { message, type: errorType(status), param: null, code });
}

function check(call: Call): Refusal | undefined {
  if (objectsOf(call.body.messages).length === 0) return refusal(400, 'messages must not be empty');
  return MODELS.includes(call.model) ? undefined : refusal(404, `Model ${call.model} is not served here`);
}

/** Vendor events come between the role and the text. */
function vendorEvents(call: Call): readonly JsonObject[] {
  const prompt = objectsOf(call.body.messages)
    .map((message) => textOf(message.content))
    .join(' ');
  if (call.model.endsWith('-deep-think') || /deep think/i.test(prompt)) return DEEP_THINK;
  return call.model.endsWith('-research') || /research/i.test(prompt) ? RESEARCH : [];
}

function scriptOf(call: Call): Script {
  return scriptFor(call, call.model.endsWith('-refusal') ? REFUSAL : ANSWER);
}

function base(call: Call, object: string) {
  const id = `chatcmpl-xero${String(call.serial).padStart(6, '0')}`;
  const constant = { service_tier: null, system_fingerprint: null };
  return { id, object, created: CREATED_SECONDS, model: call.model, ...constant };
}

function* stream(call: Call): Generator<WireEvent> {
  const script = scriptOf(call);
  const askedForUsage = objectOf(call.body.stream_options).include_usage === true;
  const write = (kind: WireEvent['kind'], delta: JsonObject, finish: string | null, logprobs: Json) => {
    const choices = [{ index: 0, delta, logprobs, finish_reason: finish }];
    const counts = kind === 'finish' && askedForUsage ? usage(call, script) : null;
    return event(kind, compact({ ...base(call, 'chat.completion.chunk'), choices, usage: counts }));
  };
  const calling = script.pieces[0]?.kind === 'call';
  if (!calling) yield write('role', { role: 'assistant', content: '' }, null, null);
  for (const vendor of vendorEvents(call)) yield event('vendor', compact(vendor));
  yield comment('heartbeat');
  for (const [at, piece] of script.pieces.entries()) {
    const delta = at === 0 && calling ? { role: 'assistant', ...deltaOf(piece) } : deltaOf(piece);
    yield write('piece', delta, null, logprobs(call, piece));
  }
  yield write('finish', {}, script.finish, null);
  yield DONE;
}

function deltaOf(piece: Piece): JsonObject {
  if (!isWords(piece)) return callDelta(piece, callId);
  return piece.kind === 'refusal' ? { refusal: piece.text } : { content: piece.text };
}

function callId(number: number): string {
  return `call_x${number}`;
}

function logprobs(call: Call, piece: Piece): JsonObject | null {
  if (call.body.logprobs !== true || !isWords(piece)) return null;
  const entries = logprobEntries(piece.text, Number(call.body.top_logprobs ?? 0));
  return piece.kind === 'refusal' ? { content: null, refusal: entries } : { content: entries, refusal: null };
}

function object(call: Call): JsonObject {
  const script = scriptOf(call);
  const message = {
    role: 'assistant',
    content: joined(script, 'text') || null,
    refusal: joined(script, 'refusal') || null,
    ...messageCalls(script, callId),
  };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: script.finish }];
  return { ...base(call, 'chat.completion'), choices, usage: usage(call, script) };
}

function usage(call: Call, script: Script): JsonObject {
  const cost = costOf(call, [script]);
  return {
    prompt_tokens: cost.prompt,
    completion_tokens: cost.completion,
    total_tokens: cost.total,
    prompt_tokens_details: { cached_tokens: cost.cached, audio_tokens: null },
    completion_tokens_details: {
      reasoning_tokens: null,
      audio_tokens: null,
      accepted_prediction_tokens: null,
      rejected_prediction_tokens: null,
    },
  };
}
