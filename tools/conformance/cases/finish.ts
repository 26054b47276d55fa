/** Finish reasons in the words of each protocol. */
import type { Case, Finish } from '../case.ts';
import * as chat from '../wire/chat.ts';
import * as gemini from '../wire/gemini.ts';
import * as messages from '../wire/messages.ts';
import * as responses from '../wire/responses.ts';
import {
  BERN,
  CHAT,
  CHAT_MESSAGES,
  CHAT_RESPONSES,
  GEMINI_CHAT,
  MESSAGES_CHAT,
  RESPONSES_CHAT,
  TEXT,
  TOOLS,
} from './shared.ts';

const CALL = chat.call(0, 'call_a1', 'get_weather', BERN);
const GEMINI_CALL = gemini.event([gemini.call('get_weather', { city: 'Bern' })]);
const CONTINUES = 'A response that the limit cut off counts as complete, so nothing continues it.';
const STOPS = 'The agent stops instead of running the call.';
const UNKNOWN = 'Clients that check the reason against a list throw.';

const word = (
  name: string,
  reason: string,
  finish: Finish,
  suffers: string,
  thread: string | null = null,
): Case => ({
  ...CHAT,
  id: `finish/${name}`,
  title: `The finish reason ${reason}`,
  suffers,
  thread,
  serve: chat.stream(chat.words(TEXT), reason),
  expect: { text: TEXT, finish, hasOneFinish: true },
});

const messagesWord = (
  reason: string,
  finish: Finish,
  suffers: string,
  thread: string | null = null,
): Case => ({
  ...MESSAGES_CHAT,
  id: `finish/messages-${reason.replaceAll('_', '-')}`,
  title: `Messages to chat: the stop reason ${reason}`,
  suffers,
  thread,
  serve: messages.stream(messages.text(0, TEXT), reason),
  expect: { text: TEXT, finish },
});

const geminiWord = (reason: string, finish: Finish, suffers: string, thread: string | null = null): Case => ({
  ...GEMINI_CHAT,
  id: `finish/gemini-${reason.toLowerCase().replaceAll('_', '-')}`,
  title: `Gemini to chat: the finish reason ${reason}`,
  suffers,
  thread,
  serve: [...gemini.words(TEXT), gemini.finish(reason)],
  expect: { text: TEXT, finish },
});

