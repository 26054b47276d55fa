/** Tests that the input of a custom tool is extracted from its arguments, whatever their escapes and the sizes of the pieces. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CustomToolInput } from '../../../src/protocols/openai-responses/custom-tool-input.ts';

/** The content of a JSON string. Each unit is escaped or not, as the choices say. */
function escaped(text: string, choices: readonly boolean[]): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return units
    .map((unit, at) => {
      const plain = JSON.stringify(String.fromCharCode(unit)).slice(1, -1);
      return choices[at % choices.length] ? `\\u${unit.toString(16).padStart(4, '0')}` : plain;
    })
    .join('');
}

test('I4 CustomToolInput: any text, escapes and pieces yield the text', () => {
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

test('B4 CustomToolInput: a piece of a million escapes is read in linear time', () => {
  const input = new CustomToolInput();
  expect(input.push(`{"input":"${'\\n'.repeat(1_000_000)}`)).toBe('\n'.repeat(1_000_000));
  expect(input.push('"}')).toBe('');
  expect(input.isComplete).toBe(true);
});

test.each([
  ['within an escape', '{"input":"ab\\u00', 'ab'],
  ['within the text', '{"input":"ab', 'ab'],
  ['before the text', '{"inp', '{"inp'],
])('I4 CustomToolInput: arguments that end %s yield the text so far', (_, json, text) => {
  const input = new CustomToolInput();
  expect(input.push(json) + input.end()).toBe(text);
  expect(input.isComplete).toBe(false);
});
