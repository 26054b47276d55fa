/**
 * Simulates Anthropic Messages (2026-11-22): named events, pings, JSON padded with blanks, signed thinking that is shown, hidden or
 * redacted. `anthropic-check.ts` has what it rejects, and `anthropic-threads.ts` its stored threads.
 *
 * Tokens (completion): every model 9 of text, 5 of thinking if it thinks, and 2 more in a step of a loop.
 */
import { chatOf } from './anthropic-chat.ts';
import { check, refusal } from './anthropic-check.ts';
import { CLAUDE_MODELS, type ClaudeModel, signatureOf, thoughtsOf } from './anthropic-models.ts';
import { keepThread, threadRefusal, wholeCall } from './anthropic-threads.ts';
import { compact, type JsonObject, objectsOf } from './json.ts';
import type { Call, Scene, WireEvent } from './scene.ts';
import { costOf, joined, type Script, scriptFor, wholeCalls } from './script.ts';

export const anthropic: Scene = {
  id: 'anthropic',
  routes: {
    '/anthropic/v1/messages': 'chat',
    '/anthropic/v1/messages/count_tokens': 'count',
    '/anthropic/v1/models': 'models',
  },
  models: Object.keys(CLAUDE_MODELS),
  comment: 'ping',
  streamError: { type: 'overloaded_error', message: 'Overloaded' },
  refusal: (status, message) => refusal(status, message),
  badKey: refusal(401, 'invalid x-api-key'),
  // If there are two credentials, the first counts: https://qiita.com/Synthorai/items/01a0067e88747257a4e6 (2026-10).
  keyOf: (headers) =>
    headers['anthropic-version'] === undefined
      ? undefined
      : (headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /, '')),
  check: (call) => threadRefusal(call) ?? check(wholeCall(call)),
  stream: (call) => stream(wholeCall(call)),
  object: (call) => {
    if (call.operation === 'count') return compact({ input_tokens: promptOf(call) });
    const message = object(wholeCall(call));
    keepThread(call, message);
    return compact(message);
  },
  list: () => compact(list()),
};

function list(): JsonObject {
  const data = Object.keys(CLAUDE_MODELS).map((id) => ({
    type: 'model',
    id,
    display_name: id,
    created_at: '2026-09-22T00:00:00Z',
  }));
  return { data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id };
}

function promptOf(call: Call): number {
  return costOf({ ...call, body: chatOf(call.body) }, []).prompt;
}

interface Played {
  readonly call: Call;
  readonly model: ClaudeModel;
  readonly script: Script;
  readonly thoughts: 'none' | 'hidden' | 'shown';
}

function play(call: Call): Played {
  const model = CLAUDE_MODELS[call.model] ?? CLAUDE_MODELS['claude-haiku-4-5'];
  if (model === undefined) throw new Error('The model is missing');
  const thoughts = thoughtsOf(call.body, model);
  const answer = model.answer.filter((piece) => thoughts !== 'none' || piece.kind !== 'reasoning');
  return { call, model, thoughts, script: scriptFor({ ...call, body: chatOf(call.body) }, answer) };
}

const STOPS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
};

function head({ call, script }: Played, content: readonly JsonObject[], stop: string | null): JsonObject {
  return {
    id: `msg_sim${String(call.serial).padStart(20, '0')}`,
    type: 'message',
    role: 'assistant',
    model: call.model,
    content: [...content],
    stop_reason: stop,
    stop_sequence: null,
    usage: usageOf(call, script, stop !== null),
  };
}

/** The system prompt is read from the cache. Output tokens are known at the end of the message. */
function usageOf(call: Call, script: Script, isWhole: boolean): JsonObject {
  const cost = costOf({ ...call, body: chatOf(call.body) }, [script]);
  return {
    input_tokens: cost.prompt - cost.cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cost.cached,
    output_tokens: isWhole ? cost.completion : 1,
    ...(isWhole ? { output_tokens_details: { thinking_tokens: cost.reasoning } } : {}),
  };
}

