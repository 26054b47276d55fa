/** The checks of each choice from its first delta to its last: C4, C5, C6, C7, C8, C11, A7. */
import { fault } from './check-frames.ts';
import {
  type Choice,
  choicesOf,
  chunksOf,
  type Expectation,
  hasUsage,
  keyFault,
  type Rule,
  type Stream,
} from './check-rule.ts';
import { isCount, isObject, type Json, type JsonObject, listOf, objectOf, textOf } from './json.ts';

const DELTA_KEYS = [
  ...['role', 'content', 'reasoning_content', 'refusal', 'annotations', 'tool_calls', 'reasoning_details'],
];
const TEXT_FIELDS = ['content', 'reasoning_content', 'refusal'];
const LIST_FIELDS = ['annotations', 'tool_calls', 'reasoning_details'];
/** Other names under which upstreams send reasoning. C6 allows only one. */
const REASONING_ALIASES = ['reasoning', 'thinking'];
/** The keys of a reasoning detail's text, and of what the upstream wants back. */
const DETAIL_TEXTS = ['text', 'summary'];
const DETAIL_TOKENS = ['signature', 'data'];
/** An id that Weir generates, in the form that every provider accepts. */
const MADE_ID = /^[0-9A-Za-z]{9}$/;
/** These providers write "null" for a missing id. From any other provider it is a normal id. */
const NULL_WORD_PROVIDERS = ['mistral', 'codestral'];
const FINISH_REASONS: readonly Json[] = ['stop', 'length', 'content_filter', 'tool_calls'];

/** The role is tracked over the stream. Everything else is checked on the delta alone. */
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
  for (const key of LIST_FIELDS) {
    const list = delta[key];
    if (list !== undefined && listOf(list).length === 0) {
      yield fault('C4', `${key} is ${JSON.stringify(list)}`, frame);
    }
  }
}

const checkC5: Rule = function* (stream) {
  for (const { frame, value } of chunksOf(stream)) {
    if (hasUsage(value)) continue;
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
    if (stream.expectation.reasoning === 'strip') yield* strippedReasoning(delta, frame);
  }
};

/** What the upstream wants back stays, without its text. */
function* strippedReasoning(delta: JsonObject, frame: number) {
  if ('reasoning_content' in delta) yield fault('C6', 'reasoning that is to be stripped', frame);
  for (const detail of listOf(delta.reasoning_details).map(objectOf)) {
    if (DETAIL_TEXTS.some((key) => key in detail))
      yield fault('C6', 'a reasoning detail with its text', frame);
    if (!DETAIL_TOKENS.some((key) => typeof detail[key] === 'string')) {
      yield fault('C6', 'a reasoning detail without signature and data', frame);
    }
  }
}

const checkC7: Rule = function* (stream) {
  // The number of calls so far, by the choice. They count from 0.
  const counts = new Map<number, number>();
  const custom = new Set<string>();
  for (const { frame, index, value } of choicesOf(stream)) {
    for (const fragment of listOf(objectOf(value.delta).tool_calls)) {
      const call = objectOf(fragment).index;
      const count = counts.get(index) ?? 0;
      const isKnown = isCount(call) && call < count;
      if (!isKnown && call !== count) {
        yield fault('C7', `the index of call ${count} is ${JSON.stringify(call)}`, frame);
      }
      const key = `${index} ${JSON.stringify(call)}`;
      if (!isKnown && objectOf(fragment).type === 'custom') custom.add(key);
      if (custom.has(key)) yield* customFragment(fragment, isKnown, frame);
      else yield* isKnown ? laterFragment(fragment, frame) : firstFragment(fragment, frame);
      if (isKnown) continue;
      yield* callId(objectOf(fragment).id, stream.expectation, frame);
      counts.set(index, count + 1);
    }
  }
};

function* firstFragment(fragment: Json, frame: number) {
  const keys = ['index', 'id', 'type', 'function', 'extra_content'];
  yield* keyFault('C7', 'a first fragment', fragment, keys, frame, ['extra_content']);
  const call = objectOf(fragment);
  const { name, arguments: args } = objectOf(call.function);
  yield* keyFault('C7', "a first fragment's function", call.function, ['name', 'arguments'], frame);
  if (call.type !== 'function') yield fault('C7', `type is ${JSON.stringify(call.type)}`, frame);
  if (typeof name !== 'string' || name === '') yield fault('C7', `name is ${JSON.stringify(name)}`, frame);
  if (typeof args !== 'string') yield fault('C7', 'arguments is not a string', frame);
}

/** A fragment of a custom tool's call. */
function* customFragment(fragment: Json, isLater: boolean, frame: number) {
  const keys = isLater ? ['index', 'custom'] : ['index', 'id', 'type', 'custom'];
  yield* keyFault('C7', "a custom tool's fragment", fragment, keys, frame);
  const { custom } = objectOf(fragment);
  yield* keyFault('C7', "a fragment's custom", custom, isLater ? ['input'] : ['name', 'input'], frame);
  const { name, input } = objectOf(custom);
  if (!isLater && (typeof name !== 'string' || name === '')) {
    yield fault('C7', `name is ${JSON.stringify(name)}`, frame);
  }
  if (typeof input !== 'string') yield fault('C7', 'input is not a string', frame);
  else if (isLater && input === '') yield fault('C7', 'an empty later fragment', frame);
}

function* callId(id: Json | undefined, { provider, upstreamIds }: Expectation, frame: number) {
  const none = textOf(id) === '' || (id === 'null' && NULL_WORD_PROVIDERS.includes(provider));
  if (none) yield fault('C7', `id is ${JSON.stringify(id)}`, frame);
  else if (upstreamIds?.includes(textOf(id)) === false && !MADE_ID.test(textOf(id))) {
    yield fault('C7', `the made id ${textOf(id)} is not nine letters and digits`, frame);
  }
}

function* laterFragment(fragment: Json, frame: number) {
  const keys = ['index', 'function', 'extra_content'];
  yield* keyFault('C7', 'a later fragment', fragment, keys, frame, ['extra_content']);
  const part = objectOf(fragment).function;
  yield* keyFault('C7', "a later fragment's function", part, ['arguments'], frame);
  const args = objectOf(part).arguments;
  if (typeof args !== 'string') yield fault('C7', 'arguments is not a string', frame);
  const isEmpty = args === '' && !('extra_content' in objectOf(fragment));
  if (isEmpty) yield fault('C7', 'an empty later fragment', frame);
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

/** Clients that add deltas up keep the last list, or fail at the second. */
const checkC11: Rule = function* (stream) {
  for (const { frame, value } of choicesOf(stream)) {
    if (listOf(objectOf(value.delta).annotations).length > 0 && !isFinish(value.finish_reason)) {
      yield fault('C11', 'annotations before the finish', frame);
    }
  }
};

/** Opaque tokens: only their form is checked. */
const checkA7: Rule = function* (stream) {
  for (const { frame, value } of choicesOf(stream)) {
    const delta = objectOf(value.delta);
    const details = delta.reasoning_details;
    if (details !== undefined && (!Array.isArray(details) || !details.every(isObject))) {
      yield fault('A7', 'reasoning_details is not a list of objects', frame);
    }
    for (const { extra_content: extra } of listOf(delta.tool_calls).map(objectOf)) {
      if (extra !== undefined && !isObject(extra)) yield fault('A7', 'extra_content is not an object', frame);
    }
  }
};

export const choiceRules: readonly Rule[] = [checkC4, checkC5, checkC6, checkC7, checkC8, checkC11, checkA7];
