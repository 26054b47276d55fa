/**
 * Content that a Responses server sends only at the end, on the passthrough, as the helper of the `openai` SDK sees it
 * event by event (O7, N2).
 */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { seeded } from '../random.ts';
import { runsOf } from '../random-run.ts';
import { CALL, JSON_TEXT, MESSAGE, REASONING, TEXT, THOUGHTS } from './late-items.ts';
import { frame, gatewayFetch } from './sdk-clients.ts';
import { sse } from './upstreams.ts';

const PATCH = '*** Begin {"Patch';

const RAW = {
  id: 'rs_2',
  type: 'reasoning',
  summary: [],
  content: [{ type: 'reasoning_text', text: THOUGHTS }],
};
const REFUSAL = { ...MESSAGE, id: 'msg_2', content: [{ type: 'refusal', refusal: 'No.' }] };
const CUSTOM = {
  id: 'ctc_1',
  type: 'custom_tool_call',
  call_id: 'call_2',
  name: 'patch',
  input: PATCH,
  status: 'completed',
};
const SEARCH = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'tide' },
};
const RESPONSE = { id: 'resp_1', object: 'response', model: 'm', status: 'completed' };

type Events = readonly (readonly [type: string, members: object])[];

/** A numbered stream around these events. @param output of the last event */
function stream(events: Events, output: readonly object[], from = 0): string[] {
  const all: Events = [
    ['created', { response: { ...RESPONSE, status: 'in_progress', output: [] } }],
    ...events,
    ['completed', { response: { ...RESPONSE, output } }],
  ];
  return all.map(([type, members], at) =>
    frame(`response.${type}`, { ...members, sequence_number: from + at }),
  );
}

interface Seen {
  readonly types: readonly string[];
  readonly numbers: readonly number[];
  readonly deltas: Readonly<Record<string, string>>;
  readonly done: readonly object[];
  readonly output: readonly object[];
}

async function helper(frames: readonly string[], model = 'items/m'): Promise<Seen> {
  const client = new OpenAI({
    apiKey: 'x',
    baseURL: 'https://weir.example/v1',
    maxRetries: 0,
    fetch: gatewayFetch(sse(...frames)),
  });
  const seen = {
    types: [] as string[],
    numbers: [] as number[],
    deltas: {} as Record<string, string>,
    done: [] as object[],
  };
  const events = client.responses.stream({ model, input: 'Hello' });
  events.on('event', (event) => {
    seen.types.push(event.type.replace('response.', ''));
    if ('sequence_number' in event) seen.numbers.push(event.sequence_number);
    if (event.type === 'response.output_item.done') seen.done.push(event.item);
    if (!event.type.endsWith('.delta')) return;
    const { item_id = '', delta = '' } = event as { item_id?: string; delta?: string };
    seen.deltas[item_id] = (seen.deltas[item_id] ?? '') + delta;
  });
  const { output } = await events.finalResponse();
  return { ...seen, output };
}

const content = { output_index: 0, item_id: 'msg_1', content_index: 0 };
const item = (type: 'added' | 'done', one: object, output_index = 0): Events[number] => [
  `output_item.${type}`,
  { output_index, item: one },
];
const part = (type: 'added' | 'done', text: string): Events[number] => [
  `content_part.${type}`,
  { ...content, part: { type: 'output_text', text, annotations: [] } },
];
const done: Events[number] = ['output_text.done', { ...content, text: TEXT, logprobs: [] }];
const delta = (text: string): Events[number] => [
  'output_text.delta',
  { ...content, delta: text, logprobs: [] },
];
const EMPTY = { ...MESSAGE, status: 'in_progress', content: [] };
const call = { output_index: 0, item_id: 'fc_1' };
const NO_ARGUMENTS = { ...CALL, arguments: '', status: 'in_progress' };
const argumentsDone: Events[number] = ['function_call_arguments.done', { ...call, arguments: JSON_TEXT }];
const [BEGIN, REST] = [TEXT.slice(0, 9), TEXT.slice(9)];

