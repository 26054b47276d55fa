/** Compares the fast path with the normal path: the same frames, value for value, for any input and any split. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fastShare, TEXT_STREAMS } from '../../../bench/share.ts';
import { type Conversion, convertStream, cut } from '../../contract/convert.ts';
import { conversionOf } from '../../contract/expectation.ts';
import { fixtures } from '../../contract/fixtures.ts';
import { readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { compareWays } from '../both-ways.ts';

const MUTATIONS = 600;
const CUTS = [100_000, 4096, 300, 64, 7, 1];
const CHAT: Conversion = { provider: 'compatible', route: 'chat', model: 'm', usageChunk: true };
const encoder = new TextEncoder();

/** How many frames took the fast path. */
function compare(bytes: Uint8Array, conversion: Conversion, size: number): number {
  return compareWays([...cut(bytes, size)], conversion).copiedEvents;
}

function frame(delta: string, rest = '"finish_reason":null'): string {
  return `data: {"id":"c-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":${delta},${rest}}]}\n\n`;
}

const textFrame = (text: string) => frame(`{"content":${text}}`);
/** A stream that starts with a text from which nothing is learned. */
const START = frame('{"role":"assistant","content":"("}');
const STOP = frame('{}', '"finish_reason":"stop"');
const END = `${STOP}data: [DONE]\n\n`;

describe('TemplateFastPath, frames that differ by their text alone', () => {
  test('all but the first text and the learned one take the fast path, with the bytes of the normal path', () => {
    const text =
      START + textFrame('"A"') + textFrame('" weir"') + textFrame('" é 🌊 \\u00e9 \\n \\\\\\" {"') + END;
    const { text: written, copiedEvents } = convertStream([encoder.encode(text)], CHAT);
    expect(copiedEvents).toBe(2);
    expect(written).toContain(
      '{"index":0,"delta":{"content":" é 🌊 \\u00e9 \\n \\\\\\" {"},"logprobs":null,"finish_reason":null}',
    );
    expect(compare(encoder.encode(text), CHAT, 100_000)).toBe(2);
  });

  test('the first text is sent before anything is learned: the third takes the fast path', () => {
    const texts = ['"a"', '"b"', '"c"'].map(textFrame);
    const hits = [1, 2, 3].map((n) =>
      compare(encoder.encode(texts.slice(0, n).join('') + END), CHAT, 100_000),
    );
    expect(hits).toEqual([0, 0, 1]);
  });

  test('texts too large to learn from do not count as unused templates: later small ones take the fast path', () => {
    const large = textFrame(JSON.stringify('a'.repeat(5000))).repeat(10);
    const text = START + large + ['"a"', '"b"', '"c"'].map(textFrame).join('') + END;
    expect(compare(encoder.encode(text), CHAT, 100_000)).toBe(2);
  });

  test('padding whose length changes is not sent', () => {
    const padded = (text: string, p: string) => textFrame(text).replace('}]}', `}],"p":"${p}"}`);
    const text = START + padded('"a"', 'x') + padded('"b"', 'xyz') + padded('"c"', '') + END;
    expect(compare(encoder.encode(text), CHAT, 100_000)).toBe(2);
  });

  test('padding before the text is not sent', () => {
    const padded = (text: string, p: string) =>
      textFrame(text).replace('{"id"', `{"obfuscation":"${p}","id"`);
    const text = START + padded('"a"', 'x') + padded('"b"', 'xyz') + END;
    expect(compare(encoder.encode(text), CHAT, 100_000)).toBe(1);
  });

  test('A8 events with a name, padded with blanks before their last brace: all but the learned one take the fast path, at any split', () => {
    const named = (text: string, blanks: string, name = 'chunk') =>
      `event: ${name}\n${textFrame(text).replace('}]}', `}]${blanks}}`)}`;
    const text =
      START +
      named('"a"', '  ') +
      named('" }\\n\\n"', '') +
      named('"b"', ' '.repeat(40)) +
      named('" }  "', ' ');
    for (const size of CUTS) expect(compare(encoder.encode(text + END), CHAT, size)).toBe(3);
    // Another name, other white space or an additional brace makes another frame.
    const others = [
      named('"c"', ' ', 'delta'),
      named('"c"', '\t'),
      named('"c"', ' ').replace('event: ', 'event:'),
    ];
    for (const other of others) {
      for (const size of CUTS) expect(compare(encoder.encode(text + other + END), CHAT, size)).toBe(3);
    }
  });

  test('a text that is sent twice, under two names, takes the fast path', () => {
    const twice = (text: string, other: string) =>
      frame(
        `{"content":"","reasoning":${text},"reasoning_details":[{"type":"reasoning.text","text":${other}}]}`,
      );
    const text = START + twice('"a"', '"a"') + twice('" é\\n"', '" é\\n"') + twice('"b"', '"b"') + END;
    for (const size of CUTS) expect(compare(encoder.encode(text), CHAT, size)).toBe(2);
    // Two texts that differ take the normal path; the next pair that is equal takes the fast path again.
    const unlike = [twice('"b"', '"bc"'), twice('"bc"', '"b"'), twice('"b"', '"c"')].join('');
    const after = text.replace(END, unlike + twice('"d"', '"d"') + END);
    for (const size of CUTS) expect(compare(encoder.encode(after), CHAT, size)).toBe(3);
  });

  test('a frame that is split between reads takes the fast path', () => {
    const text = encoder.encode(START + textFrame('"a"') + textFrame('"b"').repeat(20) + END);
    for (const size of [1, 10, 64, 300]) expect(compare(text, CHAT, size)).toBe(20);
  });

  test('spaces in the JSON, reasoning, typed parts and legacy text take the fast path', () => {
    const spaced = (text: string) => textFrame(text).replaceAll('":', '": ').replaceAll(',"', ', "');
    expect(compare(encoder.encode(START + spaced('"a"') + spaced('"b"') + END), CHAT, 100_000)).toBe(1);
    const thinks = (text: string) => frame(`{"reasoning_content":${text},"content":null}`);
    expect(compare(encoder.encode(START + thinks('"a"') + thinks('"b"') + END), CHAT, 100_000)).toBe(1);
    const typed = (text: string) =>
      frame(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":${text}}]}]}`);
    const mistral = { ...CHAT, provider: 'mistral' };
    expect(compare(encoder.encode(START + typed('"a"') + typed('"b"') + END), mistral, 100_000)).toBe(1);
    const legacy = (text: string) =>
      `data: {"id":"c","object":"text_completion","choices":[{"text":${text},"index":0}]}\n\n`;
    const completions: Conversion = { ...CHAT, route: 'completions' };
    const text = legacy('"("') + legacy('"a"') + legacy('"b"') + END;
    expect(compare(encoder.encode(text), completions, 100_000)).toBe(1);
  });
});

