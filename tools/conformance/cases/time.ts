/** Disconnects, added latency, chunks held back, and bytes that a gateway buffers. */
import type { Case, Step } from '../case.ts';
import * as chat from '../wire/chat.ts';
import * as gemini from '../wire/gemini.ts';
import * as messages from '../wire/messages.ts';
import * as responses from '../wire/responses.ts';
import {
  CHAT,
  CHAT_MESSAGES,
  CHAT_RESPONSES,
  GEMINI_CHAT,
  MESSAGES,
  MESSAGES_CHAT,
  RESPONSES,
  RESPONSES_CHAT,
  TEXT,
  TOOLS,
} from './shared.ts';

const BILLED = 'The provider writes and bills an answer that nobody reads.';
const MIB = 1024 * 1024;
/** The provider goes on writing, since some gateways notice a disconnect at their next write only. */
const writing = (event: string): Step => ({ repeat: event, bytes: MIB, everyMs: 20 });
const GONE = { isCancelled: true } as const;

const messageHead = [messages.start(), messages.open(0, { type: 'text', text: '' })];
const messageWord = (text: string) => messages.part(0, { type: 'text_delta', text });

export const disconnects: readonly Case[] = [
  {
    ...CHAT,
    id: 'disconnects/while-writing',
    title: 'The client leaves in the middle of the text',
    suffers: BILLED,
    thread: 'QuantumNous/new-api#4184',
    serve: [chat.ROLE, ...chat.words('one two'), writing(chat.delta({ content: ' more' }))],
    leavesAt: 'two',
    expect: GONE,
  },
  {
    ...CHAT,
    id: 'disconnects/while-silent',
    title: 'The client leaves while the provider is silent',
    suffers: BILLED,
    thread: 'BerriAI/litellm#13774',
    serve: [chat.ROLE, ...chat.words('one two')],
    ends: 'hang',
    leavesAt: 'two',
    expect: GONE,
  },
  {
    ...CHAT,
    id: 'disconnects/before-output',
    title: 'The client leaves before the first word',
    suffers: BILLED,
    thread: 'BerriAI/litellm#30223',
    serve: [],
    ends: 'hang',
    leavesAt: '',
    expect: GONE,
  },
  {
    ...CHAT,
    id: 'disconnects/not-streamed',
    title: 'The client leaves before a response that is not streamed',
    suffers: BILLED,
    thread: 'BerriAI/litellm#37140',
    request: { isStreamed: false },
    head: { contentType: 'application/json' },
    serve: [],
    ends: 'hang',
    leavesAt: '',
    expect: GONE,
  },
  {
    ...CHAT,
    id: 'disconnects/inside-call',
    title: 'The client leaves inside the arguments of a call',
    suffers: BILLED,
    thread: 'BerriAI/litellm#17364',
    request: TOOLS,
    serve: [
      chat.ROLE,
      chat.call(0, 'call_a1', 'get_weather', '{"city":"two'),
      writing(chat.fragment(0, ' more')),
    ],
    leavesAt: 'two',
    expect: GONE,
  },
  {
    ...CHAT_MESSAGES,
    id: 'disconnects/to-messages',
    title: 'A Messages client leaves in the middle of the text',
    suffers: BILLED,
    thread: 'BerriAI/litellm#36123',
    serve: [chat.ROLE, ...chat.words('one two'), writing(chat.delta({ content: ' more' }))],
    leavesAt: 'two',
    expect: GONE,
  },
  {
    ...CHAT_RESPONSES,
    id: 'disconnects/to-responses',
    title: 'A Responses client leaves in the middle of the text',
    suffers: BILLED,
    thread: 'BerriAI/litellm#36123',
    serve: [chat.ROLE, ...chat.words('one two'), writing(chat.delta({ content: ' more' }))],
    leavesAt: 'two',
    expect: GONE,
  },
  {
    ...MESSAGES_CHAT,
    id: 'disconnects/messages',
    title: 'Messages to chat: the client leaves in the middle of the text',
    suffers: BILLED,
    thread: 'Wei-Shaw/sub2api#1357',
    serve: [...messageHead, messageWord('one two'), writing(messageWord(' more'))],
    leavesAt: 'two',
    expect: GONE,
  },
  {
    ...GEMINI_CHAT,
    id: 'disconnects/gemini',
    title: 'Gemini to chat: the client leaves in the middle of the text',
    suffers: BILLED,
    thread: 'Wei-Shaw/sub2api#1357',
    serve: [...gemini.words('one two'), writing(gemini.event([{ text: ' more' }]))],
    leavesAt: 'two',
    expect: GONE,
  },
];

const PACED = 12;
const paced = (events: readonly string[]): Step[] => events.flatMap((event) => [event, { waitMs: 4 }]);
const numbers = Array.from({ length: PACED }, (_, at) => ` w${at}`);