const MESSAGES: readonly (readonly [name: string, events: Events])[] = [
  ['output_text.done alone', [done]],
  ['output_text.done of a known item', [item('added', EMPTY), done]],
  [
    'output_text.done of a known part',
    [item('added', EMPTY), part('added', ''), done, part('done', TEXT), item('done', MESSAGE)],
  ],
  ['content_part.done', [item('added', EMPTY), part('done', TEXT)]],
  ['output_item.done', [item('done', MESSAGE)]],
  ['output_item.done of a known item', [item('added', EMPTY), item('done', MESSAGE)]],
  ['all last events', [done, part('done', TEXT), item('done', MESSAGE)]],
  ['response.completed', []],
  ['response.completed, of a known item', [item('added', EMPTY)]],
  ['half in deltas, output_text.done', [item('added', EMPTY), part('added', ''), delta(BEGIN), done]],
  [
    'half in deltas, output_item.done',
    [item('added', EMPTY), part('added', ''), delta(BEGIN), item('done', MESSAGE)],
  ],
  ['half in deltas, response.completed', [item('added', EMPTY), part('added', ''), delta(BEGIN)]],
];

const CALLS: readonly (readonly [name: string, events: Events])[] = [
  ['function_call_arguments.done', [item('added', NO_ARGUMENTS), argumentsDone, item('done', CALL)]],
  ['function_call_arguments.done before its item', [argumentsDone, item('done', CALL)]],
  ['output_item.done', [item('done', CALL)]],
  ['response.completed', []],
  ['response.completed, of a known item', [item('added', NO_ARGUMENTS)]],
  [
    'half in deltas, output_item.done',
    [
      item('added', NO_ARGUMENTS),
      ['function_call_arguments.delta', { ...call, delta: '{"at":' }],
      item('done', CALL),
    ],
  ],
  [
    'a placeholder, function_call_arguments.done',
    [item('added', NO_ARGUMENTS), ['function_call_arguments.delta', { ...call, delta: '{}' }], argumentsDone],
  ],
];

/** The events of each item are there once, in their order, and numbered one by one. */
function expectWhole({ types, numbers, output }: Seen, from = 0): void {
  expect(numbers).toEqual(numbers.map((_, at) => from + at));
  const count = (type: string) => types.filter((one) => one === type).length;
  expect(count('output_item.added')).toBe(output.length);
  for (const type of [
    'output_text.done',
    'content_part.added',
    'content_part.done',
    'function_call_arguments.done',
  ])
    expect(count(type)).toBeLessThanOrEqual(output.length);
}

