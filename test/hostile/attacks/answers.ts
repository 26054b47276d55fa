/** The hostile upstream's responses, by model name. */
import type { Answer } from '../harness/answer.ts';
import { gzipOf, repeated } from '../harness/bytes.ts';
import { CONVERSE_ANSWERS } from './converse.ts';
import {
  DONE,
  delta,
  END,
  FINISH,
  MB,
  MIB,
  plain,
  plainAnswer,
  SSE_HEAD,
  stream,
  times,
  zippedPlain,
  zippedStream,
} from './frames.ts';
import { SHORT_REFUSAL } from './refusals.ts';

const FIRST = Buffer.from(delta({ content: 'a' }));
const DEEP = 3000;
export const REFUSED_HEAD = 'HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n';
const CONTROL = '\\u0001'.repeat(512);
const SURROGATES = '\\ud800'.repeat(512);
const SHORT_EVENT = '{"choices":[{"delta":{"content":"a"}}]}';
/** The shortest entry. The client's entry for it is five times as long. */
const TOKEN = '{"token":""}';
/** The number of empty entries below the size limit of an event, one mebibyte. */
const EMPTY_ENTRIES = 349_000;
/** The number of entries below the limit of values; an object in a list counts twice. */
const BELOW_VALUES = 124_000;

function deepObject(levels: number): string {
  return '{"1":'.repeat(levels) + '1' + '}'.repeat(levels);
}

function deepCall(levels: number): string {
  return `"tool_calls":[{"id":"c","function":{"name":"f","arguments":${deepObject(levels)}}}]`;
}

function entries(count: number, entry: string): Buffer {
  return Buffer.concat([repeated(`${entry},`, count - 1), Buffer.from(entry)]);
}

function logprobsEvent(count: number, entry = TOKEN): Buffer {
  const [before, after] =
    '{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[@]}}]}'.split('@');
  return Buffer.concat([Buffer.from(`data: ${before}`), entries(count, entry), Buffer.from(`${after}\n\n`)]);
}

function plainLogprobs(count: number, entry = TOKEN): Answer {
  const [before = '', after = ''] = plainAnswer('{"content":"a"}', ',"logprobs":{"content":[@]}').split('@');
  return plain([before, entries(count, entry), after]);
}

function plainText(bytes: number): Answer {
  const [before = '', after = ''] = plainAnswer('{"content":"@"}').split('@');
  return plain([before, ...times(repeated('x', MB), Math.floor(bytes / MB)), after]);
}

function unknownLists(count: number): Answer {
  const [before = '', after = ''] = plainAnswer('{"content":"a"}').replace('{', '{"u":[@],').split('@');
  return plain([before, repeated('[],', count - 1), '[]', after]);
}

/** The first event sets four names, which every chunk repeats. */
function names(name: string): Answer {
  const first = `data: {"id":"${name}","model":"${name}","service_tier":"${name}","system_fingerprint":"${name}","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n`;
  return stream([first, ...times(repeated(`data: ${SHORT_EVENT}\n\n`, 380), 260), END]);
}

