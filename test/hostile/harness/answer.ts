/** A hostile upstream's response as bytes, and how they are written to the socket. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { LAST_CHUNK } from '../../../bench/load/http1.ts';

export interface Answer {
  /** The start line and headers, without content-length or transfer-encoding. */
  readonly head: string;
  /** The body in pieces, each written separately. A buffer may be repeated. */
  readonly pieces: readonly Uint8Array[];
  /**
   * How the body's end is marked: by chunks, by a length, by a length that is too long, or by the connection's end. `raw`:
   * the pieces contain the head and all marks.
   */
  readonly framing: 'chunks' | 'length' | 'long length' | 'close' | 'raw';
  /** `whole`: ends as the framing requires; `cut` closes and `reset` aborts the connection; `hang` leaves it open. */
  readonly ending: 'whole' | 'cut' | 'reset' | 'hang';
  /** The pause between two pieces. */
  readonly pauseMs: number;
}

/** Without this wait, an aborted connection loses the data that was just written. */
const BEFORE_CUT_MS = 50;
const MISSING_BYTES = 100;

/** Resolves when everything was written, or the connection is closed. */
export async function sendAnswer(socket: Socket, answer: Answer): Promise<void> {
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

/** Resolves when the socket accepts more, or is closed. */
async function write(socket: Socket, ...parts: readonly (Uint8Array | string)[]): Promise<void> {
  if (socket.destroyed) return;
  socket.cork();
  const isTaken = parts.map((part) => socket.write(part)).every(Boolean);
  socket.uncork();
  if (isTaken || !socket.writableNeedDrain) return;
  const drained = new AbortController();
  const { signal } = drained;
  const waits = [once(socket, 'drain', { signal }), once(socket, 'close', { signal })];
  // Aborts the other wait, which rejects.
  await Promise.race(waits).catch(() => {});
  drained.abort();
  await Promise.allSettled(waits);
}
