/** Tests that the client's own keys come back in a call's arguments where Claude got others, in each protocol, streamed and whole (Q3). */
import { describe, expect, test } from 'vitest';
import { toolCallId } from '../../src/canonical/tool-call-id.ts';
import { isObject } from '../../src/shared/json.ts';
import { decodeObject, type JsonObject } from '../../tools/simulator/json.ts';
import { DONE, event, ROLE, RoutedGateway, refuse, type Script, sse } from './upstreams.ts';

const FILTER = `filter_id__${toolCallId('filter[id]')}`;
const SIZE = `gr__e_${toolCallId('größe')}`;
const SCHEMA = {
  type: 'object',
  properties: {
    'filter[id]': { type: 'string' },
    größe: { type: 'object', properties: { 'filter[id]': {} } },
  },
};
/** What the model calls, and what the client gets. */
const SENT = `{"${FILTER}": "größe \\"${SIZE}\\"", "${SIZE}": {"${FILTER}": 2512292042121000001, "x": ["${FILTER}"]}}`;
const GOT = SENT.replace(`{"${FILTER}":`, '{"filter[id]":').replace(
  `"${SIZE}": {"${FILTER}"`,
  '"größe": {"filter[id]"',
);

const USAGE = { input_tokens: 5, output_tokens: 3 };

/** Claude's call, in pieces of this many characters. */
function calling(pieceChars: number): Script {
  return (isStreamed) => {
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_sequence: null };
    const tool = { type: 'tool_use', id: 'toolu_1', name: 'f' };
    if (!isStreamed) {
      return {
        kind: 'answer',
        type: 'application/json',
        pieces: [
          `${JSON.stringify({ ...message, stop_reason: 'tool_use', usage: USAGE }).slice(0, -1)},"content":[${JSON.stringify(tool).slice(0, -1)},"input":${SENT}}]}`,
        ],
      };
    }
    const events: JsonObject[] = [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage: USAGE } },
      { type: 'content_block_start', index: 0, content_block: { ...tool, input: {} } },
    ];
    for (let at = 0; at < SENT.length; at += pieceChars) {
      const delta = { type: 'input_json_delta', partial_json: SENT.slice(at, at + pieceChars) };
      events.push({ type: 'content_block_delta', index: 0, delta });
    }
    events.push(
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { output_tokens: 3 },
      },
      { type: 'message_stop' },
    );
    return sse(...events.map((one) => `event: ${String(one.type)}\ndata: ${JSON.stringify(one)}\n\n`));
  };
}

const CLIENTS = {
  chat: {
    path: '/v1/chat/completions',
    body: {
      messages: [{ role: 'user', content: 'Go' }],
      tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }],
    },
  },
  messages: {
    path: '/v1/messages',
    body: {
      max_tokens: 2000,
      messages: [{ role: 'user', content: 'Go' }],
      tools: [{ name: 'f', input_schema: SCHEMA }],
    },
  },
  responses: {
    path: '/v1/responses',
    body: { input: 'Go', tools: [{ type: 'function', name: 'f', parameters: SCHEMA }] },
  },
} satisfies Record<string, { path: string; body: JsonObject }>;

async function ask(
  client: keyof typeof CLIENTS,
  behavior: Script,
  stream: boolean,
  model = 'az/claude-sonnet-5',
) {
  const gateway = new RoutedGateway(
    {
      'claude-sonnet-5': [behavior],
      d: [
        sse(
          ROLE,
          event({
            tool_calls: [
              { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{"größe":{}}' } },
            ],
          }),
          event({}, 'tool_calls'),
          DONE,
        ),
      ],
    },
    {
      PROVIDERS: JSON.stringify({ az: { like: 'anthropic', base_url: 'https://az', api_key: 'KEY' } }),
      KEY: 'key-of-az',
      ALIASES: JSON.stringify({ 'a/b': ['az/claude-sonnet-5', 'mistral/d'] }),
    },
  );
  const { path, body } = CLIENTS[client];
  const response = await gateway.gateway.post(path, 'x', { model, stream, ...body });
  return {
    status: response.status,
    text: await response.text(),
    headers: response.headers,
    requests: gateway.requests,
  };
}

/** The arguments that a client of this protocol joins, as JSON text. */
function argumentsIn(text: string): string {
  const joined: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (!isObject(value)) return;
    if (typeof value.partial_json === 'string') joined.push(value.partial_json);
    else if (value.type === 'response.function_call_arguments.delta') joined.push(String(value.delta));
    else if (isObject(value.function)) joined.push(String(value.function.arguments ?? ''));
    else if (!String(value.type).startsWith('response.')) Object.values(value).forEach(visit);
  };
  for (const line of text.split('\n')) if (line.startsWith('data: {')) visit(decodeObject(line.slice(6)));
  return joined.join('');
}

describe.each(['chat', 'messages', 'responses'] as const)('a client of %s', (client) => {
  test.each([1, 3, 7, 1000])(
    'Q3 streamed in pieces of %d characters: the arguments have the client’s keys',
    async (chars) => {
      const { status, text, headers } = await ask(client, calling(chars), true);
      expect([status, headers.get('x-weir-changed')]).toEqual([200, 'tools.function.parameters']);
      expect(argumentsIn(text)).toBe(GOT);
    },
  );

  test('Q3 whole: the arguments have the client’s keys, and every digit', async () => {
    const { status, text } = await ask(client, calling(1), false);
    expect(status).toBe(200);
    // Arguments are a text in two protocols, and an object in Messages.
    const args = client === 'messages' ? text : text.replaceAll('\\"', '"');
    expect(args).toContain('"filter[id]":');
    expect(args).toContain('"größe":{"filter[id]":2512292042121000001,');
    expect(args).not.toContain(`"${FILTER}":`);
  });

  test('Q3 after a fallback to a provider that takes the keys: they are the client’s on both ways', async () => {
    const { text, requests } = await ask(client, refuse(529), true, 'a/b');
    expect(requests.map(({ provider }) => provider)).toEqual(['az', 'mistral']);
    expect(JSON.stringify(requests[0]?.body)).toContain(FILTER);
    expect(JSON.stringify(requests[1]?.body)).toContain('filter[id]');
    expect(argumentsIn(text)).toBe('{"größe":{}}');
  });
});
