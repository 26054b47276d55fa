/** Tests where JSON in pieces ends, and which texts end within it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonProgress } from '../../src/shared/json-progress.ts';

function read(text: string, size = text.length): JsonProgress {
  const progress = new JsonProgress();
  for (let at = 0; at < text.length; at += size) progress.push(text.slice(at, at + size));
  return progress;
}

test.each([
  ['{"a":"}"}', 9],
  ['{"a":"\\"}"} x', 11],
  ['[{}] ', 4],
])('of %s %d characters are the value', (text, length) => {
  const progress = new JsonProgress();
  expect(progress.push(text)).toBe(length);
  expect(progress.isComplete).toBe(true);
});

const COMPLETE = [
  '{}',
  '[]',
  ' { "a" : [ 1 , -2.5e+3 , true , false , null , { } ] , "b" : "\\u00e9\\"" } ',
  '{"a":{"b":[[],{"c":""}]}}',
];

describe.each(COMPLETE)('%s', (text) => {
  test.each([1, 3, 1000])('complete in pieces of %d: it is no cut', (size) => {
    expect(read(text, size)).toMatchObject({ isComplete: true, isCut: false });
  });

  test('each beginning of it from the first bracket on is a cut', () => {
    for (let end = text.search(/[[{]/) + 1; end < text.trim().length; end++) {
      expect([text.slice(0, end), read(text.slice(0, end)).isCut]).toEqual([text.slice(0, end), true]);
    }
  });
});

test.each(['{"content":"abc', '{"a":"b\nc', '{"path":"C:\\Users', '{"a":tru', '{"a":-', '"abc', '"abc\\'])(
  '%j is the beginning of JSON: a cut',
  (text) => {
    expect(read(text).isCut).toBe(true);
  },
);

test.each([
  '',
  ' ',
  '*** Begin Patch',
  '12',
  'true',
  '"abc"',
  '{"a":1,}',
  '{"a":[1}',
  '{"a":1]',
  "{'a':'b",
  '{a:1',
  '{"a" "b"',
  '{"a":undefined,"b":"c',
  '{"a":1 2',
  '{"a":nope',
  '{"a":1}}',
  '{"a":1}{"b":2',
  '[1,]',
  '[,',
  '{,',
  '{"a"}',
  '['.repeat(1025),
])('%j is no beginning of JSON, or all of it: no cut', (text) => {
  expect(read(text).isCut).toBe(false);
  expect(read(text, 1).isCut).toBe(false);
});

test.each<[text: string, endsCut: boolean]>([
  ['{"a":', true],
  ['{"a":1}{"b":2', true],
  ['{"a":1}{"b":2}', false],
  ['{}\n[]  {"a":[', true],
  ['{"a":1}}{"b":2', false],
  ['{"a":1} x {"b":', false],
  ['{"a":1}[/TOOL_CALL]', false],
  ["{'a':1}{", true],
  ['{}'.repeat(100_000), false],
  [`${'{}'.repeat(100_000)}{`, true],
])('%j ends within JSON: %s', (text, endsCut) => {
  expect(read(text).endsCut).toBe(endsCut);
  expect(read(text, 1).endsCut).toBe(endsCut);
});

test('a piece that is not decoded, with any of its characters escaped or not: the same as the decoded one', () => {
  const unit = fc.constantFrom(...'{}[]",:\\ \n\t\u00a0\ufeffé水\ud83ctruefalsn1-.', '🌊', '{"a":', '"}');
  const escaped = (text: string) =>
    text
      .split('')
      .map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
  const written = fc
    .tuple(fc.array(unit, { minLength: 1, maxLength: 6 }), fc.boolean())
    .map(([units, isEscaped]) => {
      const text = units.join('');
      return { text, raw: isEscaped ? escaped(text) : JSON.stringify(text).slice(1, -1) };
    });
  const stateOf = ({ hasBegun, isComplete, isCut, endsCut }: JsonProgress) => ({
    hasBegun,
    isComplete,
    isCut,
    endsCut,
  });
  fc.assert(
    fc.property(fc.array(written, { maxLength: 8 }), (pieces) => {
      const decoded = new JsonProgress();
      const copied = new JsonProgress();
      for (const { text, raw } of pieces) {
        const bytes = new TextEncoder().encode(`"${raw}"`);
        const length = decoded.push(text);
        const end = copied.pushRaw(bytes, 1, bytes.length - 1);
        expect(JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)) + '"')).toBe(
          text.slice(0, length),
        );
        expect(stateOf(copied)).toEqual(stateOf(decoded));
      }
    }),
    { numRuns: 2000 },
  );
});