/** The limits are generous: a busy machine must not fail them. The figure is the result. */
const FIRST_MS = 2500;
const FURTHER_MS = 150;

export const latency: readonly Case[] = [
  {
    ...CHAT,
    id: 'latency/first-chunk',
    title: 'Time to the first word, against the provider without a gateway',
    suffers: 'The user waits before anything is shown.',
    thread: 'nicedreamzapp/claude-code-local#39',
    serve: [
      chat.ROLE,
      ...paced(numbers.map((content) => chat.delta({ content }))),
      chat.finish('stop'),
      chat.DONE,
    ],
    measure: 'first chunk',
    expect: { atMost: FIRST_MS },
  },
  {
    ...CHAT,
    id: 'latency/further-chunk',
    title: 'Time from the provider to the client for each further word, the median',
    suffers: 'Words come late.',
    thread: 'BerriAI/litellm#26102',
    serve: [
      chat.ROLE,
      ...paced(numbers.map((content) => chat.delta({ content }))),
      chat.finish('stop'),
      chat.DONE,
    ],
    measure: 'further chunk',
    expect: { atMost: FURTHER_MS },
  },
  {
    ...MESSAGES_CHAT,
    id: 'latency/messages-further-chunk',
    title: 'Messages to chat: time for each further word, the median',
    suffers: 'Words come late.',
    thread: null,
    serve: [
      ...messageHead,
      ...paced(numbers.map(messageWord)),
      messages.close(0),
      messages.stop('end_turn'),
      messages.END,
    ],
    measure: 'further chunk',
    expect: { atMost: FURTHER_MS },
  },
  {
    ...GEMINI_CHAT,
    id: 'latency/gemini-further-chunk',
    title: 'Gemini to chat: time for each further word, the median',
    suffers: 'Words come late.',
    thread: null,
    serve: [...paced(numbers.map((text) => gemini.event([{ text }]))), gemini.finish('STOP')],
    measure: 'further chunk',
    expect: { atMost: FURTHER_MS },
  },
];

const HELD = 'Words are shown in bursts, or all at the end.';
const CALL_HELD = 'An agent shows nothing while a long file is written.';

/** Each of these is sent only after the client has the one before. */
const gated = (events: readonly string[], marks: readonly string[]): Step[] =>
  events.flatMap((event, at) => [event, { until: marks[at] ?? '' }]);
const MARKS = ['one', 'two', 'three'];
const gatedText = [chat.ROLE, ...gated(chat.words('one two three'), MARKS)];
const END = [chat.finish('stop'), chat.DONE];
const THREE = { text: 'one two three' } as const;
const ARGUMENTS = ['{"city":"one', ' two', ' three'];
const CALL_THREE = { calls: [{ name: 'get_weather', arguments: '{"city":"one two three"}' }] };
const gatedCall = [
  chat.ROLE,
  chat.call(0, 'call_a1', 'get_weather'),
  ...gated(
    ARGUMENTS.map((json) => chat.fragment(0, json)),
    MARKS,
  ),
  chat.fragment(0, '"}'),
  chat.finish('tool_calls'),
  chat.DONE,
];
const messageGated = [
  ...messageHead,
  ...gated(['one', ' two', ' three'].map(messageWord), MARKS),
  messages.close(0),
  messages.stop('end_turn'),
  messages.END,
];
const item = responses.message(0, 'one two three');
const responseGated = (() => {
  const events = responses.stream([item]);
  return [...events.slice(0, 4), ...gated(events.slice(4, 7), MARKS), ...events.slice(7)];
})();