export const finish: readonly Case[] = [
  word('length', 'length', 'length', CONTINUES, 'zhayujie/CowAgent#3074'),
  word('content-filter', 'content_filter', 'content_filter', 'A filtered response counts as complete.'),
  word('max-tokens', 'max_tokens', 'length', CONTINUES, 'MAXeaglet/commandcode-proxy#39'),
  word('model-length', 'model_length', 'length', CONTINUES),
  word('eos', 'eos', 'stop', UNKNOWN),
  word('end-turn', 'end_turn', 'stop', UNKNOWN),
  {
    ...CHAT,
    id: 'finish/stop-after-call',
    title: 'A call with the finish reason stop',
    suffers: STOPS,
    thread: 'vercel/ai#12218',
    request: TOOLS,
    serve: chat.stream([CALL], 'stop'),
    expect: { finish: 'tool_calls' },
  },
  {
    ...CHAT,
    id: 'finish/function-call',
    title: 'A call with the finish reason function_call',
    suffers: STOPS,
    thread: null,
    request: TOOLS,
    serve: chat.stream([CALL], 'function_call'),
    expect: { finish: 'tool_calls' },
  },
  {
    ...CHAT,
    id: 'finish/beside-text',
    title: 'The finish reason beside the last word',
    suffers: 'The last word is lost.',
    thread: null,
    serve: [
      chat.ROLE,
      ...chat.words('one two three four five six seven'),
      chat.chunk({ delta: { content: ' eight' }, finish_reason: 'stop' }),
      chat.DONE,
    ],
    expect: { text: TEXT, finish: 'stop' },
  },
  {
    ...CHAT,
    id: 'finish/twice',
    title: 'The finish reason in two chunks, the second with usage',
    suffers: 'Clients end the message twice.',
    thread: 'tensorzero/tensorzero#5544',
    serve: [
      chat.ROLE,
      ...chat.words(TEXT),
      chat.finish('stop'),
      chat.finish('stop', { usage: chat.usage(11, 7) }),
      chat.DONE,
    ],
    expect: { text: TEXT, finish: 'stop', hasOneFinish: true },
  },
  {
    ...CHAT,
    id: 'finish/empty-words',
    title: 'The finish reason "" in each chunk but the last',
    suffers: 'A client takes the first "" for the end.',
    thread: 'CangShui/workbuddy-gateway#3',
    serve: [
      ...[chat.ROLE, ...chat.words(TEXT)].map((event) =>
        event.replace('"finish_reason":null', '"finish_reason":""'),
      ),
      chat.finish('length'),
      chat.DONE,
    ],
    expect: { text: TEXT, finish: 'length', hasNoEmptyFinish: true },
  },
  {
    ...CHAT,
    id: 'finish/after-each-chunk',
    title: 'A finish reason after each chunk, as some versions of Open WebUI send it',
    suffers: 'The text ends after its first word, and calls lose their arguments.',
    thread: '1jehuang/jcode#1326',
    serve: [chat.ROLE, ...chat.words(TEXT).flatMap((event) => [event, chat.finish('stop')]), chat.DONE],
    expect: { text: TEXT, finish: 'stop' },
  },
  messagesWord('max_tokens', 'length', CONTINUES, 'MAXeaglet/commandcode-proxy#39'),
  messagesWord('stop_sequence', 'stop', UNKNOWN),
  messagesWord('refusal', 'content_filter', 'A refusal counts as a complete response.'),
  messagesWord('model_context_window_exceeded', 'length', CONTINUES, 'MAXeaglet/commandcode-proxy#39'),
  {
    ...MESSAGES_CHAT,
    id: 'finish/messages-end-turn-after-call',
    title: 'Messages to chat: a call with the stop reason end_turn',
    suffers: STOPS,
    thread: null,
    request: TOOLS,
    serve: messages.stream(messages.toolUse(0, 'toolu_a1', 'get_weather', ['', BERN]), 'end_turn'),
    expect: { finish: 'tool_calls' },
  },
  geminiWord('MAX_TOKENS', 'length', CONTINUES),
  geminiWord('SAFETY', 'content_filter', 'A blocked response counts as complete.'),
  geminiWord('RECITATION', 'content_filter', UNKNOWN),
  {
    ...GEMINI_CHAT,
    id: 'finish/gemini-stop-after-call',
    title: 'Gemini to chat: a call, and STOP in the next event',
    suffers: STOPS,
    thread: 'envoyproxy/ai-gateway#2399',
    request: TOOLS,
    serve: [GEMINI_CALL, gemini.finish('STOP')],
    expect: { finish: 'tool_calls' },
  },
  {
    ...GEMINI_CHAT,
    id: 'finish/gemini-malformed-call',
    title: 'Gemini to chat: MALFORMED_FUNCTION_CALL',
    suffers: 'A failed call looks like an empty, complete response.',
    thread: 'NousResearch/hermes-agent#83886',
    request: TOOLS,
    serve: [gemini.event([], { finishReason: 'MALFORMED_FUNCTION_CALL' }, { usageMetadata: gemini.USAGE })],
    expect: { outcome: 'failed' },
  },
  {
    ...GEMINI_CHAT,
    id: 'finish/gemini-blocked-prompt',
    title: 'Gemini to chat: the prompt is blocked, so there is no candidate',
    suffers: 'The client sees an empty response without a reason.',
    thread: 'anomalyco/opencode#43070',
    serve: [
      gemini.gemini({
        promptFeedback: { blockReason: 'SAFETY' },
        usageMetadata: { promptTokenCount: 11, totalTokenCount: 11 },
      }),
    ],
    expect: { finish: 'content_filter' },
  },
  {
    ...RESPONSES_CHAT,
    id: 'finish/responses-max-output-tokens',
    title: 'Responses to chat: incomplete with the reason max_output_tokens',
    suffers: CONTINUES,
    thread: 'MAXeaglet/commandcode-proxy#39',
    serve: responses.stream([responses.message(0, TEXT)], 'incomplete', {
      incomplete_details: { reason: 'max_output_tokens' },
    }),
    expect: { text: TEXT, finish: 'length' },
  },
  {
    ...RESPONSES_CHAT,
    id: 'finish/responses-content-filter',
    title: 'Responses to chat: incomplete with the reason content_filter',
    suffers: 'A filtered response counts as complete.',
    thread: null,
    serve: responses.stream([responses.message(0, TEXT)], 'incomplete', {
      incomplete_details: { reason: 'content_filter' },
    }),
    expect: { text: TEXT, finish: 'content_filter' },
  },
  {
    ...RESPONSES_CHAT,
    id: 'finish/responses-empty-output',
    title: 'Responses to chat: a call, and response.completed with an empty output',
    suffers: STOPS,
    thread: 'mnfst/llm-gateway#2773',
    request: TOOLS,
    serve: responses.numbered([
      ...responses.created(),
      ...responses.functionCall(0, 'call_a1', 'get_weather', [BERN]).events,
      responses.ended('completed', []),
    ]),
    expect: { finish: 'tool_calls' },
  },
  {
    ...CHAT_MESSAGES,
    id: 'finish/to-messages-length',
    title: 'Chat to a Messages client: length',
    suffers: CONTINUES,
    thread: 'MAXeaglet/commandcode-proxy#39',
    serve: chat.stream(chat.words(TEXT), 'length'),
    expect: { finish: 'length' },
  },
  {
    ...CHAT_MESSAGES,
    id: 'finish/to-messages-stop-after-call',
    title: 'Chat to a Messages client: a call with the finish reason stop',
    suffers: 'Claude Code gets end_turn beside a call, and stops.',
    thread: 'badrisnarayanan/antigravity-claude-proxy#96',
    request: TOOLS,
    serve: chat.stream([CALL], 'stop'),
    expect: { finish: 'tool_calls' },
  },
  {
    ...CHAT_MESSAGES,
    id: 'finish/to-messages-empty-words',
    title: 'Chat to a Messages client: the finish reason "" in each chunk, tool_calls in the last',
    suffers: 'The first "" becomes end_turn, and tools are never run.',
    thread: 'CangShui/workbuddy-gateway#3',
    request: TOOLS,
    serve: [
      ...[chat.ROLE, CALL].map((event) => event.replace('"finish_reason":null', '"finish_reason":""')),
      chat.finish('tool_calls'),
      chat.DONE,
    ],
    expect: { finish: 'tool_calls' },
  },
  {
    ...CHAT_RESPONSES,
    id: 'finish/to-responses-length',
    title: 'Chat to a Responses client: length',
    suffers: CONTINUES,
    thread: 'MAXeaglet/commandcode-proxy#39',
    serve: chat.stream(chat.words(TEXT), 'length'),
    expect: { finish: 'length' },
  },
];
