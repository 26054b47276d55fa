/** Tests JSON parsing: long integers keep their digits (Q11), and depth and values have exact bounds, also within strings (B2). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  areWithinJsonBounds,
  EmbeddedJson,
  isWithinJsonBounds,
  LARGE_OBJECT_MEMBERS,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  MAX_LARGE_OBJECT_MEMBERS,
  mapList,
  mapObjects,
  mapValues,
  parseJsonExactly,
} from '../../src/shared/json.ts';

/** The text, parsed and serialized again. */
const roundTrip = (text: string) => JSON.stringify(parseJsonExactly(text));

describe('parseJsonExactly', () => {
  test.each([
    '9007199254740993',
    '-9007199254740993',
    '18446744073709551615',
    '123456789012345678901234567890',
    '{"seed":9007199254740993}',
    '{"tools":[{"function":{"parameters":{"maximum":18446744073709551615,"minimum":-9223372036854775808}}}]}',
    '[9007199254740992,9007199254740993,[9007199254740994]]',
    `{"seed":1${'0'.repeat(400)}1}`,
  ])('Q11 an integer beyond 2^53, %s: its digits are kept', (text) => {
    expect(roundTrip(text)).toBe(text);
  });

  test('Q11 at every distance from the beginning, beside other digits: its digits are kept', () => {
    for (let length = 0; length < 40; length++) {
      const text = `{"a":"${'x'.repeat(length)}1234567890123456","b":-9007199254740993,"c":0.12345678901234568}`;
      expect(roundTrip(text)).toBe(text);
    }
  });

  test('Q11 JSON.parse changes its digits', () => {
    expect(JSON.stringify(JSON.parse('{"seed":9007199254740993}'))).not.toBe('{"seed":9007199254740993}');
  });

  test.each([
    ['the largest that a number holds', '{"seed":9007199254740991}', { seed: 9_007_199_254_740_991 }],
    ['the smallest', '{"seed":-9007199254740991}', { seed: -9_007_199_254_740_991 }],
    [
      'a small one beside a long text',
      `{"seed":7,"id":"${'1'.repeat(20)}"}`,
      { seed: 7, id: '1'.repeat(20) },
    ],
    ['a long fraction', '{"p":0.1234567890123456}', { p: 0.123_456_789_012_345_6 }],
    ['a fraction beyond 2^53', '[9007199254740993.5]', [9_007_199_254_740_994]],
    ['powers of ten', '[1e300,1234567890123456e4]', [1e300, 1_234_567_890_123_456e4]],
  ])('Q11 %s: the same as with JSON.parse', (_, text, value) => {
    expect(parseJsonExactly(text)).toEqual(value);
    expect(parseJsonExactly(text)).toEqual(JSON.parse(text));
  });

  test.each(['', '{', '{"seed":9007199254740993', '9007199254740993 9007199254740993', 'undefined'])(
    'Q11 %j is not JSON: undefined, without an exception',
    (text) => {
      expect(parseJsonExactly(text)).toBeUndefined();
    },
  );

  test('Q11 digits in strings and in keys: are unchanged', () => {
    const value = { '9007199254740993': 'seed 9007199254740993', n: '9007199254740993' };
    expect(parseJsonExactly(JSON.stringify(value))).toEqual(value);
  });

  test('Q11 any JSON with one long integer: everything is kept', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }), (value, seed) => {
        const text = `{"value":${JSON.stringify(value)},"seed":${seed}}`;
        // JSON.stringify writes `-0` as `0`.
        const before = JSON.stringify(JSON.parse(JSON.stringify(value)));
        expect(roundTrip(text)).toBe(`{"value":${before},"seed":${seed}}`);
      }),
      { seed: 20261121 },
    );
  });
});

const PADDING = `"${'x'.repeat(5000)}"`;

/** Levels around a text: in a short text, and in one that is too long to count only brackets. */
function nested(levels: number, open: string, close: string, inner = '1'): string[] {
  const text = open.repeat(levels) + inner + close.repeat(levels);
  return [text, open.repeat(levels) + PADDING + close.repeat(levels)];
}

