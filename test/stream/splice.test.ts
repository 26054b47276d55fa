/** The fast path against the slow one: the same frames, value for value, whatever comes and however it is cut. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fastShare, SHARE_NAMES } from '../bench/share.ts';
import { type Conversion, convertStream, cut } from '../contract/convert.ts';
import { fixtures, policiesOf } from '../contract/fixtures.ts';
import { OTHER_DIALECTS, readRecordings, recordingsNote } from '../contract/recordings.ts';
import { compareWays } from './both-ways.ts';

const CUTS = [100_000, 4096, 300, 64, 7, 1];
const CHAT: Conversion = { provider: 'compatible', route: 'chat', model: 'm', usageChunk: true };
const encoder = new TextEncoder();

/** How many frames went the fast way. */
function compare(bytes: Uint8Array, conversion: Conversion, size: number): number {
  return compareWays([...cut(bytes, size)], conversion).splicedFrames;
}

function frame(delta: string, rest = '"finish_reason":null'): string {
  return `data: {"id":"c-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":${delta},${rest}}]}\n\n`;
}

const say = (text: string) => frame(`{"content":${text}}`);
const START = frame('{"role":"assistant","content":""}');
const STOP = frame('{}', '"finish_reason":"stop"');
const END = `${STOP}data: [DONE]\n\n`;

describe('Splice, frames that differ by their text alone', () => {
  test('all but the first go the fast way, and their bytes are as the slow way writes them', () => {
    const text = START + say('"A"') + say('" weir"') + say('" é 🌊 \\u00e9 \\n \\\\\\" {"') + END;
    const { text: written, splicedFrames } = convertStream([encoder.encode(text)], CHAT);
    expect(splicedFrames).toBe(2);
    expect(written).toContain(
      '{"index":0,"delta":{"content":" é 🌊 \\u00e9 \\n \\\\\\" {"},"logprobs":null,"finish_reason":null}',
    );
    expect(compare(encoder.encode(text), CHAT, 100_000)).toBe(2);
  });

  test('padding whose length changes is left out', () => {
    const padded = (text: string, p: string) => say(text).replace('}]}', `}],"p":"${p}"}`);
    const text = START + padded('"a"', 'x') + padded('"b"', 'xyz') + padded('"c"', '') + END;
    expect(compare(encoder.encode(text), CHAT, 100_000)).toBe(2);
  });

  test('padding before the text is left out', () => {
    const padded = (text: string, p: string) => say(text).replace('{"id"', `{"obfuscation":"${p}","id"`);
    const text = START + padded('"a"', 'x') + padded('"b"', 'xyz') + END;
    expect(compare(encoder.encode(text), CHAT, 100_000)).toBe(1);
  });

  test('a text that is said twice, under two names, goes the fast way', () => {
    const twice = (text: string, other: string) =>
      frame(
        `{"content":"","reasoning":${text},"reasoning_details":[{"type":"reasoning.text","text":${other}}]}`,
      );
    const text = START + twice('"a"', '"a"') + twice('" é\\n"', '" é\\n"') + twice('"b"', '"b"') + END;
    for (const size of CUTS) expect(compare(encoder.encode(text), CHAT, size)).toBe(2);
    // What differs is no longer the same text: it goes the slow way, and the next that does not is taken again.
    const unlike = [twice('"b"', '"bc"'), twice('"bc"', '"b"'), twice('"b"', '"c"')].join('');
    const after = text.replace(END, unlike + twice('"d"', '"d"') + END);
    for (const size of CUTS) expect(compare(encoder.encode(after), CHAT, size)).toBe(3);
  });

  test('a frame cut between reads goes the fast way, too', () => {
    const text = encoder.encode(START + say('"a"') + say('"b"').repeat(20) + END);
    for (const size of [1, 10, 64, 300]) expect(compare(text, CHAT, size)).toBe(20);
  });

  test('spaces in the JSON, reasoning, typed parts and legacy text go the fast way', () => {
    const spaced = (text: string) => say(text).replaceAll('":', '": ').replaceAll(',"', ', "');
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
    expect(compare(encoder.encode(legacy('"a"') + legacy('"b"') + END), completions, 100_000)).toBe(1);
  });
});

describe.each(SHARE_NAMES)('Splice, text frames of %s', (name) => {
  test('at least 95 in a hundred go the fast way', () => {
    expect(fastShare(name)).toBeGreaterThan(0.95);
  });
});

