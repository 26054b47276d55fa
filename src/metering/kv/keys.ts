/** Builds the KV keys of usage records: `usage/<day>/<key id>/<time>-<request id>`, so that a prefix is a day, or a key's day. */
import type { RecordSummary } from '../record.ts';
import { isoTime } from '../record.ts';
import { idTime } from '../request-id.ts';

const PREFIX = 'usage/';
/** `-<request id>` at the end. */
const ID_CHARS = 36;
/** `2026-11-22`. */
const DAY_CHARS = 10;

/** The key of a record: its own, so that no two writes ever meet (M4). It follows from the id and the key's id (L2). */
export function recordKey({ request_id, key_id }: Pick<RecordSummary, 'request_id' | 'key_id'>): string {
  const time = isoTime(idTime(request_id));
  return `${dayPrefix(time.slice(0, DAY_CHARS), key_id)}${time.slice(DAY_CHARS + 1)}-${request_id}`;
}

/** The prefix of a day's records: of every key (null), or of one. */
export function dayPrefix(day: string, keyId: string | null): string {
  return keyId === null ? `${PREFIX}${day}/` : `${PREFIX}${day}/${keyId}/`;
}

/** The prefixes of days' records. */
export function dayPrefixes(days: readonly string[], keyId: string | null): string[] {
  return days.map((day) => dayPrefix(day, keyId));
}

/** The request id at the end of a record's key. */
export function requestIdOf(key: string): string {
  return key.slice(-ID_CHARS);
}
