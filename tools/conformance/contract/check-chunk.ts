/** The checks of every chunk, by itself and against the chunks around it: C1, C2, C3, C9, C10, U3. */
import { fault } from './check-frames.ts';
import { choicesOf, chunksOf, keyFault, type Rule, type Stream } from './check-rule.ts';
import { isCount, isObject, type Json, type JsonObject, listOf, objectOf } from './json.ts';

const CHAT_KEYS = [
  'id',
  'object',
  'created',
  'model',
  'service_tier',
  'system_fingerprint',
  'choices',
  'usage',
];
const TEXT_KEYS = CHAT_KEYS.filter((key) => key !== 'service_tier');
/** Labels that the upstream may send. An absent label is not null. */
const LABELS = ['service_tier', 'system_fingerprint'];
const CHAT_CHOICE_KEYS = ['index', 'delta', 'logprobs', 'finish_reason'];
const TEXT_CHOICE_KEYS = ['index', 'text', 'logprobs', 'finish_reason'];
const LOGPROB_KEYS = ['token', 'logprob', 'bytes', 'top_logprobs'];
const TOP_LOGPROB_KEYS = ['token', 'logprob', 'bytes'];
const TEXT_LOGPROB_KEYS = ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset'];
const USAGE_SUMS = ['prompt_tokens', 'completion_tokens', 'total_tokens'];
const USAGE_DETAILS = {
  prompt_tokens_details: ['cached_tokens', 'cache_write_tokens', 'audio_tokens'],
  completion_tokens_details: [
    'reasoning_tokens',
    'audio_tokens',
    'accepted_prediction_tokens',
    'rejected_prediction_tokens',
  ],
};
/** 2001 to 2100: includes every recorded stream, but no milliseconds that were taken for seconds, or the reverse. */
const CREATED_SECONDS = { min: 1_000_000_000, max: 4_102_444_800 };
const HIGHEST_BYTE = 255;

/** Keys of both shapes are C1. Keys of text completions only are C10. */
const checkC1: Rule = function* (stream) {
  if (stream.expectation.shape === 'chat')
    yield* chunkShape(stream, 'C1', CHAT_KEYS, 'chat.completion.chunk');
  for (const label of LABELS) yield* keepsLabel(stream, label);
};

function* chunkShape(stream: Stream, rule: string, keys: readonly string[], object: string) {
  for (const { frame, value } of chunksOf(stream)) {
    yield* keyFault(rule, 'a chunk', value, keys, frame, [...LABELS, 'usage']);
    if ('usage' in value && !isObject(value.usage)) yield fault(rule, 'usage is not an object', frame);
    if (value.object !== object) yield fault(rule, `object is ${JSON.stringify(value.object)}`, frame);
    if (!Array.isArray(value.choices)) yield fault(rule, 'choices is not an array', frame);
  }
}

/** Present on every chunk after the first that has it. */
function* keepsLabel(stream: Stream, key: string) {
  let isSet = false;
  for (const { frame, value } of chunksOf(stream)) {
    const label = value[key];
    if (label === undefined) {
      if (isSet) yield fault('C1', `${key} was there and is absent again`, frame);
      continue;
    }
    if (typeof label !== 'string' || label === '') {
      yield fault('C1', `${key} is ${JSON.stringify(label)}`, frame);
    }
    isSet = true;
  }
}

const checkC2: Rule = function* (stream) {
  let first: JsonObject | undefined;
  for (const { frame, value } of chunksOf(stream)) {
    first ??= value;
    for (const key of ['id', 'created', 'model']) {
      if (value[key] !== first[key]) yield fault('C2', `${key} is not that of the first chunk`, frame);
    }
    yield* identity(stream, value, frame);
  }
};

function* identity(stream: Stream, value: JsonObject, frame: number) {
  const { id, created, model } = value;
  if (typeof id !== 'string' || id === '') yield fault('C2', 'id is not a string', frame);
  if (!isCount(created) || created < CREATED_SECONDS.min || created > CREATED_SECONDS.max) {
    yield fault('C2', `created is ${JSON.stringify(created)}, no plausible second`, frame);
  }
  const prefix = `${stream.expectation.provider}/`;
  if (typeof model !== 'string' || !model.startsWith(prefix) || model === prefix) {
    yield fault('C2', `model is ${JSON.stringify(model)}, not ${prefix}<model>`, frame);
  }
}

const checkC3: Rule = function* (stream) {
  const chat = stream.expectation.shape === 'chat';
  const rule = chat ? 'C3' : 'C10';
  const keys = chat ? CHAT_CHOICE_KEYS : TEXT_CHOICE_KEYS;
  for (const { frame, value } of chunksOf(stream)) {
    for (const choice of listOf(value.choices)) yield* keyFault(rule, 'a choice', choice, keys, frame);
    const indexes = listOf(value.choices).map((choice) => objectOf(choice).index);
    // Clients that read `choices[0]` lose a second update.
    if (new Set(indexes).size < indexes.length) yield fault(rule, 'two updates of one choice', frame);
  }
  const limit = stream.expectation.requestedChoices ?? Number.POSITIVE_INFINITY;
  for (const { frame, index, value } of choicesOf(stream)) {
    if (index < 0) yield fault(rule, `index is ${JSON.stringify(value.index)}`, frame);
    if (index >= limit) yield fault(rule, `choice ${index} of ${limit} requested`, frame);
  }
};

