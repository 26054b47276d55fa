/**
 * Mistral and Codestral, as documented and observed: `p` padding, a whole tool call in one chunk, without an index
 * and with an id of nine characters, typed thinking content, usage on the last chunk, strict bodies (422 with `detail`).
 *
 * Tokens (completion): mistral-small-latest 12, magistral-medium-latest 15 (reasoning is not counted separately),
 * open-mistral-7b 8 (finish `model_length`), codestral-latest 11 in chat and 7 in FIM, any agent 7.
 */
import { compact, type Json, type JsonObject, objectOf } from './json.ts';
import type { Call, Refusal, Scene, WireEvent } from './scene.ts';
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
  'mistral-small-latest': wordsOf('text', 'Le barrage règle le débit : chaque péniche passe à son tour.'),
  'magistral-medium-latest': [
    ...wordsOf('reasoning', 'Two locks, ten minutes each, one boat…'),
    ...wordsOf('text', 'Twenty minutes, if no boat comes against it.'),
  ],
  'open-mistral-7b': wordsOf('text', 'This window is too small for the whole'),
  'codestral-latest': wordsOf('text', 'Use a bounded queue; a slow reader then slows the writer.'),
};
const MIDDLE = wordsOf('text', '    total = sum(values)\n    return total / len(values)');
const AGENT = wordsOf('text', 'Looking that up in the lock register.');

/** The fields of the documented request schemas; any other is an extra input, and forbidden. */
const SAMPLING = ['model', 'stream', 'max_tokens', 'stop', 'random_seed', 'temperature', 'top_p'];
const CHOICES = [
  'messages',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'n',
  'prompt_mode',
];
const PENALTIES = ['presence_penalty', 'frequency_penalty', 'prediction', 'metadata'];
const CHAT = [...SAMPLING, ...CHOICES, ...PENALTIES, 'stream_options', 'safe_prompt'];
const FIM = [...SAMPLING, 'prompt', 'suffix', 'min_tokens'];
const AGENTS = ['agent_id', 'stream', 'max_tokens', 'stop', 'random_seed', ...CHOICES, ...PENALTIES];
const FIELDS: Readonly<Record<string, readonly string[]>> = { chat: CHAT, fim: FIM, agents: AGENTS };

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
    routes: { ...routes, [`${base}/models`]: 'models' },
    models,
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
    object: (call) => compact(object(call)),
  };
}

/** Mistral reports an unknown key as `detail`, a rejected body as a list under `detail`, and the rest as an error object. */
function refusal(status: number, message: string): Refusal {
  if (status === 401) return { status, body: compact({ detail: 'Unauthorized' }) };
  const type =
    status === 429 ? 'rate_limited' : status < 500 ? 'invalid_request_error' : 'internal_server_error';
  return {
    status,
    body: compact({ object: 'error', message, type, param: null, code: String(status * 10) }),
  };
}

function invalid(type: string, at: string, msg: string, input: Json | undefined): Refusal {
  const detail = [{ type, loc: ['body', at], msg, input: input ?? null }];
  return { status: 422, body: compact({ detail }) };
}

function check(call: Call, models: readonly string[]): Refusal | undefined {
  const { body, operation } = call;
  const extra = Object.keys(body).find((name) => !FIELDS[operation]?.includes(name));
  if (extra !== undefined)
    return invalid('extra_forbidden', extra, 'Extra inputs are not permitted', body[extra]);
  const required = {
    chat: ['model', 'messages'],
    fim: ['model', 'prompt'],
    agents: ['agent_id', 'messages'],
  };
  const needed = required[operation === 'fim' || operation === 'agents' ? operation : 'chat'];
  const missing = needed.find((name) => body[name] === undefined);
  if (missing !== undefined) return invalid('missing', missing, 'Field required', undefined);
  if (body.tool_choice === 'required') {
    return invalid('enum', 'tool_choice', "Input should be 'auto', 'none' or 'any'", body.tool_choice);
  }
  if (operation === 'agents') return undefined;
  const known = operation === 'fim' ? call.model.startsWith('codestral') : true;
  return known && models.includes(call.model) ? undefined : refusal(400, `Invalid model: ${call.model}`);
}

function scriptsOf(call: Call): Script[] {
  const pieces =
    call.operation === 'fim' ? MIDDLE : call.operation === 'agents' ? AGENT : ANSWERS[call.model];
  const finish = call.model === 'open-mistral-7b' ? 'model_length' : 'stop';
  return Array.from({ length: Number(call.body.n ?? 1) }, () => scriptFor(call, pieces ?? [], finish));
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
  const askedForUsage = objectOf(call.body.stream_options).include_usage === true;
  for (const index of scripts.keys()) {
    const choices = [{ index, delta: { role: 'assistant', content: '' }, finish_reason: null }];
    yield event('role', compact({ ...base, choices }));
  }
  for (let at = 0; at < longest; at += 1) {
    for (const [index, list] of whole.entries()) {
      const delta = list[at];
      if (delta === undefined) continue;
      const last = at === list.length - 1;
      const final = last && list.length === longest && index === scripts.length - 1 && !askedForUsage;
      const choices = [{ index, delta, finish_reason: last ? (scripts[index]?.finish ?? null) : null }];
      const extra = { ...(final ? { usage: usage(call, scripts) } : {}), p: padding(at) };
      yield event(last ? 'finish' : 'piece', compact({ ...base, choices, ...extra }));
    }
  }
  if (askedForUsage)
    yield event('usage', compact({ ...base, choices: [], usage: usage(call, scripts), p: '' }));
  yield DONE;
}

/** A prefix of the alphabet, of random length at Mistral; here the length follows from the event's number. */
function padding(at: number): string {
  return 'abcdefghijklmnopqrstuvwxyz0123456789'.slice(0, ((at * 11) % 36) + 1);
}

/** Text comes with the finish reason on its last delta, tool calls come whole and together, thoughts as typed parts. */
function deltas(script: Script): JsonObject[] {
  const calls = toolCalls(script);
  if (calls.length > 0) return [{ content: '', tool_calls: calls }];
  const list = script.pieces.map((piece) => (isWords(piece) ? textDelta(piece.kind, piece.text) : {}));
  const thoughts = script.pieces.filter((piece) => piece.kind === 'reasoning').length;
  const turn = { content: [{ type: 'thinking', thinking: [{ type: 'text', text: '' }], closed: true }] };
  return thoughts > 0 ? [...list.slice(0, thoughts), turn, ...list.slice(thoughts)] : list;
}

function textDelta(kind: string, text: string): JsonObject {
  if (kind !== 'reasoning') return { content: text };
  return { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] };
}

function toolCalls(script: Script): JsonObject[] {
  return wholeCalls(script).map(({ index, name, arguments: text }) => ({
    id: `simCall0${index}`,
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
    const content = joined(script, 'reasoning') ? [thinking, { type: 'text', text }] : text;
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
