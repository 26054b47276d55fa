/** The CRC-32 of zlib and of AWS's event stream, eight bytes a step. */

/** The polynomial 0x04c11db7 with its bits in reverse. */
const POLYNOMIAL = 0xedb88320;
const SLICES = 8;

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
export function crc32(bytes: Uint8Array, from: number, to: number, crc = 0): number {
  table ??= makeTable();
  const rows = table;
  let rest = ~crc;
  let at = from;
  for (const last = to - SLICES; at <= last; at += SLICES) {
    const low = rest ^ word(bytes, at);
    rest =
      (rows[0x700 | (low & 0xff)] ?? 0) ^
      (rows[0x600 | ((low >>> 8) & 0xff)] ?? 0) ^
      (rows[0x500 | ((low >>> 16) & 0xff)] ?? 0) ^
      (rows[0x400 | (low >>> 24)] ?? 0) ^
      (rows[0x300 | (bytes[at + 4] ?? 0)] ?? 0) ^
      (rows[0x200 | (bytes[at + 5] ?? 0)] ?? 0) ^
      (rows[0x100 | (bytes[at + 6] ?? 0)] ?? 0) ^
      (rows[bytes[at + 7] ?? 0] ?? 0);
  }
  for (; at < to; at++) rest = (rest >>> 8) ^ (rows[(rest ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  return ~rest >>> 0;
}

/** Four bytes, the lowest first. */
function word(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}