/** What follows two text frames, of which the second went the fast way. */
describe.each<[name: string, text: string]>([
  ['the envelope within the text', say(JSON.stringify(frame('{"content":"x"}')))],
  ['an escaped quote at the end', say('"a\\\\"')],
  ['a quote that is not escaped', say('"a"b"')],
  ['a backslash that escapes the closing quote', say('"a\\"')],
  ['an escape that is none', say('"\\x"')],
  ['half a \\u escape', say('"\\u12"')],
  ['a control character', say('"a\tb"')],
  ['an empty text', say('""')],
  ['null for a text', say('null')],
  ['a number for a text', say('1')],
  [
    'another key order',
    say('"b"').replace('"index":0,', '').replace('"finish_reason":null', '"finish_reason":null,"index":0'),
  ],
  ['another id', say('"b"').replace('c-1', 'c-2')],
  [
    'another fingerprint, and then the first again',
    say('"b"').replace('"model"', '"system_fingerprint":"fp_2","model"') + say('"c"'),
  ],
  ['a finish with the text', frame('{"content":"b"}', '"finish_reason":"stop"') + say('"late"')],
  [
    'logprobs',
    frame('{"content":"b"}', '"logprobs":{"content":[{"token":"b","logprob":-1}]},"finish_reason":null'),
  ],
  ['a tool call', frame('{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]}')],
  ['another choice', say('"b"').replace('"index":0', '"index":1').repeat(3)],
  [
    'two texts of one name',
    frame('{"content":"x","content":"y"}').repeat(2) + frame('{"content":"x","content":"z"}'),
  ],
  ['usage on every chunk', say('"b"').replace('}]}', '}],"usage":{"completion_tokens":3}}').repeat(2)],
  ['CRLF', say('"b"').replaceAll('\n', '\r\n').repeat(2)],
  ['a comment in front', `: hi\n${say('"b"')}`],
  ['a name in front', `event: x_y\n${say('"b"')}`],
  ['no space behind the colon', say('"b"').replace('data: ', 'data:').repeat(2)],
  ['data in several lines', say('"b"').replace(',"created"', ',\ndata: "created"').repeat(2)],
  ['another data line behind the same bytes', `${say('"b"').slice(0, -1)}data: {}\n\n`],
  ['an error', say('"b"').replace('"id"', '"error":{"message":"no"},"id"')],
  ['a vendor event', `data: {"type":"x_research.gap_analysis"}\n\n${say('"b"')}`],
  ['no blank line at the end', say('"b"').trimEnd()],
])('Splice, then %s', (_, text) => {
  test.each(CUTS)('is what the slow way makes of it (reads of %d bytes)', (size) => {
    const stream = encoder.encode(START + say('"a"') + say('" river"') + text + say('"z"') + END);
    expect(compare(stream, CHAT, size)).toBeGreaterThan(0);
  });
});

test('Splice, invalid UTF-8 in a text: is what the slow way makes of it', () => {
  for (const bad of [
    [0xff],
    [0xc3],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf5, 0x80, 0x80, 0x80],
    [0xe2, 0x82],
  ]) {
    const text = START + say('"a"') + say('"b#c"') + END;
    const bytes = [...encoder.encode(text)].flatMap((byte) => (byte === 0x23 ? bad : [byte]));
    for (const size of CUTS) compare(new Uint8Array(bytes), CHAT, size);
  }
});

test('Splice, a stream cut once, at each of its bytes: is what the slow way makes of it', () => {
  const padded = say('"c"').replace('}]}', '}],"p":"xyz"}');
  const bytes = encoder.encode(START + say('"a"') + say('" é🌊\\n"') + say('"b"') + padded.repeat(2) + END);
  for (let at = 1; at < bytes.length; at++) {
    const hits = compareWays([bytes.subarray(0, at), bytes.subarray(at)], CHAT).splicedFrames;
    expect(hits).toBe(3);
  }
});

describe('Splice, every fixture and recording', () => {
  test.each(CUTS)('is what the slow way makes of it (reads of %d bytes)', (size) => {
    for (const fixture of fixtures.filter(({ upstreamIsStream }) => upstreamIsStream)) {
      const { provider, route, model, upstream } = fixture;
      compare(upstream, { provider, route, model, usageChunk: true, policies: policiesOf(fixture) }, size);
    }
  });

  test.each(readRecordings().filter(({ name }) => !OTHER_DIALECTS.has(name)))(
    `$name: is what the slow way makes of it${recordingsNote}`,
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

test('Splice, frames mutated at random: are what the slow way makes of them', () => {
  const good = encoder.encode(START + say('"a"') + say('" river é"').repeat(3) + STOP);
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
    { numRuns: 3000 },
  );
});
