/** Tests that a custom tool's input comes out of its arguments whole, however they are escaped and cut (I4). */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CustomToolInput } from '../../../src/protocols/openai-responses/custom-tool-input.ts';

/** A JSON string of a text, with as many of its units escaped as the choices say. */
function escaped(text: string, choices: readonly boolean[]): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return units
    .map((unit, at) => {
      const plain = JSON.stringify(String.fromCharCode(unit)).slice(1, -1);
      return choices[at % choices.length] ? `\\u${unit.toString(16).padStart(4, '0')}` : plain;
    })
    .join('');
}

test('I4 CustomInput, any text, any escapes, any cut: the pieces are the text', () => {
  const texts = fc.string({ unit: 'binary', maxLength: 40 });
  const choices = fc.array(fc.boolean(), { minLength: 1, maxLength: 5 });
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 });
  const spaces = fc.constantFrom('', ' ', '\n  ');
  fc.assert(
    fc.property(texts, choices, sizes, spaces, (text, which, cuts, space) => {
      const json = `{${space}"input"${space}:${space}"${escaped(text, which)}"${space}}`;
      const input = new CustomToolInput();
      let read = '';
      for (let at = 0, turn = 0; at < json.length; turn++) {
        const size = cuts[turn % cuts.length] ?? 1;
        read += input.push(json.slice(at, at + size));
        at += size;
      }
      expect(input.isComplete).toBe(true);
      expect(read + input.end()).toBe(text);
    }),
    { numRuns: 500 },
  );
});

test('B4 CustomInput, a piece of a million escapes: read in one pass, where a search for its end at each took minutes', () => {
  const input = new CustomToolInput();
  expect(input.push(`{"input":"${'\\n'.repeat(1_000_000)}`)).toBe('\n'.repeat(1_000_000));
  expect(input.push('"}')).toBe('');
  expect(input.isComplete).toBe(true);
});

test.each([
  ['within an escape', '{"input":"ab\\u00', 'ab'],
  ['within the text', '{"input":"ab', 'ab'],
  ['before the text', '{"inp', '{"inp'],
])('I4 CustomInput, arguments that end %s: what there is of it', (_, json, text) => {
  const input = new CustomToolInput();
  expect(input.push(json) + input.end()).toBe(text);
  expect(input.isComplete).toBe(false);
});
