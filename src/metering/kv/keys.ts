/** Builds the KV keys of usage records: `usage/<day>/<key id>/<time>-<request id>`, so that a prefix is a day, or a key's day. */
import type { UsageRecord } from '../record.ts';

const PREFIX = 'usage/';

/** The key of a record: its own, so that no two writes ever meet (M4). */
export function recordKey(record: UsageRecord): string {
  const [day, time] = record.time.split('T');
  return `${dayPrefix(day ?? '', record.key_id)}${time}-${record.request_id}`;
}

/** The prefix of a day's records: of every key (null), or of one. */
export function dayPrefix(day: string, keyId: string | null): string {
  return keyId === null ? `${PREFIX}${day}/` : `${PREFIX}${day}/${keyId}/`;
}
