/** Text, and the forms of an event stream that the WHATWG specification allows. */
import { type Case, CLIENTS, type Step, UPSTREAMS, type Upstream } from '../case.ts';
import * as chat from '../wire/chat.ts';
import * as gemini from '../wire/gemini.ts';
import * as messages from '../wire/messages.ts';
import * as responses from '../wire/responses.ts';
import { splitBytes } from '../wire/sse.ts';
import { CHAT, TEXT } from './shared.ts';

const PLAIN: Readonly<Record<Upstream, readonly Step[]>> = {
  chat: chat.stream(chat.words(TEXT)),
  messages: messages.stream(messages.text(0, TEXT)),
  responses: responses.stream([responses.message(0, TEXT)]),
  gemini: [...gemini.words(TEXT), gemini.finish('STOP')],
};

const LOST = 'The text is incomplete or garbled, and nothing says so.';

/** One for each pair of protocols. Whether a gateway offers a pair is judged by these. */
export const plain: readonly Case[] = UPSTREAMS.flatMap((upstream) =>
  CLIENTS.map((client) => ({
    id: `framing/plain-${upstream}-to-${client}` as const,
    title: `${upstream} to ${client}: a text of eight words`,
    suffers: 'Nothing works for clients of this protocol with providers of the other.',
    thread: upstream === 'chat' && client === 'messages' ? 'langwatch/langwatch#6207' : null,
    upstream,
    client,
    serve: PLAIN[upstream],
    expect: { text: TEXT, outcome: 'complete', finish: 'stop', followsProtocol: true },
  })),
);

const MANY_BYTES = 'Zürich 北京 🌊 naïve Ωmega';
const manyBytes = chat.stream(chat.words(MANY_BYTES)).join('');
const whole = chat.stream(chat.words(TEXT));
const LARGE = 'wave '.repeat(40_000);

