/** Tests that a repetition of a text is known, in whatever pieces and form the text came. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TextProgress } from '../../src/stream/text-progress.ts';

const encoder = new TextEncoder();

/** Pushes each piece decoded, or as the bytes of its JSON string. */
function progressOf(
  pieces: readonly (readonly [piece: string, form: 'text' | 'raw' | 'escaped'])[],
): TextProgress {
  const progress = new TextProgress();
  for (const [piece, form] of pieces) {
    if (form === 'text' || piece === '') progress.push(piece);
    else {
      const json = JSON.stringify(piece).slice(1, -1);
      const escaped = json.replace(
        /[\u0080-\uffff]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      const bytes = encoder.encode(form === 'raw' ? json : escaped);
      progress.pushRaw(bytes, 0, bytes.length, piece.length);
    }
  }
  return progress;
}

const text = fc.string({
  unit: fc.constantFrom('a', 'b', '\n', '"', '\\', '\u0007', 'é', '水', '🌊'),
  maxLength: 12,
});
const pieces = fc.array(fc.tuple(text, fc.constantFrom('text' as const, 'raw' as const, 'escaped' as const)));

describe('TextProgress.equals', () => {
  test('any pieces, decoded or not: it is the text that they form, and no other of the same length', () => {
    fc.assert(
      fc.property(pieces, fc.nat(), (parts, at) => {
        const progress = progressOf(parts);
        const whole = parts.map(([piece]) => piece).join('');
        expect(progress.equals(whole)).toBe(true);
        expect(progress.pieces).toBe(parts.filter(([piece]) => piece !== '').length);
        if (whole === '') return;
        const other = at % whole.length;
        expect(progress.equals(`${whole.slice(0, other)}#${whole.slice(other + 1)}`)).toBe(false);
        expect(progress.equals(`${whole}a`)).toBe(false);
      }),
      { seed: 20261128 },
    );
  });

  test('B1 of a long text its beginning and its length count', () => {
    const long = 'water '.repeat(4000);
    const progress = progressOf([...(long.match(/.{1,500}/g) ?? [])].map((piece) => [piece, 'raw']));
    expect(progress.equals(long)).toBe(true);
    expect(progress.equals(`#${long.slice(1)}`)).toBe(false);
    expect(progress.equals(long.slice(1))).toBe(false);
  });
});
