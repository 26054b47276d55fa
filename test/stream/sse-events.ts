/** Test helper: runs bytes through the SSE parser and lists its events. */
import { SseParser } from '../../src/stream/sse-parser.ts';

/** An event's name and data, or that the bound was exceeded. */
export type Received = readonly [name: string, data: string] | 'too large';

const encoder = new TextEncoder();

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** The events of the reads, and of the end of the stream. */
export interface Reading {
  readonly received: Received[];
  readonly receivedAtEnd: Received[];
}

export function read(reads: Iterable<Uint8Array>, maxEventBytes = 1_000_000): Reading {
  const parser = new SseParser(maxEventBytes);
  const received: Received[] = [];
  for (const bytes of reads) {
    for (let at = 0; at < bytes.length && !parser.isTooLarge; ) {
      at = parser.next(bytes, at);
      received.push(...completed(parser));
    }
  }
  if (parser.isTooLarge) return { received, receivedAtEnd: [] };
  parser.end();
  return { received, receivedAtEnd: completed(parser) };
}

/** What the last step completed: an event, or nothing. */
function completed(parser: SseParser): Received[] {
  const data = parser.takeData();
  if (data !== null) return [[parser.name, data]];
  return parser.isTooLarge ? ['too large'] : [];
}

/** All events, those of the end included. */
export function readAll(reads: Iterable<Uint8Array>, maxEventBytes?: number): Received[] {
  const { received, receivedAtEnd } = read(reads, maxEventBytes);
  return [...received, ...receivedAtEnd];
}

export function readText(text: string, maxEventBytes?: number): Received[] {
  return readAll([bytesOf(text)], maxEventBytes);
}
