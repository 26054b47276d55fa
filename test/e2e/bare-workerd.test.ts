/** Tests the gateway in a plain workerd, without wrangler's proxy and its handling of exceptions: memory and failures (W1, T3). */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { peakBytes, resetPeak, residentBytes } from '../hostile/harness/process.ts';
import { startWorkerd, type Workerd } from '../hostile/harness/workerd.ts';
import { ADMIN_TOKEN } from './gateway.ts';
import { type Origin, startOrigin } from './origin-server.ts';
import { type WorkerFile, writeBundle } from './workers.ts';

const MIB = 1024 * 1024;
const UPLOAD_BYTES = 64 * MIB;
/** The allowed memory for a body in both directions: the buffers of four sockets, independent of its size. */
const MAX_GROWTH_BYTES = 16 * MIB;

let bundle: WorkerFile;
let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
  bundle = await writeBundle('breakable', join(import.meta.dirname, 'breakable-worker.ts'));
});
afterAll(() => origin[Symbol.asyncDispose]());

function start(vars: Readonly<Record<string, string>>): Promise<Workerd> {
  const own = { AUTH: 'open', ADMIN_TOKEN, BASE_PATH: '/ai', ...vars };
  // These tests don't use KV.
  return startWorkerd({ bundle, kvPort: 9, vars: own });
}

function send({ port }: Workerd, method: string, path: string, host = origin.host): ClientRequest {
  return request({ host: '127.0.0.1', port, path, method, headers: { host }, agent: false });
}

async function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
  const [response]: IncomingMessage[] = await once(sent, 'response');
  if (response === undefined) throw new Error('The response is missing');
  return response;
}

async function statusOf(sent: ClientRequest): Promise<number | undefined> {
  sent.end();
  const response = await answerOf(sent);
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

/** Sends this many bytes to be echoed; resolves with the digests of the sent and the received bytes. */
async function echo(sent: ClientRequest, bytes: number): Promise<{ sent: string; received: string }> {
  const up = createHash('sha256');
  const down = createHash('sha256');
  async function upload(): Promise<void> {
    for (let at = 0; at < bytes; at += MIB) {
      const piece = Buffer.alloc(MIB, `${at} `);
      up.update(piece);
      if (!sent.write(piece)) await once(sent, 'drain');
    }
    sent.end();
  }
  async function download(): Promise<void> {
    for await (const piece of await answerOf(sent)) down.update(piece);
  }
  await Promise.all([upload(), download()]);
  return { sent: up.digest('hex'), received: down.digest('hex') };
}

describe('W1 ORIGIN=pass', () => {
  let workerd: Workerd;
  beforeAll(async () => {
    workerd = await start({ ORIGIN: 'pass', ORIGIN_HOSTS: origin.host });
  });
  afterAll(() => workerd.stop());

  test(`${UPLOAD_BYTES / MIB} MiB up and down: all bytes, and flat memory`, async () => {
    // The first request warms up the isolate and the sockets.
    await echo(send(workerd, 'POST', '/echo'), 4 * MIB);
    resetPeak(workerd.pid);
    const idle = residentBytes(workerd.pid);
    const { sent, received } = await echo(send(workerd, 'POST', '/echo'), UPLOAD_BYTES);
    expect(received).toBe(sent);
    const growth = peakBytes(workerd.pid) - idle;
    process.stdout.write(
      `${UPLOAD_BYTES / MIB} MiB through the gateway: ${(growth / MIB).toFixed(1)} MiB above idle\n`,
    );
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
  });
});

describe('W1 an internal error on every request', () => {
  let workerd: Workerd;
  beforeAll(async () => {
    workerd = await start({ ORIGIN: 'pass', ORIGIN_HOSTS: origin.host, BREAK: '1' });
  });
  afterAll(() => workerd.stop());

  test('a page is still served by its origin', async () => {
    const before = origin.requests.length;
    expect(await statusOf(send(workerd, 'PUT', '/shop/42?a=b'))).toBe(418);
    expect(origin.requests.slice(before)).toMatchObject([{ method: 'PUT', url: '/shop/42?a=b' }]);
  });

  test('B5 a request for Weir, with its key, or for another host does not reach the origin', async () => {
    const before = origin.requests.length;
    for (const method of ['GET', 'HEAD']) {
      expect(await statusOf(send(workerd, method, '/ai/health'))).toBe(500);
    }
    const withKey = send(workerd, 'GET', '/shop');
    withKey.setHeader('authorization', `Bearer ${ADMIN_TOKEN}`);
    expect(await statusOf(withKey)).toBe(500);
    expect(await statusOf(send(workerd, 'GET', '/shop', `localhost:${origin.port}`))).toBe(500);
    expect(origin.requests).toHaveLength(before);
  });
});

describe('T3 a client that ends its body early', () => {
  let workerd: Workerd;
  beforeAll(async () => {
    workerd = await start({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `http://${origin.host}` });
  });
  afterAll(() => workerd.stop());

  test.each([
    ['within its length', 'content-length: 200', '{"model":"openai/gpt-4o-mini",'],
    ['within a chunk', 'transfer-encoding: chunked', 'ff\r\n{"model":"openai/gpt-4o-mini",'],
    ['between two chunks', 'transfer-encoding: chunked', '2\r\n{}\r\n'],
  ])('%s: 400, no upstream request, and no internal error in the log', async (_, length, body) => {
    const before = origin.requests.length;
    for (const path of ['/ai/v1/chat/completions', '/ai/admin/keys']) {
      // The client sends no more, but still reads.
      const socket = connect({ host: '127.0.0.1', port: workerd.port, allowHalfOpen: true });
      const head = [`POST ${path} HTTP/1.1`, 'host: weir', `authorization: Bearer ${ADMIN_TOKEN}`, length];
      socket.end([...head, '', body].join('\r\n'));
      const answer = await text(socket);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('"code":"invalid_request"');
    }
    expect(origin.requests).toHaveLength(before);
    expect(workerd.logged.filter(({ event }) => event !== 'request_refused')).toEqual([]);
  });
});
