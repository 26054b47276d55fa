/** Tests Responses providers of which one event has another index of its text than the others: nothing twice, nothing lost (O7). */
import { describe, expect, test } from 'vitest';
import { sampleOf } from '../random-run.ts';
import { CLIENTS, see } from './sdk-clients.ts';
import { sse } from './upstreams.ts';

const THOUGHTS = ['First the gates, ', 'then the water, which is slow.'];
const TEXTS = ['A lock fills and empties ', 'by itself.'];
const REASONING = {
  type: 'reasoning',
  id: 'rs_1',
  summary: THOUGHTS.map((text) => ({ type: 'summary_text', text })),
};
const MESSAGE = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: TEXTS.map((text) => ({ type: 'output_text', text, annotations: [] })),
};
const EXPECTED = { text: TEXTS.join(''), reasoning: THOUGHTS.join('') };

interface Event {
  readonly type: string;
  readonly [name: string]: unknown;
}

const pieces = (text: string) => text.match(/.{1,4}/gs) ?? [];

/** The events of one text. */
function eventsOf(
  place: { readonly output_index: number; readonly item_id: string },
  index: Readonly<Record<string, number>>,
  name: string,
  part: { readonly type: string; readonly text: string },
  isHalf: boolean,
): Event[] {
  const at = { ...place, ...index };
  const partName = name === 'output_text' ? 'content_part' : 'reasoning_summary_part';
  const deltas = pieces(part.text);
  return [
    { type: `${partName}.added`, ...at, part: { ...part, text: '' } },
    ...(isHalf ? deltas.slice(0, 2) : deltas).map((delta) => ({ type: `${name}.delta`, ...at, delta })),
    { type: `${name}.done`, ...at, text: part.text },
    { type: `${partName}.done`, ...at, part },
  ];
}

function stream(isHalf: boolean): Event[] {
  const response = { id: 'resp_1', object: 'response', model: 'm' };
  const [first, second] = [REASONING, MESSAGE].map(({ id }, output_index) => ({ output_index, item_id: id }));
  if (first === undefined || second === undefined) throw new Error('There are two items');
  const item = (name: string, output_index: number, value: object) => ({
    type: `output_item.${name}`,
    output_index,
    item: value,
  });
  return [
    { type: 'created', response: { ...response, status: 'in_progress', output: [] } },
    item('added', 0, { ...REASONING, summary: [] }),
    ...REASONING.summary.flatMap((part, summary_index) =>
      eventsOf(first, { summary_index }, 'reasoning_summary_text', part, isHalf),
    ),
    item('done', 0, REASONING),
    item('added', 1, { ...MESSAGE, content: [], status: 'in_progress' }),
    ...MESSAGE.content.flatMap((part, content_index) =>
      eventsOf(second, { content_index }, 'output_text', part, isHalf),
    ),
    item('done', 1, MESSAGE),
    { type: 'completed', response: { ...response, status: 'completed', output: [REASONING, MESSAGE] } },
  ];
}

const behaviorOf = (events: readonly Event[]) =>
  sse(
    ...events.map(
      ({ type, ...members }) => `data: ${JSON.stringify({ type: `response.${type}`, ...members })}\n\n`,
    ),
  );

const without = (pattern: RegExp) => (events: readonly Event[]) =>
  events.filter(({ type }) => !pattern.test(type));
const FORMS: readonly (readonly [name: string, form: (events: readonly Event[]) => readonly Event[]])[] = [
  ['with all events', (events) => events],
  ['without the beginnings of parts', without(/part\.added/)],
  ['without the ends of texts', without(/text\.done/)],
  ['without the ends of parts', without(/part\.done/)],
  ['without the ends of items', without(/item\.done/)],
  [
    'without the ends of items, and nothing in the response',
    (events) =>
      without(/item\.done/)(events).map((event) =>
        event.type === 'completed'
          ? { ...event, response: { ...(event.response as object), output: [] } }
          : event,
      ),
  ],
];

/** The indexes that an event gets instead of its own. */
const OTHERS = sampleOf([0], [0, 1, 7]);

/** Each stream of which one event has another index. */
function* shifted(events: readonly Event[]): Generator<readonly [what: string, events: readonly Event[]]> {
  for (const [at, event] of events.entries()) {
    for (const name of ['content_index', 'summary_index']) {
      const index = event[name];
      if (typeof index !== 'number') continue;
      for (const other of OTHERS)
        if (other !== index)
          yield [`${event.type} ${at}: ${other}`, events.with(at, { ...event, [name]: other })];
    }
  }
}

describe('O7 one event has another index of its text', () => {
  const clients = Object.keys(CLIENTS).filter((client) => !client.startsWith('Responses'));
  test.each(FORMS.flatMap(([name, form]) => clients.map((client) => ({ name, form, client }))))(
    '$name, to $client',
    async ({ form, client }) => {
      const wrong: unknown[] = [];
      for (const [what, events] of shifted(form(stream(false)))) {
        const seen = await see(client, 'responses', behaviorOf(events));
        if ('error' in seen || seen.text !== EXPECTED.text || seen.reasoning !== EXPECTED.reasoning)
          wrong.push([what, seen]);
      }
      expect(wrong).toEqual([]);
    },
  );

  test('with deltas of the beginnings alone: the rest of each text, once', async () => {
    const wrong: unknown[] = [];
    for (const [what, events] of shifted(stream(true))) {
      const seen = await see('chat', 'responses', behaviorOf(events));
      if ('error' in seen || seen.text.length !== EXPECTED.text.length) wrong.push([what, seen]);
    }
    expect(wrong).toEqual([]);
  });

  test('two equal texts of an item are both sent', async () => {
    const twice = { ...MESSAGE, content: [MESSAGE.content[0], MESSAGE.content[0]] };
    const done = (content_index: number): Event => ({
      type: 'output_text.done',
      output_index: 0,
      item_id: 'msg_1',
      content_index,
      text: TEXTS[0],
    });
    const events: Event[] = [
      done(0),
      done(1),
      { type: 'output_item.done', output_index: 0, item: twice },
      { type: 'completed', response: { id: 'resp_1', status: 'completed', output: [twice] } },
    ];
    const text = `${TEXTS[0]}${TEXTS[0]}`;
    expect(await see('chat', 'responses', behaviorOf(events))).toMatchObject({ text });
    expect(
      await see('chat', 'responses', behaviorOf(events.slice(0, 2).concat(events.slice(3)))),
    ).toMatchObject({
      text,
    });
  });
});
