/** Reads a complete body up to a bound: a request, a non-streaming response, a model list. */
import { type MemoryGrant, SMALL_BYTES, SMALL_GRANT, type TakeMemory } from './memory.ts';
import type { Clock } from './timers.ts';

/** The first buffer for a body of unknown length: most fit. */
const FIRST_BYTES = 16 * 1024;

/** The part of a Request or Response that is used here. */
interface BodyMessage {
  readonly headers: Pick<Headers, 'get' | 'has'>;
  readonly body: ReadableStream<Uint8Array> | null;
  text(): Promise<string>;
}

export interface TextSource {
  readonly message: BodyMessage;
  readonly maxBytes: number;
  /** Checks a large body before it becomes a text, which takes memory again. Absent: any body is read. */
  readonly isReadable?: (bytes: Uint8Array) => boolean;
  /** Registers a callback for the deadline. Absent: only the connection's end stops a slow body. */
  readonly watch?: (onLate: () => void) => void;
}

export interface BodySource {
  readonly body: ReadableStream<Uint8Array> | null;
  /** The body's `content-length`, or null if it is unknown. */
  readonly length: number | null;
  readonly maxBytes: number;
  /** Resolves at the deadline. */
  readonly late?: Promise<'late'> | undefined;
}

export type TextRead =
  /** `bytes`: the body's length. The grant's turn of work has started. */
  | { readonly kind: 'text'; readonly text: string; readonly bytes: number; readonly grant: MemoryGrant }
  /** `isReadable` refused it. */
  | { readonly kind: 'unreadable' }
  | Exclude<BodyRead, { kind: 'body' }>;

export type BodyRead =
  | { readonly kind: 'body'; readonly bytes: Uint8Array<ArrayBuffer>; readonly grant: MemoryGrant }
  /** `broken`: the connection ended early. `memory_exhausted`: other bodies hold all the memory. */
  | { readonly kind: 'too_large' | 'late' | 'broken' | 'memory_exhausted' };

/** The `content-length`, or null if there is none or the body is compressed, as its decoded length differs. */
export function announcedLength(headers: Pick<Headers, 'get' | 'has'>): number | null {
  const length = headers.get('content-length');
  if (length === null || headers.has('content-encoding')) return null;
  return /^\d{1,15}$/.test(length) ? Number(length) : null;
}

/**
 * Reads a message's body as text. Never throws. If it fails, the rest of the body is not read.
 * @returns the text and its grant, which the caller releases when nothing of the body is held
 */
export function readBodyText(source: TextSource, takeMemory: TakeMemory): Promise<TextRead> {
  const { message, maxBytes, watch, isReadable } = source;
  const length = announcedLength(message.headers);
  // Nearly all bodies: the runtime reads them in one step, and at most `content-length` bytes.
  if (length !== null && length <= SMALL_BYTES && length <= maxBytes) return readSmall(source, length);
  const late = watch && new Promise<'late'>((resolve) => watch(() => resolve('late')));
  return readLarge({ body: message.body, length, maxBytes, late }, takeMemory, isReadable);
}

function readSmall({ message, watch }: TextSource, bytes: number): Promise<TextRead> {
  return new Promise((resolve) => {
    watch?.(() => resolve({ kind: 'late' }));
    message.text().then(
      (text) => resolve({ kind: 'text', text, bytes, grant: SMALL_GRANT }),
      () => resolve({ kind: 'broken' }),
    );
  });
}

async function readLarge(
  source: BodySource,
  takeMemory: TakeMemory,
  isReadable: TextSource['isReadable'],
): Promise<TextRead> {
  const body = await readBody(source, takeMemory);
  if (body.kind !== 'body') return body;
  const { bytes, grant } = body;
  await grant.startWork();
  const { length } = bytes;
  if (isReadable !== undefined && length > SMALL_BYTES) {
    if (!isReadable(bytes)) {
      // Frees the bytes at once, not at the engine's next collection.
      bytes.buffer.transfer(0);
      grant.release();
      return { kind: 'unreadable' };
    }
    await grant.pause();
  }
  return { kind: 'text', text: takeText(bytes), bytes: length, grant };
}

/**
 * Reads a body as bytes. Never throws. If it fails, the rest of the body is not read.
 * @returns the bytes and their grant, which the caller releases when nothing of the body is held
 */
export async function readBody(
  { body, length, maxBytes, late }: BodySource,
  takeMemory: TakeMemory,
): Promise<BodyRead> {
  if (length !== null && length > maxBytes) return { kind: 'too_large' };
  // A body of unknown length gets a small grant first. If it has more bytes, which few have, it gets the largest.
  let room = Math.min(length ?? SMALL_BYTES, maxBytes);
  let grant = await takeMemory(room);
  if (grant === null) return { kind: 'memory_exhausted' };
  const readChunk = openReader(body);
  const fail = (kind: Exclude<BodyRead['kind'], 'body'>): BodyRead => {
    grant?.release();
    readChunk.cancel();
    return { kind };
  };
  // One byte more than allowed, to notice a longer body.
  let bytes = new Uint8Array(Math.min(length ?? FIRST_BYTES, room) + 1);
  let used = 0;
  try {
    for (;;) {
      const reading = readChunk.into(bytes.subarray(used));
      const ends = [late, grant.revoked].filter((end) => end !== undefined);
      const piece = ends.length === 0 ? await reading : await Promise.race([reading, ...ends]);
      if (piece === 'late') return fail('late');
      if (piece === 'revoked') return fail('memory_exhausted');
      bytes = new Uint8Array(piece.buffer);
      if (piece.length === 0) break;
      used += piece.length;
      if (used > maxBytes) return fail('too_large');
      if (used > room) {
        grant.release();
        room = maxBytes;
        grant = await takeMemory(room);
        if (grant === null) return fail('memory_exhausted');
      }
      // A transfer frees the old buffer at once, not at the engine's next collection.
      if (used === bytes.length) bytes = new Uint8Array(bytes.buffer.transfer(Math.min(used * 2, room + 1)));
    }
  } catch {
    return fail('broken');
  }
  grant.markReceived();
  return { kind: 'body', bytes: bytes.subarray(0, used), grant };
}

/** Decodes a body's text and frees its bytes at once, not at the engine's next collection. */
export function takeText(bytes: Uint8Array<ArrayBuffer>): string {
  const text = new TextDecoder().decode(bytes);
  bytes.buffer.transfer(0);
  return text;
}

interface BodyReader {
  /** Reads available bytes into the view. Returns a view of the same memory, which is empty at the body's end. */
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

/** Null for a body that is not a byte stream: a Worker that mounts Weir may build a request from any stream. */
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

interface StartBounds {
  readonly maxBytes: number;
  readonly maxMs: number;
}

/** The start of a small text, such as a refusal's, up to bounds of size and time, or to where the connection broke. Never rejects. */
export async function readTextStart(
  body: ReadableStream<Uint8Array> | null,
  { maxBytes, maxMs }: StartBounds,
  clock: Pick<Clock, 'startTimer'>,
): Promise<string> {
  if (body === null) return '';
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  const cancelTimer = clock.startTimer(maxMs, cancel);
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (let bytes = 0; bytes < maxBytes; ) {
      const { done, value } = await reader.read();
      if (done) return text;
      bytes += value.length;
      text += decoder.decode(value, { stream: true });
    }
    cancel();
    return text;
  } catch {
    return text;
  } finally {
    cancelTimer();
  }
}
