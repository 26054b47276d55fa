/** Building blocks of hostile responses: heads, events and non-streaming responses of OpenAI's API. */
import { dataEvent } from '../../../bench/streams.ts';
import type { Answer } from '../harness/answer.ts';

const JSON_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
export const SSE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n';
const GZIP = 'content-encoding: gzip\r\n';

export const MB = 1_000_000;
export const MIB = 1024 * 1024;

/** An event of one delta. */
export function delta(value: object, more: object = {}): string {
  return dataEvent({ choices: [{ index: 0, delta: value, ...more }] });
}

export const FINISH = delta({}, { finish_reason: 'stop' });
export const DONE = 'data: [DONE]\n\n';
export const END = FINISH + DONE;

/** A non-streaming response with this JSON message; `more` are further members of the choice. */
export function plainAnswer(message: string, more = ''): string {
  return `{"choices":[{"index":0,"message":${message},"finish_reason":"stop"${more}}]}`;
}

const WHOLE: Omit<Answer, 'head' | 'pieces'> = { framing: 'chunks', ending: 'whole', pauseMs: 0 };

function bytesOf(piece: string | Uint8Array): Uint8Array {
  return typeof piece === 'string' ? Buffer.from(piece) : piece;
}

export function stream(pieces: readonly (string | Uint8Array)[], own: Partial<Answer> = {}): Answer {
  return { ...WHOLE, head: SSE_HEAD, pieces: pieces.map(bytesOf), ...own };
}

export function plain(pieces: readonly (string | Uint8Array)[], own: Partial<Answer> = {}): Answer {
  return { ...WHOLE, framing: 'length', head: JSON_HEAD, pieces: pieces.map(bytesOf), ...own };
}

export function zippedStream(pieces: readonly Uint8Array[]): Answer {
  return stream(pieces, { head: SSE_HEAD + GZIP });
}

export function zippedPlain(pieces: readonly Uint8Array[]): Answer {
  return plain(pieces, { head: JSON_HEAD + GZIP });
}

/** Repeats one buffer. */
export function times(piece: string | Uint8Array, count: number): Uint8Array[] {
  const bytes = bytesOf(piece);
  return Array.from({ length: count }, () => bytes);
}
