/** The checks of each choice from its first delta to its last: C4, C5, C6, C7, C8. */
import { fault } from './check-frames.ts';
import {
  type Choice,
  choicesOf,
  chunksOf,
  isUsageChunk,
  keyFault,
  type Rule,
  type Stream,
} from './check-rule.ts';
import { isCount, isObject, type Json, type JsonObject, listOf, objectOf } from './json.ts';

const DELTA_KEYS = ['role', 'content', 'reasoning_content', 'refusal', 'tool_calls'];
const TEXT_FIELDS = ['content', 'reasoning_content', 'refusal'];
/** Other names under which upstreams send reasoning; C6 allows only one. */
const REASONING_ALIASES = ['reasoning', 'reasoning_details', 'thinking'];
/** These write "null" for a missing id; from any other provider it is a normal id. */
const NULL_WORD_PROVIDERS = ['mistral', 'codestral'];
const FINISH_REASONS: readonly Json[] = ['stop', 'length', 'content_filter', 'tool_calls'];

/** The role is tracked over the stream; everything else is checked on the delta alone. */
const checkC4: Rule = function* (stream) {
  if (stream.expectation.shape !== 'chat') return;
  const begun = new Set<number>();
  for (const choice of choicesOf(stream)) {
    const { frame, index } = choice;
    const delta = choice.value.delta;
    if (!isObject(delta)) {
      yield fault('C4', 'delta is not an object', frame);
      continue;
    }
    const first = !begun.has(index);
    begun.add(index);
    if (first && delta.role !== 'assistant') yield fault('C4', 'no role on a first delta', frame);
    if (!first && 'role' in delta) yield fault('C4', 'role on a later delta', frame);
    yield* deltaKeys(delta, frame);
    yield* deltaNews(delta, frame);
  }
};

function* deltaKeys(delta: JsonObject, frame: number) {
  const keys = Object.keys(delta).filter((key) => !REASONING_ALIASES.includes(key));
  const unknown = keys.filter((key) => !DELTA_KEYS.includes(key));
  const ordered = DELTA_KEYS.filter((key) => keys.includes(key));
  if (unknown.length > 0) yield fault('C4', `a delta with ${unknown.join(', ')}`, frame);
  else if (keys.join() !== ordered.join()) {
    yield fault('C4', `a delta in the order ${keys.join(', ')}`, frame);
  }
}

function* deltaNews(delta: JsonObject, frame: number) {
  for (const key of TEXT_FIELDS) {
    const text = delta[key];
    if (text === undefined || (key === 'content' && Array.isArray(text))) continue;
    const opening = key === 'content' && 'role' in delta;
    if (typeof text !== 'string') yield fault('C4', `${key} is ${JSON.stringify(text)}`, frame);
    else if (text === '' && !opening) yield fault('C4', `${key} is empty`, frame);
  }
  const calls = delta.tool_calls;
  if (calls !== undefined && listOf(calls).length === 0) {
    yield fault('C4', `tool_calls is ${JSON.stringify(calls)}`, frame);
  }
}

const checkC5: Rule = function* (stream) {
  for (const { frame, value } of chunksOf(stream)) {
    if (isUsageChunk(value)) continue;
    const choices = listOf(value.choices).map(objectOf);
    if (!choices.some(hasContent)) yield fault('C5', 'a chunk without content', frame);
  }
};

function hasContent(choice: JsonObject): boolean {
  const isSet = (value: Json | undefined) => value !== undefined && value !== null;
  if (isSet(choice.finish_reason) || isSet(choice.logprobs)) return true;
  const text = typeof choice.text === 'string' && choice.text !== '';
  return text || Object.keys(objectOf(choice.delta)).length > 0;
}

const checkC6: Rule = function* (stream) {
  for (const { frame, value } of choicesOf(stream)) {
    const delta = objectOf(value.delta);
    for (const alias of REASONING_ALIASES) {
      if (alias in delta) yield fault('C6', `reasoning under the name ${alias}`, frame);
    }
    if (Array.isArray(delta.content)) yield fault('C6', 'content in typed parts', frame);
  }
};

