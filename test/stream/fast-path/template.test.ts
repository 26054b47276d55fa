/** Tests what the fast path learns from texts that equal its marks, keys or discriminators, and from texts that are sent twice. */
import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICIES } from '../../canonical/default-policies.ts';
import { type Conversion, convertStream, cut } from '../../contract/convert.ts';
import { compareWays } from '../both-ways.ts';

const CUTS = [100_000, 64, 7, 1];
const CHAT: Conversion = { provider: 'compatible', route: 'chat', model: 'm', usageChunk: false };
const encoder = new TextEncoder();

const event = (json: string) => `data: ${json}\n\n`;
const delta = (members: string, rest = '') => event(`{${rest}"choices":[{"index":0,"delta":{${members}}}]}`);
/** A stream that starts with a text from which nothing is learned. */
const START = delta('"role":"assistant","content":"("');
const END = `${event('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')}data: [DONE]\n\n`;

/** Compares both paths for every split. @returns how many frames took the fast path, which is the same for every split */
function spliced(frames: readonly string[], conversion = CHAT): number {
  const bytes = encoder.encode([START, ...frames, END].join(''));
  const hits = CUTS.map((size) => compareWays([...cut(bytes, size)], conversion).copiedEvents);
  expect(new Set(hits).size).toBe(1);
  return hits[0] ?? 0;
}

/** The texts and reasoning behind the first text that the client reads on the fast path. */
function textsOf(frames: readonly string[], conversion = CHAT): string[] {
  const { text } = convertStream([encoder.encode([START, ...frames, END].join(''))], conversion);
  const literals = text.matchAll(/"(?:content|reasoning_content)":("(?:[^"\\]|\\.)+")/g);
  return [...literals].map(([, literal = '']) => JSON.parse(literal)).slice(1);
}

describe('makeTemplate, a text that is one of its own marks', () => {
  const MARKS = [
    'weir\\u00a4text',
    'weir\\u00a4',
    'weir\u00a4text',
    'weir\\u00a4padding',
    'weir\\u00a4weir\\u00a4 7',
  ];
  const beside = (text: string, other: string) =>
    delta(`"content":"${text}"`, `"meta":{"content":"${other}"},`);

  test.each(MARKS)(
    '%j beside another string of that key: the client reads the text, not the other',
    (mark) => {
      const frames = [
        beside('Hi', 'd'),
        beside(mark, 'd1'),
        beside(mark, 'ANOTHER'),
        beside(mark, mark),
        beside('end', 'd'),
      ];
      spliced(frames);
      const text = JSON.parse(`"${mark}"`);
      expect(textsOf(frames)).toEqual(['Hi', text, text, text, 'end']);
    },
  );

  test.each(MARKS)('%j in a frame, as its text or elsewhere: that frame is not learned', (mark) => {
    const raw = JSON.parse(`"${mark}"`);
    expect(spliced([delta(`"content":"${mark}"`), delta('"content":"b"')])).toBe(0);
    expect(spliced([beside('a', raw), beside('b', 'b')])).toBe(0);
  });

  test.each(MARKS)('%j where another text was learned: takes the fast path as any text does', (mark) => {
    const frames = ['a', mark, 'b'].map((text) => delta(`"content":"${text}"`));
    expect(spliced(frames)).toBe(2);
    expect(textsOf(frames)).toEqual(['a', JSON.parse(`"${mark}"`), 'b']);
  });
});

describe('makeTemplate, a text that is also a key or a discriminator of its frame', () => {
  const thinking = (text: string) =>
    delta(
      `"content":[{"type":"thinking","thinking":[{"type":"text","text":"half, "}]}],"reasoning_content":"${text}"`,
    );

  test.each(['thinking', 'text', 'half, ', 'type', 'index', 'content'])(
    'the reasoning %j beside typed thinking: both halves stay',
    (word) => {
      const frames = [thinking('x'), thinking(word), thinking(word), thinking('y'), thinking(word)];
      spliced(frames);
      expect(textsOf(frames)).toEqual(['x', word, word, 'y', word].map((text) => `half, ${text}`));
    },
  );

  test.each(['type', 'object'])('a text that equals the value of %s: the next value still decides', (key) => {
    const of = (value: string, text = value) => delta(`"content":"${text}"`, `"${key}":"${value}",`);
    const frames = [of('chunk'), of('chunk', 'Hi'), of('chunk'), of('error'), of('chunk', 'after')];
    expect(spliced(frames)).toBe(2);
    expect(textsOf(frames)).toEqual(['chunk', 'Hi', 'chunk', 'error']);
    expect(spliced([of('chunk'), of('completion'), of('error')])).toBe(0);
  });

  test.each(['choices', 'index', 'delta', 'content', 'assistant', 'm'])(
    'the text %j, twice in a frame that has it as key or value, and then another: each as it came',
    (word) => {
      const of = (text: string) => delta(`"role":"assistant","content":"${text}"`, '"model":"m",');
      const frames = ['a', word, word, 'b', word].map(of);
      spliced(frames);
      expect(textsOf(frames)).toEqual(['a', word, word, 'b', word]);
    },
  );

  test('an escaped key: no text is found under it', () => {
    const of = (text: string) =>
      event(`{"\\u006fbject":"${text}","choices":[{"index":0,"delta":{"\\u0063ontent":"${text}"}}]}`);
    expect(spliced([of('a'), of('b'), of('error')])).toBe(0);
  });
});