function toolId(number: number): string {
  return `toolu_sim${String(number).padStart(18, '0')}`;
}

/** A complete block, and the deltas that stream it. */
interface Block {
  readonly whole: JsonObject;
  readonly start: JsonObject;
  readonly deltas: readonly JsonObject[];
}

function blocksOf(played: Played): Block[] {
  const { call, model, script, thoughts } = played;
  const turn = objectsOf(call.body.messages).length;
  const texts = (kind: 'reasoning' | 'text') =>
    script.pieces.flatMap((piece) => (piece.kind === kind ? [piece.text] : []));
  const blocks: Block[] = [];
  if (thoughts !== 'none' && texts('reasoning').length > 0) {
    const shown = thoughts === 'shown' ? texts('reasoning') : [];
    const thinking = shown.join('');
    const signature = signatureOf(call, thinking, turn);
    const deltas = shown.map((text) => ({ type: 'thinking_delta', thinking: text }));
    const start = { type: 'thinking', thinking: '', signature: '' };
    blocks.push({
      whole: { ...start, thinking, signature },
      start,
      deltas: [...deltas, { type: 'signature_delta', signature }],
    });
    const redacted = { type: 'redacted_thinking', data: signatureOf(call, 'redacted', turn) };
    if (model.binds) blocks.push({ whole: redacted, start: redacted, deltas: [] });
  }
  const text = joined(script, 'text');
  if (text !== '') {
    const start = { type: 'text', text: '' };
    const deltas = texts('text').map((piece) => ({ type: 'text_delta', text: piece }));
    blocks.push({ whole: { ...start, text }, start, deltas });
  }
  return [...blocks, ...wholeCalls(script).map((toolCall) => callBlock(toolCall, script))];
}

function callBlock(toolCall: ReturnType<typeof wholeCalls>[number], script: Script): Block {
  const start = { type: 'tool_use', id: toolId(toolCall.number), name: toolCall.name, input: {} };
  const fragments = script.pieces.flatMap((piece) =>
    piece.kind === 'arguments' && piece.index === toolCall.index ? [piece.text] : [],
  );
  const pieces = toolCall.arguments === '{}' ? [] : fragments;
  return {
    whole: { ...start, input: parsed(toolCall.arguments) },
    start,
    deltas: ['', ...pieces].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  };
}

/** Arguments that the token limit truncated are empty in a non-streaming message. */
function parsed(text: string): JsonObject {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Recorded events have a varying number of blanks before the last brace. */
function named(kind: WireEvent['kind'], type: string, more: JsonObject, blanks = 0): WireEvent {
  const json = compact({ type, ...more });
  return { kind, text: `event: ${type}\ndata: ${json.slice(0, -1)}${' '.repeat(blanks)}}\n\n` };
}

function* stream(call: Call): Generator<WireEvent> {
  const played = play(call);
  let blanks = 3;
  const next = () => {
    blanks = (blanks * 7 + 5) % 16;
    return blanks;
  };
  yield named('role', 'message_start', { message: head(played, [], null) }, next());
  for (const [index, { start, deltas }] of blocksOf(played).entries()) {
    yield named('vendor', 'content_block_start', { index, content_block: start }, next());
    if (index === 0) yield { kind: 'vendor', text: 'event: ping\ndata: {"type": "ping"}\n\n' };
    for (const delta of deltas) yield named('piece', 'content_block_delta', { index, delta }, next());
    yield named('vendor', 'content_block_stop', { index }, next());
  }
  const { script } = played;
  const delta = { stop_reason: STOPS[script.finish] ?? script.finish, stop_sequence: null };
  yield named('finish', 'message_delta', { delta, usage: usageOf(call, script, true) }, next());
  yield named('done', 'message_stop', {}, next());
}

function object(call: Call): JsonObject {
  const played = play(call);
  const stop = STOPS[played.script.finish] ?? played.script.finish;
  return head(
    played,
    blocksOf(played).map(({ whole }) => whole),
    stop,
  );
}
