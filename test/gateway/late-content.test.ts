/** Content that a Responses server sends only at the end of a part, an item or the response, as the official SDKs see it (O7). */
import { describe, expect, test } from 'vitest';
import { CALL, JSON_TEXT, MESSAGE, REASONING, TEXT, THOUGHTS } from './late-items.ts';
import { CLIENTS, see } from './sdk-clients.ts';
import { type Behavior, json, sse } from './upstreams.ts';

/** The forms in which a server may send content. */
const FORMS = ['deltas', 'text done', 'part done', 'item added', 'item done', 'response'] as const;
type Form = (typeof FORMS)[number];

function frame(type: string, members: object): string {
  return `event: response.${type}\ndata: ${JSON.stringify({ type: `response.${type}`, ...members })}\n\n`;
}

/** In pieces of a few characters, so that most of them take the fast path. */
function pieces(text: string): string[] {
  return [...text.matchAll(/.{1,4}/gsu)].map(([piece]) => piece);
}

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  model: 'm',
  status: 'completed',
  output: [REASONING, MESSAGE, CALL],
  usage: { input_tokens: 1, output_tokens: 9, total_tokens: 10 },
};

/** @param sent how much of each text comes in deltas */
function stream(forms: ReadonlySet<Form>, sent = 1): Behavior {
  const begin = (text: string) => text.slice(0, Math.round(text.length * sent));
  const only = (form: Form, ...frames: string[]) => (forms.has(form) ? frames : []);
  const [thoughts, text, call] = [0, 1, 2].map((output_index) => ({ output_index }));
  const summary = { ...thoughts, item_id: 'rs_1', summary_index: 0 };
  const content = { ...text, item_id: 'msg_1', content_index: 0 };
  const args = { ...call, item_id: 'fc_1' };
  const part = { type: 'output_text', text: TEXT, annotations: [] };
  return sse(
    frame('created', { response: { ...RESPONSE, status: 'in_progress', output: [] } }),
    ...only('item added', frame('output_item.added', { ...thoughts, item: { ...REASONING, summary: [] } })),
    ...only(
      'deltas',
      ...pieces(begin(THOUGHTS)).map((delta) => frame('reasoning_summary_text.delta', { ...summary, delta })),
    ),
    ...only('text done', frame('reasoning_summary_text.done', { ...summary, text: THOUGHTS })),
    ...only('part done', frame('reasoning_summary_part.done', { ...summary, part: REASONING.summary[0] })),
    ...only('item done', frame('output_item.done', { ...thoughts, item: REASONING })),
    ...only('item added', frame('output_item.added', { ...text, item: { ...MESSAGE, content: [] } })),
    ...only(
      'deltas',
      ...pieces(begin(TEXT)).map((delta) => frame('output_text.delta', { ...content, delta })),
    ),
    ...only('text done', frame('output_text.done', { ...content, text: TEXT })),
    ...only('part done', frame('content_part.done', { ...content, part })),
    ...only('item done', frame('output_item.done', { ...text, item: MESSAGE })),
    ...only(
      'item added',
      frame('output_item.added', { ...call, item: { ...CALL, arguments: '', status: 'in_progress' } }),
    ),
    ...only(
      'deltas',
      ...pieces(begin(JSON_TEXT)).map((delta) => frame('function_call_arguments.delta', { ...args, delta })),
    ),
    ...only('text done', frame('function_call_arguments.done', { ...args, arguments: JSON_TEXT })),
    ...only('item done', frame('output_item.done', { ...call, item: CALL })),
    frame('completed', { response: forms.has('response') ? RESPONSE : { ...RESPONSE, output: [] } }),
  );
}

/** Every combination in which all of the content comes in some form. */
function* combinations(): Generator<ReadonlySet<Form>> {
  for (let bits = 0; bits < 2 ** FORMS.length; bits++) {
    const forms = new Set(FORMS.filter((_, at) => (bits >> at) & 1));
    const isWhole = forms.has('item done') || forms.has('response');
    const isAnnounced = forms.has('item added') && (forms.has('deltas') || forms.has('text done'));
    if (isWhole || isAnnounced) yield forms;
  }
}

const cases = [...combinations()].map((forms) => [[...forms].join(', '), forms] as const);
const clients = ['chat, streamed', 'chat', 'Messages, streamed', 'Messages'];
const WHOLE = { text: TEXT, reasoning: THOUGHTS, calls: [['gauge', JSON_TEXT]] };

