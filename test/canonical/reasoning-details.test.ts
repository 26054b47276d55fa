/** Tests reasoning details (A7): provider tags, stripping their texts, and joining their pieces. */
import { describe, expect, test } from 'vitest';
import {
  ReasoningDetails,
  ReasoningStripper,
  readProviderTag,
  tagProvider,
} from '../../src/canonical/reasoning-details.ts';
import type { JsonObject } from '../../src/shared/json.ts';

const text = (piece: string, more: JsonObject = {}) => ({
  type: 'reasoning.text',
  text: piece,
  index: 0,
  ...more,
});
const summary = (piece: string, index = 0) => ({ type: 'reasoning.summary', summary: piece, index });
const encrypted = (data: string, more: JsonObject = {}) => ({
  type: 'reasoning.encrypted',
  data,
  index: 0,
  ...more,
});

describe('ReasoningStripper', () => {
  test.each<[name: string, details: JsonObject[], left: JsonObject[]]>([
    ['a text', [text('a')], []],
    ['a summary', [summary('a')], []],
    [
      'a signature alone',
      [{ type: 'reasoning.text', signature: 's' }],
      [{ type: 'reasoning.text', signature: 's' }],
    ],
    ['a text with its signature', [text('a', { signature: 's' })], []],
    ['a text and behind it its signature', [text('a'), text('', { signature: 's' })], []],
    [
      'a text, and the signature of another that was not reported',
      [text('a'), { type: 'reasoning.text', index: 1, signature: 's' }],
      [{ type: 'reasoning.text', index: 1, signature: 's' }],
    ],
    ['encrypted data', [encrypted('d', { id: 'i' })], [encrypted('d', { id: 'i' })]],
    ['encrypted data with a summary', [encrypted('d', { summary: 'a' })], [encrypted('d')]],
    ['a signature that is null', [text('a', { signature: null })], []],
    ['neither text nor token', [{ type: 'reasoning.text', index: 0 }], []],
    ['several', [text('a'), encrypted('d'), summary('b')], [encrypted('d')]],
    ['nothing', [], []],
  ])('A7 C6 %s: tokens stay, texts and their signatures do not', (_, details, left) => {
    const before = structuredClone(details);
    expect(new ReasoningStripper().strip(details)).toEqual(left);
    expect(details).toEqual(before);
  });

  test('A7 a text in one piece and its signature in the next: both are stripped', () => {
    const stripper = new ReasoningStripper();
    const pieces = [[text('a')], [text('b')], [{ type: 'reasoning.text', signature: 's', index: 0 }]];
    expect(pieces.map((piece) => stripper.strip(piece))).toEqual([[], [], []]);
  });
});

/** The details after each of these chunks was added. */
function joinedOf(...chunks: JsonObject[][]): readonly JsonObject[] {
  const details = new ReasoningDetails();
  for (const chunk of chunks) details.add(chunk);
  return details.list;
}

describe('ReasoningDetails', () => {
  test('B4 100,000 chunks of one detail each: added in linear time', () => {
    const details = new ReasoningDetails();
    for (let i = 0; i < 100_000; i++) details.add([encrypted('d', { index: i, id: 'i' })]);
    for (let i = 0; i < 100_000; i++) details.add([text('a', { index: i % 50_000 })]);
    expect(details.list).toHaveLength(150_000);
    expect(details.list.at(-1)).toEqual(text('aa', { index: 49_999 }));
  });

  test.each<[name: string, chunks: JsonObject[][], joined: JsonObject[]]>([
    ['pieces of one text', [[text('a')], [text('b')], [text('c')]], [text('abc')]],
    ['pieces of one summary', [[summary('a')], [summary('b')]], [summary('ab')]],
    [
      'a text and then its signature',
      [[text('a')], [text('b')], [{ type: 'reasoning.text', index: 0, signature: 's' }]],
      [text('ab', { signature: 's' })],
    ],
    [
      'a signature beside the last piece',
      [[text('a')], [text('b', { signature: 's' })]],
      [text('ab', { signature: 's' })],
    ],
    [
      'a text behind a signature: another',
      [[text('a', { signature: 's' })], [text('b')]],
      [text('a', { signature: 's' }), text('b')],
    ],
    [
      'another index: another',
      [[text('a')], [text('b', { index: 1 })]],
      [text('a'), text('b', { index: 1 })],
    ],
    ['another type: another', [[text('a')], [summary('b')]], [text('a'), summary('b')]],
    ['encrypted data, twice: two', [[encrypted('d')], [encrypted('e')]], [encrypted('d'), encrypted('e')]],
    [
      'what the first piece has and a later one has not, or has as null',
      [[text('a', { format: 'f', id: 'i' })], [text('b', { format: null })]],
      [text('ab', { format: 'f', id: 'i' })],
    ],
    [
      'what a later piece adds',
      [[text('a', { format: null })], [text('b', { format: 'f' })]],
      [text('ab', { format: 'f' })],
    ],
    ['pieces in one chunk', [[text('a'), text('b'), encrypted('d')]], [text('ab'), encrypted('d')]],
    [
      'a piece with the name of the prototype',
      [[text('a')], [text('b', JSON.parse('{"__proto__":{"signature":"s"}}'))], [text('c')]],
      [text('abc')],
    ],
    [
      'without an index in one chunk: each of its own',
      [
        [
          { type: 'a', text: 'x' },
          { type: 'a', text: 'y' },
        ],
      ],
      [
        { type: 'a', text: 'x' },
        { type: 'a', text: 'y' },
      ],
    ],
    [
      'without an index in the next chunk: a piece of the last one',
      [
        [
          { type: 'a', text: 'x' },
          { type: 'a', text: 'y' },
        ],
        [{ type: 'a', text: 'z' }],
      ],
      [
        { type: 'a', text: 'x' },
        { type: 'a', text: 'yz' },
      ],
    ],
    ['no details', [[], []], []],
  ])('A7 %s', (_, chunks, joined) => {
    const before = structuredClone(chunks);
    expect(joinedOf(...chunks)).toEqual(joined);
    expect(chunks).toEqual(before);
  });
});

test('A7 I7 tagProvider and readProviderTag: a payload with colons survives the round trip', () => {
  const tag = { provider: 'anthropic', payload: 'a:b:c==' };
  expect(tagProvider(tag)).toBe('weir1:anthropic:a:b:c==');
  expect(readProviderTag(tagProvider(tag))).toEqual(tag);
});

test.each([
  undefined,
  null,
  7,
  '',
  'rs_123',
  'weir1:',
  'weir1:anthropic',
  'weir2:anthropic:x',
  'x weir1:a:b',
])('A7 readProviderTag of %s: null', (text) => {
  expect(readProviderTag(text)).toBeNull();
});
