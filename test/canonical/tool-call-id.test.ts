/** Tests the tool call ids that Weir generates (C7, Q3): their form, and that equal texts have equal ids and others do not. */
import { expect, test } from 'vitest';
import { toolCallId } from '../../src/canonical/tool-call-id.ts';
import { seeded } from '../random.ts';

const RANDOM_TEXTS = 50_000;

/** Texts as they occur: counters, ids that differ in one character, UUIDs, and the empty text. */
const TEXTS = [
  '',
  '0',
  '1',
  'call_1',
  'call_2',
  'call_12',
  'call_21',
  '\u{1f30a}',
  '\ud800',
  'a'.repeat(10_000),
];

test.each(TEXTS)('C7 Q3 %j: nine letters and digits, the same each time', (text) => {
  expect(toolCallId(text)).toMatch(/^[0-9A-Za-z]{9}$/);
  expect(toolCallId(text)).toBe(toolCallId(text));
});

test('C7 Q3 similar texts: different ids', () => {
  expect(new Set(TEXTS.map(toolCallId)).size).toBe(TEXTS.length);
  const counted = Array.from({ length: 10_000 }, (_, at) => toolCallId(`call_${at}`));
  expect(new Set(counted).size).toBe(counted.length);
});

test(`C7 Q3 ${RANDOM_TEXTS} random texts: no two have the same id, and every character occurs in every position`, () => {
  const random = seeded(RANDOM_TEXTS);
  const texts = new Set<string>();
  while (texts.size < RANDOM_TEXTS)
    texts.add(`${random().toString(36).slice(2)}${random().toString(36).slice(2)}`);
  const ids = [...texts].map(toolCallId);
  expect(new Set(ids).size).toBe(texts.size);
  const signs = Array.from({ length: 9 }, (_, place) => new Set(ids.map((id) => id[place])).size);
  // The last position has the rest of 53 bits.
  expect(signs.slice(0, -1)).toEqual(Array(8).fill(62));
  expect(signs.at(-1)).toBeGreaterThan(40);
});
