/**
 * xAI as it is today (2026-11-21): unknown fields are ignored, known ones that a model does not have are refused, a bad key is 400,
 * reasoning is `reasoning_content` in both directions. `L` below are live notes of 2026-09-12.
 *
 * Tokens (completion): grok-4.3 8, and 7 of reasoning that come on top of them in the total; grok-4.5 5 and 3; grok-4.6 9 and 6; grok-4.7
 * 6 and 4; grok-4.20 7.
 */
import { compact, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { chatOf, ENCRYPTED, type ResponsesOptions, responsesObject, responsesStream } from './responses.ts';
import {
  type Call,
  CREATED_SECONDS,
  chatRoutes,
  DONE,
  event,
  type Refusal,
  type Scene,
  type WireEvent,
} from './scene.ts';
import { costOf, isWords, joined, type Piece, type Script, scriptFor, wordsOf } from './script.ts';
import { messageCalls, unknownChoice } from './tool-calls.ts';

interface Model {
  readonly answer: readonly Piece[];
  readonly efforts: readonly string[];
  readonly stops: boolean;
}
/** Efforts: pydantic-ai profiles/grok.py, ai/xai, L; `stop`: L. */
const MODELS: Readonly<Record<string, Model>> = {
  'grok-4.3': {
    answer: [
      ...wordsOf('reasoning', 'Water seeks level; so does the question.'),
      ...wordsOf('text', 'It holds the river up, politely, forever.'),
    ],
    efforts: ['none', 'low', 'medium', 'high'],
    stops: true,
  },
  'grok-4.6': {
    answer: [
      ...wordsOf('reasoning', 'They mean the small weir, surely.'),
      ...wordsOf('text', 'A step in the river that counts every drop.'),
    ],
    efforts: ['low', 'medium', 'high', 'xhigh'],
    stops: false,
  },
  // Reasoning cannot be off: docs.x.ai/developers/model-capabilities/text/reasoning, by anomalyco/models.dev#3110 (2026-07-08).
  'grok-4.5': {
    answer: [
      ...wordsOf('reasoning', 'Always some thought.'),
      ...wordsOf('text', 'Never quite still, the water.'),
    ],
    efforts: ['low', 'medium', 'high'],
    stops: false,
  },
  // farion1231/cc-switch#7584, 2026-09-22, from the same page.
  'grok-4.7': {
    answer: [
      ...wordsOf('reasoning', 'Weigh it once more.'),
      ...wordsOf('text', 'It carries what the river brings.'),
    ],
    efforts: ['low', 'medium', 'high', 'xhigh'],
    stops: false,
  },
  'grok-4.20': {
    answer: wordsOf('text', 'No thoughts here, only water and stone.'),
    efforts: [],
    stops: true,
  },
};

/** Penalties even as 0: L, uni-api#105; `metadata`: Open-WebUI-OpenRouter-pipe#62, 2026-09-21. */
const NOT_SUPPORTED = ['presence_penalty', 'frequency_penalty', 'metadata'];
/** 410 since live search ended: L. */
const GONE = ['web_search_options', 'search_parameters'];

export const xai: Scene = {
  id: 'xai',
  routes: { ...chatRoutes('xai'), '/xai/v1/responses': 'responses' },
  models: Object.keys(MODELS),
  comment: 'ping',
  streamError: { message: 'Internal error', type: 'server_error', code: 'internal' },
  refusal: (status, message) => refusal(status, message),
  // R xai--refused-bad-key.
  badKey: refusal(
    400,
    'Incorrect API key provided. You can obtain an API key from https://console.x.ai.',
    'invalid-argument',
  ),
  check: (call) => (call.operation === 'responses' ? checkResponses(call) : check(call)),
  stream: (call) =>
    call.operation === 'responses' ? responsesStream(call, responsesOf(call)) : stream(call),
  object: (call) =>
    compact(call.operation === 'responses' ? responsesObject(call, responsesOf(call)) : object(call)),
};

/** Its summary comes whether it is requested or not: @ai-sdk/xai 5.0.12 (2026-09-28). */
function responsesOf(call: Call): ResponsesOptions {
  const { effort = null } = objectOf(call.body.reasoning);
  const quiet = { ...call, body: { ...chatOf(call).body, reasoning_effort: effort } };
  return { model: call.model, script: scriptOf(quiet), hidden: 0, form: 'xai', callId };
}

function checkResponses(call: Call): Refusal | undefined {
  const { body } = call;
  const effort = objectOf(body.reasoning).effort;
  const request = {
    ...call,
    body: { ...body, messages: [{}], ...(effort === undefined ? {} : { reasoning_effort: effort }) },
  };
  const altered = objectsOf(body.input).some(
    ({ type, encrypted_content }) => type === 'reasoning' && !ENCRYPTED.test(textOf(encrypted_content)),
  );
  // Stored index, three reports of 2026-06 to 2026-09 without a thread's name.
  const words =
    'Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response.';
  return check(request) ?? (altered ? refusal(400, words, 'invalid-argument') : undefined);
}

function refusal(status: number, error: string, code = 'Client specified an invalid argument'): Refusal {
  return { status, body: compact({ code, error }) };
}

function check(call: Call): Refusal | undefined {
  const { body } = call;
  const model = MODELS[call.model];
  if (!model) return refusal(404, `The model ${call.model} does not exist or your team has no access to it.`);
  if (objectsOf(body.messages).length === 0) return refusal(400, 'Empty messages.', 'invalid-argument');
  const given = (name: string) => body[name] !== undefined && body[name] !== null;
  const gone = GONE.find(given);
  if (gone !== undefined) return refusal(410, 'Live search is deprecated.', 'gone');
  // Its types know no other word, and no empty stop.
  if (unknownChoice(body.tool_choice) !== undefined) return notSupported('tool_choice');
  if (body.stop === '') return notSupported('stop');
  const unsupported = NOT_SUPPORTED.find(given) ?? (given('stop') && !model.stops ? 'stop' : undefined);
  if (unsupported !== undefined) return notSupported(unsupported);
  const effort = given('reasoning_effort') ? textOf(body.reasoning_effort) : undefined;
  return effort === undefined || model.efforts.includes(effort)
    ? undefined
    : notSupported('reasoning_effort');
}

function notSupported(name: string): Refusal {
  return refusal(400, `Argument not supported: ${name}`, 'invalid-argument');
}

function scriptOf(call: Call): Script {
  const answer = MODELS[call.model]?.answer ?? [];
  const quiet = call.body.reasoning_effort === 'none';
  return scriptFor(call, quiet ? answer.filter((piece) => piece.kind !== 'reasoning') : answer);
}

function head(call: Call, name: string) {
  const id = `${String(call.serial).padStart(8, '0')}-4f1a-b4e2-9517-000000000000`;
  return { id, object: name, created: CREATED_SECONDS, model: call.model };
}

const FINGERPRINT = { system_fingerprint: 'fp_sim3d7ed3b7' };

/** R xai--text and xai--parallel-tools, 2026-03: no `finish_reason` before the last chunk, each tool call whole. */
function* stream(call: Call): Generator<WireEvent> {
  const script = scriptOf(call);
  const write = (kind: WireEvent['kind'], rest: JsonObject) =>
    event(kind, compact({ ...head(call, 'chat.completion.chunk'), ...rest, ...FINGERPRINT }));
  const choice = (delta: JsonObject) => ({ choices: [{ index: 0, delta }] });
  yield write('role', choice({ content: '', role: 'assistant' }));
  for (const piece of script.pieces) {
    if (!isWords(piece)) continue;
    const key = piece.kind === 'reasoning' ? 'reasoning_content' : 'content';
    yield write('piece', choice({ [key]: piece.text }));
  }
  for (const [index, toolCall] of (messageCalls(script, callId).tool_calls ?? []).entries()) {
    yield write('piece', choice({ tool_calls: [{ ...toolCall, index }] }));
  }
  yield write('finish', { choices: [{ index: 0, delta: {}, finish_reason: script.finish }] });
  if (objectOf(call.body.stream_options).include_usage === true) {
    yield write('usage', { choices: [], usage: usage(call, script) });
  }
  yield DONE;
}

function callId(number: number): string {
  return `call_${String(number).padStart(8, '0')}`;
}

function object(call: Call): JsonObject {
  const script = scriptOf(call);
  const reasoning = joined(script, 'reasoning');
  const message = {
    role: 'assistant',
    content: joined(script, 'text'),
    ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...messageCalls(script, callId),
    refusal: null,
  };
  const choices = [{ index: 0, message, finish_reason: script.finish }];
  return { ...head(call, 'chat.completion'), choices, usage: usage(call, script), ...FINGERPRINT };
}

/** The completion's count is without its reasoning, the total's with it: 165 + 2 + 129 = 296 in R xai--text. */
function usage(call: Call, script: Script): JsonObject {
  const cost = costOf(call, [script]);
  return {
    prompt_tokens: cost.prompt,
    completion_tokens: cost.completion - cost.reasoning,
    total_tokens: cost.total,
    prompt_tokens_details: { text_tokens: cost.prompt, cached_tokens: cost.cached },
    completion_tokens_details: { reasoning_tokens: cost.reasoning, audio_tokens: 0 },
    num_sources_used: 0,
    cost_in_usd_ticks: 739_000,
  };
}