test('areWithinJsonBounds decides as isWithinJsonBounds, for the bytes of any JSON', () => {
  const encoder = new TextEncoder();
  const levels = (count: number) => '['.repeat(count) + ']'.repeat(count);
  const texts = [
    ...[1, MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1, 5000].map(levels),
    ...[MAX_LARGE_OBJECT_MEMBERS, MAX_LARGE_OBJECT_MEMBERS + 1].map(
      (count) => `[{${'"a":0,'.repeat(count - 1)}"a":0}]`,
    ),
    ...[MAX_JSON_VALUES - 1, MAX_JSON_VALUES].map((count) => `[${'0,'.repeat(count - 1)}0]`),
    `{"a":"${'[{\\"'.repeat(10_000)}"}`,
    `{"a":"\\\\","b":${levels(MAX_JSON_DEPTH)}}`,
    `{"ü中😀":"${'[,'.repeat(MAX_JSON_VALUES)}"}`,
  ];
  for (const text of texts) expect(areWithinJsonBounds(encoder.encode(text))).toBe(isWithinJsonBounds(text));
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      expect(areWithinJsonBounds(encoder.encode(text))).toBe(isWithinJsonBounds(text));
    }),
  );
});

describe('isWithinJsonBounds', () => {
  test.each([
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
    ['both', '[{"a":', '}]'],
  ])('B2 nested %s: the bound itself is accepted, one level more is not', (_, open, close) => {
    const step = open.startsWith('[{') ? 2 : 1;
    const levels = MAX_JSON_DEPTH / step;
    for (const text of nested(levels, open, close)) expect(isWithinJsonBounds(text)).toBe(true);
    for (const text of nested(levels + 1, open, close)) expect(isWithinJsonBounds(text)).toBe(false);
  });

  test('B2 values: the bound itself is accepted, one more is not', () => {
    const list = (count: number) => `[${'0,'.repeat(count - 1)}0]`;
    // The list itself is a value. The count is its bracket, its first item and each comma.
    expect(isWithinJsonBounds(list(MAX_JSON_VALUES - 1))).toBe(true);
    expect(isWithinJsonBounds(list(MAX_JSON_VALUES))).toBe(false);
    expect(isWithinJsonBounds(`[${'{},'.repeat(MAX_JSON_VALUES / 2)}0]`)).toBe(false);
  });

  test('members of large objects: up to MAX_LARGE_OBJECT_MEMBERS in all, in one object or in many', () => {
    const object = (members: number) =>
      `{${Array.from({ length: members }, (_, i) => `"k${i}":[]`).join(',')}}`;
    const many = (members: number, objects: number) => `[${Array(objects).fill(object(members)).join(',')}]`;
    expect(isWithinJsonBounds(object(MAX_LARGE_OBJECT_MEMBERS))).toBe(true);
    expect(isWithinJsonBounds(object(MAX_LARGE_OBJECT_MEMBERS + 1))).toBe(false);
    expect(isWithinJsonBounds(many(200, MAX_LARGE_OBJECT_MEMBERS / 200))).toBe(true);
    expect(isWithinJsonBounds(many(200, MAX_LARGE_OBJECT_MEMBERS / 200 + 1))).toBe(false);
    expect(isWithinJsonBounds(many(LARGE_OBJECT_MEMBERS, 1000))).toBe(true);
  });

  test.each([
    ['brackets', '[{'.repeat(20_000)],
    ['commas', ','.repeat(300_000)],
    ['escaped quotes', '\\"['.repeat(20_000)],
    ['backslashes before the closing quote', `${'[{'.repeat(20_000)}\\\\`],
  ])('B2 a string of %s: counts as one value', (_, content) => {
    expect(isWithinJsonBounds(`{"a":"${content}"}`)).toBe(true);
    expect(isWithinJsonBounds(`{"a":"${content}","b":${'['.repeat(200)}`)).toBe(false);
  });

  test('B2 any JSON: the same depth as its parsed value', () => {
    function depthOf(value: unknown): number {
      if (typeof value !== 'object' || value === null) return 0;
      return 1 + Math.max(0, ...Object.values(value).map(depthOf));
    }
    const wrapped = fc.tuple(fc.json({ maxDepth: 6 }), fc.integer({ min: 90, max: 104 }), fc.boolean());
    fc.assert(
      fc.property(wrapped, ([json, levels, isLong]) => {
        const inner = isLong ? `[${PADDING},${json}]` : json;
        const text = '['.repeat(levels) + inner + ']'.repeat(levels);
        return isWithinJsonBounds(text) === depthOf(JSON.parse(text)) <= MAX_JSON_DEPTH;
      }),
    );
  });

  test.each(['', 'x'.repeat(9999), ']'.repeat(9999), '"'.repeat(9999), `"${'\\'.repeat(9999)}`])(
    'B2 a text that is not JSON: is left to the parser',
    (text) => expect(isWithinJsonBounds(text)).toBe(true),
  );

  test('B2 ten megabytes of escaped quotes: linear', () => {
    expect(isWithinJsonBounds(`"${'\\"'.repeat(5_000_000)}"`)).toBe(true);
    expect(isWithinJsonBounds(`"${'\\\\'.repeat(5_000_000)}"`)).toBe(true);
    expect(isWithinJsonBounds(`[${`"${'x'.repeat(99)}",`.repeat(100_000)}"\\n"]`)).toBe(true);
  });
});

