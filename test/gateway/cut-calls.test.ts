/** Tool calls whose arguments are cut, as the official SDKs see them: whatever finish word follows, no such call is complete (C8). */
import { describe, expect, test } from 'vitest';
import { CLIENTS, type Outcome, see, type UpstreamName } from './sdk-clients.ts';
import { type Behavior, DONE, event, json, sse } from './upstreams.ts';

const CUT = '{"content":"abc';

function callEvents(pieces: readonly string[]): string[] {
  const head = { index: 0, id: 'call_1', type: 'function', function: { name: 'write', arguments: '' } };
  return [
    event({ role: 'assistant', tool_calls: [head] }),
    ...pieces.map((piece) => event({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
  ];
}

const frame = (data: { readonly type: string } & object) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

function claudeEvents(pieces: readonly string[]): string[] {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} };
  return [
    frame({ type: 'message_start', message } as never),
    frame({
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'tool_use', id: 'toolu_1', name: 'write', input: {} },
    } as never),
    ...pieces.map((partial_json) =>
      frame({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json },
      } as never),
    ),
    frame({ type: 'content_block_stop', index: 0 } as never),
  ];
}

function claudeEnd(stop_reason: string | null): string[] {
  return [
    frame({ type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 9 } } as never),
    frame({ type: 'message_stop' }),
  ];
}

const ITEM = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'write' };

function itemEvents(pieces: readonly string[], status = 'completed'): string[] {
  const at = { output_index: 0, item_id: 'fc_1' };
  const json = pieces.join('');
  const response = { id: 'resp_1', object: 'response', model: 'm', status: 'in_progress', output: [] };
  return [
    frame({ type: 'response.created', response } as never),
    frame({
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...ITEM, arguments: '', status: 'in_progress' },
    } as never),
    ...pieces.map((delta) =>
      frame({ type: 'response.function_call_arguments.delta', ...at, delta } as never),
    ),
    frame({ type: 'response.function_call_arguments.done', ...at, arguments: json } as never),
    frame({
      type: 'response.output_item.done',
      output_index: 0,
      item: { ...ITEM, arguments: json, status },
    } as never),
  ];
}

function response(args: string, fields: object = {}) {
  const output = [{ ...ITEM, arguments: args, status: 'completed' }];
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  return { id: 'resp_1', object: 'response', model: 'm', status: 'completed', output, usage, ...fields };
}

const ended = (type: string, fields: object = {}, args = CUT) =>
  frame({ type: `response.${type}`, response: response(args, fields) } as never);

const PIECES = ['{"con', 'tent":"a', 'bc'];
const INCOMPLETE = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };

function chatObject(args: string, fields: object): Behavior {
  const tool_calls = [{ id: 'call_1', type: 'function', function: { name: 'write', arguments: args } }];
  const message = { role: 'assistant', content: null, tool_calls };
  return json({
    id: 'up',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message, ...fields }],
  });
}

type Case = readonly [name: string, upstream: UpstreamName, behavior: Behavior];

const vertex = (parts: object[], finishReason?: string) =>
  `data: ${JSON.stringify({ responseId: 'r', candidates: [{ content: { parts }, index: 0, finishReason }] })}\n\n`;
const geminiObject = (parts: object[], finishReason?: string) =>
  json({ responseId: 'r', candidates: [{ content: { parts }, index: 0, finishReason }] });
const OPEN_STRING = [
  vertex([{ functionCall: { name: 'write', willContinue: true } }]),
  vertex([
    {
      functionCall: {
        partialArgs: [{ jsonPath: '$.content', stringValue: 'abc', willContinue: true }],
        willContinue: true,
      },
    },
  ]),
];

