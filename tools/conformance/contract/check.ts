/** Reads a client's bytes of one stream and lists the contract's rules that they break. */
import { choiceRules } from './check-choice.ts';
import { chunkRules } from './check-chunk.ts';
import { type Frame, fault, readFrames } from './check-frames.ts';
import { chunksOf, type Expectation, hasUsage, keyFault, type Rule, type Stream } from './check-rule.ts';
import { type JsonObject, listOf, objectOf, textOf } from './json.ts';

export type { Expectation } from './check-rule.ts';

const ERROR_KEYS = ['message', 'type', 'param', 'code'];
const ERROR_TYPES = ['server_error', 'timeout_error', 'stream_idle_timeout'];

/** What a message never contains. Public addresses are allowed: providers link to their documentation. */
const SECRETS: readonly [name: string, pattern: RegExp][] = [
  ['a bearer token', /\bbearer\s+(?=\S*\d)[\w.~+/-]{6,}/i],
  ['a secret key', /\bsk[-_][\w*-]{4,}/i],
  ['a prefixed key', /\b(?:pk|rk|key|weir|xai|gsk|hf|xero|csk|nvapi)[-_](?=[\w-]*[\d*])[\w*-]{6,}/i],
  ['a key beside its name', /\bapi[-_ ]?key["']?\s*[:=]\s*["']?(?=[\w-]*[\d*])[\w*-]{6,}/i],
  ['a web token', /\beyJ[\w-]{8,}\.[\w-]+/],
  ['an unbroken random text', /\b(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)[A-Za-z0-9]{32,}\b/],
  ['credentials in a URL', /:\/\/[^/\s:@]+:[^/\s@]+@/],
  ['a local address', /\b(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|169\.254(?:\.\d+){2})\b|\[?::1\]/i],
  ['a private address', /\b(?:10(?:\.\d+){3}|192\.168(?:\.\d+){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2})\b/],
  ['an internal host', /\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|lan|intranet|svc|cluster)\b/i],
  ['a stack', /(?:^|\n)\s*at .+:\d+|\bat \S+ \(.+:\d+:\d+\)|Traceback \(most recent call last\)/],
  ['a source line', /\.(?:[cm]?[jt]sx?|py|go|rs):\d+|\bFile ".+", line \d+|node_modules/],
];

/** An empty list means that the contract holds, as far as bytes alone can show. */
export function check(bytes: Uint8Array, expectation: Expectation): string[] {
  const { frames, faults } = readFrames(bytes, expectation.clientLeft === true);
  const failed = frames.some((frame) => frame.kind === 'error');
  const stream: Stream = { expectation, frames, failed };
  return [...faults, ...rules.flatMap((rule) => [...rule(stream)])];
}

const checkF2: Rule = function* (stream) {
  const done = stream.frames.filter((frame) => frame.kind === 'done');
  if (done.length > 1) yield fault('F2', '[DONE] comes more than once', done[1]?.number);
  const last = stream.frames.at(-1);
  if (done.length > 0 && last?.kind !== 'done') yield fault('F2', 'a frame after [DONE]', last?.number);
  if (done.length === 0 && stream.expectation.clientLeft !== true) yield fault('F2', 'no [DONE]');
};

/** Usage that was requested. */
const checkU1: Rule = function* (stream) {
  if (stream.expectation.usage !== 'end') return;
  for (const { frame, value } of chunksOf(stream)) {
    if (!hasUsage(value)) continue;
    if (!Array.isArray(value.choices) || value.choices.length > 0) {
      yield fault('U1', 'usage beside choices', frame);
    }
    const next = stream.frames.find((later) => later.number > frame && later.kind !== 'heartbeat');
    if (next !== undefined && next.kind !== 'done' && !isUsage(next)) {
      yield fault('U1', 'usage is not the last before [DONE]', frame);
    }
  }
};

function isUsage(frame: Frame): boolean {
  return frame.kind === 'chunk' && hasUsage(frame.value);
}

const checkU2: Rule = function* (stream) {
  const { usage, clientLeft } = stream.expectation;
  const [first, second] = stream.frames.filter(isUsage);
  if (second !== undefined) yield fault('U2', 'usage comes more than once', second.number);
  if (first === undefined) {
    if (usage === 'end' && !stream.failed && clientLeft !== true) yield fault('U2', 'no usage chunk');
    return;
  }
  if (stream.failed) yield fault('U2', 'usage on a stream that failed', first.number);
  if (usage === 'nowhere') yield fault('U2', 'usage that was not requested', first.number);
  if (usage === 'finish') yield* atLastFinish(stream, first.number);
};

/** Usage that was not requested is on the chunk of the last finish. */
function* atLastFinish(stream: Stream, usage: number) {
  const finishes = [...chunksOf(stream)].filter(({ value }) => isFinish(value)).map(({ frame }) => frame);
  if (!finishes.includes(usage)) yield fault('U2', 'usage on a chunk without a finish', usage);
  else if (finishes.at(-1) !== usage) yield fault('U2', 'usage before the last finish', usage);
}

function isFinish(chunk: JsonObject): boolean {
  return listOf(chunk.choices).some((choice) => textOf(objectOf(choice).finish_reason) !== '');
}

const checkV2: Rule = function* (stream) {
  for (const frame of stream.frames) {
    if (frame.kind !== 'vendor') continue;
    const type = textOf(frame.value.type);
    if (stream.expectation.vendorEvents === 'strip') {
      yield fault('V2', `a vendor event passed: ${type || frame.event}`, frame.number);
    } else if (!type.startsWith('x_') && frame.event === '') {
      yield fault('V2', 'a vendor event with neither a type nor an event line', frame.number);
    }
  }
};

const checkE2: Rule = function* (stream) {
  let failedAt: number | undefined;
  for (const frame of stream.frames) {
    if (failedAt !== undefined && frame.kind !== 'done') {
      yield fault('E2', `a ${frame.kind} frame after the error frame ${failedAt}`, frame.number);
    }
    if (frame.kind !== 'error') continue;
    failedAt ??= frame.number;
    yield* errorShape(frame.value, frame.number);
  }
};

function* errorShape(value: JsonObject, frame: number) {
  yield* keyFault('E2', 'an error frame', value, ['error'], frame);
  yield* keyFault('E2', 'an error', value.error, ERROR_KEYS, frame);
  const { message, type, param, code } = objectOf(value.error);
  if (typeof message !== 'string' || message === '') yield fault('E2', 'message is not a string', frame);
  if (!ERROR_TYPES.includes(textOf(type))) yield fault('E2', `type is ${JSON.stringify(type)}`, frame);
  if (param !== null && typeof param !== 'string') yield fault('E2', 'param is neither null nor text', frame);
  if (typeof code !== 'string' || code === '') yield fault('E2', `code is ${JSON.stringify(code)}`, frame);
}

const checkE3: Rule = function* (stream) {
  const wanted = stream.expectation.errorFrames === 'event';
  for (const frame of stream.frames) {
    if (frame.kind !== 'error' || (frame.event === 'error') === wanted) continue;
    yield fault(
      'E3',
      wanted ? 'an error without its event field' : 'an error with an event field',
      frame.number,
    );
  }
};

/** Z.ai has the id `zai`. */
function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** The message alone names the provider, but no field of an error frame may contain a secret. */
const checkE4: Rule = function* (stream) {
  for (const frame of stream.frames) {
    if (frame.kind !== 'error') continue;
    const { message, param, code } = objectOf(frame.value.error);
    if (!lettersOf(textOf(message)).includes(lettersOf(stream.expectation.provider))) {
      yield fault('E4', 'the message does not name the provider', frame.number);
    }
    const text = [message, param, code].map(textOf).join('\n');
    for (const [name, pattern] of SECRETS) {
      if (pattern.test(text)) yield fault('E4', `the error contains ${name}`, frame.number);
    }
  }
};

const rules: readonly Rule[] = [
  checkF2,
  ...chunkRules,
  ...choiceRules,
  checkU1,
  checkU2,
  checkV2,
  checkE2,
  checkE3,
  checkE4,
];