const checkC9: Rule = function* (stream) {
  if (stream.expectation.shape !== 'chat') return;
  for (const { frame, value } of choicesOf(stream)) {
    const logprobs = value.logprobs;
    if (logprobs === undefined || logprobs === null) continue;
    yield* keyFault('C9', 'logprobs', logprobs, ['content', 'refusal'], frame);
    const lists = [objectOf(logprobs).content, objectOf(logprobs).refusal];
    if (lists.every((list) => listOf(list).length === 0)) yield fault('C9', 'logprobs has no entry', frame);
    for (const list of lists) yield* logprobList(list, frame);
  }
};

function* logprobList(list: Json | undefined, frame: number): Generator<string> {
  if (list === undefined || list === null) return;
  if (!Array.isArray(list)) return yield fault('C9', 'a logprobs list is not an array', frame);
  for (const entry of list) {
    yield* logprobEntry(entry, LOGPROB_KEYS, frame);
    if (!Array.isArray(objectOf(entry).top_logprobs))
      yield fault('C9', 'top_logprobs is not an array', frame);
    for (const top of listOf(objectOf(entry).top_logprobs)) yield* logprobEntry(top, TOP_LOGPROB_KEYS, frame);
  }
}

function* logprobEntry(entry: Json, keys: readonly string[], frame: number) {
  yield* keyFault('C9', 'a logprobs entry', entry, keys, frame);
  const { token, logprob, bytes } = objectOf(entry);
  if (typeof token !== 'string') yield fault('C9', 'token is not a string', frame);
  if (typeof logprob !== 'number') yield fault('C9', 'logprob is not a number', frame);
  if (bytes !== null && !isByteList(bytes)) yield fault('C9', 'bytes is neither null nor bytes', frame);
}

function isByteList(value: Json | undefined): boolean {
  return Array.isArray(value) && value.every((byte) => isCount(byte) && byte <= HIGHEST_BYTE);
}

const checkC10: Rule = function* (stream) {
  if (stream.expectation.shape !== 'text') return;
  yield* chunkShape(stream, 'C10', TEXT_KEYS, 'text_completion');
  for (const { frame, value } of choicesOf(stream)) {
    if (typeof value.text !== 'string') yield fault('C10', 'text is not a string', frame);
    if (value.logprobs !== undefined && value.logprobs !== null) yield* textLogprobs(value.logprobs, frame);
  }
};

function* textLogprobs(logprobs: Json, frame: number) {
  yield* keyFault('C10', 'logprobs', logprobs, TEXT_LOGPROB_KEYS, frame);
  const { tokens, token_logprobs, top_logprobs, text_offset } = objectOf(logprobs);
  const all = (list: Json | undefined, holds: (entry: Json) => boolean) =>
    Array.isArray(list) && list.every(holds);
  if (!all(tokens, (token) => typeof token === 'string'))
    yield fault('C10', 'tokens is not an array of strings', frame);
  if (!all(token_logprobs, (logprob) => logprob === null || typeof logprob === 'number')) {
    yield fault('C10', 'token_logprobs is not an array of numbers', frame);
  }
  if (top_logprobs !== null && !all(top_logprobs, (top) => top === null || isNumbers(top))) {
    yield fault('C10', 'top_logprobs is neither null nor numbers by token', frame);
  }
  if (!all(text_offset, isCount)) yield fault('C10', 'text_offset is not an array of integers', frame);
}

function isNumbers(value: Json): boolean {
  return isObject(value) && Object.values(value).every((number) => typeof number === 'number');
}

/** A count that was not reported is absent, as is a details object without counts. */
const checkU3: Rule = function* (stream) {
  for (const { frame, value } of chunksOf(stream)) {
    const usage = value.usage;
    if (!isObject(usage)) continue;
    const details = Object.keys(USAGE_DETAILS);
    yield* keyFault('U3', 'usage', usage, [...USAGE_SUMS, ...details], frame, details);
    for (const sum of USAGE_SUMS) {
      if (!isCount(usage[sum])) yield fault('U3', `${sum} is ${JSON.stringify(usage[sum])}`, frame);
    }
    for (const [key, counts] of Object.entries(USAGE_DETAILS)) {
      if (key in usage) yield* detailCounts(key, usage[key], counts, frame);
    }
    const { cached_tokens = 0, cache_write_tokens = 0 } = objectOf(usage.prompt_tokens_details);
    if (Number(cached_tokens) + Number(cache_write_tokens) > Number(usage.prompt_tokens)) {
      yield fault('U3', 'more cached tokens than the prompt has', frame);
    }
  }
};

function* detailCounts(name: string, details: Json | undefined, counts: readonly string[], frame: number) {
  yield* keyFault('U3', name, details, counts, frame, counts);
  if (isObject(details) && Object.keys(details).length === 0) yield fault('U3', `${name} is empty`, frame);
  for (const [key, count] of Object.entries(objectOf(details))) {
    if (!isCount(count)) yield fault('U3', `${key} is ${JSON.stringify(count)}`, frame);
  }
}

export const chunkRules: readonly Rule[] = [checkC1, checkC2, checkC3, checkC9, checkC10, checkU3];