const checkC7: Rule = function* (stream) {
  const known = new Set<string>();
  for (const { frame, index, value } of choicesOf(stream)) {
    for (const fragment of listOf(objectOf(value.delta).tool_calls)) {
      const call = objectOf(fragment).index;
      if (!isCount(call)) yield fault('C7', `a fragment's index is ${JSON.stringify(call)}`, frame);
      const key = `${index} ${JSON.stringify(call)}`;
      yield* known.has(key) ? laterFragment(fragment, frame) : firstFragment(fragment, frame);
      if (!known.has(key)) yield* callId(objectOf(fragment).id, stream.expectation.provider, frame);
      known.add(key);
    }
  }
};

function* firstFragment(fragment: Json, frame: number) {
  yield* keyFault('C7', 'a first fragment', fragment, ['index', 'id', 'type', 'function'], frame);
  const call = objectOf(fragment);
  const { name, arguments: args } = objectOf(call.function);
  yield* keyFault('C7', "a first fragment's function", call.function, ['name', 'arguments'], frame);
  if (call.type !== 'function') yield fault('C7', `type is ${JSON.stringify(call.type)}`, frame);
  if (typeof name !== 'string' || name === '') yield fault('C7', `name is ${JSON.stringify(name)}`, frame);
  if (typeof args !== 'string') yield fault('C7', 'arguments is not a string', frame);
}

function* callId(id: Json | undefined, provider: string, frame: number) {
  const none =
    typeof id !== 'string' || id === '' || (id === 'null' && NULL_WORD_PROVIDERS.includes(provider));
  if (none) yield fault('C7', `id is ${JSON.stringify(id)}`, frame);
}

function* laterFragment(fragment: Json, frame: number) {
  yield* keyFault('C7', 'a later fragment', fragment, ['index', 'function'], frame);
  const part = objectOf(fragment).function;
  yield* keyFault('C7', "a later fragment's function", part, ['arguments'], frame);
  const args = objectOf(part).arguments;
  if (typeof args !== 'string') yield fault('C7', 'arguments is not a string', frame);
  if (args === '') yield fault('C7', 'an empty later fragment', frame);
}

const checkC8: Rule = function* (stream) {
  const finished = new Set<number>();
  const calling = new Set<number>();
  const seen = new Set<number>();
  for (const choice of choicesOf(stream)) {
    seen.add(choice.index);
    if ('tool_calls' in objectOf(choice.value.delta)) calling.add(choice.index);
    if (finished.has(choice.index)) {
      yield fault('C8', `choice ${choice.index} has content after its finish`, choice.frame);
    }
    yield* finishWord(choice, calling);
    if (isFinish(choice.value.finish_reason)) finished.add(choice.index);
  }
  yield* unfinished(stream, seen, finished);
};

function isFinish(value: Json | undefined): boolean {
  return value !== undefined && value !== null;
}

function* finishWord({ value, index, frame }: Choice, calling: ReadonlySet<number>) {
  const reason = value.finish_reason;
  if (reason === undefined || reason === null) return;
  if (!FINISH_REASONS.includes(reason)) {
    yield fault('C8', `finish_reason is ${JSON.stringify(reason)}`, frame);
  }
  if (reason === 'stop' && calling.has(index)) yield fault('C8', '`stop` after tool calls', frame);
}

function* unfinished(stream: Stream, seen: ReadonlySet<number>, finished: ReadonlySet<number>) {
  if (stream.failed || stream.expectation.clientLeft === true) return;
  for (const index of seen) {
    if (!finished.has(index)) yield fault('C8', `choice ${index} has no finish`);
  }
}

export const choiceRules: readonly Rule[] = [checkC4, checkC5, checkC6, checkC7, checkC8];
