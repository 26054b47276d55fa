/** Writes messages of AWS's event stream: lengths, headers of the type string, a payload, and both checksums. */
import { crc32 } from 'node:zlib';
import type { WireEvent } from './scene.ts';

const PRELUDE_BYTES = 12;
const STRING = 7;

/** A message as the event of a scene. */
export function messageEvent(kind: WireEvent['kind'], type: string, payload: object): WireEvent {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' };
  return { kind, text: '', bytes: eventStreamMessage(headers, JSON.stringify(payload)) };
}

export function eventStreamMessage(headers: Readonly<Record<string, string>>, payload: string): Uint8Array {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const body = Buffer.from(payload);
  const message = Buffer.alloc(PRELUDE_BYTES + head.length + body.length + 4);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(head.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  head.copy(message, PRELUDE_BYTES);
  body.copy(message, PRELUDE_BYTES + head.length);
  message.writeUInt32BE(crc32(message.subarray(0, -4)), message.length - 4);
  return message;
}

function header(name: string, value: string): Buffer {
  const text = Buffer.from(value);
  const start = Buffer.from([
    name.length,
    ...Buffer.from(name),
    STRING,
    text.length >> 8,
    text.length & 0xff,
  ]);
  return Buffer.concat([start, text]);
}
