/** A client connection to workerd: one request at a time; passes the response's bytes on as they arrive. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { MessageReader } from './http1.ts';

export interface ClientRequest {
  /** Default: the path of chat completions. */
  readonly path?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export class Connection {
  readonly #socket: Socket;
  #onBody: (bytes: Buffer) => void = () => {};
  #answer = Promise.withResolvers<number>();
  #status = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const reader = new MessageReader({
      head: ([start = '']) => {
        this.#status = Number(start.split(' ')[1]);
      },
      body: (bytes) => this.#onBody(bytes),
      end: () => this.#answer.resolve(this.#status),
    });
    socket.on('data', (bytes) => reader.push(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)));
    socket.on('error', (error) => this.#answer.reject(error));
    socket.on('close', () => this.#answer.reject(new Error('workerd closed the connection')));
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    return new Connection(socket);
  }

  /** Resolves with the status when the response is complete. */
  request(ask: ClientRequest, onBody: (bytes: Buffer) => void): Promise<number> {
    this.#onBody = onBody;
    this.#answer = Promise.withResolvers<number>();
    const headers = Object.entries(ask.headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = Buffer.byteLength(ask.body);
    this.#socket.write(
      `POST ${ask.path ?? '/v1/chat/completions'} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${length}\r\n${headers.join('')}\r\n${ask.body}`,
    );
    return this.#answer.promise;
  }

  close(): void {
    // Ignores the rejection that the close causes.
    this.#answer.promise.catch(() => {});
    this.#socket.destroy();
  }
}
