/** The simulator's HTTP server: serves scenes, faults or given bytes, and records the requests. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { answer } from './answer.ts';
import { decodeObject } from './json.ts';
import { PromptCache } from './prompt-cache.ts';
import type { Ending, RecordedRequest } from './recorded-request.ts';
import { type Reply, STREAM_HEAD, type Step } from './reply.ts';

export interface SimulatorOptions {
  readonly port?: number;
  /** Milliseconds between two events; 0 sends each in its own event-loop turn. */
  readonly pace?: number;
  /** The fault of every request that doesn't name one. */
  readonly fault?: string;
  /** Providers read from a cache what a prompt has in common with an earlier one; default: the system messages. */
  readonly hasPromptCache?: boolean;
  /** Called first. Serves exact bytes in exact chunks, without a check of key or body. */
  readonly replay?: (request: RecordedRequest) => Replay | undefined;
}

export interface Replay {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunks: readonly Uint8Array[] | AsyncIterable<Uint8Array>;
  readonly gapMs?: number;
  readonly ends?: 'end' | 'reset' | 'hang';
}

export interface Simulator extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly requests: readonly RecordedRequest[];
  /** Waits for the request with that index. */
  request(index: number): Promise<RecordedRequest>;
  close(): Promise<void>;
}

/** A thousand streams may start at once. A connection beyond this queue would wait for seconds. */
const BACKLOG = 4096;

const MAX_REQUEST_BYTES = 64 * 1024 * 1024;

export async function createSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const requests: RecordedRequest[] = [];
  const arrivals = new EventTarget();
  const closing = new AbortController();
  const cache = options.hasPromptCache === true ? new PromptCache() : null;

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await read(incoming);
    if (text === undefined) return void incoming.destroy();
    const own = { aborted: false };
    // After a disconnect the next write fails; `closed` already reports it.
    response.on('error', () => undefined);
    const closed = once(response, 'close').then((): Ending => {
      if (response.writableFinished) return 'finished';
      return own.aborted || closing.signal.aborted ? 'aborted' : 'disconnected';
    });
    const { method = '', url: path = '', headers } = incoming;
    const body = decodeObject(text);
    const recorded = { serial: requests.length + 1, method, path, headers, text, body, bytesSent: 0, closed };
    requests.push(recorded);
    arrivals.dispatchEvent(new Event('request'));
    const replay = options.replay?.(recorded);
    const reply = replay
      ? replayed(replay)
      : await answer(recorded, { origin: url, defaultFault: options.fault, cache });
    await sendReply(reply, response, recorded, own);
  }

  async function sendReply(
    reply: Reply,
    response: ServerResponse,
    recorded: RecordedRequest,
    own: { aborted: boolean },
  ) {
    if (reply.head) response.writeHead(reply.head.status, reply.head.headers).flushHeaders();
    for await (const step of reply.steps) {
      if ('stop' in step && step.stop === 'hang') return;
      if ('stop' in step && step.stop === 'reset') {
        own.aborted = true;
        response.destroy();
        return;
      }
      await perform(step, response, recorded);
      if (response.destroyed) return;
    }
    response.end();
  }

  async function perform(step: Step, response: ServerResponse, recorded: RecordedRequest): Promise<void> {
    if ('wait' in step) return pause(step.wait);
    if (!('write' in step)) return;
    recorded.bytesSent += Buffer.byteLength(step.write);
    if (!response.write(step.write)) await drained(response);
    if (step.paced) await pause(options.pace ?? 0);
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((error: unknown) => {
      process.stderr.write(`simulator: ${String(error)}\n`);
      response.destroy();
    });
  });
  // Otherwise a connection could close just as a client reuses it.
  server.keepAliveTimeout = 0;
  server.listen(options.port ?? 0, '127.0.0.1', BACKLOG);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The simulator has no port');
  const url = `http://127.0.0.1:${address.port}`;

  async function request(index: number): Promise<RecordedRequest> {
    for (;;) {
      const recorded = requests[index];
      if (recorded) return recorded;
      await new Promise((arrived) => arrivals.addEventListener('request', arrived, { once: true }));
    }
  }

  async function close(): Promise<void> {
    if (closing.signal.aborted) return;
    closing.abort();
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }
  return { url, port: address.port, requests, request, close, [Symbol.asyncDispose]: close };
}

/** Undefined if the client aborted or exceeded the size limit. */
async function read(incoming: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of incoming) {
      if (!(part instanceof Buffer)) continue;
      size += part.length;
      if (size > MAX_REQUEST_BYTES) return undefined;
      parts.push(part);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(parts).toString();
}

/** Even without a pace, each event is sent in its own event-loop turn. */
async function pause(milliseconds: number): Promise<void> {
  await (milliseconds > 0 ? setTimeout(milliseconds) : setImmediate());
}

async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  const either = new AbortController();
  const { signal } = either;
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  either.abort();
}

function replayed(replay: Replay): Reply {
  const head = { status: replay.status ?? 200, headers: replay.headers ?? STREAM_HEAD.headers };
  return { head, steps: replaySteps(replay) };
}

async function* replaySteps(replay: Replay): AsyncGenerator<Step> {
  for await (const chunk of replay.chunks) {
    yield { write: chunk, paced: false };
    yield { wait: replay.gapMs ?? 0 };
  }
  yield { stop: replay.ends ?? 'end' };
}
