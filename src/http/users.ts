/** Users: how they are named in records, hashed, and refused while they are erased. */
import type { Caller } from '../auth/caller.ts';
import type { HashUser } from '../auth/user-hash.ts';
import type { ApiError } from '../canonical/error.ts';
import type { UnreadableSecret } from '../canonical/secret.ts';
import type { Result } from '../shared/result.ts';

/** How users are named, hashed and refused. */
export interface Users {
  readonly names: FactNames;
  /** The keyed hash of names of users; null: there is no secret, or there are no users. */
  readonly hash: HashUser | UnreadableSecret | null;
  /** Whether the requests of a user are refused, because its data is being erased. Fails if that cannot be known now. */
  readonly isErasing: (user: string) => Promise<Result<boolean, ApiError>>;
}

/**
 * Converts names in queries into the form that records have; null: no record can have the name. While a secret that this needs cannot be
 * read, the result is that secret. The feature `attribution` implements it.
 */
export interface FactNames {
  /** Records have no names of users as they were sent. */
  readonly hidesUsers: boolean;
  /** The user under whom the caller's completions are recorded, read from a request without a body; null: none. */
  ofCaller(headers: Headers, caller: Caller): Promise<string | UnreadableSecret | null>;
  user(plain: string): Promise<string | UnreadableSecret | null>;
  /** All forms in which stores may have the name of a user, whatever `USERS` was when they were written. Empty: it is no name. */
  forms(plain: string): Promise<readonly string[] | UnreadableSecret>;
  /** What tells the users of one key apart in what is stored for them; null: nothing may be stored that does. */
  owner(plain: string): Promise<string | UnreadableSecret | null>;
  /** A session, an app, or the value of a tag. */
  fact(plain: string): Promise<string | null>;
}