/** The events of a whole stream. Of each item, and of each of its parts, the last `left` events or the first ones may be left out. */
function randomEvents(random: () => number): { readonly events: Events; readonly output: readonly object[] } {
  const items = [REASONING, MESSAGE, CALL, CUSTOM].filter(() => random() < 0.8);
  const output = random() < 0.7 ? items : [];
  const events = items.flatMap((one, index): Events => {
    const at = { output_index: index, item_id: one.id };
    // How much comes in deltas, and whether the item's beginning comes.
    const sent = [0, 0, 0.5, 1][Math.floor(random() * 4)] ?? 0;
    const isBegun = sent > 0 || random() < 0.6;
    const isEnded = output.length === 0 || random() < 0.6;
    const mayCome = (event: Events[number]) => (random() < 0.5 ? [event] : []);
    const pieces = (text: string, type: string, place: object) => {
      const begun = text.slice(0, Math.round(text.length * sent));
      return [...begun.matchAll(/.{1,5}/gsu)].map(
        ([piece]) => [`${type}.delta`, { ...place, delta: piece }] as const,
      );
    };
    const inner = (): Events => {
      if (one === CALL)
        return [
          ...pieces(JSON_TEXT, 'function_call_arguments', at),
          ...mayCome(['function_call_arguments.done', { ...at, arguments: JSON_TEXT }]),
        ];
      if (one === CUSTOM)
        return [
          ...pieces(PATCH, 'custom_tool_call_input', at),
          ...mayCome(['custom_tool_call_input.done', { ...at, input: PATCH }]),
        ];
      const isThought = one === REASONING;
      const place = { ...at, ...(isThought ? { summary_index: 0 } : { content_index: 0 }) };
      const [name, partName] = isThought
        ? ['reasoning_summary_text', 'reasoning_summary_part']
        : ['output_text', 'content_part'];
      const text = isThought ? THOUGHTS : TEXT;
      const whole = isThought
        ? { type: 'summary_text', text }
        : { type: 'output_text', text, annotations: [] };
      return [
        ...(sent > 0 ? [[`${partName}.added`, { ...place, part: { ...whole, text: '' } }] as const] : []),
        ...pieces(text, name, place),
        ...mayCome([`${name}.done`, { ...place, text }]),
        ...mayCome([`${partName}.done`, { ...place, part: whole }]),
      ];
    };
    const begin = {
      ...one,
      ...('content' in one ? { content: [] } : {}),
      ...('summary' in one ? { summary: [] } : {}),
      ...('arguments' in one ? { arguments: '' } : {}),
      ...('input' in one ? { input: '' } : {}),
    };
    return [
      ...(isBegun ? [item('added', begin, index)] : []),
      ...inner(),
      ...(isEnded ? [item('done', one, index)] : []),
    ];
  });
  return { events, output };
}

describe('O7 N2 random streams', () => {
  const RUNS = runsOf(60);

  test(`${RUNS} streams that leave out any events: each text in deltas, once, and the helper accepts them`, async () => {
    const random = seeded(32);
    for (let run = 0; run < RUNS; run++) {
      const { events, output } = randomEvents(random);
      const types = events.map(([type]) => type).join(' ');
      const seen = await helper(stream(events, output)).catch((error: Error) => ({
        error: error.message,
        types,
      }));
      if ('error' in seen)
        throw new Error(`${run}: ${seen.error}: ${types}, ${output.length} in the response`);
      const texts: Record<string, string> = { rs_1: THOUGHTS, msg_1: TEXT, fc_1: JSON_TEXT, ctc_1: PATCH };
      for (const [id, text] of Object.entries(seen.deltas))
        expect([run, id, text, types]).toEqual([run, id, texts[id], types]);
      for (const one of [...output, ...seen.done])
        expect([run, Object.keys(seen.deltas)]).toEqual([
          run,
          expect.arrayContaining([(one as { id: string }).id]),
        ]);
      expect([run, seen.numbers]).toEqual([run, seen.numbers.map((_, at) => at)]);
    }
  });
});