describe.each(clients)('the client of %s', (client) => {
  test.each(cases)('O7 content in %s: all of it, once', async (_, forms) => {
    expect(await see(client, 'responses', stream(forms))).toMatchObject(WHOLE);
  });

  test.each(
    cases.filter(([, forms]) => forms.has('text done') || forms.has('item done') || forms.has('response')),
  )('O7 half of it in deltas, and content in %s: the rest is sent', async (_, forms) => {
    if (!forms.has('deltas')) return;
    expect(await see(client, 'responses', stream(forms, 0.5))).toMatchObject(WHOLE);
  });

  test('O7 one object: all of it', async () => {
    expect(await see(client, 'responses', json(RESPONSE))).toMatchObject(WHOLE);
  });
});

const ALL = new Set(FORMS);
const only = (...items: object[]) => ({ ...RESPONSE, output: items });

function withResponse(response: object, ...frames: string[]): Behavior {
  return sse(
    frame('created', { response: { ...RESPONSE, status: 'in_progress', output: [] } }),
    ...frames,
    frame('completed', { response }),
  );
}

const REFUSAL = { ...MESSAGE, content: [{ type: 'refusal', refusal: 'I will not.' }] };
const at = { output_index: 0, item_id: 'msg_1', content_index: 0 };

describe('O7 other forms', () => {
  test.each<[name: string, behavior: Behavior]>([
    ['refusal.done', withResponse(only(), frame('refusal.done', { ...at, refusal: 'I will not.' }))],
    [
      'content_part.done',
      withResponse(only(), frame('content_part.done', { ...at, part: REFUSAL.content[0] })),
    ],
    ['output_item.done', withResponse(only(), frame('output_item.done', { output_index: 0, item: REFUSAL }))],
    ['the response', withResponse(only(REFUSAL))],
  ])('a refusal only in %s: it is one', async (_, behavior) => {
    expect(await see('chat, streamed', 'responses', behavior)).toMatchObject({
      refusal: 'I will not.',
      text: '',
    });
  });

  test('two parts, one in deltas and one only in output_text.done: both, once', async () => {
    const parts = [TEXT, 'And more.'].map((text) => ({ type: 'output_text', text, annotations: [] }));
    const deltas = pieces(TEXT).map((delta) => frame('output_text.delta', { ...at, delta }));
    const done = frame('output_text.done', { ...at, content_index: 1, text: 'And more.' });
    for (const output of [[], [{ ...MESSAGE, content: parts }]]) {
      const outcome = await see(
        'chat, streamed',
        'responses',
        withResponse(only(...output), ...deltas, done),
      );
      expect(outcome).toMatchObject({ text: `${TEXT}And more.` });
    }
  });

  test('a text of 900 KB only in the response: all of it', async () => {
    const text = 'abcdefghi\n'.repeat(90_000);
    const message = { ...MESSAGE, content: [{ type: 'output_text', text, annotations: [] }] };
    expect(await see('chat, streamed', 'responses', withResponse(only(message)))).toMatchObject({ text });
  });

  test('a server that has one index for all items: nothing twice', async () => {
    const { pieces: frames } = stream(ALL) as { pieces: readonly string[] };
    const behavior = sse(...frames.map((one) => one.replace(/"output_index":\d/, '"output_index":0')));
    for (const client of clients) expect(await see(client, 'responses', behavior)).toMatchObject(WHOLE);
  });

  test('a server without indexes, or whose response has the items in another order: nothing twice', async () => {
    const { pieces: frames } = stream(ALL) as { pieces: readonly string[] };
    const bare = sse(...frames.map((one) => one.replace(/"output_index":\d,?/, '')));
    const other = sse(
      ...frames.slice(0, -1),
      frame('completed', { response: only(CALL, MESSAGE, REASONING) }),
    );
    for (const behavior of [bare, other]) {
      for (const client of clients) expect(await see(client, 'responses', behavior)).toMatchObject(WHOLE);
    }
  });

  test('reasoning in deltas of one kind, repeated as the other: once', async () => {
    const deltas = pieces(THOUGHTS).map((delta) =>
      frame('reasoning_text.delta', { output_index: 0, content_index: 0, delta }),
    );
    const behavior = withResponse(
      only(REASONING, MESSAGE),
      ...deltas,
      frame('output_item.done', { output_index: 0, item: REASONING }),
    );
    expect(await see('chat, streamed', 'responses', behavior)).toMatchObject({
      text: TEXT,
      reasoning: THOUGHTS,
    });
  });

  test('the deltas are a placeholder of the arguments: the arguments of the item', async () => {
    const args = { output_index: 0, item_id: 'fc_1' };
    const behavior = withResponse(
      only(CALL),
      frame('output_item.added', { output_index: 0, item: { ...CALL, arguments: '' } }),
      frame('function_call_arguments.delta', { ...args, delta: '{}' }),
      frame('output_item.done', { output_index: 0, item: CALL }),
    );
    for (const client of clients)
      expect(await see(client, 'responses', behavior)).toMatchObject({ calls: [['gauge', JSON_TEXT]] });
  });

  test('deltas of arguments that the item contradicts: a cut call stays cut', async () => {
    const args = { output_index: 0, item_id: 'fc_1' };
    const behavior = withResponse(
      only(CALL),
      frame('output_item.added', { output_index: 0, item: { ...CALL, arguments: '' } }),
      frame('function_call_arguments.delta', { ...args, delta: '{"other":' }),
      frame('output_item.done', { output_index: 0, item: CALL }),
    );
    for (const client of clients)
      expect(await see(client, 'responses', behavior)).toMatchObject({
        error: expect.stringContaining('tool call'),
      });
  });

  test.each(['output_item.done', 'the response', 'custom_tool_call_input.done'])(
    'the input of a custom tool only in %s: all of it, and it is not judged',
    async (form) => {
      const input = '*** Begin {"Patch';
      const item = { id: 'ctc_1', type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input };
      const added = frame('output_item.added', { output_index: 0, item: { ...item, input: '' } });
      const done = frame('output_item.done', { output_index: 0, item });
      const inputDone = frame('custom_tool_call_input.done', { output_index: 0, item_id: 'ctc_1', input });
      const frames = form === 'output_item.done' ? [done] : form === 'the response' ? [] : [added, inputDone];
      const behavior = withResponse(only(...(form === 'the response' ? [item] : [])), ...frames);
      expect(await see('chat, streamed', 'responses', behavior)).toMatchObject({
        calls: [['patch', input]],
      });
    },
  );

  test('A3 the same finished reasoning item 40 times: its encrypted data once', async () => {
    const item = { ...REASONING, encrypted_content: 'x'.repeat(1000) };
    const done = Array.from({ length: 40 }, (_, i) =>
      frame('output_item.done', { output_index: i % 2, item }),
    );
    const outcome = await see('Messages, streamed', 'responses', withResponse(only(item, MESSAGE), ...done));
    expect(outcome).toMatchObject({ text: TEXT, reasoning: THOUGHTS });
  });
});

