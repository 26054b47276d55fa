/** The origin server of a site: stores its requests, and echoes bodies and WebSocket messages. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

interface OriginRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The body's first bytes as text. */
  readonly body: string;
  readonly bytes: number;
}

export interface Origin extends AsyncDisposable {
  readonly port: number;
  /** `127.0.0.1:<port>`. */
  readonly host: string;
  readonly requests: readonly OriginRequest[];
}

const MAX_KEPT_BYTES = 1000;
/** The suffix that RFC 6455 (4.2.2) adds to the client's key before hashing. */
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** The first byte of a close frame. */
const CLOSE = 0x88;

export async function startOrigin(): Promise<Origin> {
  const requests: OriginRequest[] = [];

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming;
    const isEcho = url === '/echo';
    let body = '';
    let bytes = 0;
    if (isEcho) response.writeHead(200, { 'content-type': 'application/octet-stream' });
    for await (const part of incoming) {
      if (!(part instanceof Buffer)) continue;
      if (bytes < MAX_KEPT_BYTES) body += part.toString().slice(0, MAX_KEPT_BYTES);
      bytes += part.length;
      if (isEcho && !response.write(part)) await once(response, 'drain');
    }
    requests.push({ method, url, headers, body, bytes });
    if (isEcho) response.end();
    else if (url === '/moved') response.writeHead(302, { location: '/here' }).end();
    else response.writeHead(418, { 'set-cookie': 'session=2' }).end('the shop');
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch(() => response.destroy());
  });
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex) => {
    const { method = '', url = '', headers } = incoming;
    requests.push({ method, url, headers, body: '', bytes: 0 });
    echoMessages(headers['sec-websocket-key'] ?? '', socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The origin has no port');
  const { port } = address;
  return {
    port,
    host: `127.0.0.1:${port}`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Echoes short messages unmasked, and a close with a close. Each frame must arrive in one piece and have fewer than 126 bytes. */
function echoMessages(key: string, socket: Duplex): void {
  const accept = createHash('sha1')
    .update(key + ACCEPT_SUFFIX)
    .digest('base64');
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.write([...head, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n'));
  socket.on('error', () => socket.destroy());
  socket.on('data', (frame: Buffer) => {
    const bytes = (frame[1] ?? 0) & 0x7f;
    const mask = frame.subarray(2, 6);
    const message = frame.subarray(6, 6 + bytes).map((byte, at) => byte ^ (mask[at % 4] ?? 0));
    const kind = frame[0] ?? 0;
    socket.write(Buffer.concat([Buffer.of(kind, bytes), message]));
    if (kind === CLOSE) socket.end();
  });
}