const FALSE_FINISHES: readonly Case[] = [
  ['finish tool_calls', 'chat', sse(...callEvents(PIECES), event({}, 'tool_calls'), DONE)],
  ['finish stop', 'chat', sse(...callEvents(PIECES), event({}, 'stop'), DONE)],
  ['an unknown finish', 'chat', sse(...callEvents(PIECES), event({}, 'eos'), DONE)],
  [
    'the finish beside the last piece',
    'chat',
    sse(
      ...callEvents(PIECES.slice(0, 2)),
      event({ tool_calls: [{ index: 0, function: { arguments: 'bc' } }] }, 'tool_calls'),
      DONE,
    ),
  ],
  ['[DONE] alone', 'chat', sse(...callEvents(PIECES), DONE)],
  ['the body’s end after a finish', 'chat', sse(...callEvents(PIECES), event({}, 'tool_calls'))],
  ['an object that says tool_calls', 'chat', chatObject(CUT, { finish_reason: 'tool_calls' })],
  ['an object without a finish', 'chat', chatObject(CUT, {})],
  [
    'a placeholder, and cut arguments',
    'chat',
    sse(...callEvents(['{}', ...PIECES]), event({}, 'tool_calls'), DONE),
  ],
  [
    'a value before it',
    'chat',
    sse(...callEvents(['{"a":1}', '{"con', 'tent":']), event({}, 'tool_calls'), DONE),
  ],
  ['a value before it', 'messages', sse(...claudeEvents(['{"a":1}{"con']), ...claudeEnd('tool_use'))],
  [
    'a value before it',
    'responses',
    sse(...itemEvents(['{"a":1}\n', '[1,']), ended('completed', {}, '{"a":1}\n[1,')),
  ],
  ['stop_reason tool_use', 'messages', sse(...claudeEvents(PIECES), ...claudeEnd('tool_use'))],
  ['stop_reason end_turn', 'messages', sse(...claudeEvents(PIECES), ...claudeEnd('end_turn'))],
  ['no stop_reason', 'messages', sse(...claudeEvents(PIECES), ...claudeEnd(null))],
  ['[DONE] alone', 'messages', sse(...claudeEvents(PIECES), DONE)],
  ['finishReason STOP', 'gemini', sse(...OPEN_STRING, vertex([], 'STOP'))],
  ['[DONE] alone', 'gemini', sse(...OPEN_STRING, DONE)],
  ['an object without a finish', 'gemini', geminiObject([{ text: 'Half of' }])],
  ['an object without a finish', 'gemini', geminiObject([{ functionCall: { name: 'write', args: {} } }])],
  [
    'an object whose arguments are cut text',
    'gemini',
    geminiObject([{ functionCall: { name: 'write', args: CUT } }], 'STOP'),
  ],
  ['response.completed', 'responses', sse(...itemEvents(PIECES), ended('completed'))],
  [
    'response.completed without output',
    'responses',
    sse(...itemEvents(PIECES), ended('completed', { output: [] })),
  ],
  [
    'response.completed after the deltas alone',
    'responses',
    sse(...itemEvents(PIECES).slice(0, 5), ended('completed', { output: [] })),
  ],
  [
    'response.completed that is in progress',
    'responses',
    sse(...itemEvents(['{}']), ended('completed', { status: 'in_progress' }, '{}')),
  ],
  [
    'response.completed that is queued',
    'responses',
    sse(...itemEvents(['{}']), ended('completed', { status: 'queued' }, '{}')),
  ],
  ['[DONE] alone', 'responses', sse(...itemEvents(PIECES), DONE)],
  ['an object', 'responses', json(response(CUT))],
  ['an object in progress', 'responses', json(response('{}', { status: 'in_progress' }))],
];

const LIMITS: readonly Case[] = [
  ['finish length', 'chat', sse(...callEvents(PIECES), event({}, 'length'), DONE)],
  ...['length', 'MAX_TOKENS', 'max_tokens', 'max_output_tokens'].map((word): Case => {
    const hint = `data: ${JSON.stringify({ id: 'up', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls', native_finish_reason: word }] })}\n\n`;
    return [`finish tool_calls, native ${word}`, 'chat', sse(...callEvents(PIECES), hint, DONE)];
  }),
  [
    'an object that says stop, native max_tokens',
    'chat',
    chatObject(CUT, { finish_reason: 'stop', native_finish_reason: 'max_tokens' }),
  ],
  ['stop_reason max_tokens', 'messages', sse(...claudeEvents(PIECES), ...claudeEnd('max_tokens'))],
  ['finishReason MAX_TOKENS', 'gemini', sse(...OPEN_STRING, vertex([], 'MAX_TOKENS'))],
  [
    'response.incomplete',
    'responses',
    sse(...itemEvents(PIECES, 'incomplete'), ended('incomplete', INCOMPLETE)),
  ],
  [
    'response.incomplete after an item that is called complete',
    'responses',
    sse(...itemEvents(PIECES), ended('incomplete', INCOMPLETE)),
  ],
  [
    'response.completed with the reason max_output_tokens',
    'responses',
    sse(...itemEvents(PIECES), ended('completed', { incomplete_details: INCOMPLETE.incomplete_details })),
  ],
  ['an object that is incomplete', 'responses', json(response(CUT, INCOMPLETE))],
];