export const holding: readonly Case[] = [
  {
    ...CHAT,
    id: 'holding/text',
    title: 'The provider waits after each word until the client has it',
    suffers: HELD,
    thread: 'BerriAI/litellm#26102',
    serve: [...gatedText, ...END],
    expect: THREE,
  },
  {
    ...CHAT,
    id: 'holding/reasoning',
    title: 'The provider waits after each piece of reasoning',
    suffers: 'The user sees nothing while the model thinks.',
    thread: null,
    serve: [chat.ROLE, ...gated(chat.thoughts('one two three'), MARKS), ...chat.words(TEXT), ...END],
    expect: { reasoning: 'one two three', text: TEXT },
  },
  {
    ...CHAT,
    id: 'holding/arguments',
    title: 'The provider waits after each fragment of arguments',
    suffers: CALL_HELD,
    thread: 'seaavey/SRouter#104',
    request: TOOLS,
    serve: gatedCall,
    expect: CALL_THREE,
  },
  {
    ...CHAT,
    id: 'holding/with-tools',
    title: 'The request has tools, and the model writes text; the provider waits after each word',
    suffers: 'With tools, words come all at the end.',
    thread: 'seaavey/SRouter#104',
    request: TOOLS,
    serve: [...gatedText, ...END],
    expect: THREE,
  },
  {
    ...CHAT,
    id: 'holding/single-bytes',
    title: 'The provider writes single bytes, and waits after each word',
    suffers: HELD,
    thread: null,
    serve: [...gatedText.flatMap((step): Step[] => (typeof step === 'string' ? [...step] : [step])), ...END],
    expect: THREE,
  },
  {
    ...CHAT,
    id: 'holding/crlf',
    title: 'Lines end in CR LF; the provider waits after each word',
    suffers: HELD,
    thread: 'miruamel/xuan#194',
    serve: [...gatedText, ...END].map((step) =>
      typeof step === 'string' ? step.replaceAll('\n', '\r\n') : step,
    ),
    expect: THREE,
  },
  {
    ...MESSAGES_CHAT,
    id: 'holding/messages',
    title: 'Messages to chat: the provider waits after each word',
    suffers: HELD,
    thread: 'BerriAI/litellm#29557',
    serve: messageGated,
    expect: THREE,
  },
  {
    ...GEMINI_CHAT,
    id: 'holding/gemini',
    title: 'Gemini to chat: the provider waits after each word',
    suffers: HELD,
    thread: null,
    serve: [...gated(gemini.words('one two three'), MARKS), gemini.finish('STOP')],
    expect: THREE,
  },
  {
    ...RESPONSES_CHAT,
    id: 'holding/responses',
    title: 'Responses to chat: the provider waits after each word',
    suffers: HELD,
    thread: null,
    serve: responseGated,
    expect: THREE,
  },
  {
    ...CHAT_MESSAGES,
    id: 'holding/to-messages',
    title: 'Chat to a Messages client: the provider waits after each word',
    suffers: HELD,
    thread: 'nicedreamzapp/claude-code-local#39',
    serve: [...gatedText, ...END],
    expect: THREE,
  },
  {
    ...CHAT_MESSAGES,
    id: 'holding/to-messages-arguments',
    title: 'Chat to a Messages client: the provider waits after each fragment of arguments',
    suffers: CALL_HELD,
    thread: 'nicedreamzapp/claude-code-local#39',
    request: TOOLS,
    serve: gatedCall,
    expect: CALL_THREE,
  },
  {
    ...CHAT_RESPONSES,
    id: 'holding/to-responses',
    title: 'Chat to a Responses client: the provider waits after each word',
    suffers: HELD,
    thread: null,
    serve: [...gatedText, ...END],
    expect: THREE,
  },
  {
    ...MESSAGES,
    id: 'holding/messages-to-messages',
    title: 'Messages to a Messages client: the provider waits after each word',
    suffers: HELD,
    thread: 'BerriAI/litellm#29557',
    serve: messageGated,
    expect: THREE,
  },
  {
    ...RESPONSES,
    id: 'holding/responses-to-responses',
    title: 'Responses to a Responses client: the provider waits after each word',
    suffers: HELD,
    thread: null,
    serve: responseGated,
    expect: THREE,
  },
];

/** Kernels buffer some 20 MiB on the way from the upstream to the client; the rest is the gateway. */
const AHEAD_MIB = 48;
const FLOOD_BYTES = 160 * MIB;
const MEMORY_MIB = 64;
const flood = (event: string): Step => ({ repeat: event.repeat(200), bytes: FLOOD_BYTES });
const LONG = 'wave '.repeat(60);

export const buffering: readonly Case[] = [
  {
    ...CHAT,
    id: 'buffering/reader-stops',
    title: 'The client stops reading: how much the gateway takes from the provider',
    suffers: 'One slow client fills the memory of the gateway, and all streams end.',
    thread: 'codemie-ai/codemie-code#317',
    serve: [chat.ROLE, flood(chat.delta({ content: LONG }))],
    readsNothing: true,
    measure: 'bytes ahead',
    expect: { atMost: AHEAD_MIB },
  },
  {
    ...MESSAGES_CHAT,
    id: 'buffering/messages-reader-stops',
    title: 'Messages to chat: the client stops reading',
    suffers: 'One slow client fills the memory of the gateway, and all streams end.',
    thread: 'codemie-ai/codemie-code#317',
    serve: [...messageHead, flood(messageWord(LONG))],
    readsNothing: true,
    measure: 'bytes ahead',
    expect: { atMost: AHEAD_MIB },
  },
  {
    ...CHAT,
    id: 'buffering/memory',
    title: 'Growth of the memory of the gateway while the client does not read',
    suffers: 'One slow client fills the memory of the gateway, and all streams end.',
    thread: 'codemie-ai/codemie-code#317',
    serve: [chat.ROLE, flood(chat.delta({ content: LONG }))],
    readsNothing: true,
    measure: 'memory',
    expect: { atMost: MEMORY_MIB },
  },
];
