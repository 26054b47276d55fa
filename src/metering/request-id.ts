/** Request ids are UUIDv7 (RFC 9562), so that an id tells its record's time, and ids sort by it (L2). */

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const POSITION = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TIME_DIGITS = 12;
const NOTHING = '00000000-0000-0000-0000-000000000000';

/**
 * @param ms since the epoch
 * @param random a random UUID (version 4), whose random bits are kept
 */
export function requestId(ms: number, random: string): string {
  const time = ms.toString(16).padStart(TIME_DIGITS, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`;
}

/** No id of that time or later sorts before this text, and none of an earlier time after it. */
export function firstIdAt(ms: number): string {
  return requestId(ms, NOTHING);
}

/** Whether the text can be a place between ids: one of them, or the first of a time. */
export function isPosition(text: string): boolean {
  return POSITION.test(text);
}

/** Whether the text can be the id of a request. */
export function isRequestId(text: string): boolean {
  return ID.test(text);
}

/** The time in an id, in ms since the epoch. */
export function idTime(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
