/** Test helper: runs bytes through the SSE parser and lists what its sink received. */
import { SseParser } from '../../src/stream/sse-parser.ts';

/** An event's name and data, or that the bound was exceeded. */
export type Received = readonly [name: string, data: string] | 'too large';

const encoder = new TextEncoder();

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** What the sink received during the reads, and at the end of the stream. */
export interface Reading {
  readonly received: Received[];
  readonly receivedAtEnd: Received[];
}

export function read(reads: Iterable<Uint8Array>, maxEventBytes = 1_000_000): Reading {
  let received: Received[] = [];
  const reader = new SseParser(
    { event: (name, data) => received.push([name, data]), tooLarge: () => received.push('too large') },
    maxEventBytes,
  );
  for (const bytes of reads) reader.push(bytes);
  const before = received;
  received = [];
  reader.end();
  return { received: before, receivedAtEnd: received };
}

/** Everything the sink received, end included. */
export function readAll(reads: Iterable<Uint8Array>, maxEventBytes?: number): Received[] {
  const { received, receivedAtEnd } = read(reads, maxEventBytes);
  return [...received, ...receivedAtEnd];
}

export function readText(text: string, maxEventBytes?: number): Received[] {
  return readAll([bytesOf(text)], maxEventBytes);
}