describe.each(TEXT_STREAMS)('TemplateFastPath, text frames of %s', (name, shape) => {
  test('at least 95% take the fast path', () => {
    expect(fastShare(name, shape)).toBeGreaterThan(0.95);
  });
});

/** What follows three text frames, of which the third took the fast path. */
describe.each<[name: string, text: string]>([
  ['the envelope within the text', textFrame(JSON.stringify(frame('{"content":"x"}')))],
  ['an escaped quote at the end', textFrame('"a\\\\"')],
  ['a quote that is not escaped', textFrame('"a"b"')],
  ['a backslash that escapes the closing quote', textFrame('"a\\"')],
  ['an invalid escape', textFrame('"\\x"')],
  ['half a \\u escape', textFrame('"\\u12"')],
  ['a control character', textFrame('"a\tb"')],
  ['an empty text', textFrame('""')],
  ['null for a text', textFrame('null')],
  ['a number for a text', textFrame('1')],
  [
    'another key order',
    textFrame('"b"')
      .replace('"index":0,', '')
      .replace('"finish_reason":null', '"finish_reason":null,"index":0'),
  ],
  ['another id', textFrame('"b"').replace('c-1', 'c-2')],
  [
    'another fingerprint, and then the first again',
    textFrame('"b"').replace('"model"', '"system_fingerprint":"fp_2","model"') + textFrame('"c"'),
  ],
  ['a finish with the text', frame('{"content":"b"}', '"finish_reason":"stop"') + textFrame('"late"')],
  [
    'logprobs',
    frame('{"content":"b"}', '"logprobs":{"content":[{"token":"b","logprob":-1}]},"finish_reason":null'),
  ],
  ['a tool call', frame('{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]}')],
  ['another choice', textFrame('"b"').replace('"index":0', '"index":1').repeat(3)],
  [
    'two texts of one name',
    frame('{"content":"x","content":"y"}').repeat(2) + frame('{"content":"x","content":"z"}'),
  ],
  ['usage on every chunk', textFrame('"b"').replace('}]}', '}],"usage":{"completion_tokens":3}}').repeat(2)],
  ['CRLF', textFrame('"b"').replaceAll('\n', '\r\n').repeat(2)],
  ['a comment in front', `: hi\n${textFrame('"b"')}`],
  ['a name in front', `event: x_y\n${textFrame('"b"')}`],
  ['no space after the colon', textFrame('"b"').replace('data: ', 'data:').repeat(2)],
  ['data in several lines', textFrame('"b"').replace(',"created"', ',\ndata: "created"').repeat(2)],
  ['another data line after the same bytes', `${textFrame('"b"').slice(0, -1)}data: {}\n\n`],
  ['an error', textFrame('"b"').replace('"id"', '"error":{"message":"no"},"id"')],
  ['a vendor event', `data: {"type":"x_research.gap_analysis"}\n\n${textFrame('"b"')}`],
  ['no blank line at the end', textFrame('"b"').trimEnd()],
])('TemplateFastPath, then %s', (_, text) => {
  test.each(CUTS)('same output as the normal path (reads of %d bytes)', (size) => {
    const stream = encoder.encode(
      START + textFrame('"a"') + textFrame('" river"') + text + textFrame('"z"') + END,
    );
    expect(compare(stream, CHAT, size)).toBeGreaterThan(0);
  });
});

