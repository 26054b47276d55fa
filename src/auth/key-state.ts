/**
 * What can end a key or one of its secrets: an expiry, that it is disabled, and a rotation. Earlier versions of Weir know expiries alone,
 * so the stored form has an `expires_at` with which these refuse what is disabled or was rotated away.
 */
import { isObject, type JsonObject, readText } from '../shared/json.ts';

export interface KeyState {
  /** ISO 8601, or null: never. */
  readonly expires_at: string | null;
  /** Its requests are refused until it is enabled; absent: they are not. */
  readonly disabled?: true | undefined;
  /** Absent: the key has the secret that it was created with. */
  readonly secrets?: Secrets | undefined;
}

/** The secrets of a rotated key, by the id of each: the first 16 hexadecimal digits of its SHA-256. */
export interface Secrets {
  readonly current: string;
  /** ISO 8601. */
  readonly rotated_at: string;
  /** The secret before, where it is valid for longer than the rotation. */
  readonly previous?: { readonly id: string; readonly until: string } | undefined;
}

/** A new secret. */
export interface Rotation {
  readonly secret: string;
  readonly rotated_at: string;
  /** Until when the secret before stays valid; null: it ends at once. */
  readonly until: string | null;
}

/** The secrets of a key after a rotation. A repeated rotation changes nothing. A secret before the previous one ends. */
export function rotate(id: string, secrets: Secrets | undefined, rotation: Rotation): Secrets {
  const { secret, rotated_at, until } = rotation;
  const before = secrets?.current ?? id;
  if (secrets?.current === secret) return secrets;
  // Clocks differ. What a rotation ended must not count as newer than the key.
  const latest = secrets !== undefined && secrets.rotated_at > rotated_at ? secrets.rotated_at : rotated_at;
  return { current: secret, rotated_at: latest, ...(until !== null && { previous: { id: before, until } }) };
}

/**
 * When a secret of a key ends, in ms since the epoch: infinite for the current one.
 * @param since when the secret was made by a rotation; null: the key was created with it
 * @returns null: it is not valid
 */
export function endOfSecret({ secrets }: KeyState, secret: string, since: string | null): number | null {
  if (secrets?.current === secret) return Number.POSITIVE_INFINITY;
  if (secrets?.previous?.id === secret) return Date.parse(secrets.previous.until);
  // KV may still return the key as it was before the rotation.
  const isNewer = since !== null && (secrets === undefined || secrets.rotated_at < since);
  return isNewer || (since === null && secrets === undefined) ? Number.POSITIVE_INFINITY : null;
}

const ENDED = '1970-01-01T00:00:00.000Z';

/** The fields of the stored form, where an earlier version would accept what this one refuses. */
export function encodeState(id: string, { expires_at, disabled, secrets }: KeyState): JsonObject {
  if (disabled === undefined && secrets === undefined) return { expires_at };
  // Earlier versions know the first secret alone.
  const { previous } = secrets ?? {};
  const endOfFirst = secrets === undefined ? null : previous?.id === id ? previous.until : ENDED;
  const ends = [expires_at, endOfFirst, disabled ? ENDED : null].filter((end) => end !== null);
  return {
    expires_at: ends.sort()[0] ?? null,
    state: { expires_at, ...(disabled && { disabled }), ...(secrets && { secrets: { ...secrets } }) },
  };
}

/** Reads what {@link encodeState} wrote, or a form without a state. Undefined where it cannot be read. */
export function decodeState(stored: JsonObject): KeyState | undefined {
  const { state = null } = stored;
  if (state === null) return isEnd(stored.expires_at) ? { expires_at: endOf(stored.expires_at) } : undefined;
  if (!isObject(state)) return undefined;
  const { expires_at, disabled = false, secrets = null } = state;
  const decodedSecrets = decodeSecrets(secrets);
  if (!isEnd(expires_at) || typeof disabled !== 'boolean' || decodedSecrets === undefined) return undefined;
  return {
    expires_at: endOf(expires_at),
    ...(disabled && { disabled }),
    ...(decodedSecrets !== null && { secrets: decodedSecrets }),
  };
}

/** Null: the key was never rotated; undefined: unreadable. */
function decodeSecrets(value: unknown): Secrets | null | undefined {
  if (value === null) return null;
  if (!isObject(value)) return undefined;
  const { current, rotated_at, previous = null } = value;
  if (typeof current !== 'string' || !isTime(rotated_at)) return undefined;
  if (previous === null) return { current, rotated_at };
  if (!isObject(previous) || typeof previous.id !== 'string' || !isTime(previous.until)) return undefined;
  return { current, rotated_at, previous: { id: previous.id, until: previous.until } };
}

function isTime(value: unknown): value is string {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}

function isEnd(value: unknown): boolean {
  return value === undefined || value === null || isTime(value);
}

function endOf(value: unknown): string | null {
  return readText(value) ?? null;
}

/** The state of a key in a response. */
export type ShownState = {
  readonly disabled?: true;
  readonly rotated_at?: string;
  /** Until when the secret before the last rotation is valid; null: it has ended. */
  readonly old_key_expires_at?: string | null;
};

/** The state in a response. A secret that has ended is not shown. */
export function showState({ disabled, secrets }: KeyState, nowMs: number): ShownState {
  const { rotated_at, previous } = secrets ?? {};
  const isOverlap = previous !== undefined && Date.parse(previous.until) > nowMs;
  return {
    ...(disabled && { disabled }),
    ...(rotated_at !== undefined && { rotated_at, old_key_expires_at: isOverlap ? previous.until : null }),
  };
}
