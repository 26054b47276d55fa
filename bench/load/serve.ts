/** A minimal HTTP server: reads complete requests; handlers write responses directly to the socket. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { MessageReader } from './http1.ts';

export interface ServedRequest {
  readonly method: string;
  readonly path: string;
  /** The lines of the headers. */
  readonly headers: readonly string[];
  readonly body: string;
  readonly socket: Socket;
}

/** @returns the port */
export async function serve(answer: (request: ServedRequest) => void): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => {
    let head: readonly string[] = [];
    let body: Buffer[] = [];
    const reader = new MessageReader({
      head: (lines) => {
        head = lines;
      },
      body: (bytes) => body.push(bytes),
      end: () => {
        const [start = '', ...headers] = head;
        const [method = '', path = ''] = start.split(' ');
        answer({ method, path, headers, body: Buffer.concat(body).toString(), socket });
        body = [];
      },
    });
    socket.on('data', (bytes) => reader.push(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)));
    // workerd drops its connections when it exits.
    socket.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port');
  return address.port;
}
