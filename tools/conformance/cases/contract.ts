/** What only Weir's contract asks for: each rule of the canonical stream on streams that tempt a gateway to break it. */
import type { Case } from '../case.ts';
import * as chat from '../wire/chat.ts';
import { BERN, CHAT, CHAT_MESSAGES, CHAT_RESPONSES, TEXT, THOUGHT, TOOLS } from './shared.ts';

const odd = [
  ': comment\n\n',
  chat.delta({ role: 'assistant', content: '', tool_calls: null }),
  ...chat.thoughts(THOUGHT, 'reasoning'),
  chat.delta({ content: '' }),
  ...TEXT.split(/(?= )/).map((content) => chat.delta({ role: 'assistant', content, refusal: null })),
  chat.call(0, 'call_a1', 'get_weather'),
  chat.call(0, 'call_a1', 'get_weather', BERN),
  chat.finish('tool_calls'),
  chat.finish('stop', { usage: chat.usage(11, 7) }),
  chat.usageChunk(chat.usage(11, 7)),
  chat.DONE,
  chat.DONE,
];
const failed = [
  chat.ROLE,
  ...chat.words('one two'),
  `event: error\ndata: ${JSON.stringify({ error: { message: 'Failed at http://10.0.0.7:8080 with key sk-proj-9fK2mQ7xLw4T', code: 500 } })}\n\n`,
];

const RULES: readonly (readonly [code: string, title: string, suffers: string])[] = [
  [
    'F1',
    'Each frame is `data: `, one line of compact JSON and two line feeds',
    'Clients with a simple parser lose frames.',
  ],
  ['F2', '[DONE] is the last frame, once', 'Clients wait for the end, or read what follows it.'],
  ['F3', 'No comment of the provider is forwarded', 'Clients with a simple parser take it for data.'],
  [
    'C1',
    'The keys of a chunk, in their order, without nulls',
    'Clients that validate with a schema refuse a null.',
  ],
  ['C2', 'One id, time and model on each chunk', 'Clients that merge by id show fragments.'],
  [
    'C3',
    'A choice has index, delta, logprobs and finish_reason',
    'Clients that validate with a schema throw.',
  ],
  ['C4', 'A delta has only what is new, and one role', 'Clients begin a second message, or show "null".'],
  ['C5', 'No chunk without new data', 'Work for nothing, and clients that render each chunk flicker.'],
  ['C6', 'Reasoning is always reasoning_content', 'Clients that know one name show no reasoning.'],
  [
    'C7',
    'Id, type and name of a call on its first fragment only',
    'Clients that join names call a tool that does not exist.',
  ],
  ['C8', 'One finish reason, of four words, and nothing behind it', 'Clients end a message twice.'],
  ['U1', 'Usage on one chunk without choices, the last', 'Clients that read the last chunk find no usage.'],
  ['U2', 'Usage once', 'Clients that add usage count twice.'],
];

export const contract: readonly Case[] = [
  ...RULES.map(
    ([code, title, suffers]): Case => ({
      ...CHAT,
      id: `contract/${code.toLowerCase()}`,
      title: `${code}: ${title}`,
      suffers,
      thread: null,
      request: TOOLS,
      serve: odd,
      expect: { rules: [code] },
    }),
  ),
  ...[
    [
      'E2',
      'One error frame with message, type, param and code, then [DONE]',
      'Clients that read the code find none.',
    ],
    ['E3', 'The error frame has no event line', 'Clients that listen for events miss it.'],
    [
      'E4',
      'The message names the provider, and no address or key',
      'Operators cannot see who failed, or clients see a key.',
    ],
  ].map(
    ([code = '', title = '', suffers = '']): Case => ({
      ...CHAT,
      id: `contract/${code.toLowerCase()}`,
      title: `${code}: ${title}`,
      suffers,
      thread: null,
      serve: failed,
      expect: { outcome: 'failed', rules: [code] },
    }),
  ),
  {
    ...CHAT_MESSAGES,
    id: 'contract/i3',
    title: 'I3: a Messages stream with each key that Anthropic documents, blocks in order',
    suffers: 'Clients that validate with a schema throw.',
    thread: null,
    request: TOOLS,
    serve: odd,
    expect: { rules: ['I3'] },
  },
  {
    ...CHAT_RESPONSES,
    id: 'contract/i4',
    title: 'I4: a Responses stream with each event and key of Open Responses',
    suffers: 'Clients that validate with a schema throw.',
    thread: null,
    request: TOOLS,
    serve: odd,
    expect: { rules: ['I4'] },
  },
];
