/** Ids of responses, choices and roles. */
import type { Case } from '../case.ts';
import * as chat from '../wire/chat.ts';
import * as gemini from '../wire/gemini.ts';
import * as messages from '../wire/messages.ts';
import { piecesOf } from '../wire/sse.ts';
import { CHAT, CHAT_MESSAGES, CHAT_RESPONSES, GEMINI_CHAT, MESSAGES_CHAT, TEXT } from './shared.ts';

const whole = chat.stream(chat.words(TEXT));
const ID = '"id":"chatcmpl-c0f1",';

export const ids: readonly Case[] = [
  {
    ...CHAT,
    id: 'ids/changes',
    title: 'Each chunk has another id',
    suffers: 'Clients that merge chunks by id show one message for each word.',
    thread: 'BerriAI/litellm#1571',
    serve: whole.map((event, at) => event.replace('chatcmpl-c0f1', `chatcmpl-${at}`)),
    expect: { text: TEXT, hasOneId: true },
  },
  {
    ...CHAT,
    id: 'ids/absent',
    title: 'No chunk has an id',
    suffers: 'The response cannot be told from others, and clients that merge by id show fragments.',
    thread: 'BerriAI/litellm#38098',
    serve: whole.map((event) => event.replace(ID, '')),
    expect: { text: TEXT, hasOneId: true },
  },
  {
    ...CHAT,
    id: 'ids/empty-at-first',
    title: 'The first chunk has an empty id and no choices, as Azure sends its filter results',
    suffers: 'The response gets the id "", or the first chunk ends the stream.',
    thread: null,
    serve: [
      `data: {"id":"","object":"chat.completion.chunk","created":0,"model":"","choices":[],"prompt_filter_results":[]}\n\n`,
      ...whole,
    ],
    expect: { text: TEXT, hasOneId: true, finish: 'stop' },
  },
  {
    ...CHAT,
    id: 'ids/no-role',
    title: 'No delta has a role',
    suffers: 'Clients that create a message when its role arrives crash at the first word.',
    thread: 'langwatch/langwatch#6196',
    serve: chat.stream(chat.words(TEXT)).slice(1),
    expect: { text: TEXT, hasOneRole: true },
  },
  {
    ...CHAT,
    id: 'ids/role-repeated',
    title: 'Each delta has the role',
    suffers: 'Clients that begin a message at each role show one message for each word.',
    thread: null,
    serve: [
      ...piecesOf(TEXT).map((content) => chat.delta({ role: 'assistant', content })),
      chat.finish('stop'),
      chat.DONE,
    ],
    expect: { text: TEXT, hasOneRole: true },
  },
  {
    ...CHAT,
    id: 'ids/nulls',
    title: 'Deltas full of nulls: content, tool calls, function call, refusal',
    suffers: 'Clients that check types, or iterate over lists, throw at null.',
    thread: 'openai/openai-python#3126',
    serve: [
      chat.ROLE,
      ...piecesOf(TEXT).map((content) =>
        chat.delta({ role: null, content, tool_calls: null, function_call: null, refusal: null }),
      ),
      chat.finish('stop'),
      chat.DONE,
    ],
    expect: { text: TEXT, finish: 'stop', hasOneRole: true },
  },
  {
    ...CHAT,
    id: 'ids/no-choice-index',
    title: 'Choices have no index',
    suffers: 'Accumulators that file choices by index lose the whole text.',
    thread: null,
    serve: whole.map((event) => event.replace('"choices":[{"index":0,', '"choices":[{')),
    expect: { text: TEXT, finish: 'stop' },
  },
  {
    ...CHAT,
    id: 'ids/two-choices',
    title: 'Two choices whose words alternate',
    suffers: 'The two outputs are mixed, or the second is missing.',
    thread: null,
    request: { choices: 2 },
    serve: [
      ...piecesOf(TEXT).flatMap((content) =>
        [0, 1].map((index) =>
          chat.chunk({ index, delta: { content: index === 0 ? content : content.toUpperCase() } }),
        ),
      ),
      ...[0, 1].map((index) => chat.chunk({ index, finish_reason: 'stop' })),
      chat.DONE,
    ],
    expect: { text: [TEXT, TEXT.toUpperCase()], finish: 'stop' },
  },
  {
    ...MESSAGES_CHAT,
    id: 'ids/messages-to-chat',
    title: 'Messages: role and id come with message_start only',
    suffers: 'Chunks have different ids, or the role is missing.',
    thread: 'BerriAI/litellm#38098',
    serve: messages.stream(messages.text(0, TEXT)),
    expect: { hasOneId: true, hasOneRole: true },
  },
  {
    ...GEMINI_CHAT,
    id: 'ids/gemini-to-chat',
    title: 'Gemini: each event has the role `model`',
    suffers: 'The role is repeated or foreign, so clients begin new messages.',
    thread: null,
    serve: [...gemini.words(TEXT), gemini.finish('STOP')],
    expect: { text: TEXT, hasOneId: true, hasOneRole: true },
  },
  {
    ...CHAT_MESSAGES,
    id: 'ids/chat-to-messages',
    title: 'Chat to a Messages client: ids change in the stream',
    suffers: 'A second message_start splices two messages, and the SDK throws.',
    thread: 'vercel/ai#18402',
    serve: whole.map((event, at) => event.replace('chatcmpl-c0f1', `chatcmpl-${at}`)),
    expect: { text: TEXT, hasOneId: true, hasOneRole: true, followsProtocol: true },
  },
  {
    ...CHAT_RESPONSES,
    id: 'ids/chat-to-responses',
    title: 'Chat to a Responses client: ids change in the stream',
    suffers: 'Deltas belong to items that were never announced, and the client throws.',
    thread: 'maximhq/bifrost#5959',
    serve: whole.map((event, at) => event.replace('chatcmpl-c0f1', `chatcmpl-${at}`)),
    expect: { text: TEXT, hasOneId: true, followsProtocol: true },
  },
];
