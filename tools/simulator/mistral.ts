/**
 * Simulates Mistral and Codestral, as documented and observed: `p` padding, a tool call in one chunk, without an index
 * and with an id of nine characters, typed thinking content, unrequested usage on the last chunk, strict bodies.
 *
 * Tokens (completion): mistral-small-latest 12 (7 more if `reasoning_effort` is high), mistral-medium-latest 5 (5
 * more), magistral-medium-latest 15 (reasoning is not counted separately), open-mistral-7b 8 (finish `model_length`),
 * codestral-latest 11 in chat and 7 in FIM, any agent 7.
 */
import { embeddingsObject, MISTRAL_FORM } from './embeddings.ts';
import { compact, type JsonObject } from './json.ts';
import { check, reasons, refusal } from './mistral-check.ts';
import type { Call, Scene, WireEvent } from './scene.ts';
import { CREATED_SECONDS, DONE, event } from './scene.ts';
import {
  costOf,
  isWords,
  joined,
  type Piece,
  type Script,
  scriptFor,
  wholeCalls,
  wordsOf,
} from './script.ts';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'mistral-small-latest': [
    ...wordsOf('reasoning', 'One barge, one lock, and no hurry.'),
    ...wordsOf('text', 'The weir sets the flow – each barge waits for its turn.'),
  ],
  // Medium 3.5: BerriAI/litellm#30979, 2026-06-16.
  'mistral-medium-latest': [
    ...wordsOf('reasoning', 'A lock holds one boat.'),
    ...wordsOf('text', 'So the second one waits.'),
  ],
  'magistral-medium-latest': [
    ...wordsOf('reasoning', 'Two locks, ten minutes each, one boat…'),
    ...wordsOf('text', 'Twenty minutes, if no boat comes against it.'),
  ],
  'open-mistral-7b': wordsOf('text', 'This window is too small for the whole'),
  'codestral-latest': wordsOf('text', 'Use a bounded queue; a slow reader then slows the writer.'),
};
const MIDDLE = wordsOf('text', '    total = sum(values)\n    return total / len(values)');
const AGENT = wordsOf('text', 'Looking that up in the lock register.');

export const mistral = mistralScene('mistral', ['chat', 'fim', 'agents'], Object.keys(ANSWERS));
export const codestral = mistralScene('codestral', ['chat', 'fim'], ['codestral-latest']);

function mistralScene(
  id: string,
  operations: readonly ('chat' | 'fim' | 'agents')[],
  models: string[],
): Scene {
  const base = `/${id}/v1`;
  const routes = Object.fromEntries(operations.map((name) => [`${base}/${name}/completions`, name] as const));
  return {
    id,
    routes: {
      ...routes,
      ...(id === 'mistral' ? { [`${base}/embeddings`]: 'embeddings' as const } : {}),
      [`${base}/models`]: 'models',
    },
    models,
    ...(id === 'mistral' && { embeddingModels: ['mistral-embed', 'codestral-embed'] }),
    comment: 'ping',
    streamError: {
      object: 'error',
      message: 'Service unavailable.',
      type: 'unreachable_backend',
      code: '1100',
    },
    refusal,
    check: (call) => check(call, models),
    stream,
    object: (call) =>
      compact(call.operation === 'embeddings' ? embeddingsObject(call, MISTRAL_FORM) : object(call)),
  };
}

function scriptsOf(call: Call): Script[] {
  const answer =
    call.operation === 'fim' ? MIDDLE : call.operation === 'agents' ? AGENT : ANSWERS[call.model];
  const pieces = (answer ?? []).filter((piece) => piece.kind !== 'reasoning' || reasons(call));
  const finish = call.model === 'open-mistral-7b' ? 'model_length' : 'stop';
  return Array.from({ length: Number(call.body.n ?? 1) }, () => scriptFor(call, pieces, { finish }));
}

function head(call: Call) {
  const model = call.operation === 'agents' ? 'mistral-medium-2508' : call.model;
  return { id: `cmpl-${call.serial.toString(16).padStart(32, '0')}`, created: CREATED_SECONDS, model };
}

function* stream(call: Call): Generator<WireEvent> {
  const { id, created, model } = head(call);
  const scripts = scriptsOf(call);
  const base = { id, object: 'chat.completion.chunk', created, model };
  const whole = scripts.map(deltas);
  const longest = Math.max(...whole.map((list) => list.length));
  for (const index of scripts.keys()) {
    const choices = [{ index, delta: { role: 'assistant', content: '' }, finish_reason: null }];
    yield event('role', compact({ ...base, choices }));
  }
  for (let at = 0; at < longest; at += 1) {
    for (const [index, list] of whole.entries()) {
      const delta = list[at];
      if (delta === undefined) continue;
      const last = at === list.length - 1;
      const final = last && list.length === longest && index === scripts.length - 1;
      const choices = [{ index, delta, finish_reason: last ? (scripts[index]?.finish ?? null) : null }];
      const extra = { ...(final ? { usage: usage(call, scripts) } : {}), p: padding(at) };
      yield event(last ? 'finish' : 'piece', compact({ ...base, choices, ...extra }));
    }
  }
  yield DONE;
}

/** A prefix of the alphabet. Its length is random at Mistral; here it depends on the event's number. */
function padding(at: number): string {
  return 'abcdefghijklmnopqrstuvwxyz0123456789'.slice(0, ((at * 11) % 36) + 1);
}

/** Thoughts are typed parts, the last text delta has the finish reason, and all tool calls come together in one delta. */
function deltas(script: Script): JsonObject[] {
  const words = script.pieces.filter(isWords);
  const list = words.map((piece): JsonObject => textDelta(piece.kind, piece.text));
  const thoughts = words.filter((piece) => piece.kind === 'reasoning').length;
  const turn = { content: [{ type: 'thinking', thinking: [{ type: 'text', text: '' }], closed: true }] };
  const calls = toolCalls(script);
  return [
    ...list.slice(0, thoughts),
    ...(thoughts > 0 ? [turn] : []),
    ...list.slice(thoughts),
    ...(calls.length > 0 ? [{ content: '', tool_calls: calls }] : []),
  ];
}

function textDelta(kind: string, text: string): JsonObject {
  if (kind !== 'reasoning') return { content: text };
  return { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] };
}

function toolCalls(script: Script): JsonObject[] {
  return wholeCalls(script).map(({ number, name, arguments: text }) => ({
    id: `simCall${String(number).padStart(2, '0')}`,
    function: { name, arguments: text },
  }));
}

function object(call: Call): JsonObject {
  const { id, created, model } = head(call);
  const scripts = scriptsOf(call);
  const choices = scripts.map((script, index) => {
    const calls = toolCalls(script);
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: joined(script, 'reasoning') }] };
    const text = joined(script, 'text');
    const parts = text ? [{ type: 'text', text }] : [];
    const content = joined(script, 'reasoning') ? [thinking, ...parts] : text;
    const message = { role: 'assistant', tool_calls: calls.length > 0 ? calls : null, content };
    return { index, finish_reason: script.finish, message };
  });
  return { id, object: 'chat.completion', created, model, choices, usage: usage(call, scripts) };
}

function usage(call: Call, scripts: readonly Script[]): JsonObject {
  const cost = costOf(call, scripts);
  const sums = { prompt_tokens: cost.prompt, total_tokens: cost.total, completion_tokens: cost.completion };
  return { ...sums, prompt_tokens_details: { cached_tokens: cost.cached } };
}
