/** Reads bytes through the SSE parser and lists what its sink was told: shared by the parser's tests. */
import { SseReader } from '../../src/stream/sse.ts';

/** An event's name and data, or that the bound was passed. */
export type Told = readonly [name: string, data: string] | 'too large';

const encoder = new TextEncoder();

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** What the sink is told while the reads come, and what only the end of the stream tells. */
export interface Reading {
  readonly told: Told[];
  readonly toldAtEnd: Told[];
}

export function read(reads: Iterable<Uint8Array>, maxEventBytes = 1_000_000): Reading {
  let told: Told[] = [];
  const reader = new SseReader(
    { event: (name, data) => told.push([name, data]), tooLarge: () => told.push('too large') },
    maxEventBytes,
  );
  for (const bytes of reads) reader.push(bytes);
  const before = told;
  told = [];
  reader.end();
  return { told: before, toldAtEnd: told };
}

/** Everything that is told of a stream, end included. */
export function readAll(reads: Iterable<Uint8Array>, maxEventBytes?: number): Told[] {
  const { told, toldAtEnd } = read(reads, maxEventBytes);
  return [...told, ...toldAtEnd];
}

export function readText(text: string, maxEventBytes?: number): Told[] {
  return readAll([bytesOf(text)], maxEventBytes);
}