const WHOLE: readonly (readonly [name: string, upstream: UpstreamName, behavior: Behavior, json: string])[] =
  [
    ['no arguments', 'chat', sse(...callEvents([]), event({}, 'tool_calls'), DONE), '{}'],
    ['no arguments', 'messages', sse(...claudeEvents(['']), ...claudeEnd('tool_use')), '{}'],
    ['no arguments', 'responses', sse(...itemEvents([]), ended('completed', {}, '')), '{}'],
    [
      'arguments as text',
      'gemini',
      geminiObject([{ functionCall: { name: 'write', args: '{"p":1}' } }], 'STOP'),
      '{"p":1}',
    ],
    ['{}', 'chat', sse(...callEvents(['{}']), event({}, 'tool_calls'), DONE), '{}'],
    [
      'a placeholder',
      'chat',
      sse(...callEvents(['{}', '{"p"', ':1}']), event({}, 'tool_calls'), DONE),
      '{"p":1}',
    ],
    [
      'a placeholder',
      'messages',
      sse(...claudeEvents(['{}', '{"p"', ':1}']), ...claudeEnd('tool_use')),
      '{"p":1}',
    ],
    ['a placeholder alone', 'messages', sse(...claudeEvents(['{}']), ...claudeEnd('tool_use')), '{}'],
    [
      'a placeholder',
      'responses',
      sse(
        ...itemEvents(['{}', '{"p"', ':1}']).slice(0, -2),
        ...itemEvents(['{"p":1}']).slice(-2),
        ended('completed', {}, '{"p":1}'),
      ),
      '{"p":1}',
    ],
    [
      'a placeholder alone, then all of them',
      'responses',
      sse(
        ...itemEvents(['{}']).slice(0, -2),
        ...itemEvents(['{"p":1}']).slice(-2),
        ended('completed', {}, '{"p":1}'),
      ),
      '{"p":1}',
    ],
    [
      'an empty object within them',
      'messages',
      sse(...claudeEvents(['{"p":', '{}', '}']), ...claudeEnd('tool_use')),
      '{"p":{}}',
    ],
    [
      'the placeholder null',
      'chat',
      sse(...callEvents(['null', '{"p":1}']), event({}, 'tool_calls'), DONE),
      '{"p":1}',
    ],
    [
      'a placeholder beside the name',
      'chat',
      sse(
        event({
          role: 'assistant',
          tool_calls: [
            { index: 0, id: 'call_1', type: 'function', function: { name: 'write', arguments: {} } },
          ],
        }),
        event({ tool_calls: [{ index: 0, function: { arguments: '{"p":1}' } }] }, 'tool_calls'),
        DONE,
      ),
      '{"p":1}',
    ],
    [
      'all of them',
      'responses',
      sse(...itemEvents(['{"p":1}']), ended('completed', {}, '{"p":1}')),
      '{"p":1}',
    ],
    ['all of them', 'messages', sse(...claudeEvents(['{"p"', ':1}']), ...claudeEnd('tool_use')), '{"p":1}'],
  ];

const clients = Object.keys(CLIENTS);

/** Where the gateway passes events of the upstream on. */
const FINISHES: Readonly<Record<string, string>> = {
  chat: 'length',
  Messages: 'max_tokens',
  Responses: 'max_output_tokens',
  Gemini: 'MAX_TOKENS',
};