function callIds(calls: number, idBytes: number): Answer {
  const filler = repeated('i', idBytes);
  const pieces = Array.from({ length: calls }, (_, i) => {
    const head = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":${i},"id":"${i}`;
    return [Buffer.from(head), filler, Buffer.from('","function":{"name":"f","arguments":"{}"}}]}}]}\n\n')];
  });
  return stream([...pieces.flat(), END]);
}

/** The maximal number of calls in the maximal number of choices, each with the longest id. */
function allCalls(): Answer {
  const id = 'i'.repeat(490);
  const pieces = Array.from({ length: 128 * 64 }, (_, i) => {
    const calls = Array.from({ length: 16 }, (_, call) => {
      const index = Math.floor(i / 128) * 16 + call;
      return { index, id: `${id}${i}-${call}`, function: { name: 'f', arguments: '' } };
    });
    return Buffer.from(
      `data: ${JSON.stringify({ choices: [{ index: i % 128, delta: { tool_calls: calls } }] })}\n\n`,
    );
  });
  return stream([...pieces, END]);
}

const CUT_PIECES = [delta({ content: 'whole answer' }), FINISH];
/** Events without output, repeated up to the size limit of a non-streaming response. */
const SILENCE: Readonly<Record<string, string>> = {
  'line-feeds': '\n'.repeat(MB),
  'carriage-returns': '\r'.repeat(MB),
  comments: ': c\n'.repeat(MB / 4),
  'empty-events': 'data:\n\n'.repeat(MB / 7),
  'unknown-fields': 'a\n'.repeat(MB / 2),
  'no-news': `data: {}\n\n`.repeat(MB / 10),
};

export const ANSWERS: Readonly<Record<string, () => Answer>> = {
  ok: () => stream([delta({ content: 'Hello ' }), ...times(delta({ content: 'there ' }), 200), END]),
  refused: () => plain(['{"error":{"message":"No"}}'], { head: REFUSED_HEAD }),
  'refused-shortly': () => plain([SHORT_REFUSAL], { head: REFUSED_HEAD }),
  'ok-plain': () => plain([plainAnswer('{"content":"ok"}')]),

  'deep-plain': () => plain([plainAnswer(`{${deepCall(DEEP)}}`)]),
  'deep-stream': () =>
    stream([FIRST, `data: {"choices":[{"index":0,"delta":{${deepCall(DEEP)}}}]}\n\n`, END]),
  'text-30': () => plainText(30 * MB),
  'text-8': () => plainText(8 * MB),
  'logprobs-30': () => plainLogprobs(10 * MB, '{}'),
  'lists-30': () => unknownLists(10 * MB),
  'logprobs-values': () => plainLogprobs(BELOW_VALUES),
  'lists-values': () => unknownLists(BELOW_VALUES),

  logprobs: () => stream([...times(logprobsEvent(EMPTY_ENTRIES, '{}'), 20), END]),
  'logprobs-below': () => stream([...times(logprobsEvent(80_000), 20), END]),
  'logprobs-fitting': () => stream([...times(logprobsEvent(41_000, '{"token":"","logprob":0}'), 8), END]),
  'long-text': () => stream([...times(delta({ content: 'é'.repeat(MIB / 2 - 200) }), 30), END]),
  ids: () => callIds(400, MB),
  'all-calls': allCalls,
  'control-names': () => names(CONTROL),
  'surrogate-names': () => names(SURROGATES),

  ...Object.fromEntries(
    Object.entries(SILENCE).map(([name, unit]) => [
      name,
      () => zippedStream(gzipOf(FIRST, Buffer.from(unit), 100)),
    ]),
  ),
  'zeros-stream': () => zippedStream(gzipOf(FIRST, Buffer.alloc(MB), 1000)),
  'zeros-plain': () => zippedPlain(gzipOf(Buffer.from('{"a":"'), Buffer.alloc(MB), 1000)),
  models: () => zippedPlain(gzipOf(Buffer.from('{"data":[{"id":"'), repeated('x', MB), 100)),

  'cut-chunks': () => stream(CUT_PIECES, { ending: 'cut' }),
  'cut-reset': () => stream(CUT_PIECES, { ending: 'reset' }),
  'cut-length': () => stream(CUT_PIECES, { framing: 'long length' }),
  'cut-two': () =>
    stream([delta({ content: 'one' }, { finish_reason: 'stop' }), delta({ content: 'two' }, { index: 1 })], {
      ending: 'cut',
    }),
  'cut-early': () => stream([delta({ content: 'half' })], { ending: 'cut' }),
  'cut-plain': () => plain([plainAnswer('{"content":"whole"}')], { framing: 'long length' }),
  hang: () => ({ framing: 'chunks', head: SSE_HEAD, pieces: [FIRST], ending: 'hang', pauseMs: 0 }),
  'hang-done': () => stream([FIRST, FINISH, DONE], { ending: 'hang' }),
  ...CONVERSE_ANSWERS,
};
