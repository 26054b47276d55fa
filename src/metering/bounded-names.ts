/** Names as records keep them: of characters that are characters, and bounded in the bytes that they take in JSON. */

const encoder = new TextEncoder();

/** Printable ASCII that JSON writes as it is: nearly every name. */
const SIMPLE = /^[ !#-[\]-~]*$/;

/** The text without control characters and halves of characters, cut where its JSON would take more than `maxBytes`. */
export function boundName(text: string, maxBytes: number): string {
  if (text.length <= maxBytes && SIMPLE.test(text)) return text;
  const plain = text.toWellFormed().replace(/[^\x20-\u{10ffff}]|\x7f/gu, '');
  let bytes = 0;
  let length = 0;
  for (const character of plain) {
    // JSON escapes a quote and a backslash; nothing else of what is left.
    bytes += character === '"' || character === '\\' ? 2 : encoder.encode(character).length;
    if (bytes > maxBytes) return plain.slice(0, length);
    length += character.length;
  }
  return plain;
}
