/** Building blocks of the faults: half of a valid response, and the steps of queued, bytewise, endless or gzipped responses. */
import { constants, createGzip } from 'node:zlib';
import { type Head, paced, type Reply, type Step } from './reply.ts';
import { comment, type Scene, type WireEvent } from './scene.ts';

/** Limits of what the faults send. A client that disconnects ends them earlier. */
export const LIMITS = {
  queueComments: 40,
  queueGapMs: 50,
  bigEventBytes: 2 * 1024 * 1024,
  endlessBytes: 32 * 1024 * 1024,
  floodBytes: 64 * 1024 * 1024,
} as const;

const BLOCK_BYTES = 16 * 1024;

/** A valid response, streaming or non-streaming. The latter has two pieces, so that it can be truncated in the middle. */
export interface Good {
  readonly scene: Scene;
  readonly head: Head;
  readonly streamed: boolean;
  readonly events: readonly WireEvent[];
  /** The same response as one JSON object. */
  readonly object: string;
  /** The target of redirects: a path of the simulator that belongs to no provider. */
  readonly elsewhere: string;
}

export function steps(good: Good, sequence: Reply['steps']): Reply {
  return { head: good.head, steps: sequence };
}

export function events(good: Good, sequence: Iterable<WireEvent>): Reply {
  return steps(good, paced(sequence));
}

export function body(head: Head, text: string): Reply {
  return { head, steps: [{ write: text, paced: false }] };
}

export function pieces(good: Good): WireEvent[] {
  return good.events.filter((event) => event.kind === 'piece');
}

/** Everything up to and including the middle piece: some text, but not all. */
export function firstHalf(good: Good): WireEvent[] {
  const all = pieces(good);
  const middle = all[Math.ceil(all.length / 2) - 1];
  return good.events.slice(0, middle ? good.events.indexOf(middle) + 1 : 0);
}

/** A provider that queues a request sends comments before a stream, and empty lines before an object. */
export function* queued(good: Good): Generator<Step> {
  const sign = good.streamed ? comment(good.scene.comment).text : '\n';
  for (let sent = 0; sent < LIMITS.queueComments; sent += 1) {
    yield { write: sign, paced: false };
    yield { wait: LIMITS.queueGapMs };
  }
  yield* paced(good.events);
}

/** Sends single bytes, also within multi-byte characters. */
export function* drops(good: Good): Generator<Step> {
  for (const { text, bytes = Buffer.from(text) } of good.events) {
    for (const byte of bytes) {
      yield { write: Uint8Array.of(byte), paced: false };
      yield { wait: 0 };
    }
  }
}

/** Sends half of the response, then `start`, then `part` repeatedly in blocks. */
export function* endless(good: Good, start: string, part: string, limit: number): Generator<Step> {
  yield* paced(firstHalf(good));
  const block = Buffer.from(part.repeat(Math.ceil(BLOCK_BYTES / Math.max(part.length, 1))));
  if (start) yield { write: start, paced: false };
  for (let sent = 0; block.length > 0 && sent < limit; sent += block.length)
    yield { write: block, paced: false };
}

/** Sends pieces as fast as the socket accepts them, then the rest of the response. */
export function* flood(good: Good): Generator<Step> {
  const first = firstHalf(good);
  yield* endless(good, '', first.at(-1)?.text ?? '', LIMITS.floodBytes);
  yield* paced(good.events.slice(first.length));
}

/** Flushes after each event, like a compressing proxy. */
export async function* gzipped(good: Good): AsyncGenerator<Step> {
  const gzip = createGzip();
  for (const { text, bytes = text } of good.events) {
    gzip.write(bytes);
    await new Promise<void>((flushed) => gzip.flush(constants.Z_SYNC_FLUSH, flushed));
    const zipped: unknown = gzip.read();
    if (zipped instanceof Uint8Array) yield { write: zipped, paced: true };
  }
  gzip.end();
  for await (const bytes of gzip) if (bytes instanceof Uint8Array) yield { write: bytes, paced: false };
}
