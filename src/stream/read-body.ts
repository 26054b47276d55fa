/** Reads a body that has to be whole (a request, a plain answer, a model list), up to a bound. */
import { SMALL_BYTES } from '../shared/limits.ts';
import { type Lease, type LeaseMemory, SMALL_LEASE } from './memory.ts';

/** Most bodies of an unknown length fit. */
const FIRST_BYTES = 16 * 1024;

/** A request or a response, as far as its body is read. */
interface BodyMessage {
  readonly headers: Pick<Headers, 'get' | 'has'>;
  readonly body: ReadableStream<Uint8Array> | null;
  text(): Promise<string>;
}

export interface TextSource {
  readonly message: BodyMessage;
  readonly maxBytes: number;
  /** Takes what is to be called when time is up; without it the body ends with its connection. */
  readonly watch?: (onLate: () => void) => void;
}

export interface BodySource {
  readonly body: ReadableStream<Uint8Array> | null;
  /** The bytes that its sender announced, or null where it did not. */
  readonly length: number | null;
  readonly maxBytes: number;
  /** Resolves when time is up. */
  readonly late?: Promise<'late'> | undefined;
}

export type TextRead =
  /** The work on it has begun. `bytes`: as it came. */
  | { readonly kind: 'text'; readonly text: string; readonly bytes: number; readonly lease: Lease }
  | Exclude<BodyRead, { kind: 'body' }>;

export type BodyRead =
  | { readonly kind: 'body'; readonly bytes: Uint8Array<ArrayBuffer>; readonly lease: Lease }
  /** `broken`: it ended before it was complete; `crowded`: other bodies hold all the memory that there is for them. */
  | { readonly kind: 'too_large' | 'late' | 'broken' | 'crowded' };

/** What `content-length` announces, or null: a body that is unpacked on its way has another length. */
export function announcedLength(headers: Pick<Headers, 'get' | 'has'>): number | null {
  const length = headers.get('content-length');
  if (length === null || headers.has('content-encoding')) return null;
  return /^\d{1,15}$/.test(length) ? Number(length) : null;
}

/**
 * Reads a message's text whole. Never throws; where it gives up, the rest is not read.
 * @returns the text, and its share of the isolate's memory: to be released when nothing of the body is held any more
 */
export function readBodyText(source: TextSource, leaseMemory: LeaseMemory): Promise<TextRead> {
  const { message, maxBytes, watch } = source;
  const length = announcedLength(message.headers);
  // Nearly every body: the runtime reads it in one step, and no more of it than was announced.
  if (length !== null && length <= SMALL_BYTES && length <= maxBytes) return readSmall(source, length);
  const late = watch && new Promise<'late'>((resolve) => watch(() => resolve('late')));
  return readLarge({ body: message.body, length, maxBytes, late }, leaseMemory);
}

function readSmall({ message, watch }: TextSource, bytes: number): Promise<TextRead> {
  return new Promise((resolve) => {
    watch?.(() => resolve({ kind: 'late' }));
    message.text().then(
      (text) => resolve({ kind: 'text', text, bytes, lease: SMALL_LEASE }),
      () => resolve({ kind: 'broken' }),
    );
  });
}

async function readLarge(source: BodySource, leaseMemory: LeaseMemory): Promise<TextRead> {
  const read = await readBody(source, leaseMemory);
  if (read.kind !== 'body') return read;
  const { bytes, lease } = read;
  await lease.begin();
  const { length } = bytes;
  return { kind: 'text', text: takeText(bytes), bytes: length, lease };
}

/**
 * Reads it whole. Never throws; where it gives up, the rest is not read.
 * @returns the bytes, and their share of the isolate's memory: to be released when nothing of the body is held any more
 */
export async function readBody(
  { body, length, maxBytes, late }: BodySource,
  leaseMemory: LeaseMemory,
): Promise<BodyRead> {
  if (length !== null && length > maxBytes) return { kind: 'too_large' };
  // Of an unknown length a small part is read first: few bodies have more, and those get room for as much as may be.
  let room = Math.min(length ?? SMALL_BYTES, maxBytes);
  let lease = await leaseMemory(room);
  if (lease === null) return { kind: 'crowded' };
  const read = openReader(body);
  const giveUp = (kind: Exclude<BodyRead['kind'], 'body'>): BodyRead => {
    lease?.release();
    read.cancel();
    return { kind };
  };
  // One byte more than may come shows that more came.
  let bytes = new Uint8Array(Math.min(length ?? FIRST_BYTES, room) + 1);
  let used = 0;
  try {
    for (;;) {
      const reading = read.into(bytes.subarray(used));
      const ends = [late, lease.revoked].filter((end) => end !== undefined);
      const piece = ends.length === 0 ? await reading : await Promise.race([reading, ...ends]);
      if (piece === 'late') return giveUp('late');
      if (piece === 'revoked') return giveUp('crowded');
      bytes = new Uint8Array(piece.buffer);
      if (piece.length === 0) break;
      used += piece.length;
      if (used > maxBytes) return giveUp('too_large');
      if (used > room) {
        lease.release();
        room = maxBytes;
        lease = await leaseMemory(room);
        if (lease === null) return giveUp('crowded');
      }
      // A transfer frees what it leaves at once: the engine would do so only at its next collection.
      if (used === bytes.length) bytes = new Uint8Array(bytes.buffer.transfer(Math.min(used * 2, room + 1)));
    }
  } catch {
    return giveUp('broken');
  }
  lease.arrived();
  return { kind: 'body', bytes: bytes.subarray(0, used), lease };
}

/** The text of a body that was read, whose memory is given back at once: the engine would free it at its next collection. */
export function takeText(bytes: Uint8Array<ArrayBuffer>): string {
  const text = new TextDecoder().decode(bytes);
  bytes.buffer.transfer(0);
  return text;
}

interface BodyReader {
  /** Reads what there is, as a view of the same memory: an empty one at the body's end. */
  readonly into: (view: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer>>;
  readonly cancel: () => void;
}

function openReader(body: ReadableStream<Uint8Array> | null): BodyReader {
  if (body === null) return { into: async (view) => view.subarray(0, 0), cancel: () => {} };
  const reader = byteReader(body);
  if (reader === null) return copyingReader(body);
  return {
    into: async (view) => {
      const { value } = await reader.read(view);
      if (value === undefined) throw new Error('The body was cancelled');
      return value;
    },
    cancel: () => void reader.cancel().catch(() => {}),
  };
}

/** Null for a body that its maker built of a stream of chunks, as another Worker that mounts Weir may do. */
function byteReader(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | null {
  try {
    return body.getReader({ mode: 'byob' });
  } catch {
    return null;
  }
}

function copyingReader(body: ReadableStream<Uint8Array>): BodyReader {
  const reader = body.getReader();
  let rest = new Uint8Array(0);
  return {
    into: async (view) => {
      while (rest.length === 0) {
        const { done, value } = await reader.read();
        if (done) return view.subarray(0, 0);
        rest = new Uint8Array(value);
      }
      const piece = rest.subarray(0, view.length);
      view.set(piece);
      rest = rest.subarray(piece.length);
      return view.subarray(0, piece.length);
    },
    cancel: () => void reader.cancel().catch(() => {}),
  };
}