describe('O7 content in the beginning of an item or a part', () => {
  const part = MESSAGE.content[0];
  const added = (item: object) => frame('output_item.added', { output_index: 0, item });
  const deltas = (text: string) => pieces(text).map((delta) => frame('output_text.delta', { ...at, delta }));
  const args = (text: string) =>
    pieces(text).map((delta) =>
      frame('function_call_arguments.delta', { output_index: 0, item_id: 'fc_1', delta }),
    );
  const begun = (text: string) => ({ ...MESSAGE, content: [{ type: 'output_text', text, annotations: [] }] });
  const partAdded = (text: string) => frame('content_part.added', { ...at, part: { ...part, text } });
  const half = TEXT.length >> 1;
  const itemDone = frame('output_item.done', { output_index: 0, item: MESSAGE });

  test.each<[name: string, frames: string[]]>([
    ['the item, and nothing else', [added(MESSAGE)]],
    ['the part, and nothing else', [added(begun('')), partAdded(TEXT)]],
    ['both, and nothing else', [added(MESSAGE), partAdded(TEXT)]],
    ['the item, repeated by deltas', [added(MESSAGE), ...deltas(TEXT)]],
    ['the item, repeated by its end', [added(MESSAGE), itemDone]],
    [
      'the part, continued by deltas',
      [partAdded(TEXT.slice(0, half)), ...deltas(TEXT.slice(half)), itemDone],
    ],
    [
      'the item, whose end is empty',
      [added(MESSAGE), frame('output_item.done', { output_index: 0, item: begun('') })],
    ],
  ])('the text in %s: all of it, once', async (_, frames) => {
    for (const response of [only(), only(MESSAGE)])
      for (const client of clients)
        expect(await see(client, 'responses', withResponse(response, ...frames))).toMatchObject({
          text: TEXT,
        });
  });

  test('a text in the item at another index than in the response: once', async () => {
    const behavior = withResponse(only(REASONING, MESSAGE), added(MESSAGE));
    expect(await see('chat', 'responses', behavior)).toMatchObject({ text: TEXT });
  });

  test.each<[name: string, frames: string[]]>([
    ['and nothing else', [added(CALL)]],
    ['repeated by deltas', [added(CALL), ...args(JSON_TEXT)]],
    [
      'continued by deltas',
      [added({ ...CALL, arguments: JSON_TEXT.slice(0, 9) }), ...args(JSON_TEXT.slice(9))],
    ],
    ['as a placeholder', [added({ ...CALL, arguments: '{}' }), ...args(JSON_TEXT)]],
    [
      'and an empty end',
      [added(CALL), frame('output_item.done', { output_index: 0, item: { ...CALL, arguments: '' } })],
    ],
  ])('arguments in the item, %s: all of them, once', async (_, frames) => {
    for (const client of clients)
      expect(await see(client, 'responses', withResponse(only(), ...frames))).toMatchObject({
        calls: WHOLE.calls,
      });
  });

  test('arguments that are an object: their JSON', async () => {
    const item = { ...CALL, arguments: JSON.parse(JSON_TEXT) };
    for (const client of clients)
      expect(await see(client, 'responses', json(only(item)))).toMatchObject({ calls: WHOLE.calls });
  });

  test('more than 1 MiB of text in the beginnings of parts, then their ends: all of it, once', async () => {
    const text = 'abcdefghi\n'.repeat(40_000);
    const events = [0, 1, 2].flatMap((content_index) => [
      frame('content_part.added', { ...at, content_index, part: { ...part, text } }),
      frame('content_part.done', { ...at, content_index, part: { ...part, text } }),
    ]);
    const outcome = await see('chat, streamed', 'responses', withResponse(only(), ...events));
    expect(outcome).toMatchObject({ text: text.repeat(3) });
  });
});