describe.each(clients)('the client of %s', (client) => {
  test.each(FALSE_FINISHES)('C8 E2 a cut call with %s (%s): an error', async (_, upstream, behavior) => {
    const outcome: Outcome = await see(client, upstream, behavior);
    expect(outcome).toEqual({ error: expect.stringMatching(/ended|in_progress|queued|upstream_truncated/) });
  });

  test.each(LIMITS)(
    'C8 a cut call with %s (%s): the client’s word for its limit',
    async (_, upstream, behavior) => {
      const outcome = await see(client, upstream, behavior);
      const [protocol = ''] = client.split(',');
      expect(outcome).toMatchObject({ finish: FINISHES[protocol] });
    },
  );

  test.each(WHOLE)('C7 C8 a complete call with %s (%s): complete', async (_, upstream, behavior, json) => {
    const outcome = await see(client, upstream, behavior);
    const [protocol = ''] = client.split(',');
    // Google's answer passes.
    if (protocol === 'Gemini' && upstream === 'gemini' && json !== '{}') return;
    // Passthrough and chat leave absent arguments as they are.
    const isLeft = json === '{}' && protocol !== 'Messages';
    const empty = isLeft ? [json, ''] : [json];
    expect(outcome).toMatchObject({ calls: [['write', expect.toBeOneOf(empty)]] });
  });
});

const BEGINNINGS = [
  '{"a":1}{"b":',
  '{"a":1} [',
  '{}{"a":[{}',
  '{"a":tr',
  '{"a":-',
  '{"a":"\\u00',
  '{"a":"\\',
  '{"a":1,',
  '{"a"',
  '[1,2',
  '"a',
  'tru',
  '-',
  '1.',
  ' {',
];

test.each(BEGINNINGS)('C8 arguments that are only the beginning of JSON are cut: %s', async (text) => {
  const behavior = sse(...callEvents([text]), event({}, 'tool_calls'), DONE);
  for (const client of clients)
    expect(await see(client, 'chat', behavior)).toEqual({ error: expect.stringContaining('tool call') });
});

const PARALLEL: readonly (readonly [name: string, upstream: UpstreamName, behavior: Behavior])[] = [
  ...[
    [CUT, '{"a":1}'],
    ['{"a":1}', CUT],
  ].map((texts, at): Case => {
    const calls = texts.map((args, index) => {
      return { index, id: `call_${index}`, type: 'function', function: { name: 'write', arguments: args } };
    });
    const events = calls.map((call) => event({ role: 'assistant', tool_calls: [call] }));
    return [
      `call ${at} of two`,
      'chat',
      sse(event({ content: 'Done.' }), ...events, event({}, 'stop'), DONE),
    ];
  }),
  [
    'a call of the legacy form',
    'chat',
    sse(event({ function_call: { name: 'write', arguments: CUT } }), event({}, 'function_call'), DONE),
  ],
];

test.each(PARALLEL)('C8 %s is cut: no output is complete', async (_, upstream, behavior) => {
  for (const client of clients)
    expect(await see(client, upstream, behavior)).toEqual({ error: expect.stringContaining('tool call') });
});

test('C7 arguments of white space alone are an empty object for a client of Messages', async () => {
  const behavior = sse(...callEvents([' ', '\n']), event({}, 'tool_calls'), DONE);
  for (const client of ['Messages', 'Messages, streamed'])
    expect(await see(client, 'chat', behavior)).toMatchObject({ calls: [['write', '{}']] });
});

const INPUT = '*** Begin {"Patch\n🌊';
const custom = (input: string) => ({ id: 'call_1', type: 'custom', custom: { name: 'patch', input } });
const inputEvents = [
  event({ role: 'assistant', tool_calls: [{ index: 0, ...custom('') }] }),
  ...[...INPUT.matchAll(/.{1,5}/gsu)].map(([input]) =>
    event({ tool_calls: [{ index: 0, custom: { input } }] }),
  ),
];
const customObject = json({
  id: 'up',
  choices: [
    { index: 0, message: { content: null, tool_calls: [custom(INPUT)] }, finish_reason: 'tool_calls' },
  ],
});