export const framing: readonly Case[] = [
  ...plain,
  {
    ...CHAT,
    id: 'framing/characters-split',
    title: 'Writes of seven bytes, which end inside characters',
    suffers: 'Letters with accents, Chinese and emoji become replacement characters.',
    thread: 'musistudio/claude-code-router#1672',
    serve: splitBytes(manyBytes, 7),
    expect: { text: MANY_BYTES },
  },
  {
    ...CHAT,
    id: 'framing/single-bytes',
    title: 'Each byte is a write of its own',
    suffers: 'Events that arrive in pieces are dropped or end the stream with a JSON error.',
    thread: 'fastrepl/anarlog#6872',
    serve: splitBytes(manyBytes, 1),
    expect: { text: MANY_BYTES },
  },
  {
    ...CHAT,
    id: 'framing/one-write',
    title: 'The whole stream is one write',
    suffers: 'Only the first event of a write is read; the rest of the text is lost.',
    thread: 'tenstorrent/tt-studio#936',
    serve: [whole.join('')],
    expect: { text: TEXT, finish: 'stop' },
  },
  {
    ...CHAT,
    id: 'framing/crlf',
    title: 'Lines end in CR LF',
    suffers: 'The response is empty, because no blank line is found.',
    thread: 'miruamel/xuan#194',
    serve: whole.map((event) => event.replaceAll('\n', '\r\n')),
    expect: { text: TEXT },
  },
  {
    ...CHAT,
    id: 'framing/crlf-split',
    title: 'CR and LF of one line ending are in two writes',
    suffers: 'One line ending counts as two, so an event ends too early and is lost.',
    thread: 'router-for-me/CLIProxyAPI#5657',
    serve: whole.flatMap((event) => event.replaceAll('\n', '\r\n').split(/(?<=\r)/)),
    expect: { text: TEXT },
  },
  {
    ...CHAT,
    id: 'framing/cr',
    title: 'Lines end in CR',
    suffers: 'The response is empty.',
    thread: 'kubernetes-sigs/inference-perf#781',
    serve: whole.map((event) => event.replaceAll('\n', '\r')),
    expect: { text: TEXT },
  },
  {
    ...CHAT,
    id: 'framing/no-space',
    title: '`data:` without a space',
    suffers: 'Each event is skipped and the response is empty.',
    thread: 'dataelement/Clawith#106',
    serve: whole.map((event) => event.replace('data: ', 'data:')),
    expect: { text: TEXT, finish: 'stop' },
  },
  {
    ...CHAT,
    id: 'framing/comments',
    title: 'Comments between events, as OpenRouter sends while it waits',
    suffers: 'The comment reaches JSON.parse, and the stream ends with an exception.',
    thread: 'Routstr/routstr-core#543',
    serve: whole.flatMap((event) => [': PROCESSING\n\n', event]),
    expect: { text: TEXT, finish: 'stop', followsProtocol: true },
  },
  {
    ...CHAT,
    id: 'framing/several-data-lines',
    title: 'The JSON of an event on several `data` lines',
    suffers: 'Half of a JSON text is parsed, and the event is lost.',
    thread: 'SamSaffron/term-llm#456',
    serve: whole.map((event) => event.replace(',"choices"', ',\ndata: "choices"')),
    expect: { text: TEXT },
  },
  {
    ...CHAT,
    id: 'framing/byte-order-mark',
    title: 'The stream begins with a byte order mark',
    suffers: 'The first event is lost.',
    thread: null,
    serve: ['\uFEFF', ...whole],
    expect: { text: TEXT, hasOneRole: true },
  },
  {
    ...CHAT,
    id: 'framing/other-fields',
    title: 'Events with `id`, `retry` and unknown fields',
    suffers: 'The event is skipped, or its fields reach the client as text.',
    thread: null,
    serve: whole.map((event, at) => `id: ${at}\nretry: 1000\nx-node: 7\n${event}`),
    expect: { text: TEXT, finish: 'stop' },
  },
  {
    ...CHAT,
    id: 'framing/no-last-blank-line',
    title: 'The last event, with the finish reason, has no blank line behind it',
    suffers: 'The finish reason is lost, so a complete response looks cut off.',
    thread: 'mlflow/mlflow#20578',
    serve: [chat.ROLE, ...chat.words(TEXT), chat.finish('stop').trimEnd()],
    expect: { text: TEXT, finish: 'stop' },
  },
  {
    ...CHAT,
    id: 'framing/large-event',
    title: 'One event of 200 KB',
    suffers: 'The event exceeds a line buffer, and the stream ends or loses it.',
    thread: null,
    serve: chat.stream([chat.delta({ content: LARGE })]),
    expect: { text: LARGE },
  },
  {
    ...CHAT,
    id: 'framing/surrogates-apart',
    title: 'The two escapes of one emoji are in two events',
    suffers: 'The emoji becomes two replacement characters.',
    thread: null,
    serve: chat.stream(
      ['wave \\ud83c', '\\udf0a ok'].map((half) => chat.delta({ content: '@' }).replace('@', half)),
    ),
    expect: { text: 'wave 🌊 ok' },
  },
  {
    ...CHAT,
    id: 'framing/separators',
    title: 'A text with U+2028, U+0085, NUL and line ends',
    suffers: 'Line splitters that follow Unicode cut the event in two, and the text is lost.',
    thread: null,
    serve: chat.stream([chat.delta({ content: 'a\u2028b\u0085c' }), chat.delta({ content: '\u0000d\r\ne' })]),
    expect: { text: 'a\u2028b\u0085c\u0000d\r\ne' },
  },
  {
    ...CHAT,
    id: 'framing/long-numbers',
    title: 'The text has a JSON with a 19-digit number and odd white space',
    suffers: 'Ids inside the text change their last digits.',
    thread: null,
    serve: chat.stream([
      chat.delta({ content: '{"id": 9007199254740993123 ,' }),
      chat.delta({ content: ' "n":1.0}' }),
    ]),
    expect: { text: '{"id": 9007199254740993123 , "n":1.0}' },
  },
  {
    ...CHAT,
    id: 'framing/white-space',
    title: 'Pieces of white space only, and pieces that repeat',
    suffers: `${LOST} Code loses its indentation.`,
    thread: null,
    serve: chat.stream(
      ['if x:', '\n', '    ', '    ', 'y', '\n', '\n'].map((content) => chat.delta({ content })),
    ),
    expect: { text: 'if x:\n        y\n\n' },
  },
];
