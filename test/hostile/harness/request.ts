/** Sends one raw HTTP request to the gateway, with any bytes, and reads the response. */
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { MessageReader } from '../../../bench/load/http1.ts';

export interface RawRequest {
  /** The start line and all headers, including the empty line. */
  readonly head: string;
  readonly body: readonly Uint8Array[];
  /** The pause between two pieces of the body. */
  readonly pauseMs: number;
  /** The time limit, after which the client aborts. No response by then is a fault of the gateway. */
  readonly limitMs: number;
  /** Disconnects on purpose after this many ms, or after this many bytes of the response. */
  readonly leavesAfterMs?: number;
  readonly leavesAfterBytes?: number;
}

export interface RawResponse {
  /** 0 without a response head. */
  readonly status: number;
  /** Lowercase names. */
  readonly headers: ReadonlyMap<string, string>;
  /** The body, up to a size limit. */
  readonly kept: Buffer;
  readonly bytes: number;
  readonly ms: number;
  /** `closed`: the gateway closed the connection before the response was complete. */
  readonly end: 'whole' | 'closed' | 'late' | 'left';
}

const MAX_KEPT_BYTES = 32 * 1024 * 1024;
const CONTINUE = 100;

export async function sendRequest(port: number, request: RawRequest): Promise<RawResponse> {
  const startedAt = performance.now();
  const ended = Promise.withResolvers<RawResponse['end']>();
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let status = 0;
  let headers: ReadonlyMap<string, string> = new Map();
  let bytes = 0;
  let keptBytes = 0;
  const kept: Buffer[] = [];
  const reader = new MessageReader({
    head: ([start = '', ...lines]) => {
      status = Number(start.split(' ')[1]);
      headers = new Map(lines.map(splitHeader));
      if (request.head.startsWith('HEAD ')) ended.resolve('whole');
    },
    body: (piece) => {
      bytes += piece.length;
      if (keptBytes < MAX_KEPT_BYTES) kept.push(piece);
      keptBytes += piece.length;
      if (bytes >= (request.leavesAfterBytes ?? Number.POSITIVE_INFINITY)) ended.resolve('left');
    },
    end: () => {
      if (status !== CONTINUE) ended.resolve('whole');
    },
  });
  socket.on('data', (piece) => reader.push(Buffer.isBuffer(piece) ? piece : Buffer.from(piece)));
  // The close event that follows reports the failure.
  socket.on('error', () => {});
  socket.on('close', () => ended.resolve('closed'));
  const timers = new AbortController();
  const { signal } = timers;
  setTimeout(request.limitMs, undefined, { signal }).then(() => ended.resolve('late'), ignore);
  if (request.leavesAfterMs !== undefined) {
    setTimeout(request.leavesAfterMs, undefined, { signal }).then(() => ended.resolve('left'), ignore);
  }
  socket.write(request.head);
  void send();

  async function send(): Promise<void> {
    for (const piece of request.body) {
      if (socket.destroyed) return;
      socket.write(piece);
      if (request.pauseMs > 0) await setTimeout(request.pauseMs);
    }
  }

  const end = await ended.promise;
  timers.abort();
  socket.destroy();
  return { status, headers, kept: Buffer.concat(kept), bytes, ms: performance.now() - startedAt, end };
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function ignore(): void {}
