/** Test helpers: AWS's own codec as an independent writer and reader of messages, and Weir's parser over reads. */
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { EventStreamParser, FAILURE_PREFIX } from '../../src/stream/eventstream-parser.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Of `@smithy/eventstream-codec`. */
export const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : decoder.decode(bytes)),
  (text) => encoder.encode(text),
);

/** A message with headers of the type string. */
export function message(headers: Readonly<Record<string, string>>, payload: string): Uint8Array {
  const typed = Object.entries(headers).map(([name, value]) => [name, { type: 'string', value }] as const);
  return codec.encode({ headers: Object.fromEntries(typed), body: encoder.encode(payload) });
}

/** An event as Bedrock writes it. */
export function event(type: string, payload: object): Uint8Array {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' };
  return message(headers, JSON.stringify(payload));
}

export function joined(messages: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(messages.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const one of messages) {
    bytes.set(one, at);
    at += one.length;
  }
  return bytes;
}

/** Name and data of a message, or why nothing is read any more. */
export type Received = readonly [name: string, data: string] | 'corrupt' | 'too large';

/** What Weir's parser makes of the reads. */
export function parse(reads: Iterable<Uint8Array>, maxEventBytes = 1_000_000): Received[] {
  const parser = new EventStreamParser(maxEventBytes);
  const received: Received[] = [];
  for (const bytes of reads) {
    for (let at = 0; at < bytes.length && !parser.isCorrupt && !parser.isTooLarge; ) {
      at = parser.next(bytes, at);
      const data = parser.takeData();
      if (data !== null) received.push([parser.name, data]);
    }
  }
  parser.end();
  if (parser.takeData() !== null) throw new Error('the end completes no message');
  if (parser.isCorrupt) received.push('corrupt');
  if (parser.isTooLarge) received.push('too large');
  return received;
}

/** What AWS's codec reads of a stream of whole messages. */
export function decode(bytes: Uint8Array): Received[] {
  const received: Received[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const length = view.getUint32(at);
    const { headers, body } = codec.decode(bytes.subarray(at, at + length));
    const failure = headers[':exception-type']?.value;
    const name =
      failure === undefined ? String(headers[':event-type']?.value ?? '') : FAILURE_PREFIX + String(failure);
    received.push([name, decoder.decode(body)]);
    at += length;
  }
  return received;
}
