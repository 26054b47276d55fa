/** The CRC-32 of zlib and of AWS's event stream, eight bytes a step. */

/** The polynomial 0x04c11db7 with its bits in reverse. */
const POLYNOMIAL = 0xedb88320;
const SLICES = 8;
/** A checksum's bytes. */
const CRC_BYTES = 4;

let table: Int32Array | undefined;

/** Row k has the remainder of each byte with k zero bytes behind it. Made for the first checksum, because few isolates need any. */
function makeTable(): Int32Array {
  const rows = new Int32Array(SLICES * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    rows[byte] = crc;
  }
  for (let at = 256; at < rows.length; at++) {
    const before = rows[at - 256] ?? 0;
    rows[at] = (before >>> 8) ^ (rows[before & 0xff] ?? 0);
  }
  return rows;
}

/**
 * Adds the bytes between `from` and `to` to a checksum.
 * @param crc the checksum of the bytes before them; 0 for none
 * @returns an unsigned integer
 */
export function crc32(bytes: DataView, from: number, to: number, crc = 0): number {
  table ??= makeTable();
  const rows = table;
  let rest = ~crc;
  let at = from;
  for (const last = to - SLICES; at <= last; at += SLICES) {
    const low = rest ^ bytes.getInt32(at, true);
    const high = bytes.getInt32(at + 4, true);
    rest =
      (rows[0x700 | (low & 0xff)] ?? 0) ^
      (rows[0x600 | ((low >>> 8) & 0xff)] ?? 0) ^
      (rows[0x500 | ((low >>> 16) & 0xff)] ?? 0) ^
      (rows[0x400 | (low >>> 24)] ?? 0) ^
      (rows[0x300 | (high & 0xff)] ?? 0) ^
      (rows[0x200 | ((high >>> 8) & 0xff)] ?? 0) ^
      (rows[0x100 | ((high >>> 16) & 0xff)] ?? 0) ^
      (rows[high >>> 24] ?? 0);
  }
  if (to - at >= CRC_BYTES) {
    const word = rest ^ bytes.getInt32(at, true);
    rest =
      (rows[0x300 | (word & 0xff)] ?? 0) ^
      (rows[0x200 | ((word >>> 8) & 0xff)] ?? 0) ^
      (rows[0x100 | ((word >>> 16) & 0xff)] ?? 0) ^
      (rows[word >>> 24] ?? 0);
    at += CRC_BYTES;
  }
  for (; at < to; at++) rest = (rest >>> 8) ^ (rows[(rest ^ bytes.getUint8(at)) & 0xff] ?? 0);
  return ~rest >>> 0;
}

/** What bytes of known length and checksum do to the checksum of the bytes before them, without being read again. */
export class KnownBytes {
  readonly #crc: number;
  readonly #advance: Int32Array;

  /** @param crc the checksum of these bytes alone */
  constructor(length: number, crc: number) {
    this.#crc = crc;
    this.#advance = advanceBy(length);
  }

  /** The checksum of the bytes before and these, from that of the bytes before. */
  after(crc: number): number {
    const rows = this.#advance;
    const moved =
      (rows[crc & 0xff] ?? 0) ^
      (rows[0x100 | ((crc >>> 8) & 0xff)] ?? 0) ^
      (rows[0x200 | ((crc >>> 16) & 0xff)] ?? 0) ^
      (rows[0x300 | (crc >>> 24)] ?? 0);
    return (moved ^ this.#crc) >>> 0;
  }
}

/** The lengths whose tables are kept, of 4 KiB each: all streams of one provider have the same few. */
const MAX_LENGTHS = 8;
const advances = new Map<number, Int32Array>();

/** Row k has what each value of the checksum's byte k becomes behind so many zero bytes. A checksum is linear: the rest is their sum. */
function advanceBy(length: number): Int32Array {
  const known = advances.get(length);
  if (known !== undefined) return known;
  table ??= makeTable();
  const rows = new Int32Array(CRC_BYTES * 256);
  for (let bit = 0; bit < CRC_BYTES * 8; bit++) {
    let crc = 1 << bit;
    for (let i = 0; i < length; i++) crc = (crc >>> 8) ^ (table[crc & 0xff] ?? 0);
    const row = (bit >>> 3) << 8;
    const half = 1 << (bit & 7);
    for (let value = 0; value < half; value++) rows[row | half | value] = (rows[row | value] ?? 0) ^ crc;
  }
  if (advances.size >= MAX_LENGTHS) advances.clear();
  advances.set(length, rows);
  return rows;
}
