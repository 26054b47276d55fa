/** A secret has three states. One that could not be read is neither absent nor of another value: what needs it waits (W5). */
import { type ApiError, apiError } from './error.ts';

/** A secret that is set, and could not be read. */
export interface UnreadableSecret {
  /** The name of its setting. */
  readonly unreadable: string;
}

/** The text of a secret; null: it is not set. */
export type Secret = string | UnreadableSecret | null;

/** Whether it is a secret that could not be read, or stands for what would be made of it. */
export function isUnreadable(value: unknown): value is UnreadableSecret {
  return typeof value === 'object' && value !== null && 'unreadable' in value;
}

/** What `make` makes of the text. A secret without a text stays what it is. */
export function mapSecret<Made>(
  secret: Secret,
  make: (text: string) => Made,
): Made | UnreadableSecret | null {
  return typeof secret === 'string' ? make(secret) : secret;
}

/** The error for a request that needs the secret. It is read again after some seconds. */
export function secretUnreadable({ unreadable }: UnreadableSecret): ApiError {
  return apiError('secret_unreadable', `The secret ${unreadable} could not be read: try again`);
}