describe('TemplateFastPath, the bound on an event', () => {
  const MAX_EVENT_BYTES = 1000;
  const bounded: Conversion = { ...CHAT, maxEventBytes: MAX_EVENT_BYTES };
  const sized = (bytes: number) => {
    const empty = delta('"content":""').trimEnd().length;
    return delta(`"content":"${'a'.repeat(bytes - empty)}"`);
  };

  test('B1 a text frame of exactly the bound takes the fast path, and one byte more is refused as on the normal path', () => {
    expect(spliced([delta('"content":"a"'), sized(MAX_EVENT_BYTES)], bounded)).toBe(1);
    const frames = [
      delta('"content":"a"'),
      delta('"content":"b"'),
      sized(MAX_EVENT_BYTES + 1),
      delta('"content":"c"'),
    ];
    expect(spliced(frames, bounded)).toBe(1);
    const { error, text } = convertStream([encoder.encode([START, ...frames, END].join(''))], bounded);
    expect(error).toMatchObject({ code: 'upstream_event_too_large' });
    expect(text).not.toContain('aaa');
  });
});

describe('TemplateFastPath, a text that is sent in several places', () => {
  const details = (text: string, more = '') =>
    `"reasoning_details":[{"type":"reasoning.text","text":${text},"format":"unknown","index":0${more}}]`;
  const openrouter = (text: string) =>
    delta(`"content":"","role":"assistant","reasoning":${text},${details(text)}`);
  const thrice = (text: string) =>
    delta(`"role":"assistant","content":"","reasoning":${text},"reasoning_content":${text},${details(text)}`);
  const apart = (text: string, other: string) => delta(`"reasoning":${text},${details(other)}`);

  test.each<[name: string, frame: (text: string) => string]>([
    ["OpenRouter's reasoning, in two places", openrouter],
    ['reasoning under both names and in its details', thrice],
    [
      'two details of one text',
      (text) => delta(`"reasoning":${text},"reasoning_details":[{"text":${text}},{"summary":${text}}]`),
    ],
    ['a detail before the reasoning', (text) => delta(`${details(text)},"reasoning":${text}`)],
  ])('A7 %s: takes the fast path, and text and details are the same', (_, frame) => {
    const texts = ['"The"', '" user\\n"', '"é🌊\\u00e9"', '"text"', '"reasoning.text"'];
    expect(spliced(texts.map(frame))).toBe(4);
    const { text } = convertStream([encoder.encode(START + texts.map(frame).join(''))], CHAT);
    expect(text.match(/é🌊\\u00e9/g)?.length).toBeGreaterThan(1);
  });

  test('A7 frames whose texts differ between the places: the normal path, each with its own text', () => {
    const frames = [
      apart('"a"', '"a"'),
      apart('"b"', '"b"'),
      apart('"c"', '"d"'),
      apart('"ee"', '"e"'),
      apart('"f"', '"f"'),
    ];
    expect(spliced(frames)).toBe(2);
  });

  test('A7 a signature in the detail is learned: another signature does not match', () => {
    const signed = (text: string, signature: string) =>
      delta(`"reasoning":${text},${details(text, `,"signature":"${signature}"`)}`);
    expect(
      spliced([
        signed('"a"', 's'),
        signed('"b"', 's'),
        signed('"c"', 't'),
        signed('"d"', 'b'),
        signed('"b"', 'b'),
      ]),
    ).toBe(2);
  });

  test('A7 REASONING=strip: no text is sent on either path', () => {
    const conversion: Conversion = { ...CHAT, policies: { ...DEFAULT_POLICIES, reasoning: 'strip' } };
    const frames = ['"a"', '"b"', '"c"'].map(openrouter);
    expect(spliced(frames, conversion)).toBe(0);
    expect(textsOf(frames, conversion)).toEqual([]);
  });

  test('A7 details without a text: they stay as learned', () => {
    const of = (text: string, data: string) =>
      delta(`"content":${text},"reasoning_details":[{"data":"${data}"}]`);
    expect(spliced([of('"a"', 'd'), of('"b"', 'd'), of('"c"', 'e'), of('"d"', 'd')])).toBe(2);
  });
});