describe('O7 N2 content only at the end', () => {
  test.each(MESSAGES)(
    'a text, %s: its item, its part and the whole text in deltas, once',
    async (_, events) => {
      const seen = await helper(stream(events, [MESSAGE], 7));
      expect(seen.deltas).toEqual({ msg_1: TEXT });
      expect(seen.output).toMatchObject([MESSAGE]);
      expect(seen.types.slice(0, 3)).toEqual(['created', 'output_item.added', 'content_part.added']);
      expectWhole(seen, 7);
    },
  );

  test.each(CALLS)('a call, %s: its item and all arguments in deltas, once', async (_, events) => {
    const seen = await helper(stream(events, [CALL]));
    expect(seen.deltas).toEqual({ fc_1: JSON_TEXT });
    expect(seen.output).toMatchObject([CALL]);
    expectWhole(seen);
  });

  test.each([
    [[REASONING]],
    [[RAW]],
    [[REFUSAL]],
    [[CUSTOM]],
    [[REASONING, MESSAGE, CALL, CUSTOM]],
    [[SEARCH, MESSAGE]],
  ])('items %j only in response.completed: each with its events, and its own end', async (items) => {
    const seen = await helper(stream([], items));
    expect(Object.values(seen.deltas).join('')).toBe(
      items
        .map(
          (one) =>
            ({
              rs_1: THOUGHTS,
              rs_2: THOUGHTS,
              msg_1: TEXT,
              msg_2: 'No.',
              fc_1: JSON_TEXT,
              ctc_1: PATCH,
              ws_1: '',
            })[one.id],
        )
        .join(''),
    );
    expect(seen.done).toMatchObject(items);
    expect(seen.output).toMatchObject(items);
    expectWhole(seen);
  });

  test('items of every kind only in output_item.done: each has its beginning', async () => {
    const items = [REASONING, SEARCH, MESSAGE, CALL, CUSTOM];
    const seen = await helper(
      stream(
        items.map((one, at) => item('done', one, at)),
        items,
      ),
    );
    expect(seen.deltas).toEqual({ rs_1: THOUGHTS, msg_1: TEXT, fc_1: JSON_TEXT, ctc_1: PATCH });
    expect(seen.done).toMatchObject(items);
    expectWhole(seen);
  });

  test('a text in the beginning of its item, and no deltas: the client has it, so nothing is added', async () => {
    const seen = await helper(stream([item('added', MESSAGE), item('done', MESSAGE)], [MESSAGE]));
    expect(seen.types).toEqual(['created', 'output_item.added', 'output_item.done', 'completed']);
  });

  test.each([[[]], [[item('added', EMPTY)]]])(
    'N1 deltas of a part that is not announced, after %j: as they came',
    async (begin) => {
      const events = [...begin, delta(BEGIN), done, part('done', TEXT), item('done', MESSAGE)];
      const frames = stream(events, [MESSAGE]);
      const { body } = await gatewayFetch(sse(...frames))('https://weir.example/v1/responses', {
        method: 'POST',
        body: JSON.stringify({ model: 'items/m', input: 'Hello', stream: true }),
        headers: { authorization: 'Bearer x', 'content-type': 'application/json' },
      });
      const text = await new Response(body).text();
      expect(text.match(/^event: .*$/gm)).toEqual(frames.map((one) => one.split('\n')[0]));
    },
  );

  test('a whole stream: nothing is added', async () => {
    const events: Events = [
      item('added', EMPTY),
      part('added', ''),
      delta(BEGIN),
      delta(REST),
      done,
      part('done', TEXT),
      item('done', MESSAGE),
    ];
    const seen = await helper(stream(events, [MESSAGE]));
    expect(seen.types).toHaveLength(events.length + 2);
  });

  test.each(['response.completed', 'output_item.done'])(
    'B1 a text of 900 KB only in %s: one delta has it',
    async (form) => {
      const text = 'abcdefghi\n'.repeat(85_000);
      const large = { ...MESSAGE, content: [{ type: 'output_text', text, annotations: [] }] };
      const events = form === 'output_item.done' ? [item('done', large)] : [];
      const seen = await helper(stream(events, form === 'output_item.done' ? [] : [large]));
      expect(seen.deltas).toEqual({ msg_1: text });
    },
  );

  test('B1 5,000 items only in response.completed: the first have events, and the response comes whole', async () => {
    const items = Array.from({ length: 5000 }, (_, at) => ({
      ...MESSAGE,
      id: `m${at}`,
      content: [{ type: 'output_text', text: 'a', annotations: [] }],
    }));
    const seen = await helper(stream([], items));
    expect(Object.keys(seen.deltas).length).toBeGreaterThan(100);
    expect(seen.output).toHaveLength(5000);
  });

  test('arguments that are cut, only in output_item.done: the item is incomplete, and the response fails', async () => {
    const cut = { ...CALL, arguments: '{"at":' };
    await expect(helper(stream([item('done', cut)], [cut]))).rejects.toThrow(
      'before its arguments were complete',
    );
  });
});