test.each<[name: string, behavior: Behavior]>([
  ['in pieces', sse(...inputEvents, event({}, 'tool_calls'), DONE)],
  ['in pieces, without a finish', sse(...inputEvents, DONE)],
  ['whole', customObject],
])('C7 C8 a custom tool’s free text, %s: each client gets it, and it is not judged', async (_, behavior) => {
  for (const client of clients) {
    const input = client.startsWith('chat') ? INPUT : JSON.stringify({ input: INPUT });
    expect(await see(client, 'chat', behavior)).toMatchObject({ calls: [['patch', input]] });
  }
});

test('C8 a custom tool’s free text with a hint at the limit: it is not complete', async () => {
  const hint = { index: 0, delta: {}, finish_reason: 'tool_calls', native_finish_reason: 'MAX_TOKENS' };
  const end = `data: ${JSON.stringify({ id: 'up', choices: [hint] })}\n\n`;
  for (const client of clients) {
    const [protocol = ''] = client.split(',');
    const outcome = await see(client, 'chat', sse(...inputEvents, end, DONE));
    expect(outcome).toMatchObject({ finish: FINISHES[protocol] });
  }
});

test('C7 C8 a custom tool’s free text from a Responses server: each client gets it as one', async () => {
  const item = { id: 'ctc_1', type: 'custom_tool_call', call_id: 'call_1', name: 'patch' };
  const at = { output_index: 0, item_id: 'ctc_1' };
  const output = [{ ...item, input: INPUT, status: 'completed' }];
  const frames = [
    frame({
      type: 'response.created',
      response: { ...response(''), status: 'in_progress', output: [] },
    } as never),
    frame({ type: 'response.output_item.added', output_index: 0, item: { ...item, input: '' } } as never),
    ...[...INPUT.matchAll(/.{1,5}/gsu)].map(([delta]) =>
      frame({ type: 'response.custom_tool_call_input.delta', ...at, delta } as never),
    ),
    frame({ type: 'response.output_item.done', output_index: 0, item: output[0] } as never),
    frame({ type: 'response.completed', response: response('', { output }) } as never),
  ];
  for (const behavior of [sse(...frames), json(response('', { output }))]) {
    for (const client of clients.filter((name) => !name.startsWith('Responses'))) {
      const input = client.startsWith('chat') ? INPUT : JSON.stringify({ input: INPUT });
      expect(await see(client, 'responses', behavior)).toMatchObject({ calls: [['patch', input]] });
    }
  }
});

function heads(...args: string[]): string {
  const tool_calls = args.map((json, index) => {
    return { index, id: `call_${index}`, type: 'function', function: { name: 'write', arguments: json } };
  });
  return event({ role: 'assistant', tool_calls });
}
const more = (index: number, json: string) =>
  event({ tool_calls: [{ index, function: { arguments: json } }] });

test('C7 placeholders of parallel calls: each call has its own arguments, and one without has none', async () => {
  const behavior = sse(
    heads('{}', '{}', '{}'),
    more(0, '{"p":1}'),
    more(1, '{"p":2}'),
    event({}, 'tool_calls'),
    DONE,
  );
  for (const client of clients) {
    const calls = ['{"p":1}', '{"p":2}', '{}'].map((args) => ['write', args]);
    expect(await see(client, 'chat', behavior)).toMatchObject({ calls });
  }
});

test('C7 arguments that follow a placeholder which was sent: an error, as they form no JSON', async () => {
  const behavior = sse(
    heads('{}'),
    event({ content: 'So:' }),
    more(0, '{"p":1}'),
    event({}, 'tool_calls'),
    DONE,
  );
  for (const client of clients)
    expect(await see(client, 'chat', behavior)).toEqual({
      error: expect.stringContaining('do not form JSON'),
    });
});

