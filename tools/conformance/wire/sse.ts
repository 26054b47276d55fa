/** Server-sent events as text. */
import type { JsonObject } from '../contract/json.ts';

export function sse(value: JsonObject, event?: string): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(value)}\n\n`;
}

/** A text in the pieces in which the simulated models send it: words with the white space before them. */
export function piecesOf(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

/** The bytes of a text in writes of this size, also within characters. */
export function splitBytes(text: string, size: number): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  );
}
