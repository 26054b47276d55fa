/** What the gateway's own record says, against what the provider bills. */
import type { Case } from '../case.ts';
import * as chat from '../wire/chat.ts';
import * as gemini from '../wire/gemini.ts';
import * as messages from '../wire/messages.ts';
import * as responses from '../wire/responses.ts';
import {
  CHAT,
  CHAT_MESSAGES,
  GEMINI_CHAT,
  MESSAGES,
  MESSAGES_CHAT,
  RESPONSES,
  RESPONSES_CHAT,
  TEXT,
} from './shared.ts';

const WORDS = [chat.ROLE, ...chat.words(TEXT)];
const USAGE = chat.usage(11, 7);
const BILL = { prompt: 11, completion: 7 } as const;
const EXACT = { record: { ...BILL, isEstimated: false } } as const;
const WRONG = 'The bill of a team differs from that of the provider.';

export const metering: readonly Case[] = [
  {
    ...CHAT,
    id: 'metering/complete',
    title: 'A complete stream',
    suffers: WRONG,
    thread: 'BerriAI/litellm#38065',
    serve: [...WORDS, chat.finish('stop'), chat.usageChunk(USAGE), chat.DONE],
    expect: EXACT,
  },
  {
    ...CHAT,
    id: 'metering/unasked',
    title: 'The client does not ask for usage; the provider reports it only when asked',
    suffers: 'The request counts as free, or is estimated.',
    thread: null,
    request: { asksUsage: false },
    serve: [...WORDS, chat.finish('stop'), { ifUsageAsked: chat.usageChunk(USAGE) }, chat.DONE],
    expect: EXACT,
  },
  {
    ...CHAT,
    id: 'metering/twice',
    title: 'Usage on the finish chunk and on a chunk of its own',
    suffers: 'The request counts twice.',
    thread: 'Gitlawb/openclaude#1444',
    serve: [...WORDS, chat.finish('stop', { usage: USAGE }), chat.usageChunk(USAGE), chat.DONE],
    expect: EXACT,
  },
  {
    ...CHAT,
    id: 'metering/growing',
    title: 'Usage on each chunk, growing',
    suffers: 'The request counts several times.',
    thread: 'tensorzero/tensorzero#5544',
    serve: [
      chat.ROLE,
      ...TEXT.split(/(?= )/).map((content, at) => chat.delta({ content }, { usage: chat.usage(11, at) })),
      chat.finish('stop', { usage: USAGE }),
      chat.DONE,
    ],
    expect: EXACT,
  },
  {
    ...CHAT,
    id: 'metering/none',
    title: 'The provider reports no usage',
    suffers: 'The request counts as free.',
    thread: 'BerriAI/litellm#38065',
    serve: [...WORDS, chat.finish('stop'), chat.DONE],
    expect: { record: { completion: null, isEstimated: true } },
  },
  {
    ...CHAT,
    id: 'metering/cut',
    title: 'The connection breaks after usage was reported',
    suffers: 'The provider bills a request that has no record.',
    thread: 'tombii/better-ccflare#344',
    serve: [
      chat.ROLE,
      ...TEXT.split(/(?= )/).map((content) => chat.delta({ content }, { usage: USAGE })),
      { until: 'eight' },
    ],
    ends: 'reset',
    expect: { outcome: 'failed', record: BILL },
  },
  {
    ...CHAT,
    id: 'metering/disconnected',
    title: 'The client leaves after usage was reported',
    suffers: 'The provider bills a request that has no record.',
    thread: 'BerriAI/litellm#17364',
    serve: [
      chat.ROLE,
      ...TEXT.split(/(?= )/).map((content) => chat.delta({ content }, { usage: USAGE })),
      { repeat: chat.delta({ content: ' more' }, { usage: USAGE }), bytes: 1_000_000, everyMs: 20 },
    ],
    leavesAt: 'eight',
    expect: { record: BILL },
  },
  {
    ...MESSAGES_CHAT,
    id: 'metering/messages-cache',
    title: 'Messages to chat: tokens read from and written to a cache',
    suffers: WRONG,
    thread: 'BerriAI/litellm#42663',
    serve: [
      messages.start({ input_tokens: 3, cache_read_input_tokens: 6, cache_creation_input_tokens: 2 }),
      ...messages.text(0, TEXT),
      messages.stop('end_turn'),
      messages.END,
    ],
    expect: EXACT,
  },
  {
    ...GEMINI_CHAT,
    id: 'metering/gemini-thoughts',
    title: 'Gemini to chat: thoughts are counted apart from the candidates',
    suffers: 'Reasoning is not billed to the team.',
    thread: 'Helicone/helicone#4261',
    serve: [
      ...gemini.words(TEXT),
      gemini.finish('STOP', {
        promptTokenCount: 11,
        candidatesTokenCount: 3,
        thoughtsTokenCount: 4,
        totalTokenCount: 18,
      }),
    ],
    expect: EXACT,
  },
  {
    ...RESPONSES_CHAT,
    id: 'metering/responses',
    title: 'Responses to chat: usage of the last event',
    suffers: WRONG,
    thread: null,
    serve: responses.stream([responses.message(0, TEXT)]),
    expect: EXACT,
  },
  {
    ...CHAT_MESSAGES,
    id: 'metering/to-messages',
    title: 'Chat to a Messages client',
    suffers: 'Requests of this protocol pass the budget uncounted.',
    thread: 'BerriAI/litellm#38176',
    serve: [...WORDS, chat.finish('stop'), chat.usageChunk(USAGE), chat.DONE],
    expect: EXACT,
  },
  {
    ...MESSAGES,
    id: 'metering/messages-to-messages',
    title: 'Messages to a Messages client',
    suffers: 'Requests that pass unchanged are not counted.',
    thread: 'maximhq/bifrost#2873',
    serve: messages.stream(messages.text(0, TEXT)),
    expect: EXACT,
  },
  {
    ...RESPONSES,
    id: 'metering/responses-to-responses',
    title: 'Responses to a Responses client',
    suffers: 'Requests that pass unchanged are not counted.',
    thread: 'BerriAI/litellm#38176',
    serve: responses.stream([responses.message(0, TEXT)]),
    expect: EXACT,
  },
];
