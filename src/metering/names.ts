/** Names as records keep them: bounded in bytes, and of characters that JSON writes as they are. */

const encoder = new TextEncoder();

/**
 * The text without control characters, quotes and backslashes (JSON would escape each with up to six bytes), cut to the most
 * characters that take `maxBytes` of UTF-8.
 */
export function boundName(text: string, maxBytes: number): string {
  const plain = text.toWellFormed().replace(/[^\x20-\u{10ffff}]|["\\\x7f]/gu, '');
  // No character takes less than a byte.
  const head = plain.slice(0, maxBytes).toWellFormed();
  let bytes = encoder.encode(head).length;
  if (bytes <= maxBytes) return head;
  const characters = [...head];
  while (bytes > maxBytes) bytes -= encoder.encode(characters.pop()).length;
  return characters.join('');
}
