/** Hostile streams of Bedrock's Converse, by model name: lengths that lie, headers without end, messages without content. */
import { crc32 } from 'node:zlib';
import { eventStreamMessage } from '../../../tools/simulator/eventstream.ts';
import type { Answer } from '../harness/answer.ts';
import { MB, MIB, stream, times } from './frames.ts';

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\n';
const PRELUDE_BYTES = 12;
const MAX_HEADERS_BYTES = 128 * 1024;
const MILLION = 1_000_000;

function event(type: string, payload: object): Uint8Array {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' };
  return eventStreamMessage(headers, JSON.stringify(payload));
}

/** The beginning of a message, with a right checksum. */
function prelude(length: number, headersLength: number): Uint8Array {
  const bytes = Buffer.alloc(PRELUDE_BYTES);
  bytes.writeUInt32BE(length, 0);
  bytes.writeUInt32BE(headersLength, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  return bytes;
}

/** A message of right checksums with as many headers as may be: a name of one letter, the type `true`, no value. */
function manyHeaders(): Uint8Array {
  const headers = Buffer.alloc(Math.floor(MAX_HEADERS_BYTES / 3) * 3, Buffer.from([1, 97, 0]));
  const payload = Buffer.from('{}');
  const length = PRELUDE_BYTES + headers.length + payload.length + 4;
  const message = Buffer.concat([prelude(length, headers.length), headers, payload, Buffer.alloc(4)]);
  message.writeUInt32BE(crc32(message.subarray(0, -4)), message.length - 4);
  return message;
}

/** So many of one message, in pieces of about a megabyte. */
function repeated(message: Uint8Array, count: number): Uint8Array[] {
  const perPiece = Math.max(1, Math.floor(MB / message.length));
  return times(Buffer.concat(times(message, perPiece)), Math.ceil(count / perPiece));
}

const START = Buffer.concat([
  event('messageStart', { role: 'assistant' }),
  event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'a' } }),
]);

function converse(pieces: readonly Uint8Array[], own: Partial<Answer> = {}): Answer {
  return stream([START, ...pieces], { head: HEAD, ...own });
}

export const CONVERSE_ANSWERS: Readonly<Record<string, () => Answer>> = {
  'length-4-gb': () => converse([prelude(0xffff_ffff, 0), ...times(Buffer.alloc(MB), 30)]),
  'headers-4-gb': () => converse([prelude(0xffff_ffff, 0xffff_ff00), ...times(Buffer.alloc(MB), 30)]),
  'headers-without-end': () =>
    converse([prelude(MIB - 1, MAX_HEADERS_BYTES - 1), Buffer.alloc(MIB - 100, 7)], { ending: 'hang' }),
  'many-headers': () => converse(repeated(manyHeaders(), 400)),
  'empty-messages': () => converse(repeated(eventStreamMessage({}, ''), MILLION)),
  'unknown-events': () => converse(repeated(event('later', {}), MILLION / 4)),
  'empty-texts': () =>
    converse(
      repeated(event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: '' } }), MILLION / 4),
    ),
};
