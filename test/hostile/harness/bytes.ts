/** Builds large bodies for the hostile tests quickly, without holding their decompressed content. */
import { constants, crc32, deflateRawSync } from 'node:zlib';

const GZIP_HEAD = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
/** An empty last block. */
const LAST_BLOCK = Uint8Array.of(3, 0);
const LEVEL = 9;

/** A gzip body of a head and a number of repetitions of a unit. Each is compressed separately, so that its bytes can be reused. */
export function gzipOf(head: Uint8Array, unit: Uint8Array, times: number): readonly Uint8Array[] {
  const options = { level: LEVEL, finishFlush: constants.Z_FULL_FLUSH };
  const packed = deflateRawSync(unit, options);
  let crc = crc32(head);
  for (let i = 0; i < times; i++) crc = crc32(unit, crc);
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc, 0);
  trailer.writeUInt32LE((head.length + unit.length * times) % 2 ** 32, 4);
  const blocks = Array.from({ length: times }, () => packed);
  return [Buffer.concat([GZIP_HEAD, deflateRawSync(head, options), ...blocks, LAST_BLOCK, trailer])];
}

/** Repeats a text in one allocation. */
export function repeated(text: string, times: number): Buffer {
  return Buffer.alloc(Buffer.byteLength(text) * times, text);
}