test.each(['5', '-1.5e3', '[1,{"a":2}]', '"{\\"a\\":1}"', 'true', 'false', '[]'])(
  'C7 arguments that are JSON and no object: clients of Messages and Gemini get an object with their text, others them as they came: %s',
  async (text) => {
    const behavior = sse(...callEvents([...text]), event({ content: 'So.' }), event({}, 'tool_calls'), DONE);
    for (const client of clients) {
      const own = client.startsWith('Messages')
        ? JSON.stringify({ INVALID_JSON: text })
        : client.startsWith('Gemini')
          ? JSON.stringify({ arguments: text })
          : text;
      expect(await see(client, 'chat', behavior)).toMatchObject({ text: 'So.', calls: [['write', own]] });
    }
  },
);

test.each([[[1, 'a']], [5], ['[2]']])(
  'C7 an input of a Messages server that is no object, %j: it is not lost',
  async (input) => {
    const block = { type: 'tool_use', id: 'toolu_1', name: 'write', input };
    const usage = { input_tokens: 1, output_tokens: 1 };
    const behavior = message({ content: [block], stop_reason: 'tool_use', usage });
    const args = typeof input === 'string' ? input : JSON.stringify(input);
    for (const client of clients.filter((name) => !name.startsWith('Messages')))
      expect(await see(client, 'messages', behavior)).toMatchObject({
        calls: [['write', client.startsWith('Gemini') ? JSON.stringify({ arguments: args }) : args]],
      });
  },
);

test.each(['null', 'n'])(
  'C7 the beginning of null, %s, and nothing else: never another call’s arguments',
  async (text) => {
    const behavior = sse(...callEvents([...text]), event({}, 'length'), DONE);
    for (const client of ['Messages', 'Messages, streamed'])
      expect(await see(client, 'chat', behavior)).toMatchObject({
        calls: [['write', '{}']],
        finish: 'max_tokens',
      });
  },
);

test.each(["{'a':1}", '*** Begin', '{"a":1,}'])(
  'C8 malformed arguments, %s: a client of Messages gets them whole as a text, not an empty object',
  async (text) => {
    const calls = [['write', JSON.stringify({ INVALID_JSON: text })]];
    expect(await see('Messages', 'chat', chatObject(text, { finish_reason: 'tool_calls' }))).toMatchObject({
      calls,
    });
  },
);

const half = (choice: object, fields: object = {}) =>
  json({ id: 'up', choices: [{ index: 0, message: { content: 'Half of' }, ...choice }], ...fields });
const message = (fields: object) =>
  json({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Half of' }],
    ...fields,
  });

describe('E2 C8 an object that says that its answer goes on', () => {
  test.each<Case>([
    ['finish_reason null', 'chat', half({ finish_reason: null })],
    [
      'finish_reason null, no output counted',
      'chat',
      half({ finish_reason: null }, { usage: { prompt_tokens: 5, completion_tokens: 0 } }),
    ],
    [
      'stop_reason null',
      'messages',
      message({ stop_reason: null, usage: { input_tokens: 5, output_tokens: 1 } }),
    ],
  ])('%s (%s): truncated', async (_, upstream, behavior) => {
    for (const client of clients)
      expect(await see(client, upstream, behavior)).toEqual({
        error: expect.stringMatching(/ended without|upstream_truncated/),
      });
  });

  test.each<Case>([
    ['no finish_reason', 'chat', half({})],
    [
      'finish_reason null, with its output counted',
      'chat',
      half({ finish_reason: null }, { usage: { prompt_tokens: 5, completion_tokens: 2 } }),
    ],
    ['no stop_reason', 'messages', message({ usage: { input_tokens: 5, output_tokens: 2 } })],
  ])('%s (%s): complete', async (_, upstream, behavior) => {
    for (const client of clients) {
      expect(await see(client, upstream, behavior)).toMatchObject({ text: 'Half of' });
    }
  });
});

const MALFORMED = ['{"a":1,}', "{'a':1}", '{"a":[1}', '*** Begin', '{a:1', '{"a":1}}'];

test.each(MALFORMED)('C8 arguments that are malformed in another way stay as they are: %s', async (text) => {
  const behavior = sse(...callEvents([text]), event({}, 'tool_calls'), DONE);
  for (const client of ['chat', 'chat, streamed', 'Responses', 'Responses, streamed']) {
    expect(await see(client, 'chat', behavior)).toMatchObject({ calls: [['write', text]] });
  }
});
