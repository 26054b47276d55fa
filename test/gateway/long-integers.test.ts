/** Integers beyond 2^53 in the arguments of tool calls, as each client's SDK gets them: every digit arrives (Q11). */
import { describe, expect, test } from 'vitest';
import { CLIENTS, frame, gatewayFetch, UPSTREAMS, type UpstreamName } from './sdk-clients.ts';
import { type Behavior, DONE, event, sse } from './upstreams.ts';

const DIGITS = '2512292042121000001';
const ARGS = `{"id":${DIGITS},"of":[-${DIGITS},1.5]}`;
const MARK = '"<args>"';

/** The event's JSON with the arguments in place of their mark, which JavaScript cannot write. */
const exact = (text: string) => text.replace(MARK, ARGS).replace('"<integer>"', DIGITS);

const gemini = (part: object, finishReason?: string) =>
  exact(
    `data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [part] }, finishReason }] })}\n\n`,
  );
const ofPieces = (fields: object) => ({ functionCall: { willContinue: true, ...fields } });

const ITEM = { id: 'fc_1', type: 'function_call', call_id: 'c1', name: 'read', status: 'completed' };
const RESPONSE = { id: 'resp_1', object: 'response', model: 'm', status: 'completed', output: [] };
const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} };
const BLOCK = { type: 'tool_use', id: 'toolu_1', name: 'read' };
const claudeEnd = [
  frame('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }),
  frame('message_stop', {}),
];
const call = (more: object, args: unknown) => ({
  tool_calls: [
    { index: 0, id: 'c1', type: 'function', ...more, function: { name: 'read', arguments: args } },
  ],
});

const STREAMS: readonly (readonly [name: string, upstream: UpstreamName, behavior: Behavior])[] = [
  [
    'Gemini’s arguments, with the finish',
    'gemini',
    sse(gemini({ functionCall: { id: 'c1', name: 'read', args: '<args>' } }, 'STOP')),
  ],
  [
    'Gemini’s arguments after text',
    'gemini',
    sse(
      gemini({ text: 'So' }),
      gemini({ functionCall: { name: 'read', args: '<args>' } }),
      gemini({}, 'STOP'),
    ),
  ],
  [
    'arguments of Vertex in pieces',
    'gemini',
    sse(
      gemini(ofPieces({ name: 'read' })),
      gemini(ofPieces({ partialArgs: [{ jsonPath: '$.id', numberValue: '<integer>' }] })),
      gemini(ofPieces({ partialArgs: [{ jsonPath: '$.of[0]', numberValue: 1 }] })),
      gemini({ functionCall: {} }, 'STOP'),
    ),
  ],
  [
    'arguments of Vertex at the end of the call',
    'gemini',
    sse(gemini(ofPieces({ name: 'read' })), gemini({ functionCall: { args: '<args>' } }), gemini({}, 'STOP')),
  ],
  [
    'an object from a chat server',
    'chat',
    sse(exact(event({ role: 'assistant', ...call({}, '<args>') })), event({}, 'tool_calls'), DONE),
  ],
  [
    'an object from a chat server without a delta',
    'chat',
    sse(
      exact(
        `data: ${JSON.stringify({ choices: [{ index: 0, message: call({}, '<args>'), finish_reason: 'stop' }] })}\n\n`,
      ),
      DONE,
    ),
  ],
  [
    'an object from a chat server with the legacy call',
    'chat',
    sse(
      exact(event({ role: 'assistant', function_call: { name: 'read', arguments: '<args>' } })),
      event({}, 'function_call'),
      DONE,
    ),
  ],
  [
    'the input in the beginning of a block',
    'messages',
    sse(
      frame('message_start', { message: MESSAGE }),
      exact(frame('content_block_start', { index: 0, content_block: { ...BLOCK, input: '<args>' } })),
      frame('content_block_stop', { index: 0 }),
      ...claudeEnd,
    ),
  ],
  [
    'the input in the beginning of the message',
    'messages',
    sse(
      exact(frame('message_start', { message: { ...MESSAGE, content: [{ ...BLOCK, input: '<args>' }] } })),
      ...claudeEnd,
    ),
  ],
  [
    'an object in the last form of an item',
    'responses',
    sse(
      frame('response.created', { response: { ...RESPONSE, status: 'in_progress' } }),
      exact(frame('response.output_item.done', { output_index: 0, item: { ...ITEM, arguments: '<args>' } })),
      frame('response.completed', { response: RESPONSE }),
    ),
  ],
  [
    'an object in the last form of the response',
    'responses',
    sse(
      exact(
        frame('response.completed', {
          response: { ...RESPONSE, output: [{ ...ITEM, arguments: '<args>' }] },
        }),
      ),
    ),
  ],
];

describe('Q11 A3 an integer beyond 2^53 in the arguments of a streamed call', () => {
  const cases = STREAMS.flatMap(([name, upstream, behavior]) =>
    Object.entries(CLIENTS)
      // In passthrough an object stays one.
      .filter(([client]) => upstream !== 'responses' || !client.startsWith('Responses'))
      .filter(([client]) => upstream !== 'gemini' || !client.startsWith('Gemini'))
      .map(([client, read]) => ({ name, upstream, behavior, client, read })),
  );
  test.each(cases)('$name, to $client: has all its digits', async ({ upstream, behavior, read }) => {
    const send = gatewayFetch(behavior);
    let text = '';
    const seen = await read(async (url, init) => {
      const response = await send(url, init);
      text = await response.clone().text();
      return response;
    }, UPSTREAMS[upstream]);
    expect(seen.calls).toHaveLength(1);
    // Anthropic's SDK parses the input.
    expect(JSON.parse(seen.calls[0]?.[1] ?? '')).toMatchObject({ id: Number(DIGITS) });
    // An id may have as many digits in a row.
    const numbers: string[] = text.replace(/"id":"[^"]*"/g, '').match(/-?\d{16,}(?![^"]*_)/g) ?? [];
    expect(numbers).toContain(DIGITS);
    expect(numbers.filter((number) => ![DIGITS, `-${DIGITS}`].includes(number))).toEqual([]);
  });
});

test('C1 a time in nanoseconds, beyond 2^53, is read in every chunk', async () => {
  const created = { created: '<integer>' };
  const pieces = [event({ content: 'a' }, null, created), event({}, 'stop', created)].map(exact);
  const response = await gatewayFetch(sse(...pieces, DONE))('https://weir.example/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({
      model: UPSTREAMS.chat,
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
    }),
  });
  expect(await response.text()).toContain('"created":2512292042,');
});