const values = (count: number) => `{"a":[${'0,'.repeat(count)}0]}`;

describe('B2 JSON in a string', () => {
  test.each([
    ['an object', '{"a":1}', { a: 1 }],
    ['an object behind white space', ' \n{"a":1}', { a: 1 }],
    ['a list', '[1]', undefined],
    ['a number', '1', undefined],
    ['a text without an end', '{"a":', undefined],
    ['as many levels as a body may have', `{"a":${'['.repeat(MAX_JSON_DEPTH)}`, undefined],
    ['nothing', '', undefined],
  ])('%s: the object, or undefined', (_, text, value) => {
    expect(new EmbeddedJson().object(text)).toEqual(value);
  });

  test('integers beyond 2^53 keep their digits', () => {
    expect(JSON.stringify(new EmbeddedJson().object('{"a":12345678901234567890}'))).toBe(
      '{"a":12345678901234567890}',
    );
  });

  test('list(): the entries, or none for an object', () => {
    expect(new EmbeddedJson().list('[{"a":1}]')).toEqual([{ a: 1 }]);
    expect(new EmbeddedJson().list('{"a":1}')).toEqual([]);
  });

  test('one text with too many values or levels: undefined', () => {
    expect(new EmbeddedJson().object(values(MAX_JSON_VALUES))).toBeUndefined();
    expect(new EmbeddedJson().object(`{"a":${'['.repeat(101)}${']'.repeat(101)}}`)).toBeUndefined();
  });

  test('many texts: undefined once they have more values together than a body may have', () => {
    const embedded = new EmbeddedJson();
    const half = values(MAX_JSON_VALUES / 2 - 10);
    expect([half, half, half].map((text) => embedded.object(text) !== undefined)).toEqual([
      true,
      true,
      false,
    ]);
    const short = new EmbeddedJson();
    const parsed = Array.from({ length: MAX_JSON_VALUES }, () => short.object('{"a":1}'));
    expect(parsed.filter((value) => value !== undefined)).toHaveLength(MAX_JSON_VALUES / 2);
  });

  test('texts that are not JSON: after a thousand of them no further text is parsed', () => {
    const embedded = new EmbeddedJson();
    for (let i = 0; i < 999; i++) embedded.object('{"a":');
    expect(embedded.object('{"a":1}')).toEqual({ a: 1 });
    embedded.object('{"a":');
    expect(embedded.object('{"a":1}')).toBeUndefined();
  });
});

describe('mapped lists and objects', () => {
  test('mapList without a change: the same list, by which callers see that nothing changed', () => {
    const list = [1, { a: 1 }];
    expect(mapList(list, (value) => value)).toBe(list);
    expect(mapList(list, (value) => (value === 1 ? 2 : value))).toEqual([2, { a: 1 }]);
  });

  test('mapObjects: what is no object stays as it is', () => {
    const list = [null, 'text', [1], { a: 1 }];
    expect(mapObjects(list, (item) => ({ ...item, b: 2 }))).toEqual([null, 'text', [1], { a: 1, b: 2 }]);
  });

  test('mapValues: the keys keep their order, also __proto__', () => {
    const object = JSON.parse('{"b":1,"__proto__":2,"a":3}');
    expect(JSON.stringify(mapValues(object, (value, key) => `${key}${value}`))).toBe(
      '{"b":"b1","__proto__":"__proto__2","a":"a3"}',
    );
  });
});
