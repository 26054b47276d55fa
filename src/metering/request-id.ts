/** Request ids are UUIDv7 (RFC 9562), so that an id tells its record's time, and ids sort by it (L2). */

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TIME_DIGITS = 12;

/**
 * @param ms since the epoch
 * @param random a random UUID (version 4), whose random bits are kept
 */
export function requestId(ms: number, random: string): string {
  const time = ms.toString(16).padStart(TIME_DIGITS, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`;
}

/** The time in an id, in ms since the epoch; undefined where the text can't be the id of a request. */
export function requestTime(id: string): number | undefined {
  return ID.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined;
}
