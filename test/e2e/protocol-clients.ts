/** Clients of each protocol, with translation to chat and with passthrough, for tests that apply to all of them. */
import type { JsonObject } from '../../tools/simulator/json.ts';
import { MESSAGES } from './client.ts';
import { event, type Scenario } from './scenarios.ts';

interface UpstreamWords {
  readonly start: readonly string[];
  readonly word: (word: string) => string;
}

const named = (json: JsonObject) => `event: ${String(json.type)}\ndata: ${JSON.stringify(json)}\n\n`;

const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] };
const USAGE = { input_tokens: 2, output_tokens: 1 };
const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'in_progress',
  model: 'm',
  output: [],
};
const ITEM = { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] };
const PART = { type: 'output_text', text: '', annotations: [], logprobs: [] };
const AT = { item_id: 'msg_1', output_index: 0, content_index: 0 };

/** The start of an upstream's stream and an event with a word, for each protocol. */
const UPSTREAMS = {
  chat: { start: [], word: (word) => event(word) },
  messages: {
    start: [
      named({
        type: 'message_start',
        message: { ...MESSAGE, stop_reason: null, stop_sequence: null, usage: USAGE },
      }),
      named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ],
    word: (text) => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
  },
  responses: {
    start: [
      named({ type: 'response.created', response: RESPONSE, sequence_number: 0 }),
      named({ type: 'response.output_item.added', output_index: 0, item: ITEM, sequence_number: 1 }),
      named({ type: 'response.content_part.added', ...AT, part: PART, sequence_number: 2 }),
    ],
    word: (delta) =>
      named({ type: 'response.output_text.delta', ...AT, delta, logprobs: [], sequence_number: 3 }),
  },
} satisfies Record<string, UpstreamWords>;

type UpstreamName = keyof typeof UPSTREAMS;

export interface ProtocolClient {
  readonly name: string;
  /** The protocol's name in usage records. */
  readonly client: 'chat' | 'messages' | 'responses';
  readonly upstream: UpstreamName;
  readonly path: string;
  /** A streaming request with two words, for a scenario or for a model of the provider. */
  readonly body: (model: string) => JsonObject;
  /** Matches each word in the client's stream; the first group is the word. */
  readonly word: RegExp;
  readonly heartbeat: string;
}

const OF_CHAT = {
  client: 'chat',
  path: '/v1/chat/completions',
  word: /"content":"([^"]+)"/g,
  heartbeat: ': heartbeat\n\n',
} as const;
const OF_MESSAGES = {
  client: 'messages',
  path: '/v1/messages',
  word: /"type":"text_delta","text":"([^"]+)"/g,
  heartbeat: 'event: ping\n',
} as const;
const OF_RESPONSES = {
  client: 'responses',
  path: '/v1/responses',
  word: /"delta":"([^"]+)"/g,
  heartbeat: ': heartbeat\n\n',
} as const;

const STREAM = { stream: true };
const chatBody = (provider: string) => (model: string) => ({
  ...STREAM,
  model: `${provider}/${model}`,
  messages: MESSAGES,
});
const messagesBody = (provider: string) => (model: string) => ({
  ...chatBody(provider)(model),
  max_tokens: 4096,
});
const responsesBody = (provider: string) => (model: string) => ({
  ...STREAM,
  model: `${provider}/${model}`,
  input: 'Hello there',
});

export const PROTOCOL_CLIENTS: readonly ProtocolClient[] = [
  { ...OF_CHAT, name: 'chat', upstream: 'chat', body: chatBody('compatible') },
  { ...OF_MESSAGES, name: 'Messages', upstream: 'chat', body: messagesBody('compatible') },
  { ...OF_RESPONSES, name: 'Responses', upstream: 'chat', body: responsesBody('compatible') },
  { ...OF_MESSAGES, name: 'Messages, passthrough', upstream: 'messages', body: messagesBody('anthropic') },
  { ...OF_RESPONSES, name: 'Responses, passthrough', upstream: 'responses', body: responsesBody('openai') },
];

/** A scenario for each upstream protocol, named `<name>-<protocol>`. The words of each turn come in one write. */
export function scenariosOf(
  name: string,
  turns: readonly (readonly string[])[],
  more: Omit<Scenario, 'chunks'> = {},
): Record<string, Scenario> {
  const scenarios = Object.entries(UPSTREAMS).map(([upstream, { start, word }]) => {
    const writes = new Map([...new Set(turns)].map((words) => [words, words.map(word).join('')]));
    return [
      `${name}-${upstream}`,
      { ...more, chunks: [...start, ...turns.map((words) => writes.get(words) ?? '')] },
    ];
  });
  return Object.fromEntries(scenarios);
}
