/** The session that every view is within, and how to leave it. */
import type { Session } from './session.ts';

export interface Signed extends Session {
  readonly signOut: () => void;
}

let signed: Signed | null = null;

/** The frame sets it before any view is drawn: there is one session at a time, and views are made anew for another. */
export function enter(session: Signed): void {
  signed = session;
}

export function useSession(): Signed {
  if (signed === null) throw new Error('Nobody is signed in');
  return signed;
}