describe('A3 a server that speaks Messages', () => {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const content = [
    { type: 'text', text: TEXT },
    { type: 'tool_use', id: 'toolu_1', name: 'gauge', input: JSON.parse(JSON_TEXT) },
  ];
  const named = (event: { readonly type: string } & object) =>
    `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content, usage };

  test('content only in message_start: all of it', async () => {
    const behavior = sse(
      named({ type: 'message_start', message } as never),
      named({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage } as never),
      named({ type: 'message_stop' }),
    );
    expect(await see('chat, streamed', 'messages', behavior)).toMatchObject({
      text: TEXT,
      calls: [['gauge', JSON_TEXT]],
    });
  });

  test('a tool’s input as text: its JSON', async () => {
    const block = { type: 'tool_use', id: 'toolu_1', name: 'gauge', input: JSON_TEXT };
    const behavior = json({ ...message, content: [block], stop_reason: 'tool_use' });
    expect(await see('chat', 'messages', behavior)).toMatchObject({ calls: [['gauge', JSON_TEXT]] });
  });
});

describe('C4 a chat server whose answer has message beside delta', () => {
  const CALLS = [{ id: 'call_1', type: 'function', function: { name: 'gauge', arguments: JSON_TEXT } }];
  const whole = (fields: object) =>
    json({ id: 'up', object: 'chat.completion', model: 'm', choices: [{ index: 0, ...fields }] });
  const said = { role: 'assistant', content: TEXT };
  const called = { role: 'assistant', content: null, tool_calls: CALLS };
  const empty = { role: 'assistant', content: '' };

  test.each<[name: string, behavior: Behavior, seen: object]>([
    ['the text in message', whole({ message: said, delta: empty, finish_reason: 'stop' }), { text: TEXT }],
    ['the text in delta', whole({ message: empty, delta: said, finish_reason: 'stop' }), { text: TEXT }],
    ['the text in both', whole({ message: said, delta: said, finish_reason: 'stop' }), { text: TEXT }],
    [
      'a call in message',
      whole({ message: called, delta: {}, finish_reason: 'tool_calls' }),
      { calls: WHOLE.calls },
    ],
    [
      'the text in one, a call in the other',
      whole({ message: said, delta: called, finish_reason: 'tool_calls' }),
      { text: TEXT, calls: WHOLE.calls },
    ],
    [
      'the text in the message of a stream’s only event',
      sse(
        `data: ${JSON.stringify({ id: 'up', choices: [{ index: 0, message: said, delta: {}, finish_reason: 'stop' }] })}\n\n`,
      ),
      { text: TEXT },
    ],
    [
      'the text so far in each event of a stream',
      sse(
        ...['Low', 'Low tide'].map((content, at) => {
          const delta = { content: content.slice(at * 3) };
          return `data: ${JSON.stringify({ id: 'up', choices: [{ index: 0, message: { ...said, content }, delta, finish_reason: at ? 'stop' : null }] })}\n\n`;
        }),
      ),
      { text: 'Low tide' },
    ],
  ])('%s: each client gets it, once', async (_, behavior, seen) => {
    for (const client of Object.keys(CLIENTS))
      expect(await see(client, 'chat', behavior)).toMatchObject(seen);
  });
});