test('TemplateFastPath, invalid UTF-8 in a text: same output as the normal path', () => {
  for (const bad of [
    [0xff],
    [0xc3],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf5, 0x80, 0x80, 0x80],
    [0xe2, 0x82],
  ]) {
    const text = START + textFrame('"a"') + textFrame('"b#c"') + END;
    const bytes = [...encoder.encode(text)].flatMap((byte) => (byte === 0x23 ? bad : [byte]));
    for (const size of CUTS) compare(new Uint8Array(bytes), CHAT, size);
  }
});

test('TemplateFastPath, a stream split once, at each of its bytes: same output as the normal path', () => {
  const padded = textFrame('"c"').replace('}]}', '}],"p":"xyz"}');
  const bytes = encoder.encode(
    START + textFrame('"a"') + textFrame('" é🌊\\n"') + textFrame('"b"') + padded.repeat(2) + END,
  );
  for (let at = 1; at < bytes.length; at++) {
    const hits = compareWays([bytes.subarray(0, at), bytes.subarray(at)], CHAT).copiedEvents;
    expect(hits).toBe(3);
  }
});

describe('TemplateFastPath, every fixture and recording', () => {
  test.each(CUTS)('same output as the normal path (reads of %d bytes)', (size) => {
    for (const fixture of fixtures.filter(({ upstreamIsStream }) => upstreamIsStream)) {
      for (const usageChunk of [true, false]) {
        compare(fixture.upstream, { ...conversionOf(fixture), usageChunk }, size);
      }
    }
  });

  test.each(readRecordings().filter(({ protocol }) => protocol === 'openai'))(
    `$name: same output as the slow path${recordingsNote}`,
    ({ name, kind, text }) => {
      const stream =
        kind === 'sse' ? text : `${text.trim().replace(/^.*$/gm, 'data: $&\n')}\ndata: [DONE]\n\n`;
      for (const size of [100_000, 1000, 64]) {
        for (const route of ['chat', 'completions'] as const)
          compare(encoder.encode(stream), { ...CHAT, route }, size);
      }
      expect(name).toBeDefined();
    },
  );
});

test('TemplateFastPath, frames mutated at random: same output as the normal path', () => {
  const good = encoder.encode(START + textFrame('"a"') + textFrame('" river é"').repeat(3) + STOP);
  const mutation = fc.record({
    at: fc.nat(good.length - 1),
    byte: fc.nat(255),
    length: fc.nat(3),
    insert: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(mutation, { minLength: 1, maxLength: 3 }),
      fc.constantFrom(...CUTS),
      (mutations, size) => {
        const bytes = [...good];
        for (const { at, byte, length, insert } of mutations)
          bytes.splice(at, length, ...(insert ? [byte] : []));
        compare(new Uint8Array(bytes), CHAT, size);
      },
    ),
    { numRuns: MUTATIONS },
  );
});
