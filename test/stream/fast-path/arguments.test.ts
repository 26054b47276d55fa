/** Tests that pieces of a tool call's arguments take the fast path, and are judged as they are on the normal path. */
import { describe, expect, test } from 'vitest';
import { MessagesWriter } from '../../../src/protocols/anthropic-messages/client-writer.ts';
import { ResponsesWriter } from '../../../src/protocols/openai-responses/client-writer.ts';
import { type Conversion, convertStream, cut } from '../../contract/convert.ts';
import { sessionOf } from '../../protocols/openai-responses/run.ts';
import { seeded } from '../../random.ts';
import { runsOf, SEED } from '../../random-run.ts';
import { compareWays } from '../both-ways.ts';
import { pick, type Random } from '../grammar-envelopes.ts';

const CUTS = [100_000, 300, 64, 7, 1];
const CHAT: Conversion = { provider: 'compatible', route: 'chat', model: 'm', usageChunk: false };
const encoder = new TextEncoder();

function event(delta: object, finish: string | null = null, index = 0): string {
  const choices = [{ index, delta, logprobs: null, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c-1', model: 'm', choices })}\n\n`;
}

const opening = (index: number, id: string, args = '') =>
  event({ tool_calls: [{ index, id, type: 'function', function: { name: 'f', arguments: args } }] });
const piece = (index: number, args: string) =>
  event({ tool_calls: [{ index, function: { arguments: args } }] });
const text = (content: string) => event({ content });
const START = event({ role: 'assistant', content: 'Let me see' });
const END = `${event({}, 'tool_calls')}data: [DONE]\n\n`;

/** Compares both paths for every cut. @returns what the fast path made of the whole stream */
function converted(events: readonly string[], conversion = CHAT) {
  const bytes = encoder.encode([START, ...events].join(''));
  const hits = CUTS.map((size) => compareWays([...cut(bytes, size)], conversion).copiedEvents);
  expect(new Set(hits).size).toBe(1);
  return convertStream([bytes], conversion);
}

/** The arguments of each call, by its index. */
function argumentsIn(stream: string): Record<number, string> {
  const calls: Record<number, string> = {};
  for (const [, data = ''] of stream.matchAll(/^data: (\{.*)$/gm)) {
    for (const { index, function: fn } of JSON.parse(data).choices?.[0]?.delta.tool_calls ?? [])
      calls[index] = (calls[index] ?? '') + fn.arguments;
  }
  return calls;
}

describe('TemplateFastPath, pieces of arguments', () => {
  const PIECES = ['{"ci', 'ty":', ' "Pá', 'ris 🌊', '\\n\\"', '", "n": [1, 2', ']}'];

  test('all but the first piece of a call take the fast path, with the bytes of the normal path', () => {
    const {
      text: written,
      copiedEvents,
      error,
    } = converted([opening(0, 'a'), ...PIECES.map((one) => piece(0, one)), END]);
    expect(error).toBeNull();
    expect(copiedEvents).toBe(PIECES.length - 1);
    expect(argumentsIn(written)).toEqual({ 0: PIECES.join('') });
    expect(written).toContain(
      '{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ty\\":"}}]}',
    );
  });

  test('a further call is learned anew: no piece of it gets the index of the call before it', () => {
    const calls = [0, 1, 2].flatMap((index) => [
      opening(index, `c${index}`),
      ...PIECES.map((one) => piece(index, one)),
    ]);
    const { text: written, copiedEvents } = converted([...calls, END]);
    expect(copiedEvents).toBe(3 * (PIECES.length - 1));
    expect(argumentsIn(written)).toEqual({ 0: PIECES.join(''), 1: PIECES.join(''), 2: PIECES.join('') });
  });

  test('a second call under the index of the first: its pieces go to the second', () => {
    const events = [
      opening(0, 'a'),
      piece(0, '{"a":'),
      piece(0, '1'),
      piece(0, '}'),
      opening(0, 'b'),
      piece(0, '{"b":'),
      piece(0, '2'),
      piece(0, '}'),
    ];
    const { text: written, copiedEvents } = converted([...events, END]);
    expect(argumentsIn(written)).toEqual({ 0: '{"a":1}', 1: '{"b":2}' });
    expect(copiedEvents).toBe(4);
  });

  test('pieces of two calls that alternate: each goes to its call', () => {
    const both = ['{"a"', ':1', '2', '}'].flatMap((one) => [piece(0, one), piece(1, one)]);
    const { text: written, copiedEvents } = converted([opening(0, 'a'), opening(1, 'b'), ...both, END]);
    expect(argumentsIn(written)).toEqual({ 0: '{"a":12}', 1: '{"a":12}' });
    expect(copiedEvents).toBe(6);
  });

  test.each<[name: string, pieces: readonly string[], code: string | null]>([
    ['end within an object', ['{"a":', '"b"', ',"c":"d'], 'upstream_truncated'],
    ['end within an escape', ['{"a":', '"b', '\\'], 'upstream_truncated'],
    ['end within a second object', ['{"a":', '1}', '{"b":'], 'upstream_truncated'],
    ['are complete', ['{"a":', '"b"', '}'], null],
    ['are complete and followed by white space', ['{"a":', '1}', '\u00a0\n', ' '], null],
    ['are no JSON', ['{"a":', 'nope', ',"b":"c'], null],
  ])('C7 arguments that %s: copied pieces are judged', (_, pieces, code) => {
    const { copiedEvents, error } = converted([opening(0, 'a'), ...pieces.map((one) => piece(0, one)), END]);
    expect(error?.code ?? null).toBe(code);
    expect(copiedEvents).toBe(pieces.length - 1);
  });

  test.each(['\\u0022', '\\u007d', '\\u005c\\u0022', '\\/', '\\u000a'])(
    'the escape %s counts as the character that it stands for',
    (written) => {
      const raw = (args: string) => piece(0, 'X').replace('"X"', () => `"${args}"`);
      for (const end of ['}', '\\"}']) {
        const { copiedEvents } = converted([
          opening(0, 'a'),
          raw('{\\"a\\":'),
          raw('\\"b'),
          raw(written),
          raw(end),
          END,
        ]);
        expect(copiedEvents).toBe(3);
      }
    },
  );

  test('C7 a placeholder before the arguments: dropped, and the pieces that follow are one object', () => {
    for (const placeholder of ['{}', 'null', ' {} ']) {
      const { text: written, error } = converted([
        opening(0, 'a', placeholder),
        piece(0, '{"a":'),
        piece(0, '1'),
        piece(0, '}'),
        END,
      ]);
      expect(argumentsIn(written)).toEqual({ 0: '{"a":1}' });
      expect(error).toBeNull();
    }
  });

  test('C7 arguments after a placeholder that was sent: they take the normal path, which finds them broken', () => {
    const events = [opening(0, 'a', '{}'), text('so'), piece(0, ' '), piece(0, ' '), piece(0, '{"a":1}')];
    const { copiedEvents, error } = converted([...events, END]);
    expect(copiedEvents).toBe(0);
    expect(error).not.toBeNull();
  });

  test('a piece with an id, a name or something of the provider takes the normal path', () => {
    const more = [
      { id: 'a' },
      { function: { name: 'f', arguments: ',"b":2' } },
      { extra_content: { google: {} } },
    ];
    for (const one of more) {
      const odd = event({ tool_calls: [{ index: 0, function: { arguments: ',"b":2' }, ...one }] });
      const { copiedEvents } = converted([
        opening(0, 'a'),
        piece(0, '{"a":'),
        piece(0, '1'),
        odd,
        piece(0, '}'),
        END,
      ]);
      expect(copiedEvents).toBe(2);
    }
  });

  test('the input of a custom tool takes the normal path', () => {
    const input = (value: string) => event({ tool_calls: [{ index: 0, custom: { input: value } }] });
    const custom = event({
      tool_calls: [{ index: 0, id: 'a', type: 'custom', custom: { name: 'f', input: '' } }],
    });
    expect(converted([custom, ...['a', '"b', 'c'].map(input), END]).copiedEvents).toBe(0);
  });

  test('a stream that is cut at each of its bytes: the same output as the normal path', () => {
    const events = [
      START,
      opening(0, 'a'),
      ...['{"é":', '"\\n', '"}'].map((one) => piece(0, one)),
      opening(1, 'b', '{}'),
      piece(1, '{"a":1}'),
      END,
    ];
    const bytes = encoder.encode(events.join(''));
    for (let at = 1; at < bytes.length; at++) compareWays([bytes.subarray(0, at), bytes.subarray(at)], CHAT);
  });
});

describe('TemplateFastPath, pieces of arguments for a client of Messages', () => {
  const messages: Conversion = { ...CHAT, openWriter: (options) => new MessagesWriter(options) };
  const inputsIn = (stream: string) =>
    [...stream.matchAll(/"partial_json":("(?:[^"\\]|\\.)*")/g)]
      .map(([, json = '']) => JSON.parse(json))
      .join('');

  test('all but the first pieces take the fast path, up to the end of the arguments', () => {
    const pieces = ['{"a":', '"b', '\n', 'c"', '}\n', ' '];
    const events = [opening(0, 'a'), ...pieces.map((one) => piece(0, one)), END];
    const { text: written, copiedEvents, error } = converted(events, messages);
    expect(error).toBeNull();
    expect(copiedEvents).toBe(4);
    // Anthropic's SDK rejects a message for what follows the arguments.
    expect(inputsIn(written)).toBe('{"a":"b\nc"}');
  });

  test('pieces of a second call that begins before the first is complete wait, and follow it', () => {
    const events = [
      ...[opening(0, 'a'), piece(0, '{"a":'), piece(0, '1'), piece(0, '2')],
      ...[opening(1, 'b'), piece(1, '{"b":'), piece(0, '3'), piece(0, '}'), piece(1, '4'), piece(1, '5}')],
    ];
    const { text: written } = converted([...events, END], messages);
    expect(inputsIn(written)).toBe('{"a":123}{"b":45}');
  });

  test('arguments that are no object take the normal path, which wraps them', () => {
    const events = [opening(0, 'a'), ...['[1', ',2', ',3]'].map((one) => piece(0, one)), END];
    expect(converted(events, messages).copiedEvents).toBe(0);
  });
});

test('TemplateFastPath, pieces of arguments for a client of Responses: copied, and whole in the events that repeat them', () => {
  const responses: Conversion = {
    ...CHAT,
    openWriter: (options) => new ResponsesWriter(sessionOf(), options),
  };
  const pieces = ['{"a":', '"é', '\n', '🌊"', '}'];
  const calls = [0, 1].flatMap((index) => [
    opening(index, `c${index}`),
    ...pieces.map((one) => piece(index, one)),
  ]);
  const { text: written, copiedEvents } = converted([...calls, END], responses);
  expect(copiedEvents).toBe(2 * (pieces.length - 1));
  const whole = `"arguments":${JSON.stringify(pieces.join(''))}`;
  // In `function_call_arguments.done`, `output_item.done` and `response.completed`.
  expect(written.split(whole)).toHaveLength(2 * 3 + 1);
});

const STREAMS = runsOf(150);
/** A busy machine takes 30. */
const LIMIT_MS_A_STREAM = 200;
const PIECES_OF_ANY = [
  ...[
    '{',
    '}',
    '{}',
    '[',
    ']',
    '"',
    '":',
    ',',
    ' ',
    '\n',
    '\u00a0',
    '\ufeff',
    'null',
    'true',
    'tr',
    'ue',
    '1',
    '-',
    '.5',
    'e',
  ],
  ...[
    '{"a":',
    '{"a":1}',
    '"b"',
    '"c',
    'd"',
    '\\',
    '\\"',
    'é',
    '水',
    '🌊',
    '\u2028',
    'weir\u00a4text',
    '',
    'arguments',
    'x'.repeat(70),
  ],
];

/** Events of up to three calls in any order, with texts, names and ids between them. */
function randomStream(random: Random): string {
  const index = () => (random(6) === 0 ? undefined : pick(random, [0, 0, 0, 1, 2]));
  const args = () => pick(random, PIECES_OF_ANY) + (random(4) === 0 ? pick(random, PIECES_OF_ANY) : '');
  let last = index();
  const call = (): object => {
    if (random(6) === 0) last = index();
    const id = pick(random, ['a', 'b', 'c']);
    switch (random(14)) {
      case 0:
        return { index: last, id, function: { name: 'f', arguments: args() } };
      case 1:
        return { index: last, id, type: 'function', function: { name: 'f', arguments: '' } };
      case 2:
        return { index: last, function: { name: pick(random, ['f', '']), arguments: args() } };
      case 3:
        return { index: last, id, function: { arguments: args() } };
      case 4:
        return random(4) === 0 ? { index: last, custom: { name: 'g', input: args() } } : { index: last };
      default:
        return { index: last, function: { arguments: args() } };
    }
  };
  const events = Array.from({ length: 30 }, () => {
    switch (random(24)) {
      case 0:
        return text('so');
      case 1:
        return event({ tool_calls: [call(), call()] });
      case 2:
        return event({ content: 'x', tool_calls: [call()] });
      case 3:
        return event({ function_call: { arguments: args() } });
      case 4:
        return event({ tool_calls: [call()] }, null, 1);
      case 5:
        return random(6) === 0
          ? event({ tool_calls: [call()] }, pick(random, ['stop', 'length']))
          : ': ping\n\n';
      default:
        return event({ tool_calls: [call()] });
    }
  });
  const finish = event({}, pick(random, ['tool_calls', 'stop', 'length']));
  return [START, ...events, pick(random, [finish, ''])].join('') + pick(random, ['data: [DONE]\n\n', '']);
}

const CLIENTS: readonly Pick<Conversion, 'openWriter'>[] = [
  {},
  { openWriter: (options) => new MessagesWriter(options) },
  { openWriter: (options) => new ResponsesWriter(sessionOf(), options) },
];

test(
  `TemplateFastPath, ${STREAMS} random streams of tool calls: the same output as the normal path`,
  () => {
    let hits = 0;
    for (let at = 0; at < STREAMS; at++) {
      const next = seeded(SEED + at);
      const random: Random = (limit) => Math.floor(next() * limit);
      const provider = pick(random, ['compatible', 'mistral', 'deepseek', 'openrouter']);
      const bytes = encoder.encode(randomStream(random));
      try {
        const conversion = { ...CHAT, ...pick(random, CLIENTS), provider };
        hits += compareWays([...cut(bytes, pick(random, CUTS))], conversion).copiedEvents;
      } catch (error) {
        throw new Error(`It fails from SEED=${SEED + at}`, { cause: error });
      }
    }
    expect(hits).toBeGreaterThan(STREAMS);
  },
  STREAMS * LIMIT_MS_A_STREAM,
);
