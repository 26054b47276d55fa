/** A minimal HTTP/1.1 for the bench, because node:http would cost as much CPU as the measured Workers. */

export interface MessageSink {
  /** The start line and the headers. */
  head(lines: readonly string[]): void;
  body(bytes: Buffer): void;
  end(): void;
}

const LF = 10;

/** Parses consecutive messages from a connection's bytes. */
export class MessageReader {
  readonly #sink: MessageSink;
  /** The start of an incomplete line. */
  #held = '';
  #head: string[] = [];
  #inChunks = false;
  #isLastChunk = false;
  /** Remaining bytes of the body or of its current chunk. */
  #left = 0;

  constructor(sink: MessageSink) {
    this.#sink = sink;
  }

  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#left > 0) {
        const end = Math.min(at + this.#left, bytes.length);
        this.#left -= end - at;
        this.#sink.body(bytes.subarray(at, end));
        at = end;
        if (this.#left === 0 && !this.#inChunks) this.#end();
        continue;
      }
      const lineEnd = bytes.indexOf(LF, at);
      if (lineEnd === -1) {
        this.#held += bytes.toString('latin1', at);
        return;
      }
      const line = (this.#held + bytes.toString('latin1', at, lineEnd)).trimEnd();
      this.#held = '';
      at = lineEnd + 1;
      if (this.#inChunks) this.#chunkLine(line);
      else this.#headLine(line);
    }
  }

  #headLine(line: string): void {
    if (line !== '') {
      this.#head.push(line);
      return;
    }
    const head = this.#head;
    this.#head = [];
    this.#sink.head(head);
    this.#inChunks = /\bchunked$/i.test(headerOf(head, 'transfer-encoding') ?? '');
    this.#left = this.#inChunks ? 0 : Number(headerOf(head, 'content-length') ?? 0);
    if (!this.#inChunks && this.#left === 0) this.#end();
  }

  /** A chunk's size, or the empty line after a chunk and after the last. */
  #chunkLine(line: string): void {
    if (line !== '') {
      this.#left = Number.parseInt(line, 16);
      this.#isLastChunk = this.#left === 0;
    } else if (this.#isLastChunk) this.#end();
  }

  #end(): void {
    this.#inChunks = false;
    this.#isLastChunk = false;
    this.#sink.end();
  }
}

/** The value of a header; undefined: there is none. */
export function headerOf(head: readonly string[], name: string): string | undefined {
  const line = head.find((header) => header.toLowerCase().startsWith(`${name}:`));
  return line?.slice(name.length + 1).trim();
}

export const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n';
export const LAST_CHUNK = '0\r\n\r\n';

export function chunkOf(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

/** Splits a body into chunks of this size. A reader that takes one chunk at a time, like workerd, gets at most this much per read. */
export function inChunks(body: Buffer, chunkBytes: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += chunkBytes) {
    const chunk = body.subarray(at, at + chunkBytes);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

export function wholeResponse(status: number, type: string, body: string): string {
  const length = Buffer.byteLength(body);
  return `HTTP/1.1 ${status} OK\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}
