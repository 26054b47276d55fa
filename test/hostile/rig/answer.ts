/** What a hostile upstream answers, as bytes, and how they are written to its socket. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { LAST_CHUNK } from '../../../bench/load/http1.ts';

export interface Answer {
  /** The start line and headers, without the one that says where the body ends. */
  readonly head: string;
  /** The body in pieces, each written by itself; one buffer may be there many times. */
  readonly pieces: readonly Uint8Array[];
  /**
   * How the body's end is marked: by chunks, by a length, by one that is longer than the body, by the connection's end. `raw`:
   * the pieces are all there is, head and marks included.
   */
  readonly framing: 'chunks' | 'length' | 'long length' | 'close' | 'raw';
  /** `whole`: as the framing has it; `cut` closes and `reset` breaks the connection, `hang` leaves it open. */
  readonly ending: 'whole' | 'cut' | 'reset' | 'hang';
  /** Between two pieces. */
  readonly pauseMs: number;
}

/** A connection that is broken at once takes with it what was just written. */
const BEFORE_CUT_MS = 50;
const MISSING_BYTES = 100;

/** Resolves when all was written, or the other side is gone. */
export async function play(socket: Socket, answer: Answer): Promise<void> {
  const { framing, ending, pauseMs } = answer;
  if (framing !== 'raw') await write(socket, `${answer.head}${lengthHeader(answer)}\r\n`);
  for (const piece of answer.pieces) {
    if (socket.destroyed) return;
    if (framing !== 'chunks') await write(socket, piece);
    else if (piece.length > 0) await write(socket, `${piece.length.toString(16)}\r\n`, piece, '\r\n');
    if (pauseMs > 0) await setTimeout(pauseMs);
  }
  if (socket.destroyed || ending === 'hang') return;
  if (ending === 'whole' && framing === 'chunks') await write(socket, LAST_CHUNK);
  else if (ending !== 'whole' || framing === 'close' || framing === 'long length')
    await breakOff(socket, ending);
}

function lengthHeader({ framing, pieces }: Answer): string {
  if (framing === 'chunks') return 'transfer-encoding: chunked\r\n';
  if (framing === 'close') return 'connection: close\r\n';
  let length = framing === 'long length' ? MISSING_BYTES : 0;
  for (const piece of pieces) length += piece.length;
  return `content-length: ${length}\r\n`;
}

async function breakOff(socket: Socket, ending: Answer['ending']): Promise<void> {
  await setTimeout(BEFORE_CUT_MS);
  if (ending === 'reset') socket.resetAndDestroy();
  else socket.end();
}

/** Resolves when the socket takes more, or is gone. */
async function write(socket: Socket, ...parts: readonly (Uint8Array | string)[]): Promise<void> {
  if (socket.destroyed) return;
  socket.cork();
  const isTaken = parts.map((part) => socket.write(part)).every(Boolean);
  socket.uncork();
  if (isTaken || !socket.writableNeedDrain) return;
  const drained = new AbortController();
  const { signal } = drained;
  const waits = [once(socket, 'drain', { signal }), once(socket, 'close', { signal })];
  // The one that loses is ended, and rejects.
  await Promise.race(waits).catch(() => {});
  drained.abort();
  await Promise.allSettled(waits);
}
