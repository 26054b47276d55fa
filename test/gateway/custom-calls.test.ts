/** Calls of custom tools, as chat clients get them: the contract's order, no empty delta, and what OpenAI's SDK reads (C4, C5, C7). */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { check } from '../../tools/conformance/contract/check.ts';
import { frame, gatewayFetch, UPSTREAMS, type UpstreamName } from './sdk-clients.ts';
import { type Behavior, DONE, event, sse } from './upstreams.ts';

const REASONING = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'abc' };
const ITEM = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name: 'patch', status: 'completed' };
const RESPONSE = { id: 'resp_1', object: 'response', model: 'm', status: 'completed' };
const INPUT = '*** Begin "Patch"\n+é';

function responses(pieces: readonly string[], ...before: object[]): Behavior {
  const at = { output_index: before.length, item_id: 'ctc_1' };
  const item = { ...ITEM, input: INPUT };
  const output = [...before, item];
  return sse(
    frame('response.created', { response: { ...RESPONSE, status: 'in_progress', output: [] } }),
    ...before.flatMap((one, output_index) => [
      frame('response.output_item.added', { output_index, item: one }),
      frame('response.output_item.done', { output_index, item: one }),
    ]),
    frame('response.output_item.added', { output_index: before.length, item: { ...ITEM, input: '' } }),
    ...pieces.map((delta) => frame('response.custom_tool_call_input.delta', { ...at, delta })),
    frame('response.custom_tool_call_input.done', { ...at, input: INPUT }),
    frame('response.output_item.done', { output_index: before.length, item }),
    frame('response.completed', { response: { ...RESPONSE, output } }),
  );
}

const custom = (more: object, input: string, name?: string) => ({
  tool_calls: [{ index: 0, ...more, custom: { ...(name && { name }), input } }],
});
const HEAD = { id: 'c1', type: 'custom' };
const DETAILS = [{ type: 'reasoning.encrypted', data: 'abc', id: 'r', format: 'x', index: 0 }];
const PIECES = [INPUT.slice(0, 5), INPUT.slice(5, 12), INPUT.slice(12)];

const CASES: readonly (readonly [name: string, upstream: UpstreamName, behavior: Behavior])[] = [
  ['reasoning that goes back, before it', 'responses', responses(PIECES, REASONING)],
  ['its input in pieces', 'responses', responses(PIECES)],
  ['its input at the end only', 'responses', responses([])],
  [
    'text before it',
    'responses',
    responses(PIECES, {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'So', annotations: [] }],
    }),
  ],
  [
    'pieces of a chat server',
    'chat',
    sse(
      event({ role: 'assistant', ...custom(HEAD, '', 'patch') }),
      ...PIECES.map((piece) => event(custom({}, piece))),
      event({}, 'tool_calls'),
      DONE,
    ),
  ],
  [
    'all of it with reasoning details and the finish, of a chat server',
    'chat',
    sse(
      event({ role: 'assistant', reasoning_details: DETAILS, ...custom(HEAD, INPUT, 'patch') }, 'tool_calls'),
      DONE,
    ),
  ],
  [
    'an input before its name',
    'chat',
    sse(
      event({ role: 'assistant', ...custom(HEAD, INPUT.slice(0, 4)) }),
      event(custom({}, INPUT.slice(4), 'patch')),
      event({}, 'stop'),
      DONE,
    ),
  ],
];

describe('C4 C5 C7 a custom tool’s call', () => {
  const post = (behavior: Behavior, upstream: UpstreamName, fields: object) =>
    gatewayFetch(behavior)('https://weir.example/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify({
        model: UPSTREAMS[upstream],
        messages: [{ role: 'user', content: 'Hi' }],
        ...fields,
      }),
    });

  test.each(CASES)('%s: a valid stream, and the SDK has the input', async (_, upstream, behavior) => {
    const response = await post(behavior, upstream, { stream: true });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const provider = UPSTREAMS[upstream].split('/')[0] ?? '';
    const expectation = {
      shape: 'chat',
      provider,
      usage: 'finish',
      vendorEvents: 'strip',
      errorFrames: 'data',
    } as const;
    expect(check(bytes, expectation)).toEqual([]);
    const openai = new OpenAI({
      apiKey: 'x',
      baseURL: 'https://weir.example/v1',
      maxRetries: 0,
      fetch: gatewayFetch(behavior),
    });
    const stream = await openai.chat.completions.create({
      model: UPSTREAMS[upstream],
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
    });
    let input = '';
    for await (const chunk of stream) {
      for (const choice of chunk.choices) {
        const calls = (choice.delta.tool_calls ?? []) as unknown as readonly { custom: { input: string } }[];
        input += calls.map((call) => call.custom.input).join('');
      }
    }
    expect(input).toBe(INPUT);
  });

  test.each(CASES)('%s: not streamed', async (_, upstream, behavior) => {
    const response = await post(behavior, upstream, {});
    expect(await response.json()).toMatchObject({
      choices: [
        {
          message: { tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'patch', input: INPUT } }] },
          finish_reason: 'tool_calls',
        },
      ],
    });
  });
});
